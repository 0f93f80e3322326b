"""Conversations, their messages, and what imports add to them."""
