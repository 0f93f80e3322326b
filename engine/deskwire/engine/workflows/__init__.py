"""Workflows: what they consist of, how they are checked, and how one runs in a conversation."""
