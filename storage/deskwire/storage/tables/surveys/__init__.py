"""Surveys and their responses."""
