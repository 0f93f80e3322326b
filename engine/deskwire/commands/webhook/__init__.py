"""`deskwire webhook`: the webhook endpoints of a project, through its API (ADR 3)."""
