"""Imports of histories."""
