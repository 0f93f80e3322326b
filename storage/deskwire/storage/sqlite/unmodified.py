"""Opens a database for reading without changing a byte of it or of its WAL."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

_BUSY_S: Final = 5.0


def connect_unmodified(path: Path) -> sqlite3.Connection:
    """Open a database for reading so that its files stay byte for byte the same. Raises sqlite3.Error.

    If a WAL exists, a read-only connection leaves both files unchanged. Without a WAL it would leave an empty one behind,
    so a read-write connection is used: it creates and removes the WAL, and has nothing to checkpoint. On a read-only disk
    the database is opened as immutable, because there can be no writer.
    """
    wal = path.with_name(f"{path.name}-wal")
    modes = ("mode=ro",) if wal.exists() else ("mode=rw", "mode=ro&immutable=1")
    for mode in modes:
        uri = f"{path.absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_S)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA temp_store = MEMORY")  # no text in temporary files
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            if mode == modes[-1]:
                raise
        except sqlite3.Error:
            connection.close()
            raise
        else:
            return connection
    raise AssertionError("the last mode returns or raises")
