"""A snippet: a text that agents put into a reply by its shortcut (ADR 19)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.accounts.teams import Team, TeamReader
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Forbidden

SNIPPETS_MAX: Final = 1_000
"""Snippets of one project. Clients keep all of them, to find one by the typed text."""

ALL: Final = "projects.manage"
"""The permission to change snippets of others."""


class SnippetAuthor(Struct, frozen=True):
    """The user who made a snippet; `rowid` is the storage key. One whose account was deleted has no name."""

    rowid: int
    id: str
    name: str | None


class Snippet(Struct, frozen=True):
    """A snippet of a project. Times are in milliseconds."""

    rowid: int
    id: str
    project: int
    shortcut: str
    title: str
    text: str
    language: str | None
    team_id: str | None
    author: SnippetAuthor
    created_at: int
    updated_at: int


def snippet_view(snippet: Snippet) -> dict[str, Any]:
    """Return the snippet object."""
    return {
        "id": snippet.id,
        "shortcut": snippet.shortcut,
        "title": snippet.title,
        "text": snippet.text,
        "language": snippet.language,
        "teamId": snippet.team_id,
        "createdBy": {"id": snippet.author.id, "name": snippet.author.name},
        "createdAt": iso(snippet.created_at),
        "updatedAt": iso(snippet.updated_at),
    }


class Editor(Struct, frozen=True):
    """A member of the project who changes snippets; `user` is the storage key."""

    user: int
    permissions: frozenset[str]

    def check_team(self, team: Team | None) -> None:
        """Raise Forbidden if this one may not make snippets of that team."""
        if not (team is None or self._of(team) or self._everything):
            raise Forbidden(
                "A team's snippets are made by its members, and by those who have the permission " + ALL + "."
            )

    def check_change(self, snippet: Snippet, team: Team | None) -> None:
        """Raise Forbidden if the snippet, which is of this team, is neither one's own nor of a team of one's own."""
        if not (snippet.author.rowid == self.user or self._of(team) or self._everything):
            raise Forbidden("This is a colleague's snippet: to change it needs the permission " + ALL + ".")

    def _of(self, team: Team | None) -> bool:
        return team is not None and any(member.rowid == self.user for member in team.members)

    @property
    def _everything(self) -> bool:
        return ALL in self.permissions


class SnippetReader(TeamReader, Protocol):
    """Queries on snippets. One of a team that was deleted is of none."""

    def snippet(self, project: int, snippet_id: str) -> Snippet | None:
        """Return the snippet, None if this project has none with that id."""

    def snippets(self, project: int, before: int | None, limit: int) -> Sequence[Snippet]:
        """Return snippets of a project, newest first, of storage keys smaller than `before`."""

    def snippet_by_shortcut(self, project: int, shortcut: str) -> Snippet | None:
        """Return the snippet with this shortcut."""

    def count_snippets(self, project: int) -> int:
        """Count the snippets of a project."""


class SnippetTransaction(SnippetReader, Protocol):
    """Changes of snippets."""

    def insert_snippet(self, snippet: Snippet) -> Snippet:
        """Store a new snippet; return it with its `rowid`."""

    def save_snippet(self, snippet: Snippet) -> None:
        """Store a changed snippet."""

    def delete_snippet(self, snippet: Snippet) -> None:
        """Remove a snippet."""


PLACEHOLDERS: Final = ("contact.name", "agent.name")
"""The placeholders that there are."""

_LOOKALIKE: Final = re.compile(r"\{([A-Za-z][A-Za-z0-9_.]*)\}")
"""A name in braces. Braces around anything else are text, such as those of JSON."""


def unknown_placeholders(text: str) -> tuple[str, ...]:
    """Return the names in braces that are no placeholders, each once, in their order."""
    return tuple(dict.fromkeys(name for name in _LOOKALIKE.findall(text) if name not in PLACEHOLDERS))
