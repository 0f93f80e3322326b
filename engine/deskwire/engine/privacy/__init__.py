"""Erasure, export and retention."""
