"""Requests, read and validated."""
