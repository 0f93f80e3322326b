"""Organisations, people and teams."""
