"""Connections to be ended because the authorization of a channel was refused for now (ADR 60).

A published client asks once for each channel and connection. The refusal names the connection's socket id, which only
its client knows; the connection may belong to another node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson
import trio

from deskwire.engine.cluster.cluster import Bus, NoBus
from deskwire.http.stream.protocol import PusherProtocol

BUS: Final = "unauthorized"
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
        self._bus.receive(BUS, self._hear)

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
            self._bus.send(BUS, orjson.dumps([[*names, after_s] for names, after_s in unsent.items()]))
            await trio.sleep(_SEND_INTERVAL_S)

    def _hear(self, payload: bytes) -> None:
        for socket_id, channel, retry_after_s in orjson.loads(payload):
            protocol = self._protocols.get(socket_id)
            if protocol is not None:
                protocol.require_subscription(channel, _bounded(retry_after_s))


def _bounded(retry_after_s: float) -> float:
    return min(max(_DELAY_MIN_S, retry_after_s), _DELAY_MAX_S)
