"""The data directory: the names in it, and the errors of one that can't be used."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

FILE_NAME: Final = "deskwire.sqlite3"
LOCK_NAME: Final = "deskwire.lock"
SECRET_FILE: Final = "secret"
RESTORING: Final = ".restoring"
"""The folder of a restore that is not finished."""
RESCUED: Final = "rescued.sqlite3"
"""The copy that a service has made of its open database because the file was deleted or replaced."""


class DataDirectoryError(Exception):
    """The data directory can't be used; the text says why and what to do."""


Holder = Literal["server", "command"]
"""A process that has a data directory: a server for long, a command most often for a moment."""


class DirectoryInUseError(DataDirectoryError):
    """Another process has the data directory.

    Args:
        holder: what it is; None if it has not said so yet, or is of an older release.
        pid: its process id, as it has written it, or `unknown`.
    """

    def __init__(self, directory: Path, holder: Holder | None, pid: str) -> None:
        self.holder = holder
        self.pid = pid
        who = "another Deskwire process" if holder is None else f"a Deskwire {holder}"
        wait = "Wait until it has ended" if holder == "command" else "Stop that one first"
        super().__init__(
            f"The data directory {directory} is in use by {who} (pid {pid}). {wait}, or choose another directory with --data."
        )


def no_deskwire(directory: Path) -> str:
    """Return the words for a data directory that has no database."""
    return (
        f"There is no Deskwire in the data directory {directory}: `deskwire org create` or `deskwire serve` makes one, "
        "--data names another."
    )


def require_whole(directory: Path) -> None:
    """Make sure that no restore was cut short, and no rescued database waits for a choice. Raises DataDirectoryError."""
    if (directory / RESTORING).exists():
        raise DataDirectoryError(
            f"A restore into {directory} was not finished: run `deskwire restore` again, or delete the directory."
        )
    if (directory / RESCUED).exists():
        raise DataDirectoryError(rescued(directory))


def rescued(directory: Path) -> str:
    """Return the words for a data directory that has a rescued database."""
    copy, path = directory / RESCUED, directory / FILE_NAME
    now = f"{path} is another one" if path.exists() else f"{path} is missing"
    return (
        f"The database was deleted or replaced while a service had it open, and the service has saved its content in {copy}; "
        f"{now}. To go on with the saved content, move it to {path} and remove {FILE_NAME}-wal and {FILE_NAME}-shm if they are "
        f"there. To go on without it, move {copy} away."
    )
