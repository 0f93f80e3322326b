"""The tables of a PostgreSQL database, as SQL that the migrations run."""
