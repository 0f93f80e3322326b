"""The realtime stream's port to the store: consumers of channels and requests between nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from deskwire.engine.events.ports import EventReader

HolderRequestType = Literal["take", "end", "forget"]


class HolderRequest(Struct, frozen=True):
    """A request to the node that holds a channel.

    Args:
        what: `take` to release it for another consumer, `end` to end its consumer, or `forget` to release it and delete its
            row, because the contact was erased.
        node, incarnation: the node that requests it.
        consumer_id: the consumer that is to take the channel, or that is to be ended.
        at: time of the request in milliseconds; an old request is ignored.
    """

    what: HolderRequestType
    node: str = ""
    incarnation: int = 0
    consumer_id: str = ""
    at: int = 0


class StreamConsumer(Struct, frozen=True):
    """The consumer that holds a stream channel or held it last, and its confirmed position (decisions 5).

    The fields after `updated_at` are used only where several nodes share the store. A single node has that state in memory.

    Args:
        project: storage key.
        generation: grows by one with each holder; a holder of an older generation may change nothing.
        position: confirmed log position.
        superseded: ids of superseded consumers that may be fenced, oldest first.
        since, updated_at: times at which the consumer took the channel and at which the row was saved, in milliseconds.
        node, incarnation: the node that holds the channel; empty and 0 if none does.
        connected: whether the channel is held.
        dropped_at: time at which the last holder's connection ended, in milliseconds; 0 if it unsubscribed.
        takeovers: times of the last takeovers from a connected holder, in milliseconds.
        event: id of the newest event at `position`; empty if the consumer was not yet notified of a gap.
        request: a request of another node to the node that holds the channel.
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
        """True if the channel's contact was erased; the row is deleted once the channel is released."""
        return self.request is not None and self.request.what == "forget"


class StreamReader(EventReader, Protocol):
    """Queries on the consumers of channels, and on events."""

    def stream_consumer(self, project: int, channel: str) -> StreamConsumer | None:
        """Return the consumer that holds the channel or held it last; None if there was none."""

    def stream_consumers(self, project: int) -> Sequence[StreamConsumer]:
        """Return the present or last consumers of the project's channels, sorted by channel name."""

    def consumers_with_requests(self, incarnation: int) -> Sequence[StreamConsumer]:
        """Return the consumers that this incarnation of a node holds and for which there is a request."""

    def is_live(self, incarnation: int) -> bool:
        """Return whether the lease of this incarnation of a node exists. A lease that is over never returns."""


class StreamTransaction(StreamReader, Protocol):
    """Changes to the consumers of channels."""

    def take_channel(
        self, project: int, channel: str, consumer_id: str, position: int, superseded: Sequence[str], at: int
    ) -> int:
        """Make `consumer_id` the channel's holder, starting at `position`, and return its generation.

        For a node with a store of its own, which knows the previous holder.
        """

    def change_consumer(self, seen: StreamConsumer | None, row: StreamConsumer) -> bool:
        """Store a channel's row if it is still as it was `seen`; return whether it was.

        The stored position and event stay, unless the channel had no row. A request is removed, except one to `forget`.
        """

    def request_holder(self, seen: StreamConsumer, request: HolderRequest | None) -> bool:
        """Store a request to the holder's node, or remove it (None); return whether it was stored.

        It is not stored if the holder has changed, or if there already is a request to `forget`.
        """

    def confirm_position(
        self, project: int, channel: str, generation: int, position: int, superseded: Sequence[str], at: int
    ) -> bool:
        """Save a holder's confirmed position and superseded ids; return False if the generation is outdated.

        For a node with a store of its own.
        """

    def save_position(
        self, project: int, channel: str, generation: int, position: int, event: str | None, at: int
    ) -> bool:
        """Save a holder's confirmed position and its event only; otherwise as `confirm_position`."""

    def remove_consumer(self, seen: StreamConsumer) -> None:
        """Delete the channel's row if its generation has not changed."""

    def forget_consumers(self, before: int, kept: Collection[tuple[int, str]]) -> None:
        """Delete the rows of conversation and contact channels that were last updated before `before` (ms).

        Rows whose contact was erased are deleted as well. Rows in `kept` (project and name) and those that a live node holds stay.
        """
