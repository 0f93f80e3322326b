"""The search index as the leader maintains it (ADR 54).

Keys of rows grow in the order in which they were given, and not in the order of the commits. So the index can
only take rows up to the point at which every earlier writer has ended. Each writer of a table locks it before
its rows get keys, and holds the lock until its commit is visible.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import structlog
import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.search.ports import IndexPosition, IndexTransaction
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.errors import DatabaseError
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.search.changes import IndexChanges

T = TypeVar("T")
log: Final = structlog.get_logger(__name__)

# The format of the index and of its words; an index of another version is rebuilt.
VERSION: Final = f"2, Unicode {unicodedata.unidata_version}"

POLL_INTERVAL_S: Final = 0.02  # interval at which the end of earlier writers is checked

# Time to wait for earlier writers; after that only rows up to the last bound are indexed.
WRITERS_TIMEOUT_S: Final = 1.0

_KEYS: Final = (
    "SELECT (SELECT last_value FROM messages_rowid_seq), (SELECT last_value FROM conversations_rowid_seq), "
    "(SELECT last_value FROM search_changes_rowid_seq)"
)
_WRITERS: Final = (
    "SELECT DISTINCT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND relation IN "
    "(CAST('messages' AS regclass), CAST('conversations' AS regclass), CAST('search_changes' AS regclass))"
)
_STATE: Final = "SELECT message, message_id, conversation, change, complete, version FROM search_state"
_RESET_INDEX: Final = (
    "TRUNCATE search_postings, search_words; UPDATE search_state SET message = 0, message_id = NULL, conversation = 0, "
    f"change = 0, complete = 0, version = '{VERSION}'"
)
_START: Final = IndexPosition(0, None, 0, 0)

# Statistics are collected when the index is complete and has grown by this number of messages and this share since
# the last time. Autovacuum does it as well, but minutes after an import, and until then plans assume the old sizes.
ANALYZED_MESSAGES_MIN: Final = 10_000
_ANALYZED_SHARE: Final = 0.1
_ANALYZE: Final = "ANALYZE search_postings, search_words, messages, conversations, contacts"


class PostgresIndex:
    """Implements `engine.search.ports.SearchIndex` in the database, on a connection of its own."""

    def __init__(self, database: Database) -> None:
        self._connection = BlockingConnection(database, "search")
        self._lock = threading.Lock()
        self._thread = trio.CapacityLimiter(1)
        self._bound = _START
        self.position = _START
        self.complete = False
        self._analyzed = 0  # the newest message at the last collection of statistics by this node

    @property
    def scrub_due(self) -> bool:
        """False: removed words are free space after the next VACUUM, like all erased data."""
        return False

    async def bound(self) -> IndexPosition:
        """See `SearchIndex.bound`."""
        keys, writers = await self._in_thread(self._newest_keys)
        end = trio.current_time() + WRITERS_TIMEOUT_S
        while writers:
            if trio.current_time() > end:
                return self._bound
            await trio.sleep(POLL_INTERVAL_S)
            writers &= await self._in_thread(self._writers)
        self._bound = keys
        return keys

    async def write(self, job: Callable[[IndexTransaction], T]) -> T:
        """See `SearchIndex.write`."""
        return await self._in_thread(partial(self._write, job))

    async def settle(self) -> float | None:
        """See `SearchIndex.settle`. Each commit is durable."""
        await trio.lowlevel.checkpoint()
        return None

    async def refresh_statistics(self) -> None:
        """See `SearchIndex.refresh_statistics`."""
        newest = self.position.message
        if newest - self._analyzed >= max(ANALYZED_MESSAGES_MIN, _ANALYZED_SHARE * newest):
            await self._in_thread(partial(self._connection.command, _ANALYZE))
            self._analyzed = newest

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        def alone() -> T:
            with self._lock:
                return work()

        try:
            return await trio.to_thread.run_sync(alone, limiter=self._thread)
        except DatabaseError as error:
            raise Unavailable(
                f"The search index could not be written: {error}", code="storage_failed"
            ) from error

    def _newest_keys(self) -> tuple[IndexPosition, set[str]]:
        """Return the newest keys that were given, and the transactions that may still hold some."""
        *position, complete, version = self._connection.execute(_STATE).fetchone()
        if version != VERSION:
            if version:  # otherwise the index is new
                log.warning("search.index_discarded", reason=f"it is of version {version}, not {VERSION}")
            self._connection.command(_RESET_INDEX)
            position, complete = list(_START), 0
        self.position, self.complete = IndexPosition(*position), bool(complete)
        message, conversation, change = self._connection.execute(_KEYS).fetchone()
        return IndexPosition(message, None, conversation, change), self._writers()

    def _writers(self) -> set[str]:
        return {row[0] for row in self._connection.execute(_WRITERS)}

    def _write(self, job: Callable[[IndexTransaction], T]) -> T:
        known = self.position
        self._connection.command("BEGIN")
        try:
            *position, _, version = self._connection.execute(f"{_STATE} FOR UPDATE").fetchone()
            if IndexPosition(*position) != known or version != VERSION:
                raise Unavailable("Another node has written the search index.", code="storage_failed")
            tx = IndexChanges(self._connection)
            result = job(tx)
            tx.flush()
            *position, complete, _ = self._connection.execute(_STATE).fetchone()
            self._connection.command("COMMIT")
        except BaseException:  # re-raised after a rollback, so that the session can be used again
            with suppress(DatabaseError):
                self._connection.command("ROLLBACK")
            raise
        self.position, self.complete = IndexPosition(*position), bool(complete)
        return result
