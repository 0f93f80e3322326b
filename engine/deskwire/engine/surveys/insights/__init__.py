"""Insights into survey responses."""
