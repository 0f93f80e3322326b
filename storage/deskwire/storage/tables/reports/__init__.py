"""The figures of reports, counted by the database itself."""
