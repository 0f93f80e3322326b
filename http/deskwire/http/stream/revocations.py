"""The end of stream connections whose server key, machine credential or project has ended (ADR 8, 70)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from math import inf
from typing import Final

import orjson
import structlog
import trio

from deskwire.engine.accounts.machines import good_until
from deskwire.engine.cluster.bus import Bus, NoBus
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Inline
from deskwire.engine.ports import Reader, Store
from deskwire.http.stream.protocol import REQUIRED_PERMISSION, PusherProtocol

log: Final = structlog.get_logger(__name__)

_RETRY_DELAY_S: Final = 0.2
"""Pause before another read of a database that could not be read."""

_CLOCK_CHECK_INTERVAL_S: Final = 30.0
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
                await trio.sleep(_RETRY_DELAY_S)

    async def _due(self) -> None:
        """Return once there is something to check."""
        while not self._wakeup.is_set():
            left_s = (self._next_end - self._clock()) / 1000
            if left_s <= 0:
                return
            with trio.move_on_after(left_s if left_s == inf else min(left_s, _CLOCK_CHECK_INTERVAL_S)):
                await self._wakeup.wait()

    async def _check(self) -> None:
        """End the connections that have lost their right. A new one meanwhile was checked after the change."""
        keys = await self._no_longer_good({key for protocol in self._protocols for key in protocol.keys})
        projects = await self._removed({protocol.project_id for protocol in self._protocols})
        ended = [protocol for protocol in self._protocols if protocol.end_if_revoked(keys, projects)]
        if ended:
            log.info("stream.revoked", keys=sorted(keys), projects=sorted(projects), connections=len(ended))

    async def _no_longer_good(self, names: set[str]) -> set[str]:
        """Return those of these names that let nobody in any more, and remember when the next of the others will not."""
        gone, now = set[str](), self._clock()
        for name in names:
            until = await self._store.read(Inline(partial(_good_until, name, now)))
            if until <= now:
                gone.add(name)
            else:
                self._next_end = min(self._next_end, until)
            await trio.lowlevel.checkpoint()  # other tasks have their turn between two of them
        return gone

    async def _removed(self, projects: set[str]) -> set[str]:
        gone = set[str]()
        for project in projects:
            if not await self._store.read(Inline(partial(_exists, project))):
                gone.add(project)
            await trio.lowlevel.checkpoint()
        return gone


def _good_until(name: str, now: int, reader: Reader) -> float:
    return good_until(reader, name, now, REQUIRED_PERMISSION)


def _exists(project: str, reader: Reader) -> bool:
    """Return whether there is such a project."""
    return reader.project(project) is not None


# DOC refused_authorizations.py: """Connections to be ended because the authorization of a channel was refused for now (ADR 60).
#
# A published client asks once for each channel and connection. The refusal names the connection's socket id, which only
# its client knows; the connection may belong to another node.
# """
#


BUS_TOPIC: Final = "unauthorized"
_DELAY_MIN_S: Final = 1.0  # some clients repeat the call by their own code, after `Retry-After`
_DELAY_MAX_S: Final = 60.0
_SENT_MAX: Final = 15  # refusals in one message of the bus: ids and names of the longest fit
_SEND_INTERVAL_S: Final = 0.5


class RefusedAuthorizations:
    """The refusals, each of which is passed to its connection.

    Args:
        protocols: the open connections of this node, by socket id.
        bus: carries refusals to other nodes; a refusal that is lost ends nothing.
    """

    def __init__(self, protocols: Mapping[str, PusherProtocol], bus: Bus | None) -> None:
        self._protocols = protocols
        self._bus = bus or NoBus()
        self._unsent: dict[tuple[str, str], float] = {}
        self._wakeup = trio.Event()
        self._bus.receive(BUS_TOPIC, self._hear)

    def note(self, socket_id: str, channel: str, retry_after_s: float, known: bool) -> None:
        """End the connection soon, unless its client subscribes to the channel by then.

        Args:
            known: whether the caller has shown a valid credential; only then are other nodes asked.
        """
        protocol = self._protocols.get(socket_id)
        if protocol is not None:
            protocol.require_subscription(channel, _bounded(retry_after_s))
        elif known and len(self._unsent) < _SENT_MAX:
            self._unsent[socket_id, channel] = retry_after_s
            self._wakeup.set()

    async def run(self) -> None:
        """Send refusals to the other nodes, at most one message in half a second, until cancelled."""
        while True:
            await self._wakeup.wait()
            unsent, self._unsent, self._wakeup = self._unsent, {}, trio.Event()
            self._bus.send(BUS_TOPIC, orjson.dumps([[*names, after_s] for names, after_s in unsent.items()]))
            await trio.sleep(_SEND_INTERVAL_S)

    def _hear(self, payload: bytes) -> None:
        for socket_id, channel, retry_after_s in orjson.loads(payload):
            protocol = self._protocols.get(socket_id)
            if protocol is not None:
                protocol.require_subscription(channel, _bounded(retry_after_s))


def _bounded(retry_after_s: float) -> float:
    return min(max(_DELAY_MIN_S, retry_after_s), _DELAY_MAX_S)
