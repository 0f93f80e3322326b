"""Contents of uploads in the database, as rows of 256 KiB (ADR 17).

No other storage is needed, and each backup of the database has the files.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from queue import Empty, SimpleQueue
from threading import BoundedSemaphore
from typing import IO, Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg import errors

from deskwire.engine.uploads.ports import FileContent
from deskwire.storage.postgres.driver.blocking import ThreadSession
from deskwire.storage.postgres.driver.errors import ConnectionLost
from deskwire.storage.postgres.driver.servers import Servers, watched
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.upload_buffer import UploadBuffer

PART_BYTES: Final = 1 << 18  # bytes of a row; the last row of a file has fewer

T = TypeVar("T")
_Connection: TypeAlias = psycopg.Connection[Any]

SESSIONS_MAX: Final = 4  # maximum number of open sessions

_READ: Final = f"""
SELECT substr(data, greatest(0, %(start)s - number * {PART_BYTES}) + 1,
              least({PART_BYTES}, %(end)s - number * {PART_BYTES}) - greatest(0, %(start)s - number * {PART_BYTES}))
FROM upload_parts WHERE content = %(content)s AND number BETWEEN %(start)s / {PART_BYTES} AND (%(end)s - 1) / {PART_BYTES}
ORDER BY number
"""


class DatabaseFiles:
    """`uploads.ports.Files` in a PostgreSQL database, with a pool of connections.

    Args:
        servers: those of a node, which watches them; None for a command.
    """

    def __init__(self, url: str, servers: Servers | None = None) -> None:
        self._database = Database(url, "", servers or Servers())
        self._watched = servers is not None
        self._idle: SimpleQueue[_Connection] = SimpleQueue()
        self._slots = BoundedSemaphore(SESSIONS_MAX)

    def close(self) -> None:
        """See `Files.close`."""
        while (connection := self._idle_connection()) is not None:
            connection.close()

    def clear_drafts(self) -> None:
        """See `Files.clear_drafts`. Nothing to do: uncommitted drafts are gone."""

    def draft(self) -> UploadBuffer:
        """See `Files.draft`."""
        return UploadBuffer(self._put)

    def size(self, content: FileContent) -> int | None:
        """See `Files.size`."""
        sql = (
            f"SELECT number * {PART_BYTES}::bigint + octet_length(data) FROM upload_parts WHERE content = %s "
            "ORDER BY number DESC LIMIT 1"
        )
        row = self._on_connection(lambda connection: connection.execute(sql, (content.entry,)).fetchone())
        return None if row is None else int(row[0])

    def read(self, content: FileContent, start: int, length: int) -> bytes:
        """See `Files.read`."""
        asked = {"content": content.entry, "start": start, "end": start + length}
        parts = self._on_connection(
            lambda connection: b"".join(row[0] for row in connection.execute(_READ, asked, binary=True))
        )
        if not parts and self.size(content) is None:
            raise FileNotFoundError(errno.ENOENT, "the file is gone")
        return parts

    def remove(self, content: FileContent) -> None:
        """See `Files.remove`. The bytes leave the table's file with the next vacuum."""
        sql = "DELETE FROM upload_parts WHERE content = %s"
        self._on_connection(lambda connection: connection.execute(sql, (content.entry,)))

    def contents(self) -> Iterator[FileContent]:
        """See `Files.contents`. There are none without an entry."""
        sql = (
            "SELECT project, sha256, rowid FROM contents c WHERE rowid > %s "
            "AND EXISTS (SELECT 1 FROM upload_parts p WHERE p.content = c.rowid) ORDER BY rowid LIMIT 1000"
        )
        rows = self._on_connection(lambda connection: connection.execute(sql, (0,)).fetchall())
        while rows:
            yield from (FileContent(*row) for row in rows)
            behind = rows[-1][2]
            rows = self._on_connection(lambda connection: connection.execute(sql, (behind,)).fetchall())  # noqa: B023

    def _put(self, content: FileContent, file: IO[bytes], size: int) -> None:
        try:
            self._on_connection(partial(_copy, content, file))
        except errors.UniqueViolation:
            return  # another request has stored it in the meantime
        except errors.ForeignKeyViolation:
            return  # its entry was deleted in the meantime; the commit that refers to it will fail

    def _on_connection(self, work: Callable[[_Connection], T]) -> T:
        """Run an idempotent function on an idle connection. Raises OSError and IntegrityError."""
        watch = nullcontext() if self._watched else watched(self._database.servers, self._options)
        try:
            with self._slots, watch:
                used = self._idle_connection()
                try:
                    return self._run_and_return(used or self._connected(), work)
                except psycopg.OperationalError:
                    if used is None:
                        raise
                    self.close()  # the other idle connections were probably ended as well
                    return self._run_and_return(self._connected(), work)
        except psycopg.IntegrityError:
            raise
        except (psycopg.Error, ConnectionLost) as error:
            message = f"the database can't keep or read files ({str(error).partition(chr(10))[0]})"
            raise OSError(errno.EIO, message) from error

    def _run_and_return(self, connection: _Connection, work: Callable[[_Connection], T]) -> T:
        try:
            return work(connection)
        finally:
            if connection.closed:
                connection.close()  # releases the rest of a lost session
            else:
                self._idle.put(connection)

    def _idle_connection(self) -> _Connection | None:
        while True:
            try:
                connection = self._idle.get_nowait()
            except Empty:
                return None
            if not connection.closed:
                return connection
            connection.close()

    def _connected(self) -> _Connection:
        return ThreadSession(self._database.connect("files"), self._database.servers)

    @property
    def _options(self) -> bytes:
        return self._database.options("files")


def _copy(content: FileContent, file: IO[bytes], connection: _Connection) -> None:
    file.seek(0)
    known = "SELECT 1 FROM upload_parts WHERE content = %s LIMIT 1"
    with connection.transaction():
        if connection.execute(known, (content.entry,)).fetchone() is not None:
            return
        sql = "COPY upload_parts (content, number, data) FROM STDIN (FORMAT BINARY)"
        with connection.cursor() as cursor, cursor.copy(sql) as copy:
            copy.set_types(["int8", "int4", "bytea"])
            number = 0
            while part := file.read(PART_BYTES):
                copy.write_row((content.entry, number, part))
                number += 1
