"""Erasure, export and retention of personal data."""
