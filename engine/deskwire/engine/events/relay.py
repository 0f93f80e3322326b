"""The relay of ephemeral events between nodes: typing is told where somebody listens, on whichever node that is.

Nodes say from time to time, and as soon as there is more, in which projects somebody listens; in the others nothing is
relayed. They say it as a map of bits, so that it has one size however many projects there are; two projects with the
same bit cost a message that nobody wants. All of it may be lost, as typing may (ADR 9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Final

import orjson
import trio

from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.events.types import EphemeralEvent

MESSAGE_KIND: Final = "typing"
"""The kind of message on the bus."""

ANNOUNCE_INTERVAL_S: Final = 10.0
"""Time after which a node says again where somebody listens."""
_ANNOUNCEMENT_TTL_S: Final = 25.0
"""Time for which it is believed: two messages may be lost."""
_POLL_INTERVAL_S: Final = 0.5
"""Time in which a new listener is noticed."""
_BITMAP_BITS: Final = 2_048


class TypingRelay:
    """The relay of one node; `run` says where somebody listens here.

    Args:
        node: the name of this node.
        listening: returns the projects in which somebody listens here, by their storage keys.
        deliver: is given what was published on another node.
    """

    def __init__(
        self,
        bus: Bus,
        node: str,
        listening: Callable[[], Iterable[int]],
        deliver: Callable[[EphemeralEvent], None],
    ) -> None:
        self._bus = bus
        self._node = node
        self._listening = listening
        self._deliver = deliver
        self._remote_listeners: dict[str, tuple[int, float]] = {}
        self._announced = 0
        self._announce_due = False
        bus.receive(MESSAGE_KIND, self._receive)
        bus.connected(self._request_announcements)

    def offer(self, event: EphemeralEvent) -> None:
        """Pass an event on that was published here, if anybody may listen elsewhere."""
        bit, now = 1 << event.project % _BITMAP_BITS, trio.current_time()
        if any(bits & bit and until > now for bits, until in self._remote_listeners.values()):
            told = {
                "id": event.id,
                "type": event.type,
                "project": event.project,
                "conversation": event.conversation,
                "conversation_id": event.conversation_id,
                "user_id": event.user_id,
                "body": event.body.decode(),
                "internal": event.internal,
            }
            self._bus.send(MESSAGE_KIND, orjson.dumps({"event": told}))

    async def run(self) -> None:
        """Say where somebody listens, and forget what was said long ago, until cancelled."""
        announced_at = -inf
        while True:
            if (
                self._announce_due
                or self._bits() & ~self._announced
                or trio.current_time() >= announced_at + ANNOUNCE_INTERVAL_S
            ):
                announced_at = trio.current_time()
                self._announce()
                self._remote_listeners = {
                    name: said for name, said in self._remote_listeners.items() if said[1] > announced_at
                }
            await trio.sleep(_POLL_INTERVAL_S)

    def _bits(self) -> int:
        bits = 0
        for project in self._listening():
            bits |= 1 << project % _BITMAP_BITS
        return bits

    def _announce(self) -> None:
        self._announce_due, self._announced = False, self._bits()
        self._bus.send(MESSAGE_KIND, orjson.dumps({"node": self._node, "listens": f"{self._announced:x}"}))

    def _request_announcements(self) -> None:
        self._bus.send(MESSAGE_KIND, orjson.dumps({"ask": True}))
        self._announce_due = True

    def _receive(self, payload: bytes) -> None:
        message = orjson.loads(payload)
        if "event" in message:
            event = message["event"]
            self._deliver(EphemeralEvent(**{**event, "body": event["body"].encode()}))
        elif "ask" in message:
            self._announce_due = True
        else:
            self._remote_listeners[message["node"]] = (
                int(message["listens"], 16),
                trio.current_time() + _ANNOUNCEMENT_TTL_S,
            )
