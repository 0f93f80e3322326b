"""The task that updates the search index from committed rows.

The index stores its own position, so indexing resumes there after a crash or a stop; a missing index is built from the
first row by the same steps. While the service is busy the task uses a small share of the processor and lets the index
fall behind. Erased texts are removed from the index first and overwritten; only then does the database drop its record
of their erasure.
"""

from __future__ import annotations

from collections.abc import Sized
from functools import partial
from math import inf
from typing import Final, Protocol

import structlog
import trio
from msgspec import Struct

from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.search.ingest import (
    BATCH_SIZE,
    IDLE_BATCH_SIZE,
    IngestBatch,
    next_batch_to_ingest,
    take_in,
)
from deskwire.engine.search.ports import SearchIndex, SourceReader, SourceTransaction

log: Final = structlog.get_logger(__name__)

GATHER_S: Final = 0.1
"""Time during which commits are collected into one batch, in seconds."""

YIELD_S: Final = 0.05
"""Pause for each commit and event that others made during a batch, in seconds.

At n commits and events a second the task uses 1 / (1 + 0.05 n) of a processor."""

MIN_SHARE: Final = 1 / 40
"""Minimum share of a processor, however busy the service is."""

LATE_MIN_SHARE: Final = 1 / 10
"""Minimum share once the index is LATE_S behind."""

LATE_S: Final = 60.0

POLL_INTERVAL_S: Final = 1.0
"""Poll interval for commits of other nodes that sent no notification."""

_RETRY_DELAY_S: Final = 1.0
_PROGRESS_LOG_INTERVAL_S: Final = 10.0


class EventCommit(Protocol):
    """The part of a commit that measures how much the service writes."""

    @property
    def events(self) -> Sized:
        """The events of the commit."""


class Progress(Struct):
    """The indexer's progress since the start.

    Args:
        messages: number of messages indexed.
        behind_since: Trio's clock at the first commit that may be missing from the index; None if it is complete.
    """

    messages: int = 0
    behind_since: float | None = None

    @property
    def delay_s(self) -> float:
        """Age in seconds of the oldest commit that may be missing from the index; 0 if it is complete."""
        return 0 if self.behind_since is None else trio.current_time() - self.behind_since


class Indexer:
    """Updates the index, and reports its progress.

    Args:
        poll_interval_s: how often to check for commits of other nodes that sent no notification.
    """

    def __init__(
        self,
        store: Store[SourceReader, SourceTransaction],
        index: SearchIndex,
        *,
        poll_interval_s: float = inf,
    ) -> None:
        self.progress: Final = Progress(behind_since=trio.current_time())
        self._store = store
        self._index = index
        self._poll_interval_s = poll_interval_s
        self._running = False
        self._wakeup = trio.Event()
        self._written = 0
        self._erasures = 0
        self._erased_at: float | None = None
        self._forgotten = 0
        self._logged_at = -inf

    @property
    def scrubbing(self) -> bool:
        """True while bytes of erased texts may still be in the index."""
        return self._erased_at is not None or self._index.scrub_due

    @property
    def scrub_delay(self) -> float:
        """Age in seconds of the oldest erasure that the index has not carried out; 0 if there is none."""
        return 0 if self._erased_at is None else trio.current_time() - self._erased_at

    def follow(self, commits: Commits[EventCommit]) -> None:
        """Index everything that is committed from now on."""
        commits.subscribe(self._note)
        commits.subscribe(self._note_erasure, "erased", "redacted")

    async def run(self) -> None:
        """Index committed rows until cancelled. Of several nodes only the leader runs this."""
        if not self._running:
            self._running, self.progress.behind_since = True, trio.current_time()
        try:
            await self._run()
        except trio.Cancelled:  # another node continues
            self._running, self.progress.behind_since, self._erased_at = False, None, None
            raise

    def wake_nowait(self) -> None:
        """Check for new rows: another node has committed."""
        self._wakeup.set()

    async def _run(self) -> None:
        while True:
            self._wakeup = trio.Event()
            erasures = self._erasures
            try:
                await self._ingest_all()
                await self._index.refresh_statistics()
                pause_s = await self._settle(erasures)
            except Unavailable as error:
                log.warning("search.delayed", reason=error.reason)
                pause_s = _RETRY_DELAY_S
            with trio.move_on_after(min(pause_s, self._poll_interval_s)):
                await self._wakeup.wait()
                await trio.sleep(GATHER_S)

    def _note(self, commit: EventCommit) -> None:
        if not self._running:
            return
        self._written += 1 + len(commit.events)
        if self.progress.behind_since is None:
            self.progress.behind_since = trio.current_time()
        self._wakeup.set()

    def _note_erasure(self, _: object) -> None:
        if not self._running:
            return
        self._erasures += 1
        if self._erased_at is None:
            self._erased_at = trio.current_time()

    async def _ingest_all(self) -> None:
        rows = BATCH_SIZE
        while True:
            written, began = self._written, trio.current_time()
            bound = await self._index.bound()
            position, complete = self._index.position, self._index.complete
            intake = await self._store.read(
                partial(next_batch_to_ingest, position=position, complete=complete, bound=bound, rows=rows)
            )
            if intake is None:
                self.progress.behind_since = None if self._written == written else began
                return
            await self._index.write(partial(take_in, intake=intake))
            self._log_progress(intake)
            rows = IDLE_BATCH_SIZE if self._written == written else BATCH_SIZE
            if self._written != written:
                await trio.sleep(self._pause_s(trio.current_time() - began, self._written - written))

    def _pause_s(self, worked_s: float, written: int) -> float:
        """Return how long to yield the processor after a batch.

        Args:
            written: commits and events that the service made during the batch.
        """
        share = LATE_MIN_SHARE if self.progress.delay_s > LATE_S else MIN_SHARE
        return min(written * YIELD_S, worked_s * (1 / share - 1))

    async def _settle(self, erasures: int) -> float:
        """Carry out one step of the pending erasures; return the seconds to wait before the next step.

        Args:
            erasures: the number of erasures seen before the last batch was read.
        """
        change = self._index.position.change
        if change == self._forgotten and not self._index.scrub_due:
            pause_s = None
        else:
            pause_s = await self._index.settle()
            if pause_s is None:
                await self._store.write(lambda tx: tx.forget_search_changes(change))
                self._forgotten = change
        if pause_s is not None:
            return pause_s
        if self._erasures == erasures:
            self._erased_at = None
        return inf

    def _log_progress(self, intake: IngestBatch) -> None:
        """Log the progress of a long build of the index, and its end."""
        self.progress.messages += len(intake.texts)
        now = trio.current_time()
        if not intake.all and now - self._logged_at >= _PROGRESS_LOG_INTERVAL_S:
            log.info("search.taking_in", messages=self.progress.messages, newest=intake.position.message)
            self._logged_at = now
        elif intake.all and self._logged_at != -inf:
            log.info("search.complete", messages=self.progress.messages)
            self._logged_at = -inf
