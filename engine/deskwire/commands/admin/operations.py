"""The operator's operations. Unlike a member, the operator may do everything that leaves the data whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import trio

from deskwire.commands.admin import orders
from deskwire.commands.admin.context import (
    ALL,
    OPERATIONS,
    AdminContext,
    Answer,
    operation,
    organisation_named,
    project_named,
    refusal,
    user_named,
)
from deskwire.engine.accounts import members, projects
from deskwire.engine.accounts.credentials import hash_server_key, new_server_key, random_base62
from deskwire.engine.accounts.identity.guessable import hash_chosen
from deskwire.engine.accounts.members import Newcomer, member_view, user_view, with_password
from deskwire.engine.accounts.people import Organisation, User
from deskwire.engine.accounts.projects import key_view, project_view
from deskwire.engine.audit.deeds import secret_rotated, token_issued
from deskwire.engine.audit.trail import AuditFilter, record_view
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import BadRequest, DomainError, Forbidden, Invalid, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.input.validation import parse_body
from deskwire.http.resources.accounts.members import ONE_TIME_BYTES
from deskwire.http.resources.accounts.projects import new_project, patch_project

V = TypeVar("V")


def organisation_view(organisation: Organisation) -> dict[str, Any]:
    """Return the organisation as the operator sees it."""
    return {"id": organisation.id, "name": organisation.name, "createdAt": iso(organisation.created_at)}


@operation("org.create", orders.OrganisationName)
async def create_organisation(desk: AdminContext, order: orders.OrganisationName) -> Answer:
    """Make an organisation."""
    now = desk.clock()
    made = new_id("org", now)

    def make(tx: Transaction) -> Organisation:
        return Organisation(tx.insert_organisation(made, order.name, now), made, order.name, now)

    return organisation_view(await desk.store.write(make))


@operation("org.list", orders.Nothing, looks=True)
async def list_organisations(desk: AdminContext, order: orders.Nothing) -> Answer:
    """List all organisations, oldest first."""
    return _items(await desk.store.read(lambda reader: reader.organisations()), organisation_view)


@operation("org.rename", orders.OrganisationName)
async def rename_organisation(desk: AdminContext, order: orders.OrganisationName) -> Answer:
    """Give an organisation another name."""

    def rename(tx: Transaction) -> Organisation:
        organisation = organisation_named(tx, order.organisation)
        tx.rename_organisation(organisation.rowid, order.name)
        return replace(organisation, name=order.name)

    return organisation_view(await desk.store.write(rename))


@operation("project.create", orders.NewProject)
async def create_project(desk: AdminContext, order: orders.NewProject) -> Answer:
    """Make a project."""
    now = desk.clock()
    organisation = await desk.store.read(lambda reader: organisation_named(reader, order.organisation))
    project = new_project(order.project, organisation, now)
    made = await desk.store.write(lambda tx: projects.make_project(tx, organisation.rowid, project))
    return project_view(made, organisation)


@operation("project.list", orders.InOrganisation, looks=True)
async def list_projects(desk: AdminContext, order: orders.InOrganisation) -> Answer:
    """List the projects of one organisation or of all, newest first."""

    def query(reader: Reader) -> list[Answer]:
        wanted = None if order.organisation is None else organisation_named(reader, order.organisation).rowid
        found = reader.projects(wanted, None, ALL, ALL)
        return [project_view(each, reader.organisation_of(each.organisation)) for each in found]

    return _items(await desk.store.read(query), lambda view: view)


@operation("project.show", orders.InProject, looks=True)
async def show_project(desk: AdminContext, order: orders.InProject) -> Answer:
    """Show one project."""

    def query(reader: Reader) -> Answer:
        project = project_named(reader, order.project)
        return project_view(project, reader.organisation_of(project.organisation))

    return await desk.store.read(query)


@operation("project.set", orders.ProjectChange)
async def set_project(desk: AdminContext, order: orders.ProjectChange) -> Answer:
    """Change a project's name and settings."""

    def change(tx: Transaction) -> Answer:
        project = patch_project(tx, project_named(tx, order.project).id, order.change)
        return project_view(project, tx.organisation_of(project.organisation))

    return await desk.store.write(change)


@operation("user.create", orders.NewUser)
async def create_user(desk: AdminContext, order: orders.NewUser) -> Answer:
    """Make an account, and with a role a member."""
    if order.organisation is not None and order.role is None:
        raise Invalid(Problem("/role", "required", "A member needs a role."))
    now, about = desk.clock(), (order.email, order.name or "")
    password, password_hash = await _password(desk, order.password, about)
    temporary = order.password is None
    newcomer = Newcomer(new_id("usr", now), order.email, order.name or order.email, password_hash, temporary)

    def make(tx: Transaction) -> Answer:
        user = members.make_user(tx, newcomer, now)
        if order.role is not None:
            members.join(tx, organisation_named(tx, order.organisation).rowid, user, order.role, now)
        return _user(tx, user)

    return {**await desk.store.write(make), **_shown(password, order.password)}


@operation("user.list", orders.InOrganisation, looks=True)
async def list_users(desk: AdminContext, order: orders.InOrganisation) -> Answer:
    """List the users of one organisation or of all, oldest first."""

    def query(reader: Reader) -> list[Answer]:
        if order.organisation is None:
            return [_user(reader, each) for each in reader.users()]
        organisation = organisation_named(reader, order.organisation)
        return [_user(reader, each.user) for each in reader.members(organisation.rowid, 0, ALL)]

    return _items(await desk.store.read(query), lambda view: view)


@operation("user.password", orders.NewPasswordFor)
async def set_password(desk: AdminContext, order: orders.NewPasswordFor) -> Answer:
    """Give a user another password, which ends all tokens of that user."""
    owner = await desk.store.read(lambda reader: user_named(reader, order.user))
    password, password_hash = await _password(desk, order.password, (owner.email, owner.name))

    def change(tx: Transaction) -> Answer:
        user = with_password(user_named(tx, order.user), password_hash, temporary=order.password is None)
        tx.save_user(user)
        return _user(tx, user)

    return {**await desk.store.write(change), **_shown(password, order.password)}


@operation("user.add", orders.NewMember)
async def add_member(desk: AdminContext, order: orders.NewMember) -> Answer:
    """Make a user a member of an organisation; one from elsewhere may get a one-time password (ADR 44)."""
    now, handover = desk.clock(), order.password
    made = await _password(desk, None) if handover == "new" else None

    def add(tx: Transaction) -> Answer:
        organisation, user = organisation_named(tx, order.organisation), user_named(tx, order.user)
        one_time, hashed = made or ("", None)
        member = members.add_known(tx, organisation.rowid, user, order.role, handover, hashed, now)
        renewed = member.user.generation != user.generation
        return {**member_view(member), **({"password": one_time} if renewed else {})}

    return await desk.store.write(add)


@operation("user.role", orders.MemberRole)
async def change_role(desk: AdminContext, order: orders.MemberRole) -> Answer:
    """Give a member another role; an organisation keeps its last owner."""

    def change(tx: Transaction) -> Answer:
        organisation, user = organisation_named(tx, order.organisation), user_named(tx, order.user)
        return member_view(members.change_role(tx, None, organisation.rowid, user.id, order.role))

    return await desk.store.write(change)


@operation("user.remove", orders.MemberGone)
async def remove_member(desk: AdminContext, order: orders.MemberGone) -> Answer:
    """End a membership; the account stays, and the last owner, too."""

    def remove(tx: Transaction) -> Answer:
        organisation, user = organisation_named(tx, order.organisation), user_named(tx, order.user)
        return member_view(members.remove_member(tx, None, organisation.rowid, user.id))

    return await desk.store.write(remove)


@operation("user.delete", orders.UserName)
async def delete_user(desk: AdminContext, order: orders.UserName) -> Answer:
    """Delete an account with its memberships; no organisation loses its last owner."""
    now = desk.clock()

    def delete(tx: Transaction) -> Answer:
        user = user_named(tx, order.user)
        members.delete_user(tx, user, now)
        return user_view(user)

    return await desk.store.write(delete)


@operation("key.create", orders.NewKey)
async def create_key(desk: AdminContext, order: orders.NewKey) -> Answer:
    """Make a server key, and show it this once."""
    now, secret = desk.clock(), new_server_key()
    key_id, key_hash = new_id("key", now), hash_server_key(secret)
    key = await desk.store.write(
        lambda tx: projects.make_key(
            tx, project_named(tx, order.project), key_id, key_hash, secret[-4:], order.label, now
        )
    )
    return key_view(key, secret)


@operation("key.list", orders.InProject, looks=True)
async def list_keys(desk: AdminContext, order: orders.InProject) -> Answer:
    """List a project's server keys, newest first, masked."""
    keys = await desk.store.read(
        lambda reader: reader.keys(project_named(reader, order.project).rowid, ALL, ALL)
    )
    return _items(keys, key_view)


@operation("key.revoke", orders.KeyName)
async def revoke_key(desk: AdminContext, order: orders.KeyName) -> Answer:
    """Let a key be used no more."""
    now = desk.clock()
    return key_view(await desk.store.write(lambda tx: projects.revoke_key(tx, order.key, None, now)))


@operation("secret.rotate", orders.SecretRotation)
async def rotate_secret(desk: AdminContext, order: orders.SecretRotation) -> Answer:
    """Replace the installation's secret."""
    done = await desk.rotation().rotate(order.overlap_s)
    await desk.store.write(lambda tx: tx.record(secret_rotated(order.overlap_s)))
    return done


@operation("token.create", orders.NewToken)
async def create_token(desk: AdminContext, order: orders.NewToken) -> Answer:
    """Issue an access token for a user."""
    tokens = desk.tokens()
    if tokens is None:
        raise Forbidden(
            "This installation does not take tokens of its own (DESKWIRE_OWN_TOKENS).",
            code="sign_in_disabled",
        )
    now = desk.clock()

    def issue(tx: Transaction) -> User:
        user = user_named(tx, order.user)
        tx.record(token_issued(user, order.ttl_s))
        return user

    user = await desk.store.write(issue)
    token = tokens.issue(user.id, now, order.ttl_s, user.generation)
    return {"token": token, "userId": user.id, "expiresAt": iso(now + order.ttl_s * 1000)}


@operation("audit.list", orders.AuditRecords, looks=True)
async def list_audit_records(desk: AdminContext, order: orders.AuditRecords) -> Answer:
    """Return a page of the audit trail of one organisation or all: the newest, or with `after` those behind that position."""

    def query(reader: Reader) -> Answer:
        organisation = (
            None if order.organisation is None else organisation_named(reader, order.organisation).rowid
        )
        actor, target = (_id_of(reader, each) for each in (order.actor, order.object))
        wanted = AuditFilter(actor, order.action, target, order.since, order.until)
        if order.after is None:
            found = reader.audit_records(organisation, wanted, order.before, order.limit)
        else:
            found = reader.audit_records_after(organisation, wanted, order.after, order.limit)
        return {
            "items": [record_view(each) for each in found],
            "position": found[-1].position if found else None,
        }

    return await desk.store.read(query)


async def carry_out(desk: AdminContext, name: str, arguments: bytes) -> dict[str, Any]:
    """Carry out an order; `{"answer": …}`, or `{"refusal": …}` if it is not right or not possible."""
    try:
        if name not in OPERATIONS:
            raise BadRequest("There is no such operation; is the server of another version?")
        order, operation = OPERATIONS[name]
        return {"answer": await operation(desk, parse_body(order, arguments))}
    except DomainError as error:
        return {"refusal": refusal(error)}


def _id_of(reader: Reader, handle: str | None) -> str | None:
    """Return the handle itself; of an e-mail address the user's id."""
    return user_named(reader, handle).id if handle is not None and "@" in handle else handle


async def _password(desk: AdminContext, given: str | None, about: tuple[str, ...] = ()) -> tuple[str, str]:
    """Return the given password, or a made-up one, with its hash. Raises Invalid if the given one is easy to guess."""
    if given is not None:
        return given, await trio.to_thread.run_sync(hash_chosen, desk.passwords, given, about, "/password")
    made_up = random_base62(ONE_TIME_BYTES)
    return made_up, await trio.to_thread.run_sync(desk.passwords.hash, made_up)


def _shown(password: str, given: str | None) -> dict[str, str]:
    return {} if given is not None else {"password": password}


def _user(reader: Reader, user: User) -> dict[str, Any]:
    found = reader.memberships(user.rowid, (-1, -1), ALL)
    memberships = [
        {"organisationId": each.organisation.id, "name": each.organisation.name, "role": each.role}
        for each in found
    ]
    home = None if user.home is None else reader.organisation_of(user.home).id
    return {**user_view(user), "homeOrganisationId": home, "memberships": memberships}


def _items(found: Sequence[V], view: Callable[[V], Answer]) -> Answer:
    return {"items": [view(each) for each in found]}
