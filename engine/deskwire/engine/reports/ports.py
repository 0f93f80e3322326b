"""The requirements of reports on the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from deskwire.engine.conversations.conversation import AuthorType
from deskwire.engine.reports.period import Period

GroupBy = Literal["agent", "team", "channel", "tag", "day"]
Timed = Literal["answered", "closed"]
Counted = Literal["created", "closed", "reopened"] | AuthorType
"""A change of a conversation's status, or a message by the type of its author."""
GroupKey = str | int | None
"""The key of a group: id of an agent, team or channel, key of a tag, or number of a day.

None stands for conversations without one, and for all of them in a report without groups."""


class ReportScope(Struct, frozen=True):
    """The project and the period of a report, and the conversations that count.

    Args:
        imported: whether imported conversations count.
        channels: ids of the channels in which contacts began them, and None for none of these; None for all.
        tags: keys of tags, any of which a conversation has now; None for all.
    """

    project: int
    period: Period
    imported: bool = True
    channels: tuple[str | None, ...] | None = None
    tags: tuple[str, ...] | None = None


class GroupCount(Struct, frozen=True):
    """The count of one kind in a group."""

    key: GroupKey
    kind: Counted
    count: int


class RatingCount(Struct, frozen=True):
    """The number of ratings with one score in a group."""

    key: GroupKey
    score: int
    count: int


class MessageCounts(Struct, frozen=True):
    """The number of messages by their authors' types, in total and for each group."""

    total: Mapping[Counted, int]
    groups: Sequence[GroupCount]


class ReportReader(Protocol):
    """Queries of reports. Without `by` everything is one group; empty groups are left out."""

    def durations(
        self, scope: ReportScope, kind: Timed, by: GroupBy | None
    ) -> Mapping[GroupKey, Sequence[int]]:
        """Return the durations (ms) that ended in the period, by group, in ascending order."""

    def scores(self, scope: ReportScope, by: GroupBy | None) -> Sequence[RatingCount]:
        """Return the ratings given in the period."""

    def created_conversations(self, scope: ReportScope, by: GroupBy | None) -> Sequence[GroupCount]:
        """Return how many conversations were created in this time."""

    def turns(self, scope: ReportScope, by: GroupBy | None) -> Sequence[GroupCount]:
        """Return how many conversations were closed and reopened in this time."""

    def written_messages(self, scope: ReportScope, by: GroupBy | None) -> MessageCounts:
        """Return the number of messages written in the period, without notes."""

    def open_conversations(self, scope: ReportScope, by: GroupBy | None) -> Mapping[GroupKey, Sequence[int]]:
        """Return the times of creation (ms) of the open conversations, by group, the oldest first."""

    def waiting_conversations(self, scope: ReportScope, by: GroupBy | None) -> Mapping[GroupKey, int]:
        """Return the number of conversations in which the contact is waiting for an answer."""

    def agent_names(self, ids: Sequence[str]) -> Mapping[str, str | None]:
        """Return the names of users by their ids; None for one whose account was deleted."""

    def tag_names(self, project: int, keys: Sequence[str]) -> Mapping[str, str]:
        """Return the spelling of tags by their keys; of several spellings the first in code point order."""

    def channel_names(self, project: int, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of the project's channels that exist, by their ids."""

    def team_names(self, project: int, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of the project's teams that exist, by their ids."""
