"""Adapters of the libraries that serve the requests that the fast path does not take."""
