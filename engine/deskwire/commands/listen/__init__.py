"""`deskwire listen`: a project's events, forwarded as signed deliveries to one's own receiver (ADR 3)."""
