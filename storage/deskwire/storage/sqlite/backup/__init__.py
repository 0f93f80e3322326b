"""Backups: creation, verification and restore."""
