"""Customers who talk to the service from their own browser: sessions, signed identities, and limits."""
