"""Backups: made, read, restored."""
