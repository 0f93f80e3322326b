"""Implementations of the engine's store port on SQLite and PostgreSQL, and of file stores."""
