"""The lag of consumers, and counts of the ways in which they subscribed, for metrics and status only.

A consumer's lag is the number of its project's events after the position that it has confirmed, whether or not its channel
carries them. No consumer is disconnected because of its lag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

import trio
from msgspec import Struct

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.events.log import EventLog
from deskwire.engine.stream.channel import ChannelKind, StreamChannel
from deskwire.engine.stream.ports import StreamReader, StreamTransaction
from deskwire.engine.stream.subscription import ResumePoint

LAG_MAX: Final = 10_000  # the largest lag that is counted

# Maximum lags counted in the table per call, because a long one takes some milliseconds.
# The other lags are counted in memory only, so they may be too small.
_READ_MAX: Final = 64

_CHECKPOINT_INTERVAL: Final = 1_000  # consumers processed between two checkpoints: about two milliseconds


class SubscriptionCounters(Struct):
    """Counts of subscriptions since the start.

    Args:
        live: began with the next event.
        resumed: continued after the confirmed position, or after the event that they named.
        gaps: could not continue, because the missed events are too old or no longer stored.
        takeovers: took the channel from another consumer that held it.
        replaced: took the channel from another connection of the same consumer.
        fenced: were refused, because their successor holds the channel.
        kept: were paused while this node had no lease, and resumed.
        lapsed: were paused while this node had no lease, and disconnected because that took too long.
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
        """Count a new subscription by its start."""
        if start.gap:
            self.gaps += 1
        elif start.resumed_after is not None:
            self.resumed += 1
        else:
            self.live += 1

    def note_takeover(self, previous: str, consumer_id: str) -> None:
        """Count a subscription that ended the previous holder's."""
        if previous == consumer_id:
            self.replaced += 1
        else:
            self.takeovers += 1


class Lag(Struct):
    """Numbers of unconfirmed events of some consumers, each counted up to `LAG_MAX`."""

    consumers: int = 0
    summed: int = 0
    largest: int = 0

    def add(self, events: int) -> None:
        """Add a consumer with this number of unconfirmed events."""
        self.consumers += 1
        self.summed += events
        self.largest = max(self.largest, events)


async def find_lags(
    store: Store[StreamReader, StreamTransaction], log: EventLog, held: Sequence[tuple[StreamChannel, int]]
) -> Mapping[ChannelKind, Lag]:
    """Return the lags of consumers, given by channel and confirmed position, by the channels' kind.

    Most lags are counted in memory. Of those beyond memory, the largest are counted in the table, up to a bounded number.
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
    """Return the lags, with the largest ones counted in the table.

    The others are 0, and all of them are if the table can't be read.
    """
    farthest, rest = unsure[:_READ_MAX], len(unsure[_READ_MAX:])

    def query(reader: StreamReader) -> list[int]:
        return [reader.count_events_after(project, position, LAG_MAX) for position, project, _ in farthest]

    try:
        counts = await store.read(query) if farthest else []
    except Unavailable:
        counts = [0] * len(farthest)
    return [*counts, *[0] * rest]
