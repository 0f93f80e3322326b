"""Audit entries for changes, made by comparing the stored object with the changed one. No difference makes no entry."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from deskwire.engine.accounts.people import Organisation, Project, User
from deskwire.engine.accounts.projects import settings_view
from deskwire.engine.audit.trail import AuditEntry, Changes
from deskwire.engine.core.clock import iso_or_none
from deskwire.engine.core.values import replace

if TYPE_CHECKING:
    from deskwire.engine.accounts.custom_roles import OrganisationRole
    from deskwire.engine.accounts.machines import Machine
    from deskwire.engine.channels.channel import Channel
    from deskwire.engine.webhooks.endpoint import Endpoint

_QUERY_LEFT_OUT: Final = "?…"
_DIGEST_LENGTH: Final = 16
SIGNED_IN: Final = "sign_in.succeeded"


def made(fields: Mapping[str, Any]) -> Changes:
    """Return the fields of a new object as changes from None."""
    return {name: (None, value) for name, value in fields.items()}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """Return the fields that differ, each with its previous and new value."""
    return {name: (before[name], value) for name, value in after.items() if before[name] != value}


def project_changed(before: Project, after: Project) -> list[AuditEntry]:
    """Return the entries for a change of a project's name or settings."""
    changes = differences(_project(before), _project(after))
    return [AuditEntry("project.changed", after.id, project=after.rowid, changes=changes)] if changes else []


def setup_changed(project: Project, *, hidden: bool) -> AuditEntry:
    """Return the entry for first steps that were hidden from the members of a project, or shown again."""
    changes: Changes = {"hidden": (not hidden, hidden)}
    return AuditEntry("setup.changed", project.id, project=project.rowid, changes=changes)


def organisation_changed(before: Organisation, after: Organisation) -> list[AuditEntry]:
    """Return the entries for a change of an organisation's name or limits."""
    changes = differences(_organisation(before), _organisation(after))
    if not changes:
        return []
    return [AuditEntry("organisation.changed", after.id, organisation=after.rowid, changes=changes)]


def _organisation(organisation: Organisation) -> dict[str, Any]:
    return {
        "name": organisation.name,
        "sessionIdleS": organisation.session_idle_s,
        "sessionMaxS": organisation.session_max_s,
    }


def machine_made(machine: Machine) -> AuditEntry:
    """Return the entry for a new machine credential."""
    return _machine("credential.created", machine, made(_machine_fields(machine)))


def machine_changed(before: Machine, after: Machine) -> list[AuditEntry]:
    """Return the entries for a change of a machine credential's name, permissions or expiry."""
    changes = differences(_machine_fields(before), _machine_fields(after))
    return [_machine("credential.changed", after, changes)] if changes else []


def machine_rotated(machine: Machine, overlap_s: int) -> AuditEntry:
    """Return the entry for a rotated machine credential."""
    return _machine("credential.rotated", machine, {}, overlapSeconds=overlap_s)


def account_changed(before: User, after: User) -> list[AuditEntry]:
    """Return the entries for a change of an account's name or password.

    They contain nothing of the password.
    """
    entries = []
    if after.name != before.name:
        entries.append(_account("account.changed", after, {"name": (before.name, after.name)}))
    if after.generation == before.generation:  # the same password may have been rehashed
        return entries
    if after.password_hash != before.password_hash:
        entries.append(
            _account(
                "account.password_changed",
                after,
                differences(
                    {"passwordTemporary": before.password_temporary},
                    {"passwordTemporary": after.password_temporary},
                ),
            )
        )
    else:
        entries.append(_account("account.tokens_revoked", after, {}))
    return entries


def role_made(role: OrganisationRole) -> AuditEntry:
    """Return the entry for a new role."""
    return _role("role.created", role, made(_role_fields(role)))


def role_changed(before: OrganisationRole, after: OrganisationRole) -> list[AuditEntry]:
    """Return the entries for a change of a role."""
    changes = differences(_role_fields(before), _role_fields(after))
    return [_role("role.changed", after, changes)] if changes else []


def role_deleted(role: OrganisationRole) -> AuditEntry:
    """Return the entry for a deleted role, with its former fields."""
    return _role("role.deleted", role, {name: (value, None) for name, value in _role_fields(role).items()})


def endpoint_made(endpoint: Endpoint) -> AuditEntry:
    """Return the entry for a new endpoint."""
    return _endpoint("webhook.created", endpoint, made(_fields(endpoint)))


def endpoint_changed(before: Endpoint, after: Endpoint, pending: int) -> list[AuditEntry]:
    """Return the entries for a change of an endpoint.

    Args:
        pending: number of its pending deliveries.
    """
    if after.status == "removed":
        return [_endpoint("webhook.deleted", after, {}, pendingDropped=pending)]
    entries = []
    changes = differences(_fields(before), _fields(after))
    if changes or after.url != before.url:
        entries.append(_endpoint("webhook.changed", after, changes))
    if after.sealed_secret != before.sealed_secret:
        entries.append(_endpoint("webhook.secret_rotated", after, {}))
    if after.status != before.status:
        status: Changes = {"status": (before.status, after.status)}
        if after.status == "enabled":
            entries.append(_endpoint("webhook.enabled", after, status))
        else:
            entries.append(_endpoint("webhook.disabled", after, status, pendingDropped=pending))
    return entries


def replayed(endpoint: str, project: int, deliveries: int) -> AuditEntry:
    """Return the entry for a replay of an endpoint's deliveries."""
    return AuditEntry("webhook.replayed", endpoint, project=project, details={"deliveries": deliveries})


def channel_made(channel: Channel) -> AuditEntry:
    """Return the entry for a new channel."""
    return _channel("channel.created", channel, made(_channel_fields(channel)))


def channel_changed(before: Channel, after: Channel) -> list[AuditEntry]:
    """Return the entries for a change of a channel's settings or secret."""
    entries = []
    if changes := differences(_channel_fields(before), _channel_fields(after)):
        entries.append(_channel("channel.changed", after, changes))
    if after.sealed_secret != before.sealed_secret:
        entries.append(_channel("channel.secret_rotated", after, {}))
    return entries


def channel_deleted(channel: Channel) -> AuditEntry:
    """Return the entry for a deleted channel."""
    return _channel("channel.deleted", channel, {})


def signed_in(user: User, method: str, second_factor: str | None = None) -> AuditEntry:
    """Return the entry for a sign-in, by which a token or session was created.

    Args:
        method: the way to sign in, such as `password`, `passkey`, `invitation`, or `oidc:` with the name of the provider.
        second_factor: the second factor that followed, such as `totp` or `recoveryCode`; None without one.
    """
    details = (
        {"method": method} if second_factor is None else {"method": method, "secondFactor": second_factor}
    )
    return AuditEntry(SIGNED_IN, user.id, account=user.rowid, details=details)


def with_second_factor(entry: AuditEntry, second_factor: str) -> AuditEntry:
    """Return the entry of a sign-in with the second factor that finished it, other entries as they are."""
    if entry.action != SIGNED_IN:
        return entry
    return replace(entry, details={**entry.details, "secondFactor": second_factor})


def proved(user: User, method: str) -> AuditEntry:
    """Return the entry for a proof of who uses a session, by this method."""
    return AuditEntry("sign_in.proved", user.id, account=user.rowid, details={"method": method})


def signed_in_with_new_browser(user: User, session: str) -> AuditEntry:
    """Return the entry for a sign-in with a browser that the user has not signed in with before, by the id of the session."""
    return AuditEntry("sign_in.new_device", user.id, account=user.rowid, details={"session": session})


def sign_in_failed(user: User | None, reason: str) -> AuditEntry:
    """Return the entry for a refused sign-in.

    The name of an unknown account is not stored because it may be a password.
    """
    details = {"reason": reason}
    if user is None:
        return AuditEntry("sign_in.failed", None, details=details)
    return AuditEntry("sign_in.failed", user.id, account=user.rowid, details=details)


def provider_sign_in_failed(
    user: User | None, reason: str, provider: str, organisation: int | None
) -> AuditEntry:
    """Return the entry for a refused sign-in at an identity provider.

    Args:
        organisation: storage key of the organisation of a stranger's provider.
    """
    details = {"reason": reason, "provider": provider}
    if user is None:
        return AuditEntry("sign_in.failed", None, organisation=organisation, details=details)
    return AuditEntry("sign_in.failed", user.id, account=user.rowid, details=details)


def token_issued(user: User, lifetime_s: int) -> AuditEntry:
    """Return the entry for a token that the operator issued for a user."""
    return AuditEntry("token.issued", user.id, account=user.rowid, details={"lifetimeSeconds": lifetime_s})


def secret_rotated(overlap_s: int) -> AuditEntry:
    """Return the entry for a rotated installation secret."""
    return AuditEntry("secret.rotated", None, details={"overlapSeconds": overlap_s})


def exported(contact: str, project: int) -> AuditEntry:
    """Return the entry for an export of a contact's data."""
    return AuditEntry("contact.exported", contact, project=project)


def rewritten(message: str, conversation: str, project: int, *, deleted: bool) -> AuditEntry:
    """Return the entry for a redacted or deleted message, by its id and the id of its conversation."""
    action = "message.deleted" if deleted else "message.redacted"
    return AuditEntry(action, message, project=project, details={"conversation": conversation})


def deleted(kind: str, identifier: str, project: int, **details: int | str | None) -> AuditEntry:
    """Return the entry for a deleted object of this kind."""
    return AuditEntry(f"{kind}.deleted", identifier, project=project, details=details)


def consumer_ended(consumer: str, project: int, channels: int) -> AuditEntry:
    """Return the entry for a consumer that was disconnected from this number of channels."""
    return AuditEntry("consumer.ended", consumer, project=project, details={"channels": channels})


def conversation_expired(project: Project) -> AuditEntry:
    """Return the entry for one conversation that was deleted by retention."""
    return AuditEntry("conversation.expired", project.id, project=project.rowid, details={"conversations": 1})


def project_exported(project: Project, kind: str) -> AuditEntry:
    """Return the entry for an export of objects of this kind.

    Its `lines` are added after they have been sent.
    """
    return AuditEntry(
        "project.exported", project.id, project=project.rowid, details={"kind": kind, "lines": 0}
    )


def survey_exported(survey: str, project: int) -> AuditEntry:
    """Return the entry for an export of a survey's responses.

    Its `lines` are added after they have been sent.
    """
    return AuditEntry("survey.exported", survey, project=project, details={"lines": 0})


def report_exported(project: Project, kind: str) -> AuditEntry:
    """Return the entry for an export of a report."""
    return AuditEntry("report.exported", project.id, project=project.rowid, details={"kind": kind})


def imported(project: Project, conversations: int, messages: int) -> list[AuditEntry]:
    """Return the entries for an import of conversation histories. Empty if nothing was new."""
    if not conversations and not messages:
        return []
    details = {"conversations": conversations, "messages": messages}
    return [AuditEntry("history.imported", project.id, project=project.rowid, details=details)]


def _account(action: str, user: User, changes: Changes) -> AuditEntry:
    return AuditEntry(action, user.id, account=user.rowid, changes=changes)


def _endpoint(action: str, endpoint: Endpoint, changes: Changes, **details: int) -> AuditEntry:
    return AuditEntry(action, endpoint.id, project=endpoint.project, changes=changes, details=details)


def _channel(action: str, channel: Channel, changes: Changes) -> AuditEntry:
    return AuditEntry(action, channel.id, project=channel.project, changes=changes)


def _machine(action: str, machine: Machine, changes: Changes, **details: int) -> AuditEntry:
    return AuditEntry(action, machine.id, project=machine.project.rowid, changes=changes, details=details)


def _role(action: str, role: OrganisationRole, changes: Changes) -> AuditEntry:
    return AuditEntry(action, role.id, organisation=role.organisation, changes=changes)


def _role_fields(role: OrganisationRole) -> dict[str, Any]:
    return {
        "name": role.name,
        "description": role.description,
        "permissions": sorted(role.permissions),
    }


def _machine_fields(machine: Machine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "permissions": sorted(machine.permissions),
        "expiresAt": iso_or_none(machine.expires_at),
    }


def _channel_fields(channel: Channel) -> dict[str, Any]:
    """Return the settings, with digests of the public keys and the texts."""
    look = channel.look
    return {
        "name": channel.name,
        "enabled": channel.enabled,
        "origins": list(channel.origins),
        "identityMode": channel.identity_mode,
        "publicKeys": [f"{each.id} {each.algorithm} {_digest(each.key)}" for each in channel.public_keys],
        "visitorsAllowed": channel.visitors_allowed,
        "visitorsAsk": list(channel.visitors_ask),
        "colour": look.colour,
        "position": look.position,
        "texts": {language: _digest(sorted(texts.items())) for language, texts in look.texts.items()},
        "startsWorkflow": channel.starts_workflow,
        "survey": channel.survey,
        "native": channel.native,
    }


def _project(project: Project) -> dict[str, Any]:
    return {"name": project.name, **settings_view(project.settings)}


def _fields(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "url": shown_url(endpoint.url),
        "events": sorted(endpoint.events),
        "apiVersion": endpoint.api_version,
        "description": endpoint.description,
        "catchUp": endpoint.catch_up,
        "internal": endpoint.internal,
        "credentialId": endpoint.credential,
    }


def _digest(value: object) -> str:
    """Return the first hexadecimal digits of a value's SHA-256."""
    return sha256(repr(value).encode()).hexdigest()[:_DIGEST_LENGTH]


def shown_url(url: str) -> str:
    """Return the URL with its query replaced by `?…` because queries often contain keys of the receiver."""
    query = urlsplit(url).query
    return url if not query else url[: url.index("?")] + _QUERY_LEFT_OUT
