"""Workflows at work in conversations."""
