"""Copying an installation from a data directory, or from a backup of one, into an empty PostgreSQL database."""
