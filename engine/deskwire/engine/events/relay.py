"""The relay of typing events between nodes: each event goes to the nodes that have listeners in its project.

Each node announces the projects in which it has listeners, periodically and as soon as a project is added. Nothing is relayed
for other projects. An announcement is a bitmap, so its size does not depend on the number of projects. Two projects with the
same bit cost an unneeded message. Any message may be lost, because typing events may be lost (ADR 5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Final

import orjson
import trio

from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.events.types import EphemeralEvent

MESSAGE_KIND: Final = "typing"  # the kind of the relay's messages on the bus

ANNOUNCE_INTERVAL_S: Final = 10.0  # interval at which a node repeats its announcement
# Time for which an announcement is valid: two announcements in a row may be lost.
_ANNOUNCEMENT_TTL_S: Final = 25.0
_POLL_INTERVAL_S: Final = 0.5  # interval at which a node looks for new listeners
_BITMAP_BITS: Final = 2_048


class TypingRelay:
    """The typing relay of one node; `run` announces the projects with listeners here.

    Args:
        node: the name of this node.
        listening: returns the storage keys of the projects with listeners on this node.
        deliver: called with each event that another node published.
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
        """Relay an event of this node, if another node may have listeners in its project."""
        bit, now = 1 << event.project % _BITMAP_BITS, trio.current_time()
        if any(bits & bit and until > now for bits, until in self._remote_listeners.values()):
            message = {
                "id": event.id,
                "type": event.type,
                "project": event.project,
                "conversation": event.conversation,
                "conversation_id": event.conversation_id,
                "user_id": event.user_id,
                "body": event.body.decode(),
                "internal": event.internal,
            }
            self._bus.send(MESSAGE_KIND, orjson.dumps({"event": message}))

    async def run(self) -> None:
        """Announce this node's listeners, and expire old announcements of other nodes, until cancelled."""
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
                    name: (bits, until)
                    for name, (bits, until) in self._remote_listeners.items()
                    if until > announced_at
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
