"""Workflows: definitions, validation, and runs in conversations."""
