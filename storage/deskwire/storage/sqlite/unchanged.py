"""Opening a database without changing a byte of it or of its WAL."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

_BUSY_S: Final = 5.0


def opened_unchanged(path: Path) -> sqlite3.Connection:
    """Open a database for reading so that its file stays as it is, byte by byte. Raises sqlite3.Error.

    With a WAL beside it, a connection that can only read leaves both alone at its end. Without one such a connection
    would leave an empty one; one that could write makes and removes it, and has nothing to fold into the file. A disk that is
    read-only has no writer.
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
    raise AssertionError("the last mode is returned or raised")
