"""The operator's operations. Unlike a member, the operator may do everything that keeps the data consistent."""

from __future__ import annotations

from typing import Any

import trio

from deskwire.commands.admin import commands
from deskwire.commands.admin.read_queries import (
    account_view,
    organisation_named,
    organisation_view,
    project_named,
    role_named,
    user_named,
)
from deskwire.engine.accounts import machines, members, projects
from deskwire.engine.accounts.access_tokens import AccessToken, end_token, new_access_token
from deskwire.engine.accounts.factors.changes import reset_factors
from deskwire.engine.accounts.identity.password_strength import hash_chosen
from deskwire.engine.accounts.links import (
    LINK_LIFETIME_MS,
    hash_link_token,
    link_url,
    make_first_owner_link,
    new_link_token,
)
from deskwire.engine.accounts.machines import machine_view, new_secret
from deskwire.engine.accounts.members import NewAccount, member_view, user_view, with_password
from deskwire.engine.accounts.people import Organisation, User
from deskwire.engine.accounts.projects import key_view, project_view
from deskwire.engine.accounts.server_keys import hash_server_key, new_server_key, random_base62
from deskwire.engine.audit.audited_changes import secret_rotated, token_issued
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import (
    BadRequest,
    Conflict,
    DomainError,
    Forbidden,
    Invalid,
    Problem,
    Unavailable,
)
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.mail.content import UnusableAddress
from deskwire.engine.mail.smtp import MailFailed
from deskwire.engine.ports import Transaction
from deskwire.engine.webhooks.ownership import disable_lapsed
from deskwire.http.api.input.validation import parse_body
from deskwire.http.resources.accounts.credentials import Described, described, new_machine
from deskwire.http.resources.accounts.members import ONE_TIME_BYTES
from deskwire.http.resources.accounts.projects import new_project, patch_project
from deskwire.program.admin_context import OPERATIONS, AdminContext, Result, operation, refusal

TEST_MAIL_TIMEOUT_S = 25.0  # less than a command waits for its response


@operation("org.create", commands.OrganisationName)
async def create_organisation(context: AdminContext, command: commands.OrganisationName) -> Result:
    """Create an organisation."""
    now = context.clock()
    organisation_id = new_id("org", now)

    def make(tx: Transaction) -> Organisation:
        return Organisation(
            tx.insert_organisation(organisation_id, command.name, now), organisation_id, command.name, now
        )

    return organisation_view(await context.store.write(make))


@operation("org.rename", commands.OrganisationName)
async def rename_organisation(context: AdminContext, command: commands.OrganisationName) -> Result:
    """Rename an organisation."""

    def rename(tx: Transaction) -> Organisation:
        organisation = replace(organisation_named(tx, command.organisation), name=command.name)
        tx.save_organisation(organisation)
        return organisation

    return organisation_view(await context.store.write(rename))


@operation("org.delete", commands.OrganisationEnd)
async def delete_organisation(context: AdminContext, command: commands.OrganisationEnd) -> Result:
    """Delete an organisation, unless its projects hold data."""
    now = context.clock()

    def delete(tx: Transaction) -> Result:
        tx.lock_across_nodes()
        organisation = organisation_named(tx, command.organisation)
        gone = projects.delete_organisation(tx, organisation, now, with_accounts=command.with_accounts)
        return {**organisation_view(organisation), "deletedUserIds": gone}

    return await context.store.write(delete)


@operation("project.create", commands.NewProject)
async def create_project(context: AdminContext, command: commands.NewProject) -> Result:
    """Create a project."""
    now = context.clock()

    def make(tx: Transaction) -> Result:
        tx.lock_across_nodes()
        organisation = organisation_named(tx, command.organisation)
        project = new_project(command.project, organisation, now)
        return project_view(projects.make_project(tx, organisation.rowid, project), organisation)

    return await context.store.write(make)


@operation("project.set", commands.ProjectChange)
async def set_project(context: AdminContext, command: commands.ProjectChange) -> Result:
    """Change a project's name and settings."""

    def change(tx: Transaction) -> Result:
        project = patch_project(tx, project_named(tx, command.project).id, command.change)
        return project_view(project, tx.organisation_of(project.organisation))

    return await context.store.write(change)


@operation("user.create", commands.NewUser)
async def create_user(context: AdminContext, command: commands.NewUser) -> Result:
    """Create an account, and with a role a membership."""
    if command.organisation is not None and command.role is None:
        raise Invalid(Problem("/role", "required", "A member needs a role."))
    now, about = context.clock(), (command.email, command.name or "")
    password, password_hash = await _password(context, command.password, about)
    temporary = command.password is None
    newcomer = NewAccount(
        new_id("usr", now), command.email, command.name or command.email, password_hash, temporary
    )

    def make(tx: Transaction) -> Result:
        user = members.make_user(tx, newcomer, now)
        if command.role is not None:
            organisation = organisation_named(tx, command.organisation).rowid
            members.join(tx, organisation, user, role_named(tx, organisation, command.role), now)
        return {**account_view(tx, user), **_one_time(context, user, password)}

    return await context.store.write(make)


@operation("user.password", commands.NewPasswordFor)
async def set_password(context: AdminContext, command: commands.NewPasswordFor) -> Result:
    """Set a user's password, which ends all tokens of the user."""
    owner = await context.store.read(lambda reader: user_named(reader, command.user))
    password, password_hash = await _password(context, command.password, (owner.email, owner.name))

    def change(tx: Transaction) -> Result:
        named, temporary = user_named(tx, command.user), command.password is None
        user = with_password(named, password_hash, context.clock(), temporary=temporary)
        tx.save_user(user)
        return {**account_view(tx, user), **_one_time(context, user, password)}

    return await context.store.write(change)


@operation("user.reset-factors", commands.UserNamed)
async def reset_user_factors(context: AdminContext, command: commands.UserNamed) -> Result:
    """Remove a user's second factors, which ends all sessions and tokens of the user. The password stays."""

    def reset(tx: Transaction) -> Result:
        user = user_named(tx, command.user)
        reset_factors(tx, user)
        return account_view(tx, user)

    return await context.store.write(reset)


@operation("user.add", commands.NewMember)
async def add_member(context: AdminContext, command: commands.NewMember) -> Result:
    """Add a user to an organisation; an account of another organisation may get a one-time password (ADR 15)."""
    now, handover = context.clock(), command.password
    generated = await _password(context, None) if handover == "new" else None

    def add(tx: Transaction) -> Result:
        organisation, user = organisation_named(tx, command.organisation), user_named(tx, command.user)
        one_time, hashed = generated or ("", None)
        role = role_named(tx, organisation.rowid, command.role)
        member = members.add_existing_user(tx, organisation.rowid, user, role, handover, hashed, now)
        renewed = member.user.generation != user.generation
        return {**member_view(member), **(_one_time(context, member.user, one_time) if renewed else {})}

    return await context.store.write(add)


@operation("mail.test", commands.TestMail)
async def send_test_mail(context: AdminContext, command: commands.TestMail) -> Result:
    """Send a mail with the settings, without the queue. Raises BadRequest or Unavailable with the reason of a failure."""
    if context.send_test_mail is None:
        raise BadRequest("There are no mail settings; set DESKWIRE_SMTP_HOST and DESKWIRE_SMTP_FROM.")
    try:
        with trio.fail_after(TEST_MAIL_TIMEOUT_S):
            await context.send_test_mail(command.address)
    except (MailFailed, UnusableAddress) as failure:
        raise Unavailable(f"The mail was not sent: {failure}.", code="mail_failed") from failure
    except trio.TooSlowError:
        reason = f"The mail was not sent: the server did not take it within {TEST_MAIL_TIMEOUT_S:g} s."
        raise Unavailable(reason, code="mail_failed") from None
    return {"sentTo": command.address}


@operation("user.first-owner-link", commands.FirstOwnerLink)
async def first_owner_link(context: AdminContext, command: commands.FirstOwnerLink) -> Result:
    """Create a one-time link for the first account, as long as there is none."""
    if context.tokens() is None:
        raise Forbidden(
            "Users of this installation sign in with an identity provider.", code="sign_in_disabled"
        )
    token, now = new_link_token(), context.clock()
    if not await context.store.write(lambda tx: make_first_owner_link(tx, hash_link_token(token), now)):
        raise Conflict(
            "There is an account already. Create others with `deskwire user create`, or invite them in the desk.",
            code="already_set_up",
        )
    return {"url": link_url(context.url, token), "expiresAt": iso(now + LINK_LIFETIME_MS)}


@operation("user.role", commands.MemberRole)
async def change_role(context: AdminContext, command: commands.MemberRole) -> Result:
    """Change a member's role, unless the organisation would lose its last owner."""

    def change(tx: Transaction) -> Result:
        organisation, user = organisation_named(tx, command.organisation), user_named(tx, command.user)
        role = role_named(tx, organisation.rowid, command.role)
        return member_view(members.change_role(tx, None, organisation.rowid, user.id, role))

    return await context.store.write(change)


@operation("user.remove", commands.MemberGone)
async def remove_member(context: AdminContext, command: commands.MemberGone) -> Result:
    """Remove a membership, unless it is the last owner's. The account stays."""

    def remove(tx: Transaction) -> Result:
        organisation, user = organisation_named(tx, command.organisation), user_named(tx, command.user)
        return member_view(members.remove_member(tx, None, organisation.rowid, user.id))

    return await context.store.write(remove)


@operation("user.delete", commands.UserName)
async def delete_user(context: AdminContext, command: commands.UserName) -> Result:
    """Delete an account with its memberships, unless an organisation would lose its last owner."""
    now = context.clock()

    def delete(tx: Transaction) -> Result:
        user = user_named(tx, command.user)
        members.delete_user(tx, user, now)
        return user_view(user)

    return await context.store.write(delete)


@operation("key.create", commands.NewKey)
async def create_key(context: AdminContext, command: commands.NewKey) -> Result:
    """Create a server key. The response is the only one that shows it."""
    now, secret = context.clock(), new_server_key()
    key_id, key_hash = new_id("key", now), hash_server_key(secret)
    ends = context.credential_life.end(command.expires_at, now)
    key = await context.store.write(
        lambda tx: projects.make_key(
            tx, project_named(tx, command.project), key_id, key_hash, secret[-4:], command.label, now, ends
        )
    )
    return key_view(key, secret)


@operation("key.revoke", commands.KeyName)
async def revoke_key(context: AdminContext, command: commands.KeyName) -> Result:
    """Revoke a server key."""
    now = context.clock()
    return key_view(await context.store.write(lambda tx: projects.revoke_key(tx, command.key, None, now)))


@operation("credential.create", commands.NewCredential)
async def create_credential(context: AdminContext, command: commands.NewCredential) -> Result:
    """Create a machine credential. The response is the only one that shows its secret."""
    now, secret = context.clock(), new_secret()
    ends = context.credential_life.end(command.expires_at, now)
    machine = await context.store.write(
        lambda tx: machines.make_machine(
            tx,
            new_machine(command, project_named(tx, command.project), ("operator", None), secret, now, ends),
        )
    )
    return machine_view(machine, now, secret=secret)


@operation("credential.rotate", commands.CredentialRotation)
async def rotate_credential(context: AdminContext, command: commands.CredentialRotation) -> Result:
    """Replace the secret of a machine credential. The response is the only one that shows it."""
    now, secret, overlap_s = context.clock(), new_secret(), command.overlap_seconds

    def rotate(tx: Transaction) -> Described:
        machine = machines.rotate_machine(
            tx, command.credential, None, None, secret, at=now, overlap_s=overlap_s
        )
        return described(tx, machine, now)

    machine, maker = await context.store.write(rotate)
    return machine_view(machine, now, maker, secret)


@operation("credential.revoke", commands.CredentialName)
async def revoke_credential(context: AdminContext, command: commands.CredentialName) -> Result:
    """Revoke a machine credential."""
    now = context.clock()

    def revoke(tx: Transaction) -> Described:
        revoked = machines.revoke_machine(tx, command.credential, None, now)
        disable_lapsed(tx, revoked[0].project.rowid, now)
        return described(tx, revoked[0], now)

    machine, maker = await context.store.write(revoke)
    return machine_view(machine, now, maker)


@operation("secret.rotate", commands.SecretRotation)
async def rotate_secret(context: AdminContext, command: commands.SecretRotation) -> Result:
    """Replace the installation's secret."""
    done = await context.rotation().rotate(command.overlap_s)
    await context.store.write(lambda tx: tx.record(secret_rotated(command.overlap_s)))
    return done


@operation("token.create", commands.NewToken)
async def create_token(context: AdminContext, command: commands.NewToken) -> Result:
    """Issue an access token for a user."""
    tokens = context.tokens()
    if tokens is None:
        raise Forbidden(
            "This installation does not accept tokens of its own (DESKWIRE_OWN_TOKENS).",
            code="sign_in_disabled",
        )
    now = context.clock()

    def issue(tx: Transaction) -> tuple[User, AccessToken]:
        user = user_named(tx, command.user)
        token = new_access_token(user, "operator", "", now, command.ttl_s)
        tx.insert_access_token(token, user.rowid)
        tx.record(token_issued(user, command.ttl_s))
        return user, token

    user, stored = await context.store.write(issue)
    token = tokens.issue(user.id, now, command.ttl_s, user.generation, stored.id)
    return {"id": stored.id, "token": token, "userId": user.id, "expiresAt": iso(now + command.ttl_s * 1000)}


@operation("token.end", commands.TokenName)
async def end_access_token(context: AdminContext, command: commands.TokenName) -> Result:
    """End an access token before it expires."""
    now = context.clock()

    def end(tx: Transaction) -> AccessToken:
        token = tx.access_token(command.token)
        owner = None if token is None else tx.user(token.user_id)
        return end_token(tx, command.token, -1 if owner is None else owner.rowid, now)

    token = await context.store.write(end)
    return {"id": token.id, "userId": token.user_id, "ended": True}


async def run_operation(context: AdminContext, name: str, arguments: bytes) -> dict[str, Any]:
    """Run a command. Return `{"answer": …}`, or `{"refusal": …}` if it is invalid or not possible."""
    try:
        if name not in OPERATIONS:
            raise BadRequest("There is no such operation; does the server have another version?")
        command, operation = OPERATIONS[name]
        return {"answer": await operation(context, parse_body(command, arguments))}
    except DomainError as error:
        return {"refusal": refusal(error)}


async def _password(
    context: AdminContext, chosen: str | None, about: tuple[str, ...] = ()
) -> tuple[str, str]:
    """Return the given or a generated password with its hash. Raises Invalid if it is easy to guess."""
    if chosen is not None:
        return chosen, await trio.to_thread.run_sync(
            hash_chosen, context.passwords, chosen, about, "/password"
        )
    made_up = random_base62(ONE_TIME_BYTES)
    return made_up, await trio.to_thread.run_sync(context.passwords.hash, made_up)


def _one_time(context: AdminContext, user: User, password: str) -> Result:
    """Return a one-time password with its end; an empty mapping for a chosen password."""
    ends_at = context.passwords.ends_at(user)
    return {} if ends_at is None else {"password": password, "passwordEndsAt": iso(ends_at)}
