"""Sessions with an open desk on other nodes, from the announcements of those nodes.

A desk that is open shows its notifications itself. Each node announces changes at once, and all its desks every few seconds, so
a lost message is repaired soon, and the announcements of a dead node expire. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import orjson
import trio

from deskwire.engine.cluster.cluster import Bus

_MESSAGE_KIND: Final = "desks"
_ANNOUNCE_INTERVAL_S: Final = 10.0
_TTL_S: Final = 25.0  # two announcements in a row may be lost
_BATCH_SIZE: Final = 50  # desks in one message, which the bus limits to 4,000 bytes

Desk = tuple[int, str]
"""The storage key of a project, and the id of a session."""


class OpenDesks:
    """The desks on other nodes, and the announcements of this node's desks.

    Args:
        node: a name of this run of the node.
    """

    def __init__(self, bus: Bus, node: str) -> None:
        self._bus = bus
        self._node = node
        self._until: dict[tuple[str, Desk], float] = {}
        bus.receive(_MESSAGE_KIND, self._receive)

    def is_open(self, desk: Desk) -> bool:
        """Return whether another node has a stream of this desk."""
        now = trio.current_time()
        return any(there == desk and until > now for (_, there), until in self._until.items())

    def announce(self, desk: Desk, *, is_open: bool) -> None:
        """Announce that a desk was opened here, or that its last stream here was closed."""
        self._send([desk], is_open=is_open)

    async def run(self, ours: Callable[[], Iterable[Desk]]) -> None:
        """Announce all desks periodically, and forget expired ones of other nodes, until cancelled."""
        while True:
            now = trio.current_time()
            self._until = {key: until for key, until in self._until.items() if until > now}
            desks = [*ours()]
            for start in range(0, len(desks), _BATCH_SIZE):
                self._send(desks[start : start + _BATCH_SIZE], is_open=True)
            await trio.sleep(_ANNOUNCE_INTERVAL_S)

    def _send(self, desks: Sequence[Desk], *, is_open: bool) -> None:
        self._bus.send(_MESSAGE_KIND, orjson.dumps({"from": self._node, "open": is_open, "desks": desks}))

    def _receive(self, payload: bytes) -> None:
        message = orjson.loads(payload)
        for project, session in message["desks"]:
            key = (message["from"], (project, session))
            if message["open"]:
                self._until[key] = trio.current_time() + _TTL_S
            else:
                self._until.pop(key, None)
