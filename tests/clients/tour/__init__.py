"""A tour over all operations with JSON: each is called against a running service, and its exchange is recorded."""
