"""Organisations with their members, projects and server keys: what may be changed, and by whom."""
