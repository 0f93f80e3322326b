"""The task that keeps the search index: one more reader of what is committed, behind the commits.

What it has taken in is stored with the index, so a crash or a stop loses nothing: it goes on from there. An index that is missing is
made from the beginning by the same steps. While others write it takes a small part of the processor: it is rather
late than in their way. What was erased is taken out first of all, and overwritten; only then are the database's notes of it removed.
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
"""The time for which what is committed gathers, to be taken in together."""

YIELD_S: Final = 0.05
"""The pause for each commit and event of others while it worked: of a processor it takes 1 / (1 + 0.05 of them a second)."""

SHARE: Final = 1 / 40
"""The least part of a processor that it takes, however much others write."""

LATE_SHARE: Final = 1 / 10
"""The least part once it is behind for LATE_S."""

LATE_S: Final = 60.0
"""The time after which it is late, in seconds."""

LOOK_S: Final = 1.0
"""The time after which one that shares the store looks for what others have committed without a word."""

_RETRY_S: Final = 1.0
_TELL_S: Final = 10.0
"""The time between two lines in the log that say how far it is."""


class EventCommit(Protocol):
    """The part of a commit that says how much others write."""

    @property
    def events(self) -> Sized:
        """The events that it has made known."""


class Progress(Struct):
    """The indexer's work since the start.

    Args:
        messages: how many it has taken in.
        behind_since: since when there may be something that it does not know, by Trio's clock; None if there is nothing.
    """

    messages: int = 0
    behind_since: float | None = None

    @property
    def delay_s(self) -> float:
        """The age of the oldest commit that the index may not know, in seconds; 0 if it knows all."""
        return 0 if self.behind_since is None else trio.current_time() - self.behind_since


class Indexer:
    """The keeper of the index, and what is known of its work.

    Args:
        look_s: the seconds after which it looks for what other nodes have committed, if nobody tells of it.
    """

    def __init__(
        self, store: Store[SourceReader, SourceTransaction], index: SearchIndex, *, look_s: float = inf
    ) -> None:
        self.progress: Final = Progress(behind_since=trio.current_time())
        self._store = store
        self._index = index
        self._look_s = look_s
        self._running = False
        self._wakeup = trio.Event()
        self._written = 0
        self._erasures = 0
        self._erased_at: float | None = None
        self._forgotten = 0
        self._told_at = -inf

    @property
    def scrubbing(self) -> bool:
        """True while bytes of something that was erased may still be in the index."""
        return self._erased_at is not None or self._index.scrub_due

    @property
    def scrub_delay(self) -> float:
        """The seconds for which something that was erased has waited to be taken out and overwritten; 0 if nothing has."""
        return 0 if self._erased_at is None else trio.current_time() - self._erased_at

    def follow(self, commits: Commits[EventCommit]) -> None:
        """Take in what is committed from now on."""
        commits.subscribe(self._note)
        commits.subscribe(self._note_erasure, "erased", "redacted")

    async def run(self) -> None:
        """Take in what there is, whenever there is something, until cancelled: of several nodes one does it."""
        if not self._running:
            self._running, self.progress.behind_since = True, trio.current_time()
        try:
            await self._run()
        except trio.Cancelled:  # another node goes on with it
            self._running, self.progress.behind_since, self._erased_at = False, None, None
            raise

    def wake_nowait(self) -> None:
        """Have it look: another node has committed something."""
        self._wakeup.set()

    async def _run(self) -> None:
        while True:
            self._wakeup = trio.Event()
            erasures = self._erasures
            try:
                await self._take_in_all()
                pause_s = await self._settle(erasures)
            except Unavailable as error:
                log.warning("search.delayed", reason=error.reason)
                pause_s = _RETRY_S
            with trio.move_on_after(min(pause_s, self._look_s)):
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

    async def _take_in_all(self) -> None:
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
            self._tell(intake)
            rows = IDLE_BATCH_SIZE if self._written == written else BATCH_SIZE
            if self._written != written:
                await trio.sleep(self._pause_s(trio.current_time() - began, self._written - written))

    def _pause_s(self, worked_s: float, written: int) -> float:
        """Return the pause that makes way for others after some work.

        Args:
            written: the commits and events of others meanwhile.
        """
        share = LATE_SHARE if self.progress.delay_s > LATE_S else SHARE
        return min(written * YIELD_S, worked_s * (1 / share - 1))

    async def _settle(self, erasures: int) -> float:
        """Do a part of what makes the index forget for good; return the seconds to wait before the next part.

        Args:
            erasures: how many were noted before all was taken in.
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

    def _tell(self, intake: IngestBatch) -> None:
        """Say in the log how far an index is that takes long."""
        self.progress.messages += len(intake.texts)
        now = trio.current_time()
        if not intake.all and now - self._told_at >= _TELL_S:
            log.info("search.taking_in", messages=self.progress.messages, newest=intake.position.message)
            self._told_at = now
        elif intake.all and self._told_at != -inf:
            log.info("search.complete", messages=self.progress.messages)
            self._told_at = -inf
