"""`deskwire contact`: export and erasure of a contact through the project's API (ADR 3)."""
