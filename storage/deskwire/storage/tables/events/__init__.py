"""The event log and its consumers."""
