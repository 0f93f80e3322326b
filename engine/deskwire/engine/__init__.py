"""What Deskwire does: conversations, their event log, and everything that reads it."""
