"""The check of a data directory."""
