"""Histories that come from elsewhere, in bulk: conversations with their messages in their original form (ADR 30)."""
