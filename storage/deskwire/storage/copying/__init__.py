"""Copies of an installation from SQLite into an empty PostgreSQL database."""
