"""The places of connections, and which of them make room for others when there are no more (ADR 41).

Nobody is refused for what others hold. When all places are taken, a connection that does nothing is ended for a new
one: that which has done nothing for longest, of the network that has most of them. When too many bytes of responses
wait for clients that do not read, those end that hold most for longest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import structlog
import trio

from deskwire.engine.core.limits.network import network_of

log: Final = structlog.get_logger(__name__)

SHARE: Final = 4
"""One address, and one project or user, may let a fourth of the bytes wait."""
_RELIEF: Final = 0.75
"""What is left of a bound that was reached, so that those who wait are not sorted again for each byte."""
_ALL: Final = "*"
_LOG_INTERVAL_S: Final = 60.0

SLOT: Final = "slot"
"""Where the app finds a connection's slot in the state that Hypercorn hands on (ASGI, lifespan state)."""

EndReason = Literal["idle", "unread", "refused"]


def _nothing() -> None:
    """Do nothing."""


async def _nothing_to_send() -> None:
    """Do nothing."""


class ConnectionSlot:
    """One connection's slot among all.

    `owner` is the project or user whose credential it has shown, if any, and `known` is called when it has. `detect_dead_peer`
    has the system notice a peer that is gone without a word. `continue_body` asks the client for the body of the request
    under way, if it waits to be asked (`Expect: 100-continue`, RFC 9110 10.1.1).
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
        """The absence of a good credential: true while nobody has shown one here."""
        return not (self.owner or self._kept)

    def leave(self) -> None:
        """Give the slot back; the second time does nothing."""
        if not self._gone:
            self._gone = True
            self._list()
            self._count(-self._unsent)
            self._among.open -= 1

    def set_idle(self, *, idle: bool) -> None:
        """Note that nothing is asked on the connection, or something."""
        if self._idle != idle:
            self._idle = idle
            self._list()

    def set_client(self, client: str | None) -> None:
        """Note the address of whoever asks, as far as proxies tell it."""
        self._client = network_of(client)

    def identify(self, owner: str) -> None:
        """Note the project or user whose credential was shown, and was good."""
        if owner != self.owner:
            self.owner = owner
            self._list()
            self.on_identified()

    def keep_open(self) -> None:
        """Stay whatever others need: somebody who has shown a credential is served here until the connection ends."""
        self._kept = True
        self._list()

    def add_unsent(self, size: int) -> None:
        """Note bytes that wait for the client. If they are too many, others end that have let theirs wait for longer."""
        if not self._unsent:
            self._since = trio.current_time()
            self._holders = tuple(dict.fromkeys((_ALL, self._client, self.owner or self._client)))
        if not self._gone:
            self._count(size)
            self._among.relieve(self._holders, self)

    def remove_unsent(self, size: int) -> None:
        """Note that they wait no longer."""
        if not self._gone:
            self._count(-size)

    def weight(self, now: float) -> float:
        """Return the bytes that it holds, multiplied by how long it has held them."""
        return self._unsent * (now - self._since)

    def counts_for(self, holder: str) -> bool:
        """Tell whether what waits here counts for this address, project or user."""
        return holder in self._holders

    def _count(self, size: int) -> None:
        self._unsent += size
        self._among.count(self, self._holders, size, waits=self._unsent > 0)

    def _list(self) -> None:
        """Move to the group in which others look for connections that can be missed."""
        if self._group is not None:
            self._group.remove(self)
        self._group = self._among.group_of(self._idle, self.owner) if not (self._kept or self._gone) else None
        if self._group is not None:
            self._group.add(self)


class _Group:
    """Places in the order in which they came in, by their network."""

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
        """Return the first one of the network that has most."""
        if len(self._of.get(self._largest, ())) != self._size:
            self._largest = max(self._of, key=lambda network: len(self._of[network]), default="")
            self._size = len(self._of.get(self._largest, ()))
        return next(iter(self._of.get(self._largest, ())), None)


class Connections:
    """All connections, and the bytes that wait in them.

    Args:
        most: connections at the same time.
        unsent_max: bytes of answers that may wait for their clients.

    `open` is how many there are, and `ended` how many were ended, or not taken, by the reason.
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
        """Bytes of answers that wait for their clients."""
        return self._unsent[_ALL]

    def admit(self, peer: str | None, end: Callable[[], None]) -> ConnectionSlot | None:
        """Return a slot for a connection from this address; None if nobody can be missed for it.

        Args:
            end: ends the connection as if its client had gone.
        """
        network = network_of(peer)
        if self.open >= self.most and not self.make_room():
            self._note("refused", network)
            return None
        self.open += 1
        return ConnectionSlot(self, network, end)

    def make_room(self) -> bool:
        """End the connection that can best be missed; False if each is in use by somebody known."""
        for group in (self._idle_anonymous, self._idle_known, self._busy_anonymous):
            slot = group.first()
            if slot is not None:
                self._end(slot, "idle", slot.network)
                return True
        return False

    def group_of(self, idle: bool, owner: str) -> _Group | None:
        """Return the group that a slot belongs to; None if it can't be missed."""
        if idle:
            return self._idle_known if owner else self._idle_anonymous
        return None if owner else self._busy_anonymous

    def count(self, slot: ConnectionSlot, holders: tuple[str, ...], size: int, *, waits: bool) -> None:
        """Note that so many bytes more wait, or fewer."""
        for holder in holders:
            self._unsent[holder] += size
            if not self._unsent[holder]:
                del self._unsent[holder]
        if waits:
            self._waiting[slot] = None
        else:
            self._waiting.pop(slot, None)

    def relieve(self, holders: tuple[str, ...], latest: ConnectionSlot) -> None:
        """End those that hold most for longest where too much waits for one of these; not the latest, which may read."""
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
        """Count it, and log it now and then: an attacker must not fill the log."""
        self.ended[why] += 1
        now = trio.current_time()
        if now - self._logged_at.get(why, -_LOG_INTERVAL_S) >= _LOG_INTERVAL_S:
            self._logged_at[why] = now
            log.warning("front.connection_ended", why=why, whose=whose, so_far=self.ended[why])
