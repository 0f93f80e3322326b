"""Connections of the stream end with what let them in: a server key, a project (ADR 37)."""

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
"""Pause before another look at a database that could not be read."""


class Revocations:
    """Ends connections when `note_nowait` says that something has changed; `run` does it.

    Args:
        protocols: those that are open.

    `changes` counts what was said: who reads a right and sees another count afterwards has to read it again.
    """

    def __init__(self, store: Store, protocols: Collection[PusherProtocol]) -> None:
        self._store = store
        self._protocols = protocols
        self._wakeup = trio.Event()
        self.changes = 0

    def note_nowait(self) -> None:
        """Look again: server keys or projects have changed, and that is on the disk."""
        self.changes += 1
        self._wakeup.set()

    async def run(self) -> None:
        """Look when told to, until cancelled."""
        while True:
            await self._wakeup.wait()
            self._wakeup = trio.Event()
            try:
                await self._look()
            except Unavailable as error:
                log.warning("stream.revocations_not_read", reason=error.detail)
                self._wakeup.set()
                await trio.sleep(_AGAIN_S)

    async def _look(self) -> None:
        """End who has lost its right. Who comes meanwhile has been asked for it, after the change."""
        keys = await self._gone({key for protocol in self._protocols for key in protocol.keys}, key_in_force)
        projects = await self._gone({protocol.project_id for protocol in self._protocols}, _is_there)
        ended = [protocol for protocol in self._protocols if protocol.withdraw(keys, projects)]
        if ended:
            log.info("stream.revoked", keys=sorted(keys), projects=sorted(projects), connections=len(ended))

    async def _gone(self, ids: set[str], in_force: Callable[[Reader, str], bool]) -> set[str]:
        """Those of these ids that let nobody in any more; others have their turn between two of them."""
        gone = set[str]()
        for each in ids:
            if not await self._store.read(Inline(partial(_ask, in_force, each))):
                gone.add(each)
            await trio.lowlevel.checkpoint()
        return gone


def _ask(in_force: Callable[[Reader, str], bool], each: str, reader: Reader) -> bool:
    return in_force(reader, each)


def _is_there(reader: Reader, project: str) -> bool:
    """Whether there is such a project."""
    return reader.project(project) is not None
