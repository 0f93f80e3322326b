"""The end of stream connections that have lost their right (ADR 8, 60, 70).

Their credential or project has ended, or an authorization was refused. A published Pusher client requests
each channel's authorization once per connection. If it is refused temporarily, only a reconnect makes the
client ask again. The refusal contains the connection's socket id, which only its client knows; the
connection may belong to another node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from math import inf
from typing import Final

import orjson
import structlog
import trio

from deskwire.engine.accounts.machines import valid_until
from deskwire.engine.cluster.cluster import Bus, NoBus
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Reader, Store
from deskwire.http.stream.protocol import REQUIRED_PERMISSION, PusherProtocol

log: Final = structlog.get_logger(__name__)

# Delay before a failed read of the database is repeated.
_RETRY_DELAY_S: Final = 0.2

# While a credential has an expiry, the clock is read at least this often, because it may be adjusted.
_CLOCK_CHECK_INTERVAL_S: Final = 30.0


class Revocations:
    """The task that ends connections without a valid credential.

    It checks them after a change and at an expiry.

    Args:
        protocols: of the open connections.
        clock: decides when a machine credential has expired.

    `changes` counts the calls of `note_nowait`: a reader that sees another count after its read repeats the
    read.
    """

    def __init__(self, store: Store, protocols: Collection[PusherProtocol], clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._next_end = inf
        self._protocols = protocols
        self._wakeup = trio.Event()
        self.changes = 0

    def note_nowait(self) -> None:
        """Schedule a check of the connections.

        Keys, credentials or projects have changed, and the change is on disk.
        """
        self.changes += 1
        self._wakeup.set()

    def ends_at(self, time: float) -> None:
        """Schedule a check of the connections at a time (ms).

        A credential expires then.
        """
        if time < self._next_end:
            self._next_end = time
            self._wakeup.set()

    async def run(self) -> None:
        """Check the connections after each change and each expiry, until cancelled."""
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
        """Return once a check is due."""
        while not self._wakeup.is_set():
            left_s = (self._next_end - self._clock()) / 1000
            if left_s <= 0:
                return
            with trio.move_on_after(left_s if left_s == inf else min(left_s, _CLOCK_CHECK_INTERVAL_S)):
                await self._wakeup.wait()

    async def _check(self) -> None:
        """End the connections without a valid credential.

        New connections are checked after the change anyway.
        """
        keys = await self._no_longer_good({key for protocol in self._protocols for key in protocol.keys})
        projects = await self._removed({protocol.project_id for protocol in self._protocols})
        ended = [protocol for protocol in self._protocols if protocol.end_if_revoked(keys, projects)]
        if ended:
            log.info("stream.revoked", keys=sorted(keys), projects=sorted(projects), connections=len(ended))

    async def _no_longer_good(self, names: set[str]) -> set[str]:
        """Return the names of ended credentials, and note the next expiry of the others."""
        gone, now = set[str](), self._clock()
        for name in names:
            until = await self._store.read(InlineQuery(partial(_good_until, name, now)))
            if until <= now:
                gone.add(name)
            else:
                self._next_end = min(self._next_end, until)
            await trio.lowlevel.checkpoint()  # lets other tasks run
        return gone

    async def _removed(self, projects: set[str]) -> set[str]:
        gone = set[str]()
        for project in projects:
            if not await self._store.read(InlineQuery(partial(_exists, project))):
                gone.add(project)
            await trio.lowlevel.checkpoint()
        return gone


def _good_until(name: str, now: int, reader: Reader) -> float:
    return valid_until(reader, name, now, REQUIRED_PERMISSION)


def _exists(project: str, reader: Reader) -> bool:
    """Return whether the project exists."""
    return reader.project(project) is not None


# The topic of refusals on the bus.
BUS_TOPIC: Final = "unauthorized"
# Some clients repeat the call by their own code, after `Retry-After`.
_DELAY_MIN_S: Final = 1.0
_DELAY_MAX_S: Final = 60.0
# Refusals in one message of the bus, which has room for the longest ids and names.
_SENT_MAX: Final = 15
_SEND_INTERVAL_S: Final = 0.5


class RefusedAuthorizations:
    """Passes refused authorizations to their connections.

    Args:
        protocols: the open connections of this node, by socket id.
        bus: carries refusals to other nodes; if a refusal is lost, the connection stays open.
    """

    def __init__(self, protocols: Mapping[str, PusherProtocol], bus: Bus | None) -> None:
        self._protocols = protocols
        self._bus = bus or NoBus()
        self._unsent: dict[tuple[str, str], float] = {}
        self._wakeup = trio.Event()
        self._bus.receive(BUS_TOPIC, self._receive)

    def note(self, socket_id: str, channel: str, retry_after_s: float, known: bool) -> None:
        """End the connection soon, unless its client subscribes to the channel by then.

        Args:
            known: True if the caller has shown a valid credential; only then are other nodes notified.
        """
        protocol = self._protocols.get(socket_id)
        if protocol is not None:
            protocol.require_subscription(channel, _bounded(retry_after_s))
        elif known and len(self._unsent) < _SENT_MAX:
            self._unsent[socket_id, channel] = retry_after_s
            self._wakeup.set()

    async def run(self) -> None:
        """Send refusals to the other nodes, until cancelled.

        It sends at most one message in half a second.
        """
        while True:
            await self._wakeup.wait()
            unsent, self._unsent, self._wakeup = self._unsent, {}, trio.Event()
            self._bus.send(BUS_TOPIC, orjson.dumps([[*names, after_s] for names, after_s in unsent.items()]))
            await trio.sleep(_SEND_INTERVAL_S)

    def _receive(self, payload: bytes) -> None:
        for socket_id, channel, retry_after_s in orjson.loads(payload):
            protocol = self._protocols.get(socket_id)
            if protocol is not None:
                protocol.require_subscription(channel, _bounded(retry_after_s))


def _bounded(retry_after_s: float) -> float:
    return min(max(_DELAY_MIN_S, retry_after_s), _DELAY_MAX_S)
