"""Contacts that are merged into others."""
