"""Figures of reports, computed by the database."""
