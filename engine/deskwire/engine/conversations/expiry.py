"""The conversations that have passed their retention (contract 3; decisions 4).

A conversation that no agent ever wrote in and that was never assigned is bot-only and goes some time after its
creation, or after it was brought in from elsewhere; one that is archived goes some time after that, which each project
chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.conversation import Conversation

Kind = Literal["bot_only", "archived"]


class Windows(Struct, frozen=True):
    """The times for which a conversation is kept, in milliseconds; `archived` is None for ever."""

    bot_only: int
    archived: int | None


class Due(Struct, frozen=True):
    """A conversation that seems to have passed its retention.

    Args:
        project, conversation: their ids.
        rows: about how many rows its deletion removes.
        place: where a listing goes on: its time (ms) and storage key.
    """

    project: str
    conversation: str
    rows: int
    place: tuple[int, int]


class ExpiryReader(Protocol):
    """Queries for what has passed its retention, the oldest first; each is found by an index."""

    def bot_only_before(self, created_before: int, after: tuple[int, int], limit: int) -> Sequence[Due]:
        """Bot-only conversations of all projects created, or imported, before this time (ms), behind the place `after`."""

    def archived_before(
        self, project: int, archived_before: int, after: tuple[int, int], limit: int
    ) -> Sequence[Due]:
        """Return a project's conversations archived before this time (ms), behind the place `after`."""

    def projects_with_expired(self, now: int, day_ms: int) -> Sequence[Project]:
        """Projects with a conversation that was archived longer ago than they want, a day being `day_ms`."""


def passed(state: Conversation, windows: Windows, at: int) -> Kind | None:
    """Return why the conversation has to go at time `at` (ms); None if it may stay."""
    if (
        windows.archived is not None
        and state.archived_at is not None
        and state.archived_at + windows.archived < at
    ):
        return "archived"
    since = state.created_at if state.imported_at is None else state.imported_at
    if not state.human and since + windows.bot_only < at:
        return "bot_only"
    return None
