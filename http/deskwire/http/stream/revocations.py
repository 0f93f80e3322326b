"""The end of stream connections whose server key, machine credential or project has ended (ADR 8, 70)."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from math import inf
from typing import Final

import structlog
import trio

from deskwire.engine.accounts.machines import valid_until
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Reader, Store
from deskwire.http.stream.protocol import NEEDED, PusherProtocol

log: Final = structlog.get_logger(__name__)

_AGAIN_S: Final = 0.2
"""Pause before another read of a database that could not be read."""

_LONGEST_S: Final = 30.0
"""Time after which the clock is looked at again, as it may have been set, while something has an end."""


class Revocations:
    """The task that ends connections which have lost their right: `note_nowait` wakes it, or a time that has come.

    Args:
        protocols: those of the open connections.
        clock: says when a machine credential has expired.

    `changes` counts the calls of `note_nowait`: a reader of a right that sees another count afterwards reads it again.
    """

    def __init__(self, store: Store, protocols: Collection[PusherProtocol], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._next_end = inf
        self._protocols = protocols
        self._wakeup = trio.Event()
        self.changes = 0

    def note_nowait(self) -> None:
        """Have the connections checked: server keys, credentials or projects have changed, and that is on the disk."""
        self.changes += 1
        self._wakeup.set()

    def ends_at(self, time: float) -> None:
        """Have the connections checked at this time (ms), when something that has let one in is no longer good."""
        if time < self._next_end:
            self._next_end = time
            self._wakeup.set()

    async def run(self) -> None:
        """Check the connections after each change, and when something comes to its end, until cancelled."""
        while True:
            await self._due()
            self._wakeup, self._next_end = trio.Event(), inf
            try:
                await self._check()
            except Unavailable as error:
                log.warning("stream.revocations_not_read", reason=error.detail)
                self._wakeup.set()
                await trio.sleep(_AGAIN_S)

    async def _due(self) -> None:
        """Return once there is something to check."""
        while not self._wakeup.is_set():
            left_s = (self._next_end - self._clock()) / 1000
            if left_s <= 0:
                return
            with trio.move_on_after(left_s if left_s == inf else min(left_s, _LONGEST_S)):
                await self._wakeup.wait()

    async def _check(self) -> None:
        """End the connections that have lost their right. A new one meanwhile was checked after the change."""
        keys = await self._no_longer_good({key for protocol in self._protocols for key in protocol.keys})
        projects = await self._removed({protocol.project_id for protocol in self._protocols})
        ended = [protocol for protocol in self._protocols if protocol.withdraw(keys, projects)]
        if ended:
            log.info("stream.revoked", keys=sorted(keys), projects=sorted(projects), connections=len(ended))

    async def _no_longer_good(self, names: set[str]) -> set[str]:
        """Return those of these names that let nobody in any more, and remember when the next of the others will not."""
        gone, now = set[str](), self._clock()
        for name in names:
            until = await self._store.read(InlineQuery(partial(_good_until, name, now)))
            if until <= now:
                gone.add(name)
            else:
                self._next_end = min(self._next_end, until)
            await trio.lowlevel.checkpoint()  # other tasks have their turn between two of them
        return gone

    async def _removed(self, projects: set[str]) -> set[str]:
        gone = set[str]()
        for project in projects:
            if not await self._store.read(InlineQuery(partial(_exists, project))):
                gone.add(project)
            await trio.lowlevel.checkpoint()
        return gone


def _good_until(name: str, now: int, reader: Reader) -> float:
    return valid_until(reader, name, now, NEEDED)


def _exists(project: str, reader: Reader) -> bool:
    """Return whether there is such a project."""
    return reader.project(project) is not None
