"""Teams of a project: groups of members to which conversations and tickets can be assigned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.core.clock import iso

MEMBERS_MAX: Final = 200
"""Maximum number of members of a team. Each response contains all of them."""


class TeamMember(Struct, frozen=True):
    """A user in a team. `rowid` is the user's storage key."""

    rowid: int
    id: str
    name: str


class Team(Struct, frozen=True):
    """A team with its members, except those who have left the organisation.

    Times are in milliseconds.
    """

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
    """Queries on teams. Only `deleted_teams` returns deleted ones."""

    def team(self, project: int, team_id: str) -> Team | None:
        """Return the team of a project with this id."""

    def teams(self, project: int, before: int | None, limit: int) -> Sequence[Team]:
        """Return teams of a project, newest first, with storage keys smaller than `before`."""

    def teams_of(self, project: int, user: int) -> Sequence[str]:
        """Return the ids of a user's (storage key) teams in the project, oldest first."""

    def team_named(self, project: int, name: str) -> str | None:
        """Return the id of the project's team with this name, compared in folded form."""

    def team_name(self, project: int, team_id: str) -> str | None:
        """Return the name of a team of the project."""

    def teammate(self, organisation: int, user_id: str) -> TeamMember | None:
        """Return the member of the organisation with this user id."""

    def deleted_teams(self) -> Sequence[tuple[int, str]]:
        """Return storage key and id of deleted teams, of all projects, that are still referenced."""


class TeamTransaction(TeamReader, Protocol):
    """Changes of teams."""

    def insert_team(self, team: Team) -> Team:
        """Store a new team with its members. Return it with its `rowid`."""

    def save_team(self, team: Team) -> None:
        """Store a changed team. Its members replace the stored ones."""

    def delete_team(self, team: int, at: int) -> None:
        """Mark a team as deleted at `at` (ms)."""

    def forget_team(self, team: int) -> None:
        """Remove a deleted team that is no longer referenced."""
