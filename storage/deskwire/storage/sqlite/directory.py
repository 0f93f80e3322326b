"""The data directory: the names in it, and the errors of one that can't be used."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FILE_NAME: Final = "deskwire.sqlite3"
LOCK_NAME: Final = "deskwire.lock"
RESTORING: Final = ".restoring"
"""The folder of a restore that is not finished."""


class DataDirectoryError(Exception):
    """The data directory can't be used; the text says why and what to do."""


class DirectoryInUseError(DataDirectoryError):
    """Another process has the data directory."""


def no_deskwire(directory: Path) -> str:
    """Return the words for a data directory that has no database."""
    return (
        f"There is no Deskwire in the data directory {directory}: `deskwire org create` or `deskwire serve` makes one, "
        "--data names another."
    )


def require_whole(directory: Path) -> None:
    """Make sure that no restore into the directory was cut short. Raises DataDirectoryError."""
    if (directory / RESTORING).exists():
        raise DataDirectoryError(
            f"A restore into {directory} was not finished: run `deskwire restore` again, or delete the directory."
        )
