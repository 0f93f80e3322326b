"""Teams of a project: users of its organisation that conversations and tickets can be given to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.core.clock import iso

MEMBERS_MAX: Final = 200
"""The members that one team may have; each response carries them all."""


class TeamMember(Struct, frozen=True):
    """A user as a member of a team; `rowid` is the user's storage key."""

    rowid: int
    id: str
    name: str


class Team(Struct, frozen=True):
    """A team with its members, those who have left the organisation left out. Times in milliseconds."""

    id: str
    project: int
    name: str
    created_at: int
    updated_at: int
    members: tuple[TeamMember, ...] = ()
    rowid: int = 0


def team_view(team: Team) -> dict[str, Any]:
    """Return the team object."""
    return {
        "id": team.id,
        "name": team.name,
        "members": [{"id": member.id, "name": member.name} for member in team.members],
        "createdAt": iso(team.created_at),
        "updatedAt": iso(team.updated_at),
    }


class TeamReader(Protocol):
    """Queries on teams. One that was deleted is found by `deleted_teams` alone."""

    def team(self, project: int, team_id: str) -> Team | None:
        """Return the team, None if this project has none with that id."""

    def teams(self, project: int, before: int | None, limit: int) -> Sequence[Team]:
        """Return teams of a project, newest first, of storage keys smaller than `before`."""

    def teams_of(self, project: int, user: int) -> Sequence[str]:
        """Return the ids of the project's teams that a user, by its storage key, belongs to, oldest first."""

    def team_named(self, project: int, name: str) -> str | None:
        """Return the id of the project's team with this name, whatever its case."""

    def team_name(self, project: int, team_id: str) -> str | None:
        """Return the name of a team of the project."""

    def teammate(self, organisation: int, user_id: str) -> TeamMember | None:
        """Return the user with this id, None if it does not belong to the organisation."""

    def deleted_teams(self) -> Sequence[tuple[int, str]]:
        """Return storage key and id of the deleted teams of all projects that have left something behind."""


class TeamTransaction(TeamReader, Protocol):
    """Changes of teams."""

    def insert_team(self, team: Team) -> Team:
        """Store a new team with its members; return it with its `rowid`."""

    def save_team(self, team: Team) -> None:
        """Store a changed team; its members replace those it had."""

    def delete_team(self, team: int, at: int) -> None:
        """Begin a team's deletion: from then on no query but `deleted_teams` finds it."""

    def forget_team(self, team: int) -> None:
        """Remove a deleted team that leaves nothing behind."""
