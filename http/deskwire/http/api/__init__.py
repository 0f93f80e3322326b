"""The way of a request: routing, authentication, limits, the handler, the response."""
