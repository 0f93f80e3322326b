"""`deskwire event`: follows the events of a project through its API (ADR 3)."""
