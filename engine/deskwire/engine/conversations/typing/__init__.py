"""Typing indicators."""
