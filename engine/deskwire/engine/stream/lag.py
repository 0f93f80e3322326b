"""The lag of consumers, and counts of how they came to their channels, for the operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

import trio
from msgspec import Struct

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.events.log import EventLog
from deskwire.engine.stream.channel import Channel, ChannelKind
from deskwire.engine.stream.ports import StreamReader, StreamTransaction
from deskwire.engine.stream.subscription import ResumePoint

LAG_MAX: Final = 10_000
"""Up to which a lag is counted."""

_READ_MAX: Final = 64
"""Lags that are counted in the table at one look: some milliseconds each if they are long. Those of the
others count as what is in memory of them, which is less."""

_CHECKPOINT_INTERVAL: Final = 1_000
"""Consumers that are looked at before other tasks have their turn: about two milliseconds."""


class SubscriptionCounters(Struct):
    """Counts of how consumers have come to their channels since the start.

    Args:
        live: began with what came next.
        resumed: went on behind what was confirmed, or behind the event that they named.
        gaps: could not go on, as those events are no longer stored or too old.
        takeovers: took the channel from another consumer that held it.
        replaced: took it from another connection of their own.
        fenced: were refused, as their successor holds the channel.
        kept: were paused while this node had lost its lease, and resumed.
        lapsed: were paused likewise, and sent away because that took too long.
    """

    live: int = 0
    resumed: int = 0
    gaps: int = 0
    takeovers: int = 0
    replaced: int = 0
    fenced: int = 0
    kept: int = 0
    lapsed: int = 0

    def note(self, start: ResumePoint) -> None:
        """Count a consumer that has taken its channel."""
        if start.gap:
            self.gaps += 1
        elif start.resumed_after is not None:
            self.resumed += 1
        else:
            self.live += 1

    def note_takeover(self, previous: str, consumer_id: str) -> None:
        """Count a consumer that has ended the previous holder's connection."""
        if previous == consumer_id:
            self.replaced += 1
        else:
            self.takeovers += 1


class Lag(Struct):
    """Events behind the confirmed positions of some consumers, each counted up to `LAG_MAX`."""

    consumers: int = 0
    summed: int = 0
    largest: int = 0

    def add(self, events: int) -> None:
        """Count a consumer that is behind by this."""
        self.consumers += 1
        self.summed += events
        self.largest = max(self.largest, events)


async def find_lags(
    store: Store[StreamReader, StreamTransaction], log: EventLog, held: Sequence[tuple[Channel, int]]
) -> Mapping[ChannelKind, Lag]:
    """Return the lags of consumers, given by channel and confirmed position, by the channels' kind.

    Memory tells all but those that are far behind; the table is asked for a bounded number of these.
    """
    lags: dict[ChannelKind, Lag] = {kind: Lag() for kind in get_args(ChannelKind)}
    unsure: list[tuple[int, int, ChannelKind]] = []
    for number, (channel, position) in enumerate(held):
        if number % _CHECKPOINT_INTERVAL == 0:
            await trio.lowlevel.checkpoint()
        count, exact = log.count_after(channel.project, position)
        if exact:
            lags[channel.kind].add(min(count, LAG_MAX))
        else:
            unsure.append((position, channel.project, channel.kind))
    unsure.sort()
    for (position, project, kind), counted in zip(unsure, await _counted(store, unsure), strict=True):
        in_memory, _ = log.count_after(project, position)
        lags[kind].add(min(max(in_memory, counted), LAG_MAX))
    return lags


async def _counted(
    store: Store[StreamReader, StreamTransaction], unsure: Sequence[tuple[int, int, ChannelKind]]
) -> list[int]:
    """Return the lags of those farthest behind, as the table has them.

    They are 0 for the others, and for all if the table can't be read.
    """
    farthest, rest = unsure[:_READ_MAX], len(unsure[_READ_MAX:])

    def query(reader: StreamReader) -> list[int]:
        return [reader.count_events_after(project, position, LAG_MAX) for position, project, _ in farthest]

    try:
        counts = await store.read(query) if farthest else []
    except Unavailable:
        counts = [0] * len(farthest)
    return [*counts, *[0] * rest]
