"""Queries on contacts, their profiles and memory entries, lists, and merges."""
