"""A saved view of the inbox: a name for a filter and order, for one user, a team, or the project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.teams import Team, TeamReader
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Forbidden
from deskwire.engine.core.values import replace

Visibility = Literal["me", "team", "project"]

OWN_VIEWS_MAX: Final = 50
"""Views of one user in a project, for this user alone."""
SHARED_VIEWS_MAX: Final = 100
"""Views of a project for teams and for everyone."""

_ALL: Final = "projects.manage"  # the permission to change all shared views
_SHARE: Final = "conversations.manage"  # the permission to change those of one's own teams


class ViewAuthor(Struct, frozen=True):
    """The user who made a view; `rowid` is the storage key. One whose account was deleted has no name."""

    rowid: int
    id: str
    name: str | None


class SavedView(Struct, frozen=True):
    """A saved view. Times are in milliseconds.

    Args:
        filter: parameters of a list of conversations, as text.
        team_id: the team of a view for a team. One of a team that was deleted is None.
        position: views of the same visibility are shown in this order.
    """

    rowid: int
    id: str
    project: int
    name: str
    filter: Mapping[str, str]
    visibility: Visibility
    team_id: str | None
    position: int
    author: ViewAuthor
    created_at: int
    updated_at: int


def saved_view_view(view: SavedView) -> dict[str, Any]:
    """Return the object of a saved view, without a count."""
    return {
        "id": view.id,
        "name": view.name,
        "filter": dict(view.filter),
        "visibility": view.visibility,
        "teamId": view.team_id,
        "createdBy": {"id": view.author.id, "name": view.author.name},
        "createdAt": iso(view.created_at),
        "updatedAt": iso(view.updated_at),
    }


class ViewEditor(Struct, frozen=True):
    """A member of the project who changes saved views; `user` is the storage key."""

    user: int
    permissions: frozenset[str]

    def check(self, view: SavedView, team: Team | None) -> None:
        """Raise Forbidden if this member may not have or change a view, which is for this team."""
        if view.visibility == "me" or _ALL in self.permissions:
            return
        member = team is not None and any(each.rowid == self.user for each in team.members)
        if view.visibility == "project" or not (member and _SHARE in self.permissions):
            raise Forbidden(
                f"A view for the project needs the permission {_ALL}; one for a team needs {_SHARE} and to be a member of it, or {_ALL}."
            )


def moved(views: Sequence[SavedView], view: SavedView, after: SavedView | None) -> Sequence[SavedView]:
    """Return the views whose position changes if a view moves after another, or with None to the front."""
    others = [each for each in views if each.id != view.id]
    at = 0 if after is None else 1 + [each.id for each in others].index(after.id)
    ordered = [*others[:at], view, *others[at:]]
    return [replace(each, position=place) for place, each in enumerate(ordered, 1) if each.position != place]


class SavedViewReader(TeamReader, Protocol):
    """Queries on saved views."""

    def saved_view(self, project: int, user: int, view_id: str) -> SavedView | None:
        """Return a view that the user sees: one's own, of one's own teams, or of the project."""

    def saved_views(self, project: int, user: int) -> Sequence[SavedView]:
        """Return the views that a user sees, in the order in which they are shown."""

    def shared_view(self, project: int, view_id: str) -> SavedView | None:
        """Return a view for any team or the project."""

    def shared_views(self, project: int) -> Sequence[SavedView]:
        """Return the views of a project for teams and for everyone, in their order."""

    def count_saved_views(self, project: int, user: int | None) -> int:
        """Count the views for this user alone, or with None the shared ones."""


class SavedViewTransaction(SavedViewReader, Protocol):
    """Changes of saved views."""

    def insert_saved_view(self, view: SavedView) -> SavedView:
        """Store a new view at the end of its visibility's order; return it as stored."""

    def save_view(self, view: SavedView) -> None:
        """Store a changed view."""

    def delete_saved_view(self, view: SavedView) -> None:
        """Remove a view."""
