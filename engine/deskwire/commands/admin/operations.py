"""The operator's operations. Unlike a member, the operator may do everything that leaves the data whole."""

from __future__ import annotations

from typing import Any

import trio

from deskwire.commands.admin import commands
from deskwire.commands.admin.context import OPERATIONS, AdminContext, Result, operation, refusal
from deskwire.commands.admin.read_queries import (
    account_view,
    organisation_named,
    organisation_view,
    project_named,
    user_named,
)
from deskwire.engine.accounts import machines, members, organisations, projects
from deskwire.engine.accounts.access_tokens import AccessToken, end_token, new_access_token
from deskwire.engine.accounts.identity.guessable import hash_chosen
from deskwire.engine.accounts.machines import machine_view, new_secret
from deskwire.engine.accounts.members import Newcomer, member_view, user_view, with_password
from deskwire.engine.accounts.people import Organisation, User
from deskwire.engine.accounts.projects import key_view, project_view
from deskwire.engine.accounts.server_keys import hash_server_key, new_server_key, random_base62
from deskwire.engine.audit.deeds import secret_rotated, token_issued
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import BadRequest, DomainError, Forbidden, Invalid, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from deskwire.engine.webhooks.ownership import disable_lapsed
from deskwire.http.api.input.validation import parse_body
from deskwire.http.resources.accounts.credentials import Described, check_end, described, new_machine
from deskwire.http.resources.accounts.members import ONE_TIME_BYTES
from deskwire.http.resources.accounts.projects import new_project, patch_project


@operation("org.create", commands.OrganisationName)
async def create_organisation(context: AdminContext, order: commands.OrganisationName) -> Result:
    """Make an organisation."""
    now = context.clock()
    organisation_id = new_id("org", now)

    def make(tx: Transaction) -> Organisation:
        return Organisation(
            tx.insert_organisation(organisation_id, order.name, now), organisation_id, order.name, now
        )

    return organisation_view(await context.store.write(make))


@operation("org.rename", commands.OrganisationName)
async def rename_organisation(context: AdminContext, order: commands.OrganisationName) -> Result:
    """Give an organisation another name."""

    def rename(tx: Transaction) -> Organisation:
        organisation = organisation_named(tx, order.organisation)
        tx.rename_organisation(organisation.rowid, order.name)
        return replace(organisation, name=order.name)

    return organisation_view(await context.store.write(rename))


@operation("org.delete", commands.OrganisationEnd)
async def delete_organisation(context: AdminContext, order: commands.OrganisationEnd) -> Result:
    """Delete an organisation; one whose projects hold data stays as it is."""
    now = context.clock()

    def delete(tx: Transaction) -> Result:
        tx.one_node_at_a_time()
        organisation = organisation_named(tx, order.organisation)
        gone = organisations.delete_organisation(tx, organisation, now, with_accounts=order.with_accounts)
        return {**organisation_view(organisation), "deletedUserIds": gone}

    return await context.store.write(delete)


@operation("project.create", commands.NewProject)
async def create_project(context: AdminContext, order: commands.NewProject) -> Result:
    """Make a project."""
    now = context.clock()

    def make(tx: Transaction) -> Result:
        tx.one_node_at_a_time()
        organisation = organisation_named(tx, order.organisation)
        project = new_project(order.project, organisation, now)
        return project_view(projects.make_project(tx, organisation.rowid, project), organisation)

    return await context.store.write(make)


@operation("project.set", commands.ProjectChange)
async def set_project(context: AdminContext, order: commands.ProjectChange) -> Result:
    """Change a project's name and settings."""

    def change(tx: Transaction) -> Result:
        project = patch_project(tx, project_named(tx, order.project).id, order.change)
        return project_view(project, tx.organisation_of(project.organisation))

    return await context.store.write(change)


@operation("user.create", commands.NewUser)
async def create_user(context: AdminContext, order: commands.NewUser) -> Result:
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
        return {**account_view(tx, user), **_one_time(context, user, password)}

    return await context.store.write(make)


@operation("user.password", commands.NewPasswordFor)
async def set_password(context: AdminContext, order: commands.NewPasswordFor) -> Result:
    """Give a user another password, which ends all tokens of that user."""
    owner = await context.store.read(lambda reader: user_named(reader, order.user))
    password, password_hash = await _password(context, order.password, (owner.email, owner.name))

    def change(tx: Transaction) -> Result:
        named, temporary = user_named(tx, order.user), order.password is None
        user = with_password(named, password_hash, context.clock(), temporary=temporary)
        tx.save_user(user)
        return {**account_view(tx, user), **_one_time(context, user, password)}

    return await context.store.write(change)


@operation("user.add", commands.NewMember)
async def add_member(context: AdminContext, order: commands.NewMember) -> Result:
    """Make a user a member of an organisation; one from elsewhere may get a one-time password (ADR 15)."""
    now, handover = context.clock(), order.password
    generated = await _password(context, None) if handover == "new" else None

    def add(tx: Transaction) -> Result:
        organisation, user = organisation_named(tx, order.organisation), user_named(tx, order.user)
        one_time, hashed = generated or ("", None)
        member = members.add_known(tx, organisation.rowid, user, order.role, handover, hashed, now)
        renewed = member.user.generation != user.generation
        return {**member_view(member), **(_one_time(context, member.user, one_time) if renewed else {})}

    return await context.store.write(add)


@operation("user.role", commands.MemberRole)
async def change_role(context: AdminContext, order: commands.MemberRole) -> Result:
    """Give a member another role; an organisation keeps its last owner."""

    def change(tx: Transaction) -> Result:
        organisation, user = organisation_named(tx, order.organisation), user_named(tx, order.user)
        return member_view(members.change_role(tx, None, organisation.rowid, user.id, order.role))

    return await context.store.write(change)


@operation("user.remove", commands.MemberGone)
async def remove_member(context: AdminContext, order: commands.MemberGone) -> Result:
    """End a membership; the account stays, and the last owner, too."""

    def remove(tx: Transaction) -> Result:
        organisation, user = organisation_named(tx, order.organisation), user_named(tx, order.user)
        return member_view(members.remove_member(tx, None, organisation.rowid, user.id))

    return await context.store.write(remove)


@operation("user.delete", commands.UserName)
async def delete_user(context: AdminContext, order: commands.UserName) -> Result:
    """Delete an account with its memberships; no organisation loses its last owner."""
    now = context.clock()

    def delete(tx: Transaction) -> Result:
        user = user_named(tx, order.user)
        members.delete_user(tx, user, now)
        return user_view(user)

    return await context.store.write(delete)


@operation("key.create", commands.NewKey)
async def create_key(context: AdminContext, order: commands.NewKey) -> Result:
    """Make a server key, and show it this once."""
    now, secret = context.clock(), new_server_key()
    key_id, key_hash = new_id("key", now), hash_server_key(secret)
    key = await context.store.write(
        lambda tx: projects.make_key(
            tx, project_named(tx, order.project), key_id, key_hash, secret[-4:], order.label, now
        )
    )
    return key_view(key, secret)


@operation("key.revoke", commands.KeyName)
async def revoke_key(context: AdminContext, order: commands.KeyName) -> Result:
    """Let a key be used no more."""
    now = context.clock()
    return key_view(await context.store.write(lambda tx: projects.revoke_key(tx, order.key, None, now)))


@operation("credential.create", commands.NewCredential)
async def create_credential(context: AdminContext, order: commands.NewCredential) -> Result:
    """Make a machine credential, and show its secret this once."""
    now, secret = context.clock(), new_secret()
    check_end(order.expires_at, now)
    machine = await context.store.write(
        lambda tx: machines.make_machine(
            tx, new_machine(order, project_named(tx, order.project), ("operator", None), secret, now)
        )
    )
    return machine_view(machine, now, secret=secret)


@operation("credential.rotate", commands.CredentialRotation)
async def rotate_credential(context: AdminContext, order: commands.CredentialRotation) -> Result:
    """Give a machine credential a new secret, and show it this once."""
    now, secret, overlap_s = context.clock(), new_secret(), order.overlap_seconds

    def rotate(tx: Transaction) -> Described:
        machine = machines.rotate_machine(
            tx, order.credential, None, None, secret, at=now, overlap_s=overlap_s
        )
        return described(tx, machine, now)

    machine, maker = await context.store.write(rotate)
    return machine_view(machine, now, maker, secret)


@operation("credential.revoke", commands.CredentialName)
async def revoke_credential(context: AdminContext, order: commands.CredentialName) -> Result:
    """Let a machine credential be used no more."""
    now = context.clock()

    def revoke(tx: Transaction) -> Described:
        revoked = machines.revoke_machine(tx, order.credential, None, now)
        disable_lapsed(tx, revoked[0].project.rowid, now)
        return described(tx, revoked[0], now)

    machine, maker = await context.store.write(revoke)
    return machine_view(machine, now, maker)


@operation("secret.rotate", commands.SecretRotation)
async def rotate_secret(context: AdminContext, order: commands.SecretRotation) -> Result:
    """Replace the installation's secret."""
    done = await context.rotation().rotate(order.overlap_s)
    await context.store.write(lambda tx: tx.record(secret_rotated(order.overlap_s)))
    return done


@operation("token.create", commands.NewToken)
async def create_token(context: AdminContext, order: commands.NewToken) -> Result:
    """Issue an access token for a user."""
    tokens = context.tokens()
    if tokens is None:
        raise Forbidden(
            "This installation does not take tokens of its own (DESKWIRE_OWN_TOKENS).",
            code="sign_in_disabled",
        )
    now = context.clock()

    def issue(tx: Transaction) -> tuple[User, AccessToken]:
        user = user_named(tx, order.user)
        token = new_access_token(user, "operator", "", now, order.ttl_s)
        tx.insert_access_token(token, user.rowid)
        tx.record(token_issued(user, order.ttl_s))
        return user, token

    user, stored = await context.store.write(issue)
    token = tokens.issue(user.id, now, order.ttl_s, user.generation, stored.id)
    return {"id": stored.id, "token": token, "userId": user.id, "expiresAt": iso(now + order.ttl_s * 1000)}


@operation("token.end", commands.TokenName)
async def end_access_token(context: AdminContext, order: commands.TokenName) -> Result:
    """End an access token before its time."""
    now = context.clock()

    def end(tx: Transaction) -> AccessToken:
        token = tx.access_token(order.token)
        owner = None if token is None else tx.user(token.user_id)
        return end_token(tx, order.token, -1 if owner is None else owner.rowid, now)

    token = await context.store.write(end)
    return {"id": token.id, "userId": token.user_id, "ended": True}


async def run_operation(context: AdminContext, name: str, arguments: bytes) -> dict[str, Any]:
    """Carry out an order; `{"answer": …}`, or `{"refusal": …}` if it is not right or not possible."""
    try:
        if name not in OPERATIONS:
            raise BadRequest("There is no such operation; is the server of another version?")
        order, operation = OPERATIONS[name]
        return {"answer": await operation(context, parse_body(order, arguments))}
    except DomainError as error:
        return {"refusal": refusal(error)}


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


def _one_time(context: AdminContext, user: User, password: str) -> Result:
    """Return a one-time password and its end; nothing for a password that was chosen."""
    ends_at = context.passwords.ends_at(user)
    return {} if ends_at is None else {"password": password, "passwordEndsAt": iso(ends_at)}
