"""`deskwire contact`: what is stored about a contact, through the API of its project (ADR 12)."""
