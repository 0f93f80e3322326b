"""The way of a request through routing, limits and handler to its response."""
