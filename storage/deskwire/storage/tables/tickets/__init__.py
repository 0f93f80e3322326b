"""Tickets: rows, lists, search."""
