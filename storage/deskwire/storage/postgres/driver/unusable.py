"""The error of a database that can't be used."""

from __future__ import annotations


class DatabaseUnusableError(Exception):
    """The PostgreSQL database can't be used; the text says why and what to do."""
