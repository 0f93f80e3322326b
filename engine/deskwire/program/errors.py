"""The error that prevents a start, also raised for a missing PostgreSQL driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NO_DRIVER: Final = (
    "DESKWIRE_DATABASE_URL names a PostgreSQL database, but the driver is not installed: `pip install 'deskwire[postgres]'`. "
    "The one-file program and the image without the driver support only SQLite."
)


class StartError(Exception):
    """The service can't start; the text gives the reason."""


@contextmanager
def driver_needed() -> Iterator[None]:
    """Raise StartError if the context can't import PostgreSQL's optional driver."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        raise StartError(_NO_DRIVER) from error
