"""The customers of a project."""
