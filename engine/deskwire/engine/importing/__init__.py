"""Histories that come from elsewhere, in bulk: conversations with their messages, as they were (ADR 30)."""
