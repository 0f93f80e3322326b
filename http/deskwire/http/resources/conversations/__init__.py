"""Conversations, for a backend and for agents."""
