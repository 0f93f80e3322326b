"""Slots of connections, and their eviction when all are taken (ADR 41).

A new connection is not refused because others hold all slots. Instead an idle connection is evicted: the one
that has been idle for longest, of the network with most of them. If too many bytes of responses are unsent
because clients do not read, the connections with most unsent bytes for longest are ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import structlog
import trio

from deskwire.engine.core.limits.network import network_of

log: Final = structlog.get_logger(__name__)

# One address, project or user may have a fourth of the unsent bytes.
SHARE: Final = 4
# The part of a limit that remains after evictions, so that they are not repeated for each byte.
_RELIEF: Final = 0.75
_ALL: Final = "*"
# Interval of log lines about ended connections.
_LOG_INTERVAL_S: Final = 60.0

# The key of a connection's slot in the state that Hypercorn passes to the app (ASGI, lifespan state).
SLOT: Final = "slot"

# Why a connection was ended or refused.
EndReason = Literal["idle", "unread", "refused"]


def _nothing() -> None:
    """Do nothing."""


async def _nothing_to_send() -> None:
    """Do nothing."""


class ConnectionSlot:
    """One connection's slot.

    `owner` is the project or user whose credential the connection has shown, if any; `on_identified` is
    called when it has. `detect_dead_peer` makes the system notice a dead peer. `continue_body` asks the
    client for the body of its request, if it waits for that (`Expect: 100-continue`, RFC 9110 10.1.1).
    """

    __slots__ = (
        "_among",
        "_client",
        "_gone",
        "_group",
        "_holders",
        "_idle",
        "_kept",
        "_since",
        "_unsent",
        "continue_body",
        "detect_dead_peer",
        "end",
        "network",
        "on_identified",
        "owner",
    )

    def __init__(self, among: Connections, network: str, end: Callable[[], None]) -> None:
        self.network: Final = network
        self.end: Final = end
        self.owner = ""
        self.on_identified: Callable[[], None] = _nothing
        self.detect_dead_peer: Callable[[], None] = _nothing
        self.continue_body: Callable[[], Awaitable[None]] = _nothing_to_send
        self._among = among
        self._client = network
        self._holders: tuple[str, ...] = ()
        self._unsent = 0
        self._since = 0.0
        self._idle = True
        self._kept = False
        self._gone = False
        self._group: _Group | None = None
        self._list()

    @property
    def is_anonymous(self) -> bool:
        """True if no valid credential has been shown on the connection."""
        return not (self.owner or self._kept)

    def leave(self) -> None:
        """Release the slot.

        Repeated calls do nothing.
        """
        if not self._gone:
            self._gone = True
            self._list()
            self._count(-self._unsent)
            self._among.open -= 1

    def set_idle(self, *, idle: bool) -> None:
        """Note whether a request is under way on the connection."""
        if self._idle != idle:
            self._idle = idle
            self._list()

    def set_client(self, client: str | None) -> None:
        """Note the client's address as reported by proxies."""
        self._client = network_of(client)

    def identify(self, owner: str) -> None:
        """Note the project or user whose valid credential was shown."""
        if owner != self.owner:
            self.owner = owner
            self._list()
            self.on_identified()

    def keep_open(self) -> None:
        """Exempt the connection from eviction.

        A client with a valid credential is served until the connection ends.
        """
        self._kept = True
        self._list()

    def add_unsent(self, size: int) -> None:
        """Count bytes that wait for the client.

        If a limit is exceeded, other connections end whose bytes have waited longer.
        """
        if not self._unsent:
            self._since = trio.current_time()
            self._holders = tuple(dict.fromkeys((_ALL, self._client, self.owner or self._client)))
        if not self._gone:
            self._count(size)
            self._among.relieve(self._holders, self)

    def remove_unsent(self, size: int) -> None:
        """Stop counting bytes that were sent or discarded."""
        if not self._gone:
            self._count(-size)

    def weight(self, now: float) -> float:
        """Return the unsent bytes, multiplied by the time for which they have waited."""
        return self._unsent * (now - self._since)

    def counts_for(self, holder: str) -> bool:
        """Return whether the unsent bytes count for this address, project or user."""
        return holder in self._holders

    def _count(self, size: int) -> None:
        self._unsent += size
        self._among.count(self, self._holders, size, waits=self._unsent > 0)

    def _list(self) -> None:
        """Move the slot to the group of its state, from which connections are evicted."""
        if self._group is not None:
            self._group.remove(self)
        self._group = self._among.group_of(self._idle, self.owner) if not (self._kept or self._gone) else None
        if self._group is not None:
            self._group.add(self)


class _Group:
    """Slots in the order in which they were added, by network."""

    def __init__(self) -> None:
        self._of: dict[str, dict[ConnectionSlot, None]] = {}
        self._largest = ""
        self._size = 0

    def add(self, slot: ConnectionSlot) -> None:
        mine = self._of.get(slot.network)
        if mine is None:
            mine = self._of[slot.network] = {}
        mine[slot] = None
        if len(mine) > self._size:
            self._largest, self._size = slot.network, len(mine)

    def remove(self, slot: ConnectionSlot) -> None:
        mine = self._of[slot.network]
        del mine[slot]
        if not mine:
            del self._of[slot.network]

    def first(self) -> ConnectionSlot | None:
        """Return the first slot of the network that has most slots."""
        if len(self._of.get(self._largest, ())) != self._size:
            self._largest = max(self._of, key=lambda network: len(self._of[network]), default="")
            self._size = len(self._of.get(self._largest, ()))
        return next(iter(self._of.get(self._largest, ())), None)


class Connections:
    """All connections and their unsent bytes.

    Args:
        most: number of open connections.
        unsent_max: bytes of responses that may wait for their clients.

    `open` is the number of connections, and `ended` the number of ended or refused connections by reason.
    """

    def __init__(self, most: int = 10_000, unsent_max: int = 256 << 20) -> None:
        self.most: Final = most
        self.open = 0
        self.ended: Final[dict[EndReason, int]] = {"idle": 0, "unread": 0, "refused": 0}
        self._unsent_max = unsent_max
        self._unsent: Counter[str] = Counter()
        self._waiting: dict[ConnectionSlot, None] = {}
        self._idle_anonymous = _Group()
        self._idle_known = _Group()
        self._busy_anonymous = _Group()
        self._logged_at: dict[EndReason, float] = {}

    @property
    def unsent(self) -> int:
        """The bytes of responses that wait for their clients."""
        return self._unsent[_ALL]

    def admit(self, peer: str | None, end: Callable[[], None]) -> ConnectionSlot | None:
        """Return a slot for a connection from this address.

        Returns None if no other connection can be evicted for it.

        Args:
            end: ends the connection as if its client had disconnected.
        """
        network = network_of(peer)
        if self.open >= self.most and not self.make_room():
            self._note("refused", network)
            return None
        self.open += 1
        return ConnectionSlot(self, network, end)

    def make_room(self) -> bool:
        """Evict a connection.

        Returns False if every connection is in use by an identified client.
        """
        for group in (self._idle_anonymous, self._idle_known, self._busy_anonymous):
            slot = group.first()
            if slot is not None:
                self._end(slot, "idle", slot.network)
                return True
        return False

    def group_of(self, idle: bool, owner: str) -> _Group | None:
        """Return the group of a slot's state.

        Returns None if its connection must not be evicted.
        """
        if idle:
            return self._idle_known if owner else self._idle_anonymous
        return None if owner else self._busy_anonymous

    def count(self, slot: ConnectionSlot, holders: tuple[str, ...], size: int, *, waits: bool) -> None:
        """Change the number of unsent bytes by `size`."""
        for holder in holders:
            self._unsent[holder] += size
            if not self._unsent[holder]:
                del self._unsent[holder]
        if waits:
            self._waiting[slot] = None
        else:
            self._waiting.pop(slot, None)

    def relieve(self, holders: tuple[str, ...], latest: ConnectionSlot) -> None:
        """End connections for each of these holders above its limit.

        Those with most unsent bytes for longest end first, but never the latest. The latest connection is
        exempt because its client may still read.
        """
        for holder in holders:
            bound = self._unsent_max if holder == _ALL else self._unsent_max // SHARE
            if self._unsent[holder] > bound:
                self._relieve(holder, bound * _RELIEF, latest)

    def _relieve(self, holder: str, enough: float, latest: ConnectionSlot) -> None:
        now = trio.current_time()
        held = [each for each in self._waiting if each is not latest and each.counts_for(holder)]
        for each in sorted(held, key=lambda each: each.weight(now), reverse=True):
            self._end(each, "unread", holder)
            if self._unsent[holder] <= enough:
                return

    def _end(self, slot: ConnectionSlot, why: EndReason, whose: str) -> None:
        self._note(why, whose)
        slot.leave()
        slot.end()

    def _note(self, why: EndReason, whose: str) -> None:
        """Count the end and log it at intervals, so that an attacker can't fill the log."""
        self.ended[why] += 1
        now = trio.current_time()
        if now - self._logged_at.get(why, -_LOG_INTERVAL_S) >= _LOG_INTERVAL_S:
            self._logged_at[why] = now
            log.warning("front.connection_ended", why=why, whose=whose, so_far=self.ended[why])
