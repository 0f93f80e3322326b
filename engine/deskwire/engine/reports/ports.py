"""The part of a store that reports need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from deskwire.engine.conversations.conversation import AuthorType
from deskwire.engine.reports.period import Period

GroupBy = Literal["agent", "team", "tag", "day"]
Timed = Literal["answered", "closed"]
Counted = Literal["created", "closed", "reopened"] | AuthorType
"""A turn of a conversation, or a message by the type of its author."""
GroupKey = str | int | None
"""The key of a group: an agent's or team's id, the key of a tag, the number of a day; None for nobody, and where there are no groups."""


class ReportScope(Struct, frozen=True):
    """The conversations that a report is about: those of a project, and of these what happened in a period.

    Args:
        imported: whether those count that were imported.
    """

    project: int
    period: Period
    imported: bool = True


class GroupCount(Struct, frozen=True):
    """A number of things of a kind in a group."""

    key: GroupKey
    kind: Counted
    count: int


class RatingCount(Struct, frozen=True):
    """A number of ratings with the same score in a group."""

    key: GroupKey
    score: int
    count: int


class MessageCounts(Struct, frozen=True):
    """The messages that were written: all of them by their authors' types, and those of each group."""

    total: Mapping[Counted, int]
    groups: Sequence[GroupCount]


class ReportReader(Protocol):
    """The figures that reports are made of. Without `by` all there is makes one group; one of nothing is left out."""

    def durations(
        self, scope: ReportScope, kind: Timed, by: GroupBy | None
    ) -> Mapping[GroupKey, Sequence[int]]:
        """Return how long it took to what happened in this time: durations (ms) by group, in each the shortest first."""

    def scores(self, scope: ReportScope, by: GroupBy | None) -> Sequence[RatingCount]:
        """Return the ratings that were given in this time."""

    def created_conversations(self, scope: ReportScope, by: GroupBy | None) -> Sequence[GroupCount]:
        """Return how many conversations were created in this time."""

    def turns(self, scope: ReportScope, by: GroupBy | None) -> Sequence[GroupCount]:
        """Return how many conversations were closed and reopened in this time."""

    def written_messages(self, scope: ReportScope, by: GroupBy | None) -> MessageCounts:
        """Return how many messages were written in this time, by the types of their authors; notes are left out."""

    def open_conversations(self, scope: ReportScope, by: GroupBy | None) -> Mapping[GroupKey, Sequence[int]]:
        """Return when (ms) the conversations that are open now were created, by group, in each the oldest first."""

    def waiting_conversations(self, scope: ReportScope, by: GroupBy | None) -> Mapping[GroupKey, int]:
        """Return of how many conversations the contact waits for an answer now."""

    def agent_names(self, ids: Sequence[str]) -> Mapping[str, str | None]:
        """Return the names of users by their ids; None for one whose account was deleted."""

    def tag_names(self, project: int, keys: Sequence[str]) -> Mapping[str, str]:
        """Return how tags with these keys are written; of several ways the first in the order of Unicode."""

    def team_names(self, project: int, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of a project's teams that there still are, by their ids."""
