"""The error of a start that is not possible, and the one that a missing driver is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NO_DRIVER: Final = (
    "DESKWIRE_DATABASE_URL names a PostgreSQL, and its driver is not installed: `pip install 'deskwire[postgres]'`. The "
    "one-file program and the image without it know SQLite alone."
)


class StartError(Exception):
    """The service can't start; the text says why."""


@contextmanager
def driver_needed() -> Iterator[None]:
    """Turn the lack of PostgreSQL's driver, which is an extra, into a StartError; other modules are never missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        raise StartError(_NO_DRIVER) from error
