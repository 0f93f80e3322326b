"""The driver: libpq on Trio, psycopg in threads, and what both know of a database."""
