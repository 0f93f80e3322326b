"""Queries on organisations, users, projects, keys, sessions and teams."""
