"""Tickets and voice replies."""
