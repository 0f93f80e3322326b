"""Merging contacts."""
