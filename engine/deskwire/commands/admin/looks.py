"""The queries of commands that only read; each is of one moment, whoever has the directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from deskwire.commands.admin.naming import ALL, organisation_named, project_named, user_named
from deskwire.engine.accounts.access_tokens import AccessTokenReader, access_token_view
from deskwire.engine.accounts.machines import MachineReader, machine_view, maker_state
from deskwire.engine.accounts.members import user_view
from deskwire.engine.accounts.people import Organisation, User
from deskwire.engine.accounts.ports import OrganisationReader
from deskwire.engine.accounts.projects import key_view, project_view
from deskwire.engine.audit.trail import AuditFilter, AuditReader, record_view
from deskwire.engine.core.clock import iso

V = TypeVar("V")
Result = Mapping[str, Any]


class LookReader(OrganisationReader, MachineReader, AccessTokenReader, AuditReader, Protocol):
    """The queries that looks are made of."""


def organisation_view(organisation: Organisation) -> dict[str, Any]:
    """Return the organisation as the operator sees it."""
    return {"id": organisation.id, "name": organisation.name, "createdAt": iso(organisation.created_at)}


def account_view(reader: OrganisationReader, user: User) -> dict[str, Any]:
    """Return the user as the operator sees it, with the memberships."""
    memberships = [
        {"organisationId": each.organisation.id, "name": each.organisation.name, "role": each.role}
        for each in reader.memberships(user.rowid, (-1, -1), ALL)
    ]
    home = None if user.home is None else reader.organisation_of(user.home).id
    return {**user_view(user), "homeOrganisationId": home, "memberships": memberships}


def organisations(reader: LookReader, now: int) -> Result:
    """Return all organisations, oldest first."""
    return _items(reader.organisations(), organisation_view)


def organisation(reader: LookReader, now: int, *, organisation: str | None) -> Result:
    """Return one organisation, with its projects, the number of its members, and the accounts that are members of no other."""
    found = organisation_named(reader, organisation)
    members = reader.members(found.rowid, 0, ALL)
    alone = [each.user for each in members if len(reader.memberships(each.user.rowid, (-1, -1), 2)) == 1]
    return {
        **organisation_view(found),
        "projects": [each.name for each in reader.projects(found.rowid, None, ALL, ALL)],
        "members": len(members),
        "onlyHere": [each.email for each in alone],
    }


def projects(reader: LookReader, now: int, *, organisation: str | None = None) -> Result:
    """Return the projects of one organisation or of all, newest first."""
    within = None if organisation is None else organisation_named(reader, organisation).rowid
    found = reader.projects(within, None, ALL, ALL)
    return _items(found, lambda each: project_view(each, reader.organisation_of(each.organisation)))


def project(reader: LookReader, now: int, *, project: str | None = None) -> Result:
    """Return one project."""
    found = project_named(reader, project)
    return project_view(found, reader.organisation_of(found.organisation))


def users(reader: LookReader, now: int, *, organisation: str | None = None) -> Result:
    """Return the users of one organisation or of all, oldest first."""
    if organisation is None:
        found = reader.users()
    else:
        within = organisation_named(reader, organisation)
        found = [member.user for member in reader.members(within.rowid, 0, ALL)]
    return _items(found, lambda user: account_view(reader, user))


def user(reader: LookReader, now: int, *, user: str) -> Result:
    """Return one user."""
    return account_view(reader, user_named(reader, user))


def keys(reader: LookReader, now: int, *, project: str | None = None) -> Result:
    """Return a project's server keys, newest first, masked."""
    return _items(reader.keys(project_named(reader, project).rowid, ALL, ALL), key_view)


def credentials(reader: LookReader, now: int, *, project: str | None = None) -> Result:
    """Return a project's machine credentials, newest first, masked."""
    found = reader.machines(project_named(reader, project).rowid, ALL, ALL)
    return _items(found, lambda machine: machine_view(machine, now, maker_state(reader, machine, now)))


def tokens(reader: LookReader, now: int, *, user: str) -> Result:
    """Return the access tokens of a user that are in force, newest first."""
    found = reader.access_tokens_of(user_named(reader, user).rowid, now, ALL, ALL)
    return _items(found, lambda token: access_token_view(token, None))


def audit_records(
    reader: LookReader,
    now: int,
    *,
    limit: int,
    organisation: str | None = None,
    actor: str | None = None,
    action: str | None = None,
    target: str | None = None,
    since: int | None = None,
    until: int | None = None,
    before: int | None = None,
    after: int | None = None,
) -> Result:
    """Return a page of the audit trail: the newest, or with `after` those behind that position.

    Args:
        actor, target: ids; of users their e-mail addresses, too.
        since, until: milliseconds.
        before, after: the `position` of the page before.
    """
    within = None if organisation is None else organisation_named(reader, organisation).rowid
    named = (_id_of(reader, handle) for handle in (actor, target))
    criteria = AuditFilter(next(named), action, next(named), since, until)
    if after is None:
        records = reader.audit_records(within, criteria, before, limit)
    else:
        records = reader.audit_records_after(within, criteria, after, limit)
    return {
        "items": [record_view(record) for record in records],
        "position": records[-1].position if records else None,
    }


def _id_of(reader: LookReader, handle: str | None) -> str | None:
    """Return the handle itself; of an e-mail address the user's id."""
    return user_named(reader, handle).id if handle is not None and "@" in handle else handle


def _items(rows: Sequence[V], view: Callable[[V], Result]) -> Result:
    return {"items": [view(row) for row in rows]}


LOOKS: Final[Mapping[str, Callable[..., Result]]] = {
    "org.list": organisations,
    "org.show": organisation,
    "project.list": projects,
    "project.show": project,
    "user.list": users,
    "user.show": user,
    "key.list": keys,
    "credential.list": credentials,
    "token.list": tokens,
    "audit.list": audit_records,
}
"""The looks by the names of the commands that they are for."""
