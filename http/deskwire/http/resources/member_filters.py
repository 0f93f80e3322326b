"""Filters of lists by a contact or member. An unknown id is refused, because an empty list would look like a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.teams import TeamReader
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.core.errors import Problem
from deskwire.engine.core.ids import is_id
from deskwire.http.api.input.validation import bad_query


class MemberFilterReader(AccountReader, ContactReader, TeamReader, Protocol):
    """Reads of contacts, members and teams."""


def contact_named(reader: ContactReader, project: Project, identifier: str) -> int:
    """Return the storage key of the contact in `?contact=`, a con_ id or the backend's user id.

    Raises BadRequest for an unknown contact.
    """
    by_id = is_id(identifier, "con")
    contact = (reader.contact_by_id if by_id else reader.contact)(project.rowid, identifier)
    if contact is None:
        raise bad_query(Problem("?contact", "unknown", "There is no such contact in this project."))
    return contact.rowid


def require_assignee(
    reader: MemberFilterReader, project: Project, name: str, assignee: str, has_some: Callable[[], bool]
) -> None:
    """Raise BadRequest if a parameter names neither a present nor a former user or team.

    Args:
        name: the parameter, `assignee` or `team`.
        has_some: returns whether anything is still assigned to the id, which a former member may have.
    """
    known = name == "assignee" and reader.member_name(project.organisation, assignee) is not None
    if known or reader.team_name(project.rowid, assignee) is not None or has_some():
        return
    whom = "user or team" if name == "assignee" else "team"
    raise bad_query(Problem(f"?{name}", "unknown", f"There is no such {whom} in this project."))
