"""The actions that the audit trail records, by name; the API, the documentation and the tests read this table."""

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
    "translation",
    "team",
    "stream_consumer",
    "audit_push",
    "service",
]


class Action(Struct, frozen=True):
    """An action on an object of this type. Repetitions of a `counted` one share a record; see `trail.Deed`."""

    name: str
    object: ObjectType
    meaning: str
    details: tuple[str, ...] = ()
    counted: bool = False


_ALL: Final = (
    Action("organisation.created", "organisation", "An organisation was made."),
    Action("organisation.changed", "organisation", "It has another name."),
    Action(
        "organisation.deleted",
        "organisation",
        "The operator deleted an organisation with its empty projects and its memberships.",
    ),
    Action("member.added", "account", "A user became a member of the organisation."),
    Action("member.role_changed", "account", "A member has another role."),
    Action("member.removed", "account", "A membership ended; the account stays."),
    Action("account.created", "account", "An account was made."),
    Action("account.changed", "account", "A user has another name."),
    Action(
        "account.password_changed",
        "account",
        "A user has another password; all access tokens issued before ended, and all sessions.",
    ),
    Action(
        "account.tokens_revoked",
        "account",
        "All access tokens and sessions of a user ended; the password stayed.",
    ),
    Action(
        "account.sessions_ended",
        "account",
        "So many browsers' sessions of a user were ended, by signing out or by revocation.",
        ("sessions",),
        counted=True,
    ),
    Action("account.deleted", "account", "An account was deleted with its memberships."),
    Action(
        "token.issued", "account", "The operator issued an access token for a user.", ("lifetimeSeconds",)
    ),
    Action("token.ended", "account", "An access token of a user was ended before its time.", ("token",)),
    Action("sign_in.succeeded", "account", "A user signed in with a password.", counted=True),
    Action(
        "sign_in.failed",
        "account",
        "Somebody failed to: `reason` is the code of the refusal. Without an object there is no such account.",
        ("reason",),
        counted=True,
    ),
    Action("project.created", "project", "A project was made."),
    Action("project.changed", "project", "It has another name or other settings."),
    Action("project.deleted", "project", "An empty project was removed."),
    Action("key.created", "server_key", "A server key was made."),
    Action("key.revoked", "server_key", "It can be used no more, and its streams ended."),
    Action("credential.created", "machine_credential", "A machine credential was made."),
    Action(
        "credential.changed", "machine_credential", "It has another name, other permissions or another end."
    ),
    Action(
        "credential.rotated",
        "machine_credential",
        "It has another secret; the one before is good for so long.",
        ("overlapSeconds",),
    ),
    Action("credential.revoked", "machine_credential", "It can be used no more, and its streams ended."),
    Action("webhook.created", "webhook", "An endpoint was registered."),
    Action(
        "webhook.changed",
        "webhook",
        "It has another URL, description, other events, or belongs to another machine credential, or to none.",
    ),
    Action("webhook.enabled", "webhook", "It is sent events again."),
    Action(
        "webhook.disabled",
        "webhook",
        "It is sent nothing; so many deliveries that were pending end as skipped.",
        ("pendingDropped",),
    ),
    Action(
        "webhook.secret_rotated",
        "webhook",
        "It has another signing secret; for a day the old one signs, too.",
    ),
    Action(
        "webhook.deleted",
        "webhook",
        "It was removed, with so many deliveries that were pending.",
        ("pendingDropped",),
    ),
    Action(
        "webhook.replayed",
        "webhook",
        "So many deliveries that had ended were sent once more.",
        ("deliveries",),
        counted=True,
    ),
    Action("contact.erased", "contact", "The erasure of a contact with everything that belongs to it began."),
    Action("contact.merged", "contact", "Another contact was merged into this one."),
    Action("contact.merged_away", "contact", "The merge of this contact into another one began."),
    Action(
        "contact.exported",
        "contact",
        "What is stored about a contact was asked for, by a user with agents' notes.",
        counted=True,
    ),
    Action(
        "message.redacted",
        "message",
        "Something of a message or note was redacted; the trail does not have what.",
        ("conversation",),
    ),
    Action("message.deleted", "message", "A message or note was deleted.", ("conversation",)),
    Action(
        "conversation.deleted",
        "conversation",
        "A conversation was deleted, with so many messages.",
        ("messages",),
    ),
    Action(
        "conversation.expired",
        "project",
        "So many conversations had passed their retention and were deleted.",
        ("conversations",),
        counted=True,
    ),
    Action("ticket.deleted", "ticket", "A ticket was deleted with its log."),
    Action(
        "survey.deleted",
        "survey",
        "A survey was deleted with its versions, insights and so many responses.",
        ("responses",),
    ),
    Action("response.deleted", "survey_response", "A response to a survey was deleted.", ("survey",)),
    Action("workflow.deleted", "workflow", "A workflow was deleted."),
    Action("upload.deleted", "upload", "An upload that no message has was deleted.", ("bytes",)),
    Action("memory.deleted", "contact", "So many memory entries of a contact were deleted.", ("entries",)),
    Action("snippet.deleted", "snippet", "A snippet was deleted."),
    Action(
        "translation.deleted",
        "translation",
        "An entry was deleted in all its languages, or in the one that is named.",
        ("language",),
    ),
    Action("team.deleted", "team", "A team was deleted."),
    Action(
        "consumer.ended",
        "stream_consumer",
        "A consumer was ended on so many channels of the stream.",
        ("channels",),
    ),
    Action(
        "project.exported",
        "project",
        "All objects of a kind were exported, or what had changed: so many lines.",
        ("kind", "lines"),
        counted=True,
    ),
    Action(
        "survey.exported",
        "survey",
        "The responses to a survey were exported: so many lines.",
        ("lines",),
        counted=True,
    ),
    Action(
        "report.exported",
        "project",
        "A report was exported, which may name agents.",
        ("kind",),
        counted=True,
    ),
    Action(
        "history.imported",
        "project",
        "So many conversations and messages were brought in from elsewhere.",
        ("conversations", "messages"),
        counted=True,
    ),
    Action(
        "secret.rotated",
        "installation",
        "The installation's secret was replaced; what the old one signed is accepted for so long.",
        ("overlapSeconds",),
    ),
    Action("audit.push_created", "audit_push", "From here on the trail is pushed to a URL."),
    Action("audit.push_changed", "audit_push", "It is pushed to another URL."),
    Action(
        "audit.push_secret_rotated",
        "audit_push",
        "Pushes are signed with another secret; for a day the old one signs, too.",
    ),
    Action("audit.push_deleted", "audit_push", "The trail is pushed no longer."),
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
