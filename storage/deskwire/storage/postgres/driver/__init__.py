"""The PostgreSQL driver: libpq pipelines on Trio's thread, psycopg in worker threads."""
