"""Selects the file store of uploads from the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from deskwire.engine.uploads.ports import Files
from deskwire.storage.files import DiskFiles
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError

if TYPE_CHECKING:
    from deskwire.storage.postgres.driver.servers import Servers  # an extra

_NO_LIBRARY: Final = (
    "DESKWIRE_FILES names a bucket, and its library is not installed: `pip install 'deskwire[s3]'`."
)


def open_files(place: str, data_dir: Path, database_url: str | None, servers: Servers | None = None) -> Files:
    """Return the file store for `disk`, `database` or the URL of a bucket, without connecting to it.

    Raises DatabaseUnusableError for a bucket whose library is not installed.

    Args:
        database_url: where `database` is.
        servers: a node's, for sessions with it.
    """
    if place.startswith("s3:"):
        try:
            from deskwire.storage.s3 import S3Files  # an extra
        except ModuleNotFoundError as error:
            raise DatabaseUnusableError(_NO_LIBRARY) from error
        return S3Files(place)
    if place == "database":
        from deskwire.storage.postgres.files import DatabaseFiles  # an extra

        assert database_url is not None, "the settings were checked for this conflict"
        return DatabaseFiles(database_url, servers)
    return DiskFiles(data_dir)
