"""The queries and changes that the realtime stream needs of a store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from deskwire.engine.events.ports import EventReader


@dataclass(frozen=True, slots=True)
class StreamConsumer:
    """The consumer that holds a stream channel, or held it last, and what it has confirmed (decisions 5).

    Args:
        project: storage key.
        generation: grows by one with each holder; an older one may change nothing.
        position: log position up to which everything is confirmed.
        superseded: ids that were taken over from and may not come back yet, oldest first.
        since, updated_at: when it took the channel, and when the position was saved, in milliseconds.
    """

    project: int
    channel: str
    consumer_id: str
    generation: int
    position: int
    superseded: tuple[str, ...]
    since: int
    updated_at: int


class StreamReader(EventReader, Protocol):
    """Queries on the consumers of channels, and on the events since."""

    def stream_consumer(self, project: int, channel: str) -> StreamConsumer | None:
        """Return the consumer that holds the channel, or held it last; None if there was none."""

    def stream_consumers(self, project: int) -> Sequence[StreamConsumer]:
        """Return the consumers that hold the project's channels, or held them last, by channel name."""


class StreamTransaction(StreamReader, Protocol):
    """Takeovers and positions."""

    def take_channel(
        self, project: int, channel: str, consumer_id: str, position: int, superseded: Sequence[str], at: int
    ) -> int:
        """Make `consumer_id` the channel's holder, starting at `position`; returns its generation."""

    def confirm_position(
        self, project: int, channel: str, generation: int, position: int, superseded: Sequence[str], at: int
    ) -> bool:
        """Save how far a holder has confirmed; False, and no change, if the generation is not the latest."""

    def forget_consumers(self, before: int, kept: Collection[tuple[int, str]]) -> None:
        """Remove conversation and contact channels untouched since `before` (ms), but for those `kept`."""
