"""Callers: credentials, sessions and passwords."""
