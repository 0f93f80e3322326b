"""The engine: conversations, their event log, and everything that reads it."""
