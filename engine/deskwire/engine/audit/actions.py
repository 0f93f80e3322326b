"""The table of actions that the audit trail records. The API, the documentation and the tests read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

ObjectType = Literal[
    "organisation",
    "project",
    "server_key",
    "machine_credential",
    "account",
    "webhook",
    "channel",
    "contact",
    "message",
    "installation",
    "conversation",
    "ticket",
    "survey",
    "survey_response",
    "workflow",
    "upload",
    "snippet",
    "view",
    "bulk_job",
    "translation",
    "team",
    "stream_consumer",
    "audit_push",
    "role",
    "service",
    "invitation",
]


class Action(Struct, frozen=True):
    """An action on an object of this type.

    Repetitions of a `counted` one share a record (`trail.AuditEntry`).
    """

    name: str
    object: ObjectType
    meaning: str
    details: tuple[str, ...] = ()
    counted: bool = False


_ALL: Final = (
    Action("organisation.created", "organisation", "An organisation was created."),
    Action(
        "organisation.changed",
        "organisation",
        "The name or the session limits of an organisation were changed, or whether it requires a second factor.",
    ),
    Action(
        "organisation.deleted",
        "organisation",
        "The operator deleted an organisation with its empty projects and memberships.",
    ),
    Action("member.added", "account", "A user became a member of the organisation."),
    Action("member.role_changed", "account", "A member's role was changed."),
    Action("member.removed", "account", "A membership ended; the account stays."),
    Action("role.created", "role", "An organisation got a role of its own."),
    Action(
        "role.changed", "role", "A role's name, description or permissions were changed, for all its members."
    ),
    Action("role.deleted", "role", "A role that no member had was deleted."),
    Action("account.created", "account", "An account was created."),
    Action("account.changed", "account", "A user was renamed."),
    Action(
        "account.password_changed",
        "account",
        "A user's password was changed; all earlier access tokens and sessions ended.",
    ),
    Action(
        "account.password_link_created",
        "account",
        "A link by which a user chooses a new password was created: by a manager, or by mail for the user.",
    ),
    Action("invitation.created", "invitation", "A person was invited to the organisation with this role."),
    Action(
        "invitation.accepted",
        "invitation",
        "The invited person became a member; `user` is the account.",
        ("user",),
    ),
    Action("invitation.revoked", "invitation", "An invitation was revoked; its link ended."),
    Action("invitation.renewed", "invitation", "An invitation got another link; the earlier one ended."),
    Action(
        "account.tokens_revoked",
        "account",
        "All access tokens and sessions of a user ended; the password was kept.",
    ),
    Action(
        "account.sessions_ended",
        "account",
        "Browser sessions of a user ended by sign-out, revocation or shorter limits; `sessions` counts them.",
        ("sessions",),
        counted=True,
    ),
    Action(
        "account.factor_added", "account", "A user added a second factor, or new recovery codes.", ("factor",)
    ),
    Action("account.factor_removed", "account", "A user removed a second factor.", ("factor",)),
    Action(
        "account.recovery_code_used", "account", "A user signed in with a recovery code, which is used up."
    ),
    Action(
        "account.factors_reset",
        "account",
        "All second factors of a user were removed; all sessions and access tokens ended.",
    ),
    Action("account.deleted", "account", "An account was deleted with its memberships."),
    Action(
        "token.issued", "account", "The operator issued an access token for a user.", ("lifetimeSeconds",)
    ),
    Action("token.ended", "account", "An access token of a user was revoked before it expired.", ("token",)),
    Action(
        "sign_in.succeeded",
        "account",
        "A user signed in by `method`: `password`, `passkey`, `oidc:` with the provider's name, `invitation`, `passwordLink` or `setUp`; "
        "`secondFactor` is the factor that followed: `totp`, `recoveryCode`, `passkey`, or `provider` if the provider vouches for it.",
        ("method", "secondFactor"),
        counted=True,
    ),
    Action(
        "sign_in.proved",
        "account",
        "A user proved again who uses a browser session, by `method`.",
        ("method",),
        counted=True,
    ),
    Action(
        "sign_in.new_device",
        "account",
        "A user signed in with a browser that the user had not signed in with for a year, or never; `session` is the new session.",
        ("session",),
    ),
    Action(
        "sign_in.failed",
        "account",
        "A sign-in failed; `reason` is the error code, and `provider` the identity provider. The object has no `id` if the account does not exist.",
        ("reason", "provider"),
        counted=True,
    ),
    Action(
        "identity.linked",
        "account",
        "An account was bound to a user of an identity provider, by a verified address or because the account is new.",
        ("provider", "identity"),
    ),
    Action(
        "identity.unlinked",
        "account",
        "The binding of an account to a user of an identity provider was deleted.",
        ("provider", "identity"),
    ),
    Action("project.created", "project", "A project was created."),
    Action("project.changed", "project", "A project's name or settings were changed."),
    Action("project.deleted", "project", "An empty project was removed."),
    Action(
        "setup.changed",
        "project",
        "The list of first steps was hidden from the members of a project, or shown again.",
    ),
    Action("key.created", "server_key", "A server key was created."),
    Action("key.revoked", "server_key", "A server key was revoked, and its streams ended."),
    Action("credential.created", "machine_credential", "A machine credential was created."),
    Action(
        "credential.changed", "machine_credential", "A credential's name, permissions or expiry were changed."
    ),
    Action(
        "credential.rotated",
        "machine_credential",
        "A credential's secret was replaced; the previous one stays valid for `overlapSeconds`.",
        ("overlapSeconds",),
    ),
    Action("credential.revoked", "machine_credential", "A credential was revoked, and its streams ended."),
    Action("webhook.created", "webhook", "An endpoint was registered."),
    Action(
        "webhook.changed",
        "webhook",
        "An endpoint's URL, description, events or owning machine credential were changed.",
    ),
    Action("webhook.enabled", "webhook", "An endpoint was enabled."),
    Action(
        "webhook.disabled",
        "webhook",
        "An endpoint was disabled; `pendingDropped` counts pending deliveries that were skipped.",
        ("pendingDropped",),
    ),
    Action(
        "webhook.secret_rotated",
        "webhook",
        "An endpoint's signing secret was replaced; both secrets sign for 24 hours.",
    ),
    Action(
        "webhook.deleted",
        "webhook",
        "An endpoint was deleted; `pendingDropped` counts its pending deliveries.",
        ("pendingDropped",),
    ),
    Action(
        "webhook.replayed",
        "webhook",
        "Finished deliveries were sent again; `deliveries` counts them.",
        ("deliveries",),
        counted=True,
    ),
    Action("channel.created", "channel", "A channel was created."),
    Action(
        "channel.changed",
        "channel",
        "A channel's settings were changed, such as its origins and public keys.",
    ),
    Action(
        "channel.secret_rotated",
        "channel",
        "A channel's secret was replaced; both secrets count for 24 hours.",
    ),
    Action("channel.deleted", "channel", "A channel was deleted, and its sessions ended."),
    Action("contact.erased", "contact", "The erasure of a contact and all its data started."),
    Action(
        "contact.session_ended",
        "contact",
        "A session of a contact in a channel was ended by an agent or the backend.",
        ("session",),
    ),
    Action("contact.blocked", "contact", "A contact was blocked: its new messages are refused."),
    Action("contact.unblocked", "contact", "The block of a contact was ended."),
    Action("contact.merged", "contact", "Another contact was merged into this one."),
    Action("contact.merged_away", "contact", "The merge of this contact into another one started."),
    Action(
        "contact.exported",
        "contact",
        "A contact's data was exported; an export by a user includes internal notes.",
        counted=True,
    ),
    Action(
        "message.redacted",
        "message",
        "Text or files of a message or note were redacted; the trail does not contain them.",
        ("conversation",),
    ),
    Action("message.deleted", "message", "A message or note was deleted.", ("conversation",)),
    Action(
        "conversation.deleted",
        "conversation",
        "A conversation was deleted; `messages` counts its messages.",
        ("messages",),
    ),
    Action(
        "conversation.merged",
        "conversation",
        "A conversation was merged into another one of its contact, `into`.",
        ("into",),
    ),
    Action("conversation.unmerged", "conversation", "Such a merge was undone.", ("into",)),
    Action(
        "conversation.split",
        "conversation",
        "A new conversation, `into`, was started with messages of this one; `messages` counts them.",
        ("into", "messages"),
    ),
    Action(
        "conversation.expired",
        "project",
        "Conversations were deleted by retention; `conversations` counts them.",
        ("conversations",),
        counted=True,
    ),
    Action("ticket.deleted", "ticket", "A ticket was deleted with its log."),
    Action(
        "survey.deleted",
        "survey",
        "A survey was deleted with its versions, insights and responses.",
        ("responses",),
    ),
    Action("response.deleted", "survey_response", "A response to a survey was deleted.", ("survey",)),
    Action("workflow.deleted", "workflow", "A workflow was deleted."),
    Action("upload.deleted", "upload", "An upload without a message was deleted.", ("bytes",)),
    Action(
        "memory.deleted",
        "contact",
        "Memory entries of a contact were deleted; `entries` counts them.",
        ("entries",),
    ),
    Action("snippet.deleted", "snippet", "A snippet was deleted."),
    Action(
        "bulk_job.started",
        "bulk_job",
        "A user started to change many conversations at once: the action, and the number of conversations.",
        ("action", "conversations"),
    ),
    Action("bulk_job.undone", "bulk_job", "A user undid such a change."),
    Action("view.deleted", "view", "A saved view was deleted."),
    Action(
        "translation.deleted",
        "translation",
        "A translation entry was deleted, in one `language` or in all.",
        ("language",),
    ),
    Action("team.deleted", "team", "A team was deleted."),
    Action(
        "consumer.ended",
        "stream_consumer",
        "A stream consumer was disconnected; `channels` counts its channels.",
        ("channels",),
    ),
    Action(
        "project.exported",
        "project",
        "Objects of a kind were exported, all or those changed; `lines` counts them.",
        ("kind", "lines"),
        counted=True,
    ),
    Action(
        "survey.exported",
        "survey",
        "The responses to a survey were exported; `lines` counts them.",
        ("lines",),
        counted=True,
    ),
    Action(
        "report.exported",
        "project",
        "A report was exported as a file; it may name agents.",
        ("kind",),
        counted=True,
    ),
    Action(
        "history.imported",
        "project",
        "Conversations and messages were imported.",
        ("conversations", "messages"),
        counted=True,
    ),
    Action(
        "secret.rotated",
        "installation",
        "The installation's secret was replaced; signatures of the old one are accepted for `overlapSeconds`.",
        ("overlapSeconds",),
    ),
    Action("audit.push_created", "audit_push", "A push of the trail to a URL was created."),
    Action("audit.push_changed", "audit_push", "The URL of the push was changed."),
    Action(
        "audit.push_secret_rotated",
        "audit_push",
        "The push's signing secret was replaced; both secrets sign for 24 hours.",
    ),
    Action("audit.push_deleted", "audit_push", "The push was deleted."),
    Action("audit.exported", "organisation", "The audit trail was exported.", counted=True),
    Action(
        "access.refused",
        "service",
        "Calls of a credential or, where that is not known, of a network were refused: `reason` is the code, and `route` "
        "the operation that was called last.",
        ("reason", "route"),
        counted=True,
    ),
)

ACTIONS: Final[Mapping[str, Action]] = {each.name: each for each in _ALL}
