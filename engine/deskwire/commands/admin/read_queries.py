"""Queries of commands that only read. Each reads a consistent snapshot, whether or not a server is running."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from deskwire.engine.accounts.access_tokens import AccessTokenReader, access_token_view
from deskwire.engine.accounts.custom_roles import RoleReader, roles_of
from deskwire.engine.accounts.machines import MachineReader, machine_view, maker_state
from deskwire.engine.accounts.members import user_view
from deskwire.engine.accounts.people import Organisation, Project, Role, User
from deskwire.engine.accounts.ports import OrganisationReader
from deskwire.engine.accounts.projects import key_view, project_view
from deskwire.engine.audit.trail import AuditFilter, AuditReader, record_view
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Conflict, NotFound
from deskwire.engine.core.folding import fold_name
from deskwire.engine.core.ids import is_id
from deskwire.engine.mail.ports import MailReader, mail_view

V = TypeVar("V")
QueryResult = Mapping[str, Any]


class AdminReader(
    OrganisationReader, RoleReader, MachineReader, AccessTokenReader, AuditReader, MailReader, Protocol
):
    """The reads that the queries are made of."""


def organisation_view(organisation: Organisation) -> dict[str, Any]:
    """Return the organisation as the operator sees it."""
    return {"id": organisation.id, "name": organisation.name, "createdAt": iso(organisation.created_at)}


class AccountViewReader(OrganisationReader, RoleReader, Protocol):
    """The reads that a view of a user is made of."""


def account_view(reader: AccountViewReader, user: User) -> dict[str, Any]:
    """Return the user as the operator sees it, with the memberships."""
    memberships = [
        {
            "organisationId": each.organisation.id,
            "name": each.organisation.name,
            "role": each.role,
            "roleName": _role_name(reader, each.organisation.rowid, each.role),
        }
        for each in reader.memberships(user.rowid, (-1, -1), ALL)
    ]
    home = None if user.home is None else reader.organisation_of(user.home).id
    return {**user_view(user), "homeOrganisationId": home, "memberships": memberships}


def _role_name(reader: RoleReader, organisation: int, role: Role) -> str:
    """Return the name of an organisation's own role, and the id of any other."""
    own = {each.id: each.name for each in reader.custom_roles(organisation)} if is_id(role, "rol") else {}
    return own.get(role, role)


def organisations(reader: AdminReader, now: int) -> QueryResult:
    """Return all organisations, oldest first."""
    return _items(reader.organisations(), organisation_view)


def organisation(reader: AdminReader, now: int, *, organisation: str | None) -> QueryResult:
    """Return one organisation with its projects, its number of members, and the accounts without another organisation."""
    found = organisation_named(reader, organisation)
    members = reader.members(found.rowid, 0, ALL)
    alone = [each.user for each in members if len(reader.memberships(each.user.rowid, (-1, -1), 2)) == 1]
    return {
        **organisation_view(found),
        "projects": [each.name for each in reader.projects(found.rowid, None, ALL, ALL)],
        "members": len(members),
        "onlyHere": [each.email for each in alone],
    }


def projects(reader: AdminReader, now: int, *, organisation: str | None = None) -> QueryResult:
    """Return the projects of one organisation or of all, newest first."""
    within = None if organisation is None else organisation_named(reader, organisation).rowid
    found = reader.projects(within, None, ALL, ALL)
    return _items(found, lambda each: project_view(each, reader.organisation_of(each.organisation)))


def project(reader: AdminReader, now: int, *, project: str | None = None) -> QueryResult:
    """Return one project."""
    found = project_named(reader, project)
    return project_view(found, reader.organisation_of(found.organisation))


def users(reader: AdminReader, now: int, *, organisation: str | None = None) -> QueryResult:
    """Return the users of one organisation or of all, oldest first."""
    if organisation is None:
        found = reader.users()
    else:
        within = organisation_named(reader, organisation)
        found = [member.user for member in reader.members(within.rowid, 0, ALL)]
    return _items(found, lambda user: account_view(reader, user))


def user(reader: AdminReader, now: int, *, user: str) -> QueryResult:
    """Return one user."""
    return account_view(reader, user_named(reader, user))


def keys(reader: AdminReader, now: int, *, project: str | None = None) -> QueryResult:
    """Return a project's server keys, newest first, masked."""
    return _items(reader.keys(project_named(reader, project).rowid, ALL, ALL), key_view)


def credentials(reader: AdminReader, now: int, *, project: str | None = None) -> QueryResult:
    """Return a project's machine credentials, newest first, masked."""
    found = reader.machines(project_named(reader, project).rowid, ALL, ALL)
    return _items(found, lambda machine: machine_view(machine, now, maker_state(reader, machine, now)))


def tokens(reader: AdminReader, now: int, *, user: str) -> QueryResult:
    """Return the access tokens of a user that are in force, newest first."""
    found = reader.access_tokens_of(user_named(reader, user).rowid, now, ALL, ALL)
    return _items(found, lambda token: access_token_view(token, None))


def audit_records(
    reader: AdminReader,
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
) -> QueryResult:
    """Return a page of the audit trail: the newest records, or with `after` the records that follow that position.

    Args:
        actor, target: ids, or e-mail addresses of users.
        since, until: milliseconds.
        before, after: the `position` of the previous page.
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


def _id_of(reader: AdminReader, handle: str | None) -> str | None:
    """Return the user's id for an e-mail address, and any other handle unchanged."""
    return user_named(reader, handle).id if handle is not None and "@" in handle else handle


def _items(rows: Sequence[V], view: Callable[[V], QueryResult]) -> QueryResult:
    return {"items": [view(row) for row in rows]}


def mails(reader: MailReader, _: int) -> QueryResult:
    """Return the newest mails, without their texts."""
    return {"items": [mail_view(each) for each in reader.mails(_MAILS_MAX)]}


_MAILS_MAX: Final = 1_000

READ_QUERIES: Final[Mapping[str, Callable[..., QueryResult]]] = {
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
    "mail.list": mails,
}
"""The queries by the names of their commands."""


T = TypeVar("T", Organisation, Project)

ALL: Final = (1 << 63) - 1


def organisation_named(reader: OrganisationReader, handle: str | None) -> Organisation:
    """Return the organisation with this id or name; for None, the only one. Raises DomainError with advice."""
    if handle is not None and is_id(handle, "org"):
        organisation = reader.organisation(handle)
        return _one([] if organisation is None else [organisation], handle, "organisation", "--org")
    organisations = reader.organisations()
    return _one(
        [organisation for organisation in organisations if handle in (None, organisation.name)],
        handle,
        "organisation",
        "--org",
    )


def project_named(reader: OrganisationReader, handle: str | None) -> Project:
    """Return the project with this id or name; for None, the only one. Raises DomainError with advice."""
    if handle is not None and is_id(handle, "prj"):
        project = reader.project(handle)
        return _one([] if project is None else [project], handle, "project", "--project")
    projects = reader.projects(None, None, ALL, ALL)
    named = [project for project in projects if handle in (None, project.name)]
    if not named and handle is not None:
        named = [project for project in projects if fold_name(project.name) == fold_name(handle)]
    return _one(named, handle, "project", "--project")


def user_named(reader: OrganisationReader, handle: str) -> User:
    """Return the user with this id or e-mail address. Raises NotFound."""
    user = reader.user(handle) if is_id(handle, "usr") else reader.user_by_email(handle)
    if user is None:
        raise NotFound(f"There is no user {handle}.", code="user_not_found")
    return user


def _one(candidates: Sequence[T], handle: str | None, what: str, option: str) -> T:
    match candidates, handle:
        case [only], _:
            return only
        case [], None:
            raise NotFound(f"There is no {what} yet.", code=f"{what}_not_found")
        case [], _:
            raise NotFound(f"There is no {what} {handle}.", code=f"{what}_not_found")
        case _, None:
            raise Conflict(
                f"There are {len(candidates)} {what}s; choose one with {option}.", code="ambiguous"
            )
        case _:
            ids = ", ".join(candidate.id for candidate in candidates)
            raise Conflict(f"Several {what}s have this name; use an id instead ({ids}).", code="ambiguous")


def role_named(reader: RoleReader, organisation: int, handle: str) -> Role:
    """Return the id of the organisation's role with this id or name. Raises NotFound, naming the roles."""
    roles = roles_of(reader, organisation)
    for role in roles:
        if handle == role.id or (not role.built_in and fold_name(role.name) == fold_name(handle)):
            return role.id
    known = ", ".join(role.id if role.built_in else role.name for role in roles)
    raise NotFound(f"The organisation has no role {handle}, only these: {known}.", code="role_not_found")
