"""Contacts, the customers of a project: identity, attributes and tags, memory entries, search terms, merges."""
