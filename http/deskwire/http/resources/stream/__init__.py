"""Authorizations for the stream, and its consumers."""
