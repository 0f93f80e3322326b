"""Adapters of the libraries that serve requests off the fast path."""
