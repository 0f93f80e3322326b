"""Filters of lists that name somebody. An id of nobody is refused: an empty list would look like an answer."""

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
    """Queries on those who can be named."""


def contact_named(reader: ContactReader, project: Project, identifier: str) -> int:
    """Return the storage key of the contact that `?contact=` names, by its con_ id or the backend's user id.

    Raises BadRequest if the project has no such contact.
    """
    by_id = is_id(identifier, "con")
    contact = (reader.contact_by_id if by_id else reader.contact)(project.rowid, identifier)
    if contact is None:
        raise bad_query(Problem("?contact", "unknown", "There is no such contact in this project."))
    return contact.rowid


def require_assignee(
    reader: MemberFilterReader, project: Project, name: str, assignee: str, has_some: Callable[[], bool]
) -> None:
    """Raise BadRequest if a parameter names neither a user nor a team that can be assigned, nor one that was.

    Args:
        name: that of the parameter, `assignee` or `team`.
        has_some: tells whether anything is still assigned to that id, as it may be to those who have left.
    """
    known = name == "assignee" and reader.member_name(project.organisation, assignee) is not None
    if known or reader.team_name(project.rowid, assignee) is not None or has_some():
        return
    whom = "user or team" if name == "assignee" else "team"
    raise bad_query(Problem(f"?{name}", "unknown", f"There is no such {whom} in this project."))
