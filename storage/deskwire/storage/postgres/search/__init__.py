"""The search index as tables of the database (ADR 54)."""
