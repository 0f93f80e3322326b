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

from deskwire.engine.cluster.bus import Bus
from deskwire.engine.events.types import EphemeralEvent

KIND: Final = "typing"
"""The kind of message on the bus."""

SAY_S: Final = 10.0
"""Time after which a node says again where somebody listens."""
_GOOD_S: Final = 25.0
"""Time for which it is believed: two messages may be lost."""
_LOOK_S: Final = 0.5
"""Time in which a new listener is noticed."""
_BITS: Final = 2_048


class Relay:
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
        self._elsewhere: dict[str, tuple[int, float]] = {}
        self._said = 0
        self._say_due = False
        bus.receive(KIND, self._came)
        bus.connected(self._ask)

    def offer(self, event: EphemeralEvent) -> None:
        """Pass an event on that was published here, if anybody may listen elsewhere."""
        bit, now = 1 << event.project % _BITS, trio.current_time()
        if any(bits & bit and until > now for bits, until in self._elsewhere.values()):
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
            self._bus.send(KIND, orjson.dumps({"event": told}))

    async def run(self) -> None:
        """Say where somebody listens, and forget what was said long ago, until cancelled."""
        said_at = -inf
        while True:
            if self._say_due or self._bits() & ~self._said or trio.current_time() >= said_at + SAY_S:
                said_at = trio.current_time()
                self._say()
                self._elsewhere = {name: said for name, said in self._elsewhere.items() if said[1] > said_at}
            await trio.sleep(_LOOK_S)

    def _bits(self) -> int:
        bits = 0
        for project in self._listening():
            bits |= 1 << project % _BITS
        return bits

    def _say(self) -> None:
        self._say_due, self._said = False, self._bits()
        self._bus.send(KIND, orjson.dumps({"node": self._node, "listens": f"{self._said:x}"}))

    def _ask(self) -> None:
        self._bus.send(KIND, orjson.dumps({"ask": True}))
        self._say_due = True

    def _came(self, payload: bytes) -> None:
        message = orjson.loads(payload)
        if "event" in message:
            event = message["event"]
            self._deliver(EphemeralEvent(**{**event, "body": event["body"].encode()}))
        elif "ask" in message:
            self._say_due = True
        else:
            self._elsewhere[message["node"]] = int(message["listens"], 16), trio.current_time() + _GOOD_S
