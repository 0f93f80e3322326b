"""The commands about a PostgreSQL database that nodes share, and the way into one."""
