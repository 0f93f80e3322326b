"""The end of stream connections whose server key or project is no more (ADR 37)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Final

import structlog
import trio

from deskwire.engine.accounts.credentials import key_in_force
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Inline
from deskwire.engine.ports import Reader, Store
from deskwire.http.stream.protocol import PusherProtocol

log: Final = structlog.get_logger(__name__)

_AGAIN_S: Final = 0.2
"""Pause before another read of a database that could not be read."""


class Revocations:
    """The task that ends connections which have lost their right; `note_nowait` wakes it.

    Args:
        protocols: those of the open connections.

    `changes` counts the calls of `note_nowait`: a reader of a right that sees another count afterwards reads it again.
    """

    def __init__(self, store: Store, protocols: Collection[PusherProtocol]) -> None:
        self._store = store
        self._protocols = protocols
        self._wakeup = trio.Event()
        self.changes = 0

    def note_nowait(self) -> None:
        """Have the connections checked: server keys or projects have changed, and that is on the disk."""
        self.changes += 1
        self._wakeup.set()

    async def run(self) -> None:
        """Check the connections after each change, until cancelled."""
        while True:
            await self._wakeup.wait()
            self._wakeup = trio.Event()
            try:
                await self._check()
            except Unavailable as error:
                log.warning("stream.revocations_not_read", reason=error.detail)
                self._wakeup.set()
                await trio.sleep(_AGAIN_S)

    async def _check(self) -> None:
        """End the connections that have lost their right. A new one meanwhile was checked after the change."""
        keys = await self._gone({key for protocol in self._protocols for key in protocol.keys}, key_in_force)
        projects = await self._gone({protocol.project_id for protocol in self._protocols}, _exists)
        ended = [protocol for protocol in self._protocols if protocol.withdraw(keys, projects)]
        if ended:
            log.info("stream.revoked", keys=sorted(keys), projects=sorted(projects), connections=len(ended))

    async def _gone(self, ids: set[str], in_force: Callable[[Reader, str], bool]) -> set[str]:
        """Return those of these ids that let nobody in any more; other tasks have their turn between two of them."""
        gone = set[str]()
        for id_ in ids:
            if not await self._store.read(Inline(partial(_ask, in_force, id_))):
                gone.add(id_)
            await trio.lowlevel.checkpoint()
        return gone


def _ask(in_force: Callable[[Reader, str], bool], id_: str, reader: Reader) -> bool:
    return in_force(reader, id_)


def _exists(reader: Reader, project: str) -> bool:
    """Return whether there is such a project."""
    return reader.project(project) is not None
