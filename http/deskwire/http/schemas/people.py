"""Organisations, projects and people in the API (decisions 2, 3)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from deskwire.engine.accounts.machines import Maker, MakerState
from deskwire.engine.accounts.people import BuiltInRole
from deskwire.engine.accounts.sessions import SignInMethod
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
    PasskeyId,
    PersonName,
    ProjectId,
    SessionId,
    Shape,
    TokenId,
    UserId,
)
from deskwire.http.schemas.service import ProblemDocument
from deskwire.http.schemas.webhooks import EndpointStatus


class AccessToken(Shape):
    """An access token for the dashboard endpoints. `id` identifies it in lists, and to end it."""

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
    role: BuiltInRole
    permissions: list[Annotated[str, Field(examples=["conversations.read"])]]


StorageKeys = Annotated[
    list[
        Annotated[
            str,
            Field(pattern="^[A-Za-z0-9_-]{43}$", examples=["0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"]),
        ]
    ],
    Field(
        description="Keys of 32 bytes (base64url) with which a page may encrypt this user's data in the browser: the "
        "first one encrypts, each one decrypts. They belong to the user, and change only with the installation's secret."
    ),
]
TypingSeconds = Annotated[
    float,
    Field(
        gt=0,
        examples=[9.0],
        description="Seconds after their last `agent.typing.started`, without a `stopped`, after which a page stops showing that an agent is typing.",
    ),
]


ProofMethods = Annotated[
    list[Annotated[str, Field(examples=["password"])]],
    Field(
        description="Methods by which the user can prove who uses the session (`POST /v3/auth/session/proof`): `totp` and `passkey` for a user with a second factor, else `password`, or `oidc:` and the id of an identity provider."
    ),
]


class FreshProofProblem(ProblemDocument):
    """An error. For `fresh_proof_required`, it has the methods by which the user can prove who uses the session."""

    methods: ProofMethods | None = None


class RequiringOrganisation(Shape):
    """An organisation that requires a second factor."""

    id: OrganisationId
    name: Annotated[str, Field(examples=["Example Ltd"])]


class SignInChallenge(Shape):
    """A sign-in that waits for a second factor. `id` is its secret, for `POST /v3/auth/session/factor`."""

    id: Annotated[
        str, Field(pattern="^sic_[A-Za-z0-9_-]{32}$", examples=["sic_0123456789abcdefghijklmnopqrstuv"])
    ]
    expires_at: Moment
    methods: list[Literal["totp", "recoveryCode", "passkey"]]


class VisitorSession(Shape):
    """The session of a browser: its user, its expiry unless it is used before, and the newest 200 projects of the user.

    `user` and `expiresAt` are null without a session. `provedAt` is the time of the last proof of who uses it, `signedInBy`
    the way in which the user signed in. `enrolmentRequired` lists the organisations that answer 403 until the user adds a
    second factor. `challenge` is set while a sign-in waits for the second factor.
    """

    user: User | None
    expires_at: Moment | None
    projects: list[SessionProject]
    storage_keys: StorageKeys
    typing_seconds: TypingSeconds
    proved_at: Moment | None
    signed_in_by: SignInMethod | None
    proof_methods: ProofMethods
    enrolment_required: list[RequiringOrganisation]
    challenge: SignInChallenge | None


class PasskeyInfo(Shape):
    """A passkey of a user."""

    id: PasskeyId
    name: PersonName
    created_at: Moment
    last_used_at: Moment | None


class TotpInfo(Shape):
    """The authenticator app of a user."""

    created_at: Moment


class Factors(Shape):
    """The second factors of a user, and the number of unused recovery codes."""

    totp: TotpInfo | None
    passkeys: list[PasskeyInfo]
    recovery_codes_left: Count


class PendingTotp(Shape):
    """The secret of an authenticator app that is to be confirmed: in base32, as a URI, and the URI as a QR code."""

    secret: Annotated[str, Field(examples=["JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"])]
    uri: Annotated[
        str,
        Field(
            examples=[
                "otpauth://totp/Deskwire:grace@example.org?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Deskwire&algorithm=SHA1&digits=6&period=30"
            ]
        ),
    ]
    qr: Annotated[str, Field(description="A `data:` URL of an SVG image.", examples=["data:image/svg+xml,…"])]


_RECOVERY_CODES = list[Annotated[str, Field(examples=["k5xw-2a7q-mzge-3bfo"])]]


class RecoveryCodes(Shape):
    """New recovery codes, which are shown only this once."""

    recovery_codes: _RECOVERY_CODES


class RecoveryCodesIfFirst(Shape):
    """The recovery codes that come with the first second factor, else null."""

    recovery_codes: _RECOVERY_CODES | None


class PasskeyOptions(Shape):
    """Options for `navigator.credentials`, to be parsed by `PublicKeyCredential.parse…OptionsFromJSON()`.

    `challenge` goes back with the answer; null where the call has another way to name it.
    """

    challenge: Annotated[str | None, Field(examples=["pkc_0123456789abcdefghijklmnopqrstuv"])]
    public_key: Annotated[
        dict[str, Any], Field(examples=[{"challenge": "AAECAwQFBgcICQ", "rpId": "desk.example.com"}])
    ]


class AddedPasskey(Shape):
    """A new passkey, with recovery codes if it is the first second factor."""

    passkey: PasskeyInfo
    recovery_codes: _RECOVERY_CODES | None


class BrowserSessionSummary(Shape):
    """A session of a user: its start, its last use to the minute, and the browser by its own name."""

    id: SessionId
    created_at: Moment
    last_seen_at: Moment
    client: Annotated[str, Field(max_length=120, examples=["Mozilla/5.0 (X11; Linux x86_64) Firefox/142.0"])]
    current: bool


class TokenSummary(Shape):
    """A valid access token of a user: its start and expiry, its origin, and the client by its own name."""

    id: TokenId
    created_at: Moment
    expires_at: Moment
    source: Annotated[
        Literal["sign_in", "password_change", "operator"],
        Field(description="`operator`: on the command line."),
    ]
    client: Annotated[str, Field(max_length=120, examples=["python-httpx/0.28.1"])]
    current: Annotated[bool, Field(description="True for the token of the call.")]


class TokenEnded(Shape):
    """The access token that has ended."""

    id: TokenId
    ended: Literal[True]


class SessionsEnded(Shape):
    """The number of sessions that were ended."""

    ended: Count


class SignInMethods(Shape):
    """The ways to sign in: with a password, or with an identity provider, which has no page here."""

    password: bool
    passkey: Annotated[bool, Field(description="Whether a browser can sign in by a passkey at this address.")]
    oidc: Annotated[
        str | None, Field(description="Null: an identity provider has no page here.", examples=[None])
    ]


class SessionEnded(Shape):
    """The confirmation that the browser no longer has a session."""

    ended: Annotated[bool, Field(json_schema_extra={"const": True})]


class UserPermissions(Shape):
    """The permissions and roles of a user in an organisation (contract 2.7)."""

    permissions: list[Annotated[str, Field(examples=["conversations.read"])]]
    roles: list[BuiltInRole]


class Organisation(Shape):
    """An organisation, with the signed-in user's role."""

    id: OrganisationId
    name: Annotated[str, Field(examples=["Example Ltd"])]
    role: BuiltInRole
    require_second_factor: bool
    created_at: Moment


class Member(Shape):
    """A member of an organisation."""

    id: UserId
    email: Email
    name: PersonName
    role: BuiltInRole
    joined_at: Moment


class AddedMember(Member):
    """A member with a new one-time password, which is shown once, and is `…` in a repeated response. It is null if users sign in elsewhere."""

    password: Annotated[str, Field(examples=["4tXb2LqW9sKd"])] | None
    password_ends_at: Annotated[
        Moment | None,
        Field(description="The time at which the password expires unless it was replaced."),
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
    """The user or machine credential that created a credential; the `operator` has no id.

    `state` is `active`, `demoted` for a user who lacks some of the credential's permissions, `left` for a former member of
    the organisation, or `ended` for a revoked or expired machine credential.
    """

    type: Maker
    id: Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])] | None
    state: MakerState


class EndpointSummary(Shape):
    """The state of a webhook endpoint, with its name for agents.

    It is `healthy` if it is enabled, its circuit is closed, its last attempt succeeded (`failingSince` is null), and none of its deliveries of the
    last 24 hours was dropped without being sent again (`dropped`). Otherwise `healthCode` and `healthReason` give the reason.
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
    """The progress of a channel's consumer: `lag` is the number of unconfirmed events."""

    channel: Annotated[str, Field(examples=["private-project-prj_01KZ000000000000000000SH0P"])]
    consumer_id: Annotated[str, Field(examples=["crm-1"])]
    connected: bool
    lag: Count


class LongestWait(Shape):
    """The conversation whose contact has waited longest for an answer."""

    conversation_id: ConversationId
    waiting_since: Moment


class UploadRoom(Shape):
    """The bytes that uploads use, and their quota."""

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

    `previousExpiresAt` is the expiry of the previous secret, null if there is none.
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
