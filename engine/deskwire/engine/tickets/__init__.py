"""Tickets: what they are, how they change, and what wakes them."""
