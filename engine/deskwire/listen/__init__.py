"""`deskwire listen`: the project's events, forwarded to a developer's receiver as signed deliveries (ADR 12)."""
