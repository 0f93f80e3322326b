"""The store of several nodes: one PostgreSQL database that they share."""
