"""The prepared replies of a project."""
