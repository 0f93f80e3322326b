"""The migrations of a PostgreSQL database."""
