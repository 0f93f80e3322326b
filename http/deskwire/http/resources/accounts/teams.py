"""Teams, to which conversations and tickets are assigned (decisions 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.teams import (
    MEMBERS_MAX,
    Team,
    TeamMember,
    TeamReader,
    TeamTransaction,
    team_view,
)
from deskwire.engine.audit.audited_changes import deleted
from deskwire.engine.core.errors import Conflict, Invalid, NotFound, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, given_fields, nulls, unique
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import LARGE, Routes, Tag, dashboard
from deskwire.http.resources.fields import Name
from deskwire.http.schemas import tickets as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(
    Tag("Teams", "Manage the teams that conversations and tickets are assigned to."),
    unrecorded="A team grants no permissions: it only receives assignments.",
)
_ONE: Final = "/teams/<team_id>"
_READ: Final = dashboard("tickets.read")
_MANAGE: Final = dashboard("members.manage")

UserIds = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=40)]],
    Field(max_length=MEMBERS_MAX),
    AfterValidator(unique),
]


class CreateTeamRequest(Body):
    """The new team. `members` are the ids of users of the organisation."""

    name: Name
    members: Annotated[UserIds, Field(default_factory=list)]


class ChangeTeamRequest(Body):
    """The fields to change. `members` replaces all members."""

    name: Name | None = None
    members: UserIds | None = None


async def _check_members(call: Call[Any, Query]) -> None:
    if call.body.members is not None:
        await call.services.store.read(lambda reader: _members(reader, call.project, call.body.members))


@routes.add(
    "POST",
    "/teams",
    _MANAGE,
    operation_id="createTeam",
    tells="teams",
    body=CreateTeamRequest,
    limit=LARGE,
    answer=shapes.Team,
    errors=("team_name_taken",),
    idempotent=True,
    further=(_check_members,),
)
async def create_team(call: Call[CreateTeamRequest, Query]) -> Answer:
    """Create a team."""
    body, now, project = call.body, call.services.clock(), call.project
    team_id = new_id("team", now)

    def create(tx: TeamTransaction) -> Team:
        team = Team(team_id, project.rowid, body.name, now, now, _members(tx, project, body.members))
        _check_name(tx, team)
        return tx.insert_team(team)

    return await call.commit(create, team_view)


@routes.add("GET", "/teams", _READ, operation_id="listTeams", query=Paged, answer=page_of(shapes.Team))
async def list_teams(call: Call[Body, Paged]) -> Answer:
    """List the teams of a project with their members, newest first."""
    query, before = call.query, call.query.row
    teams = await call.services.store.read(
        lambda reader: reader.teams(call.project.rowid, before, query.rows)
    )
    return page(query, teams, team_view, lambda team: team.rowid)


@routes.add("GET", _ONE, _READ, operation_id="getTeam", answer=shapes.Team)
async def get_team(call: Call[Body, Query]) -> Answer:
    """Fetch a team."""
    return team_view(await call.services.store.read(lambda reader: _find(reader, call)))


@routes.add(
    "PATCH",
    _ONE,
    _MANAGE,
    operation_id="changeTeam",
    tells="teams",
    body=ChangeTeamRequest,
    limit=LARGE,
    answer=shapes.Team,
    errors=("team_name_taken",),
    further=(nulls(), _check_members),
)
async def change_team(call: Call[ChangeTeamRequest, Query]) -> Answer:
    """Change the name or members of a team. Conversations assigned to it earlier keep its old name."""
    given, now = given_fields(call.body, frozenset()), call.services.clock()

    def change(tx: TeamTransaction) -> Team:
        before = _find(tx, call)
        members = _members(tx, call.project, given["members"]) if "members" in given else before.members
        after = replace(before, name=given.get("name", before.name), members=members)
        if after == before:
            return before
        if after.name != before.name:
            _check_name(tx, after)
        after = replace(after, updated_at=now)
        tx.save_team(after)
        return after

    return team_view(await call.services.store.write(change))


@routes.add(
    "DELETE",
    _ONE,
    _MANAGE,
    operation_id="deleteTeam",
    tells="teams",
    answer=Deleted,
    records=("team.deleted",),
)
async def delete_team(call: Call[Body, Query]) -> Answer:
    """Delete a team. Its tickets become unassigned; its conversations keep its name until they are reassigned."""
    now = call.services.clock()

    def delete(tx: Transaction) -> Team:
        team = _find(tx, call)
        tx.delete_team(team.rowid, now)
        tx.record(deleted("team", team.id, call.project.rowid))
        return team

    team = await call.services.store.write(delete)
    return {"id": team.id, "deleted": True}


def _find(reader: TeamReader, call: Call[Any, Any]) -> Team:
    team = reader.team(call.project.rowid, call.path["team_id"])
    if team is None:
        raise NotFound("There is no such team.", code="team_not_found")
    return team


def _members(reader: TeamReader, project: Project, ids: Sequence[str]) -> tuple[TeamMember, ...]:
    """Return the users with these ids, oldest first. Raises Invalid naming each id that is not in the organisation."""
    found = {user_id: reader.teammate(project.organisation, user_id) for user_id in ids}
    problems = [
        Problem(f"/members/{index}", "unknown", "There is no such user in this organisation.")
        for index, user_id in enumerate(ids)
        if found[user_id] is None
    ]
    if problems:
        raise Invalid(*problems)
    return tuple(sorted((each for each in found.values() if each is not None), key=lambda each: each.rowid))


def _check_name(reader: TeamReader, team: Team) -> None:
    if reader.team_named(team.project, team.name) not in (None, team.id):
        raise Conflict(
            "Another team of the project has this name, or a name that differs only in case.",
            code="team_name_taken",
        )
