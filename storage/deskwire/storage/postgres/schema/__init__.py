"""The tables of a PostgreSQL database, a module for each concern; put together by the first migration."""
