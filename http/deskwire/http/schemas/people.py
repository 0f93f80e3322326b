"""Organisations, projects and people as the API shows them (decisions 2, 3)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from deskwire.engine.accounts.machines import Maker, MakerState
from deskwire.engine.accounts.people import Role
from deskwire.engine.webhooks.endpoint import HealthCode
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitStatus
from deskwire.http.schemas.base import (
    ConversationId,
    Count,
    Email,
    EndpointId,
    KeyId,
    MachineId,
    Moment,
    OrganisationId,
    PersonName,
    ProjectId,
    SessionId,
    Shape,
    TokenId,
    UserId,
)
from deskwire.http.schemas.webhooks import EndpointStatus


class AccessToken(Shape):
    """An access token for the dashboard endpoints. `id` names it where tokens are listed and ended."""

    id: TokenId
    token: Annotated[str, Field(examples=["eyJhbGciOi…"])]
    token_type: Literal["Bearer"]
    expires_at: Moment


class User(Shape):
    """A user: an account to sign in with."""

    id: UserId
    email: Email
    name: PersonName
    created_at: Moment


class SessionProject(Shape):
    """A project of the signed-in user, with the user's role and permissions there."""

    id: ProjectId
    name: Annotated[str, Field(examples=["Shop"])]
    organisation_id: OrganisationId
    organisation_name: Annotated[str, Field(examples=["Example Ltd"])]
    role: Role
    permissions: list[Annotated[str, Field(examples=["conversations.read"])]]


StorageKeys = Annotated[
    list[
        Annotated[
            str,
            Field(pattern="^[A-Za-z0-9_-]{43}$", examples=["0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"]),
        ]
    ],
    Field(
        description="Keys of 32 bytes (base64url) under which a page may encrypt what it keeps in the browser for this user: the "
        "first seals, each opens. They are the user's own, and change with the installation's secret alone."
    ),
]
TypingSeconds = Annotated[
    float,
    Field(
        gt=0,
        examples=[9.0],
        description="Seconds after their last `agent.typing.started` at which a page without a `stopped` shows an agent as typing no longer.",
    ),
]


class Session(Shape):
    """A browser's session: its user, when it ends unless it is used before, and the newest 200 projects of the user."""

    user: User
    expires_at: Moment
    projects: list[SessionProject]
    storage_keys: StorageKeys
    typing_seconds: TypingSeconds


class VisitorSession(Shape):
    """The session of a browser, as `Session`; `user` and `expiresAt` are null if nobody is signed in."""

    user: User | None
    expires_at: Moment | None
    projects: list[SessionProject]
    storage_keys: StorageKeys
    typing_seconds: TypingSeconds


class SessionSummary(Shape):
    """A session of a user: since when, when it was used, to a minute, and by which browser, in that one's own words."""

    id: SessionId
    created_at: Moment
    last_seen_at: Moment
    client: Annotated[str, Field(max_length=120, examples=["Mozilla/5.0 (X11; Linux x86_64) Firefox/142.0"])]
    current: bool


class TokenSummary(Shape):
    """An access token of a user that is in force: since when, until when, how it was issued, and to which client, in that one's own words."""

    id: TokenId
    created_at: Moment
    expires_at: Moment
    source: Annotated[
        Literal["sign_in", "password_change", "operator"],
        Field(description="`operator`: at the command line."),
    ]
    client: Annotated[str, Field(max_length=120, examples=["python-httpx/0.28.1"])]
    current: Annotated[bool, Field(description="True for the token that makes the call.")]


class TokenEnded(Shape):
    """The access token that has ended."""

    id: TokenId
    ended: Literal[True]


class SessionsEnded(Shape):
    """The number of sessions that were ended."""

    ended: Count


class SignInMethods(Shape):
    """The ways to sign in: with a password, or at an identity provider, which has no page here."""

    password: bool
    oidc: Annotated[
        str | None, Field(description="Null: an identity provider has no page here.", examples=[None])
    ]


class SessionEnded(Shape):
    """The confirmation that the browser has no session any more."""

    ended: Annotated[bool, Field(json_schema_extra={"const": True})]


class Permissions(Shape):
    """The permissions and roles of a user in an organisation (contract 2.7)."""

    permissions: list[Annotated[str, Field(examples=["conversations.read"])]]
    roles: list[Role]


class Organisation(Shape):
    """An organisation, with the role of the signed-in user in it."""

    id: OrganisationId
    name: Annotated[str, Field(examples=["Example Ltd"])]
    role: Role
    created_at: Moment


class Member(Shape):
    """A member of an organisation."""

    id: UserId
    email: Email
    name: PersonName
    role: Role
    joined_at: Moment


class AddedMember(Member):
    """A member with a new one-time password. It is shown only once, and `…` in a repeated answer; it is null if users sign in elsewhere."""

    password: Annotated[str, Field(examples=["4tXb2LqW9sKd"])] | None
    password_ends_at: Annotated[
        Moment | None,
        Field(description="The time at which the password ends, unless it was replaced by then."),
    ]


class ProjectSettings(Shape):
    """The settings of a project."""

    memory_enabled: Annotated[bool, Field(examples=[True])]
    archived_retention_days: Annotated[int, Field(ge=1, examples=[365])] | None
    primary_language: Annotated[str, Field(description="A language tag (BCP 47).", examples=["en"])]
    languages: list[Annotated[str, Field(examples=["en"])]]
    upload_quota_bytes: Annotated[int, Field(ge=0, examples=[10_737_418_240])]


class Project(Shape):
    """A project, which owns conversations, contacts, server keys and webhook endpoints."""

    id: ProjectId
    organisation_id: OrganisationId
    name: Annotated[str, Field(examples=["Shop"])]
    stream_key: Annotated[str, Field(examples=["x7Gt2kQ1bVnA"])]
    settings: ProjectSettings
    created_at: Moment


class ServerKey(Shape):
    """A server key. The response that creates it shows the whole key; all others mask it."""

    id: KeyId
    project_id: ProjectId
    label: Annotated[str, Field(examples=["CRM"])]
    key: Annotated[str, Field(examples=["sk_…9fQz"])]
    created_at: Moment
    last_used_at: Moment | None
    revoked_at: Moment | None


class CredentialMaker(Shape):
    """The user or machine credential that has made a credential; the `operator` has no id.

    `state` is `active`, `demoted` for a user who no longer has all permissions of the credential, `left` for one who is no longer a member of
    the organisation, or `ended` for a machine credential that was revoked or has expired.
    """

    type: Maker
    id: Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])] | None
    state: MakerState


class EndpointSummary(Shape):
    """The state of a webhook endpoint, under the name that agents know it by.

    It is `healthy` if it is enabled, its circuit is closed, its last attempt succeeded (`failingSince` is null), and none of its deliveries of the
    last 24 hours was dropped without being sent again (`dropped`). `healthCode` and `healthReason` say why it is not.
    """

    id: EndpointId
    name: Annotated[str, Field(examples=["crm"])]
    healthy: bool
    health_code: HealthCode | None
    health_reason: Annotated[str, Field(examples=["3 deliveries of the last 24 hours did not arrive"])] | None
    status: EndpointStatus
    status_reason: Annotated[str, Field(examples=["by the API"])] | None
    circuit: CircuitStatus
    circuit_reason: Annotated[str, Field(examples=["20 attempts in a row failed"])] | None
    failing_since: Moment | None
    last_delivery_at: Moment | None
    outstanding: Count
    dropped: Count


class ConsumerSummary(Shape):
    """The progress of the consumer of a channel: `lag` is the number of events that it has not confirmed."""

    channel: Annotated[str, Field(examples=["private-project-prj_01KZ000000000000000000SH0P"])]
    consumer_id: Annotated[str, Field(examples=["crm-1"])]
    connected: bool
    lag: Count


class LongestWait(Shape):
    """The conversation whose contact has waited longest for an answer."""

    conversation_id: ConversationId
    waiting_since: Moment


class UploadRoom(Shape):
    """The bytes that uploads take up, and those that they may."""

    used_bytes: Count
    quota_bytes: Count


class ProjectHealth(Shape):
    """The health of a project. It is `healthy` if every webhook endpoint is."""

    healthy: bool
    endpoints: list[EndpointSummary]
    consumers: list[ConsumerSummary]
    outstanding: Count
    oldest_waiting: LongestWait | None
    uploads: UploadRoom


class MachineCredential(Shape):
    """A machine credential. The response that creates or rotates it shows the whole secret; all others mask it.

    `previousExpiresAt` says until when the former secret is good as well; null if none is.
    """

    id: MachineId
    project_id: ProjectId
    name: Annotated[str, Field(examples=["CRM"])]
    permissions: list[Annotated[str, Field(examples=["tickets.manage"])]]
    secret: Annotated[str, Field(examples=["mk_…9fQz"])]
    created_at: Moment
    created_by: CredentialMaker
    expires_at: Moment | None
    previous_expires_at: Moment | None
    last_used_at: Moment | None
    revoked_at: Moment | None
