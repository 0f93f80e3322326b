"""The queries and changes that the realtime stream needs of a store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from deskwire.engine.events.ports import EventReader

HolderRequestType = Literal["take", "end", "forget"]


class HolderRequest(Struct, frozen=True):
    """The thing that another node asks of the node that holds a channel.

    Args:
        what: to let it go for another consumer, to end its consumer, or to give it up with its row, as that is erased.
        node, incarnation: who asks.
        consumer_id: for whom.
        at: when, in milliseconds; an old one is nobody's any more.
    """

    what: HolderRequestType
    node: str = ""
    incarnation: int = 0
    consumer_id: str = ""
    at: int = 0


class StreamConsumer(Struct, frozen=True):
    """The consumer that holds a stream channel, or held it last, and what it has confirmed (decisions 5).

    What follows `updated_at` is kept up where several nodes share the store; one that is alone has it in memory.

    Args:
        project: storage key.
        generation: grows by one with each holder; an older one may change nothing.
        position: log position up to which everything is confirmed.
        superseded: ids that were taken over from and may not come back yet, oldest first.
        since, updated_at: when it took the channel, and when the position was saved, in milliseconds.
        node, incarnation: the node that holds it; none while nobody does.
        connected: whether it is held.
        dropped_at: when the last holder's connection ended, in milliseconds; 0 if it left by its own word.
        takeovers: times of the last takeovers from a connected holder, in milliseconds.
        event: id of the newest event at `position`; empty if its consumer was not yet told of a gap.
        request: what another node asks the holder's for.
    """

    project: int
    channel: str
    consumer_id: str
    generation: int
    position: int
    superseded: tuple[str, ...]
    since: int
    updated_at: int
    node: str = ""
    incarnation: int = 0
    connected: bool = False
    dropped_at: int = 0
    takeovers: tuple[int, ...] = ()
    event: str | None = None
    request: HolderRequest | None = None

    @property
    def forgotten(self) -> bool:
        """The channel's contact was erased: the row is to be removed once nobody holds it."""
        return self.request is not None and self.request.what == "forget"


class StreamReader(EventReader, Protocol):
    """Queries on the consumers of channels, and on the events since."""

    def stream_consumer(self, project: int, channel: str) -> StreamConsumer | None:
        """Return the consumer that holds the channel, or held it last; None if there was none."""

    def stream_consumers(self, project: int) -> Sequence[StreamConsumer]:
        """Return the consumers that hold the project's channels, or held them last, by channel name."""

    def consumers_with_requests(self, incarnation: int) -> Sequence[StreamConsumer]:
        """Return those that this life of a node holds and another node asks it for."""

    def is_live(self, incarnation: int) -> bool:
        """Tell whether the lease of this life of a node is not over; once it is, it is for ever."""


class StreamTransaction(StreamReader, Protocol):
    """Takeovers and positions."""

    def take_channel(
        self, project: int, channel: str, consumer_id: str, position: int, superseded: Sequence[str], at: int
    ) -> int:
        """Make `consumer_id` the channel's holder, starting at `position`; returns its generation.

        For a node that has the store to itself, and knows the holder before.
        """

    def change_consumer(self, seen: StreamConsumer | None, row: StreamConsumer) -> bool:
        """Store who has the channel; False, and no change, if that is no longer as it was `seen`.

        Position and event stay as they are stored, unless nobody ever had the channel. Of wishes only that to forget stays.
        """

    def request_holder(self, seen: StreamConsumer, request: HolderRequest | None) -> bool:
        """Ask the holder's node for something, or no longer; False, and no change, if the holder is another.

        Nor is anything else asked for where a row is to be forgotten.
        """

    def confirm_position(
        self, project: int, channel: str, generation: int, position: int, superseded: Sequence[str], at: int
    ) -> bool:
        """Save how far a holder has confirmed; False, and no change, if the generation is not the latest.

        For a node that has the store to itself, and keeps in memory whom the channel is closed to.
        """

    def save_position(
        self, project: int, channel: str, generation: int, position: int, event: str | None, at: int
    ) -> bool:
        """Save how far a holder has confirmed, and nothing else; otherwise as `confirm_position`."""

    def remove_consumer(self, seen: StreamConsumer) -> None:
        """Remove the channel's row if it is still of this generation."""

    def forget_consumers(self, before: int, kept: Collection[tuple[int, str]]) -> None:
        """Remove conversation and contact channels untouched since `before` (ms), but for those `kept` and held."""
