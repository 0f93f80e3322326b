"""The store port of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from deskwire.engine.channels.channel import Channel


class ChannelReader(Protocol):
    """Queries on channels. A removed channel is in none of them."""

    def channel(self, channel_id: str) -> Channel | None:
        """Return the channel with this id, of any project. None if there is none, or it was removed."""

    def channels(self, project: int, before: int | None, limit: int) -> Sequence[Channel]:
        """Return channels of a project, newest first, with storage keys below `before`."""

    def count_channels(self, project: int) -> int:
        """Count the channels of a project."""


class ChannelTransaction(ChannelReader, Protocol):
    """Changes of channels, each recorded in the audit trail."""

    def lock_channels(self, project: int) -> None:
        """Make other transactions that change channels of the project wait for this one."""

    def insert_channel(self, channel: Channel) -> Channel:
        """Store a new channel; return it with its `rowid`."""

    def save_channel(self, channel: Channel) -> None:
        """Store a changed channel."""

    def remove_channel(self, channel: Channel, at: int) -> None:
        """Remove a channel at `at` (ms) and forget its secrets and keys. Its conversations keep its id."""
