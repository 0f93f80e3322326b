"""`deskwire event`: the events of a project as they happen, through its API (ADR 12)."""
