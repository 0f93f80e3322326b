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
    Result,
    operation,
    organisation_named,
    project_named,
    refusal,
    user_named,
)
from deskwire.engine.accounts import machines, members, projects
from deskwire.engine.accounts.identity.guessable import hash_chosen
from deskwire.engine.accounts.machines import machine_view, new_secret
from deskwire.engine.accounts.members import Newcomer, member_view, user_view, with_password
from deskwire.engine.accounts.people import Organisation, User
from deskwire.engine.accounts.projects import key_view, project_view
from deskwire.engine.accounts.server_keys import hash_server_key, new_server_key, random_base62
from deskwire.engine.audit.deeds import secret_rotated, token_issued
from deskwire.engine.audit.trail import AuditFilter, record_view
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import BadRequest, DomainError, Forbidden, Invalid, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.input.validation import parse_body
from deskwire.http.resources.accounts.credentials import check_end, new_machine
from deskwire.http.resources.accounts.members import ONE_TIME_BYTES
from deskwire.http.resources.accounts.projects import new_project, patch_project

V = TypeVar("V")


def organisation_view(organisation: Organisation) -> dict[str, Any]:
    """Return the organisation as the operator sees it."""
    return {"id": organisation.id, "name": organisation.name, "createdAt": iso(organisation.created_at)}


@operation("org.create", orders.OrganisationName)
async def create_organisation(context: AdminContext, order: orders.OrganisationName) -> Result:
    """Make an organisation."""
    now = context.clock()
    organisation_id = new_id("org", now)

    def make(tx: Transaction) -> Organisation:
        return Organisation(
            tx.insert_organisation(organisation_id, order.name, now), organisation_id, order.name, now
        )

    return organisation_view(await context.store.write(make))


@operation("org.list", orders.Nothing, looks=True)
async def list_organisations(context: AdminContext, order: orders.Nothing) -> Result:
    """List all organisations, oldest first."""
    return _items(await context.store.read(lambda reader: reader.organisations()), organisation_view)


@operation("org.rename", orders.OrganisationName)
async def rename_organisation(context: AdminContext, order: orders.OrganisationName) -> Result:
    """Give an organisation another name."""

    def rename(tx: Transaction) -> Organisation:
        organisation = organisation_named(tx, order.organisation)
        tx.rename_organisation(organisation.rowid, order.name)
        return replace(organisation, name=order.name)

    return organisation_view(await context.store.write(rename))


@operation("project.create", orders.NewProject)
async def create_project(context: AdminContext, order: orders.NewProject) -> Result:
    """Make a project."""
    now = context.clock()
    organisation = await context.store.read(lambda reader: organisation_named(reader, order.organisation))
    project = new_project(order.project, organisation, now)
    created = await context.store.write(lambda tx: projects.make_project(tx, organisation.rowid, project))
    return project_view(created, organisation)


@operation("project.list", orders.InOrganisation, looks=True)
async def list_projects(context: AdminContext, order: orders.InOrganisation) -> Result:
    """List the projects of one organisation or of all, newest first."""

    def query(reader: Reader) -> list[Result]:
        organisation = (
            None if order.organisation is None else organisation_named(reader, order.organisation).rowid
        )
        found = reader.projects(organisation, None, ALL, ALL)
        return [project_view(project, reader.organisation_of(project.organisation)) for project in found]

    return _items(await context.store.read(query), lambda view: view)


@operation("project.show", orders.InProject, looks=True)
async def show_project(context: AdminContext, order: orders.InProject) -> Result:
    """Show one project."""

    def query(reader: Reader) -> Result:
        project = project_named(reader, order.project)
        return project_view(project, reader.organisation_of(project.organisation))

    return await context.store.read(query)


@operation("project.set", orders.ProjectChange)
async def set_project(context: AdminContext, order: orders.ProjectChange) -> Result:
    """Change a project's name and settings."""

    def change(tx: Transaction) -> Result:
        project = patch_project(tx, project_named(tx, order.project).id, order.change)
        return project_view(project, tx.organisation_of(project.organisation))

    return await context.store.write(change)


@operation("user.create", orders.NewUser)
async def create_user(context: AdminContext, order: orders.NewUser) -> Result:
    """Make an account, and with a role a member."""
    if order.organisation is not None and order.role is None:
        raise Invalid(Problem("/role", "required", "A member needs a role."))
    now, about = context.clock(), (order.email, order.name or "")
    password, password_hash = await _password(context, order.password, about)
    temporary = order.password is None
    newcomer = Newcomer(new_id("usr", now), order.email, order.name or order.email, password_hash, temporary)

    def make(tx: Transaction) -> Result:
        user = members.make_user(tx, newcomer, now)
        if order.role is not None:
            members.join(tx, organisation_named(tx, order.organisation).rowid, user, order.role, now)
        return _user(tx, user)

    return {**await context.store.write(make), **_shown(password, order.password)}


@operation("user.list", orders.InOrganisation, looks=True)
async def list_users(context: AdminContext, order: orders.InOrganisation) -> Result:
    """List the users of one organisation or of all, oldest first."""

    def query(reader: Reader) -> list[Result]:
        if order.organisation is None:
            return [_user(reader, user) for user in reader.users()]
        organisation = organisation_named(reader, order.organisation)
        return [_user(reader, member.user) for member in reader.members(organisation.rowid, 0, ALL)]

    return _items(await context.store.read(query), lambda view: view)


@operation("user.password", orders.NewPasswordFor)
async def set_password(context: AdminContext, order: orders.NewPasswordFor) -> Result:
    """Give a user another password, which ends all tokens of that user."""
    owner = await context.store.read(lambda reader: user_named(reader, order.user))
    password, password_hash = await _password(context, order.password, (owner.email, owner.name))

    def change(tx: Transaction) -> Result:
        user = with_password(user_named(tx, order.user), password_hash, temporary=order.password is None)
        tx.save_user(user)
        return _user(tx, user)

    return {**await context.store.write(change), **_shown(password, order.password)}


@operation("user.add", orders.NewMember)
async def add_member(context: AdminContext, order: orders.NewMember) -> Result:
    """Make a user a member of an organisation; one from elsewhere may get a one-time password (ADR 44)."""
    now, handover = context.clock(), order.password
    generated = await _password(context, None) if handover == "new" else None

    def add(tx: Transaction) -> Result:
        organisation, user = organisation_named(tx, order.organisation), user_named(tx, order.user)
        one_time, hashed = generated or ("", None)
        member = members.add_known(tx, organisation.rowid, user, order.role, handover, hashed, now)
        renewed = member.user.generation != user.generation
        return {**member_view(member), **({"password": one_time} if renewed else {})}

    return await context.store.write(add)


@operation("user.role", orders.MemberRole)
async def change_role(context: AdminContext, order: orders.MemberRole) -> Result:
    """Give a member another role; an organisation keeps its last owner."""

    def change(tx: Transaction) -> Result:
        organisation, user = organisation_named(tx, order.organisation), user_named(tx, order.user)
        return member_view(members.change_role(tx, None, organisation.rowid, user.id, order.role))

    return await context.store.write(change)


@operation("user.remove", orders.MemberGone)
async def remove_member(context: AdminContext, order: orders.MemberGone) -> Result:
    """End a membership; the account stays, and the last owner, too."""

    def remove(tx: Transaction) -> Result:
        organisation, user = organisation_named(tx, order.organisation), user_named(tx, order.user)
        return member_view(members.remove_member(tx, None, organisation.rowid, user.id))

    return await context.store.write(remove)


@operation("user.delete", orders.UserName)
async def delete_user(context: AdminContext, order: orders.UserName) -> Result:
    """Delete an account with its memberships; no organisation loses its last owner."""
    now = context.clock()

    def delete(tx: Transaction) -> Result:
        user = user_named(tx, order.user)
        members.delete_user(tx, user, now)
        return user_view(user)

    return await context.store.write(delete)


@operation("key.create", orders.NewKey)
async def create_key(context: AdminContext, order: orders.NewKey) -> Result:
    """Make a server key, and show it this once."""
    now, secret = context.clock(), new_server_key()
    key_id, key_hash = new_id("key", now), hash_server_key(secret)
    key = await context.store.write(
        lambda tx: projects.make_key(
            tx, project_named(tx, order.project), key_id, key_hash, secret[-4:], order.label, now
        )
    )
    return key_view(key, secret)


@operation("key.list", orders.InProject, looks=True)
async def list_keys(context: AdminContext, order: orders.InProject) -> Result:
    """List a project's server keys, newest first, masked."""
    keys = await context.store.read(
        lambda reader: reader.keys(project_named(reader, order.project).rowid, ALL, ALL)
    )
    return _items(keys, key_view)


@operation("key.revoke", orders.KeyName)
async def revoke_key(context: AdminContext, order: orders.KeyName) -> Result:
    """Let a key be used no more."""
    now = context.clock()
    return key_view(await context.store.write(lambda tx: projects.revoke_key(tx, order.key, None, now)))


@operation("credential.create", orders.NewCredential)
async def create_credential(context: AdminContext, order: orders.NewCredential) -> Result:
    """Make a machine credential, and show its secret this once."""
    now, secret = context.clock(), new_secret()
    check_end(order.expires_at, now)
    machine = await context.store.write(
        lambda tx: machines.make_machine(
            tx, new_machine(order, project_named(tx, order.project), ("operator", None), secret, now)
        )
    )
    return machine_view(machine, now, secret)


@operation("credential.list", orders.InProject, looks=True)
async def list_credentials(context: AdminContext, order: orders.InProject) -> Result:
    """List a project's machine credentials, newest first, masked."""
    now = context.clock()
    listed = await context.store.read(
        lambda reader: reader.machines(project_named(reader, order.project).rowid, ALL, ALL)
    )
    return _items(listed, lambda machine: machine_view(machine, now))


@operation("credential.rotate", orders.CredentialRotation)
async def rotate_credential(context: AdminContext, order: orders.CredentialRotation) -> Result:
    """Give a machine credential a new secret, and show it this once."""
    now, secret, overlap_s = context.clock(), new_secret(), order.overlap_seconds
    machine = await context.store.write(
        lambda tx: machines.rotate_machine(
            tx, order.credential, None, None, secret, at=now, overlap_s=overlap_s
        )
    )
    return machine_view(machine, now, secret)


@operation("credential.revoke", orders.CredentialName)
async def revoke_credential(context: AdminContext, order: orders.CredentialName) -> Result:
    """Let a machine credential be used no more."""
    now = context.clock()
    machine = await context.store.write(lambda tx: machines.revoke_machine(tx, order.credential, None, now))
    return machine_view(machine, now)


@operation("secret.rotate", orders.SecretRotation)
async def rotate_secret(context: AdminContext, order: orders.SecretRotation) -> Result:
    """Replace the installation's secret."""
    done = await context.rotation().rotate(order.overlap_s)
    await context.store.write(lambda tx: tx.record(secret_rotated(order.overlap_s)))
    return done


@operation("token.create", orders.NewToken)
async def create_token(context: AdminContext, order: orders.NewToken) -> Result:
    """Issue an access token for a user."""
    tokens = context.tokens()
    if tokens is None:
        raise Forbidden(
            "This installation does not take tokens of its own (DESKWIRE_OWN_TOKENS).",
            code="sign_in_disabled",
        )
    now = context.clock()

    def issue(tx: Transaction) -> User:
        user = user_named(tx, order.user)
        tx.record(token_issued(user, order.ttl_s))
        return user

    user = await context.store.write(issue)
    token = tokens.issue(user.id, now, order.ttl_s, user.generation)
    return {"token": token, "userId": user.id, "expiresAt": iso(now + order.ttl_s * 1000)}


@operation("audit.list", orders.AuditRecords, looks=True)
async def list_audit_records(context: AdminContext, order: orders.AuditRecords) -> Result:
    """Return a page of the audit trail of one organisation or all: the newest, or with `after` those behind that position."""

    def query(reader: Reader) -> Result:
        organisation = (
            None if order.organisation is None else organisation_named(reader, order.organisation).rowid
        )
        actor, target = (_id_of(reader, handle) for handle in (order.actor, order.object))
        criteria = AuditFilter(actor, order.action, target, order.since, order.until)
        if order.after is None:
            records = reader.audit_records(organisation, criteria, order.before, order.limit)
        else:
            records = reader.audit_records_after(organisation, criteria, order.after, order.limit)
        return {
            "items": [record_view(record) for record in records],
            "position": records[-1].position if records else None,
        }

    return await context.store.read(query)


async def carry_out(context: AdminContext, name: str, arguments: bytes) -> dict[str, Any]:
    """Carry out an order; `{"answer": …}`, or `{"refusal": …}` if it is not right or not possible."""
    try:
        if name not in OPERATIONS:
            raise BadRequest("There is no such operation; is the server of another version?")
        order, operation = OPERATIONS[name]
        return {"answer": await operation(context, parse_body(order, arguments))}
    except DomainError as error:
        return {"refusal": refusal(error)}


def _id_of(reader: Reader, handle: str | None) -> str | None:
    """Return the handle itself; of an e-mail address the user's id."""
    return user_named(reader, handle).id if handle is not None and "@" in handle else handle


async def _password(
    context: AdminContext, chosen: str | None, about: tuple[str, ...] = ()
) -> tuple[str, str]:
    """Return the given password, or a made-up one, with its hash. Raises Invalid if the given one is easy to guess."""
    if chosen is not None:
        return chosen, await trio.to_thread.run_sync(
            hash_chosen, context.passwords, chosen, about, "/password"
        )
    made_up = random_base62(ONE_TIME_BYTES)
    return made_up, await trio.to_thread.run_sync(context.passwords.hash, made_up)


def _shown(password: str, chosen: str | None) -> dict[str, str]:
    return {} if chosen is not None else {"password": password}


def _user(reader: Reader, user: User) -> dict[str, Any]:
    found = reader.memberships(user.rowid, (-1, -1), ALL)
    memberships = [
        {"organisationId": each.organisation.id, "name": each.organisation.name, "role": each.role}
        for each in found
    ]
    home = None if user.home is None else reader.organisation_of(user.home).id
    return {**user_view(user), "homeOrganisationId": home, "memberships": memberships}


def _items(rows: Sequence[V], view: Callable[[V], Result]) -> Result:
    return {"items": [view(row) for row in rows]}
