"""The news on channels that nodes tell each other; whoever has not heard it finds it in the store a little later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import orjson

from deskwire.engine.cluster.bus import Bus
from deskwire.engine.stream.channel import Channel, named_channel
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.ports import StreamConsumer

BUS: Final = "seats"
_TOGETHER: Final = 16
"""Channels that fit into one message whatever their names are."""


class LeaseNews:
    """Tells other nodes, and whoever waits for a lease of this one, to look at channels anew.

    Args:
        node: the name of this one.
        leases: those that this node knows of.
        wanted: called when another node has asked this one for something.
    """

    def __init__(
        self, bus: Bus, node: str, leases: Mapping[Channel, ChannelLease], wanted: Callable[[], None]
    ) -> None:
        self._bus = bus
        self._node = node
        self._leases = leases
        self._wanted = wanted
        bus.receive(BUS, self._hear)

    def tell(self, rows: Sequence[StreamConsumer]) -> None:
        """Say that these channels have changed, or that something is wanted of the nodes that hold them."""
        for start in range(0, len(rows), _TOGETHER):
            told = rows[start : start + _TOGETHER]
            self._bus.send(BUS, orjson.dumps([[row.project, row.channel, row.node] for row in told]))
            self._notify((row.project, row.channel) for row in told)

    def _hear(self, payload: bytes) -> None:
        told = orjson.loads(payload)
        self._notify((project, name) for project, name, _ in told)
        if any(node == self._node for _, _, node in told):
            self._wanted()

    def _notify(self, names: Iterable[tuple[int, str]]) -> None:
        for project, name in names:
            channel = named_channel(project, name)
            if channel is not None and channel in self._leases:
                self._leases[channel].notify()
