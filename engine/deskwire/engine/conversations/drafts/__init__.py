"""Drafts: the unsent texts of each agent, kept for each conversation."""
