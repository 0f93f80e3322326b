"""Commands for a PostgreSQL database, and the copy of an installation into one."""
