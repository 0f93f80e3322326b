"""The data directory: file names, and errors of an unusable directory."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

FILE_NAME: Final = "deskwire.sqlite3"
LOCK_NAME: Final = "deskwire.lock"
SECRET_FILE: Final = "secret"
RESTORING: Final = ".restoring"
"""The folder of an unfinished restore."""
RESCUED: Final = "rescued.sqlite3"
"""The copy of an open database whose file was deleted or replaced."""


class DataDirectoryError(Exception):
    """The data directory can't be used; the text gives the reason and the remedy."""


Holder = Literal["server", "command"]
"""The kind of process that has locked a data directory."""


class DirectoryInUseError(DataDirectoryError):
    """Another process has locked the data directory.

    Args:
        holder: its kind; None if it is unknown.
        pid: its process id as written in the lock file, or `unknown`.
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
    """Return the error message for a data directory without a database."""
    return (
        f"There is no Deskwire in the data directory {directory}: `deskwire org create` or `deskwire serve` makes one, "
        "--data names another."
    )


def require_whole(directory: Path) -> None:
    """Refuse a directory with an unfinished restore or an unresolved rescue. Raises DataDirectoryError."""
    if (directory / RESTORING).exists():
        raise DataDirectoryError(
            f"A restore into {directory} was not finished: run `deskwire restore` again, or delete the directory."
        )
    if (directory / RESCUED).exists():
        raise DataDirectoryError(rescued(directory))


def rescued(directory: Path) -> str:
    """Return the error message for a data directory with a rescued database."""
    copy, path = directory / RESCUED, directory / FILE_NAME
    now = f"{path} is another one" if path.exists() else f"{path} is missing"
    return (
        f"The database was deleted or replaced while a service had it open, and the service has saved its content in {copy}; "
        f"{now}. To continue with the saved content, move it to {path} and remove {FILE_NAME}-wal and {FILE_NAME}-shm if they "
        f"exist. To continue without it, move {copy} away."
    )
