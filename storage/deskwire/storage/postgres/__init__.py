"""The store that several nodes share: one PostgreSQL database."""
