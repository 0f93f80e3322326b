"""Organisations, projects and people in the API (decisions 2, 3)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from deskwire.engine.accounts.credential_ends import CredentialType
from deskwire.engine.accounts.links import LinkPurpose
from deskwire.engine.accounts.machines import Maker, MakerState
from deskwire.engine.accounts.notifications import Weekday
from deskwire.engine.accounts.sessions import SignInMethod
from deskwire.engine.mail.ports import MailStatus
from deskwire.engine.webhooks.endpoint import HealthCode
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitStatus
from deskwire.http.schemas.base import (
    ConversationId,
    Count,
    Email,
    EndpointId,
    InvitationId,
    KeyId,
    MachineId,
    Moment,
    OrganisationId,
    PasskeyId,
    PersonName,
    ProjectId,
    RoleId,
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
    role: RoleId
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
    """A session of a user: its start, its last use to the minute, and the browser by its own name.

    `signedInBy` is the way of the sign-in, `provider` the identity provider of `oidc`. `secondFactor` says whether a second factor was proved,
    or the provider vouches for one.
    """

    id: SessionId
    created_at: Moment
    last_seen_at: Moment
    client: Annotated[str, Field(max_length=120, examples=["Mozilla/5.0 (X11; Linux x86_64) Firefox/142.0"])]
    current: bool
    signed_in_by: SignInMethod
    second_factor: bool
    provider: Annotated[str, Field(examples=["oidc"])] | None


class QuietHours(Shape):
    """The times without notifications: from `start` to `end` of every day, and on whole `days`, by the clock of the time zone.

    An end before the start is on the next day.
    """

    start: Annotated[str, Field(examples=["18:00"])] | None
    end: Annotated[str, Field(examples=["08:00"])] | None
    days: Annotated[list[Weekday], Field(examples=[["sat", "sun"]])]
    time_zone: Annotated[str, Field(examples=["Europe/Berlin"])]


class NotificationSettings(Shape):
    """The notification settings of a user.

    `mine`, `teams` and `unassigned` are about conversations that are assigned to the user, to a team of the user, and to no one. `mentions`
    includes replies in followed conversations. `preview` shows the text of messages.
    """

    mine: bool
    teams: bool
    unassigned: bool
    mentions: bool
    preview: bool
    sound: bool
    quiet_hours: QuietHours | None


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


class OidcMethod(Shape):
    """An identity provider to sign in with. A browser opens `startUrl`, with `returnTo` for a page of the desk."""

    id: Annotated[str, Field(examples=["oidc"])]
    name: Annotated[str, Field(examples=["Company account"])]
    start_url: Annotated[str, Field(examples=["/v3/auth/oidc/start?provider=oidc"])]


class SignInMethods(Shape):
    """The ways to sign in: with a password, or with identity providers."""

    password: bool
    passkey: Annotated[bool, Field(description="Whether a browser can sign in by a passkey at this address.")]
    oidc: list[OidcMethod]
    forgotten_password: Annotated[
        Literal["mail", "administrator"] | None,
        Field(
            description="The way to a new password: `mail` by `POST /v3/auth/password-links`, `administrator` by a link from a "
            "manager of members. Null if users have no passwords here."
        ),
    ]
    set_up: Annotated[
        bool,
        Field(description="True if there is no account yet. The log has a one-time link for the first one."),
    ]


class InvitationMail(Shape):
    """The mail of an invitation. `failed`: no further attempt will be made; `error` is the reason of the last failure."""

    status: MailStatus
    error: Annotated[str | None, Field(examples=["the server refused the recipient: 550 5.1.1 no such user"])]
    last_attempt_at: Moment | None


OneTimeUrl = Annotated[
    str, Field(examples=["https://desk.example.com/desk/link#0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"])
]


class Invitation(Shape):
    """An open invitation to an organisation. `url` is the one-time link, shown once, and null in lists."""

    id: InvitationId
    email: Email
    name: PersonName | None
    role: RoleId
    invited_by: Annotated[
        UserId, Field(description="The member who created or renewed it last, and must still have the right.")
    ]
    created_at: Moment
    expires_at: Moment
    url: OneTimeUrl | None
    mailed: Annotated[bool, Field(description="True if the link is also sent by mail.")]
    mail: InvitationMail | None


class PasswordLink(Shape):
    """A one-time link by which a member chooses a new password. It is shown once."""

    url: OneTimeUrl
    expires_at: Moment


class LinkMethods(Shape):
    """The ways to use a link: with a password, or by signing in with one of these identity providers."""

    password: bool
    oidc: list[OidcMethod]


class InspectedLink(Shape):
    """A one-time link that can be used, and the inputs that its use needs."""

    purpose: LinkPurpose
    email: Annotated[Email | None, Field(description="Null for the first account, whose owner gives it.")]
    organisation_name: Annotated[str | None, Field(examples=["Example Ltd"])]
    name: Annotated[PersonName | None, Field(description="The name in the invitation.")]
    name_needed: Annotated[bool, Field(description="True if the use of the link creates an account.")]
    account: Annotated[
        bool,
        Field(
            description="True if the invited address has an account: its own password is needed, not a new one."
        ),
    ]
    methods: LinkMethods


class LinkRequested(Shape):
    """The answer to a request for a mail, which is the same for every address."""

    accepted: Literal[True]


class UserIdentity(Shape):
    """A binding of the account to a user of an identity provider, which knows the user as `subject`."""

    id: Annotated[str, Field(examples=["idn_01KZ0000000000000000000001"])]
    provider: Annotated[str, Field(examples=["oidc"])]
    subject: Annotated[str, Field(examples=["248289761001"])]
    email: Email
    created_at: Moment


class Identities(Shape):
    """The identities of a user."""

    items: list[UserIdentity]


class SessionEnded(Shape):
    """The confirmation that the browser no longer has a session."""

    ended: Annotated[bool, Field(json_schema_extra={"const": True})]


class UserPermissions(Shape):
    """The permissions and roles of a user in an organisation (contract 2.7)."""

    permissions: list[Annotated[str, Field(examples=["conversations.read"])]]
    roles: list[RoleId]


class Organisation(Shape):
    """An organisation, with the signed-in user's role.

    `sessionIdleS` and `sessionMaxS` limit its members' sessions, in seconds since their last use and their start; null is the installation's.
    """

    id: OrganisationId
    name: Annotated[str, Field(examples=["Example Ltd"])]
    role: RoleId
    session_idle_s: Annotated[int, Field(examples=[3600])] | None
    session_max_s: Annotated[int, Field(examples=[86400])] | None
    require_second_factor: bool
    created_at: Moment


PermissionName = Annotated[str, Field(examples=["conversations.read"])]


class Role(Shape):
    """A role of an organisation, with the number of members who have it. Built-in roles are the same everywhere."""

    id: RoleId
    name: Annotated[str, Field(examples=["Support lead"])]
    description: Annotated[str, Field(examples=["Agents who also manage surveys."])]
    permissions: list[PermissionName]
    built_in: bool
    members: Count


class PermittedOperation(Shape):
    """A call of the API, with all permissions that it needs."""

    operation_id: Annotated[str, Field(examples=["listConversations"])]
    method: Annotated[str, Field(examples=["GET"])]
    path: Annotated[str, Field(examples=["/v3/conversations"])]
    summary: str
    permissions: list[PermissionName]


class Permission(Shape):
    """A permission, with its meaning and the calls that need it."""

    id: PermissionName
    description: str
    operations: list[PermittedOperation]


class PermissionTable(Shape):
    """All permissions, by area."""

    permissions: list[Permission]


class Member(Shape):
    """A member of an organisation."""

    id: UserId
    email: Email
    name: PersonName
    role: RoleId
    assignable: Annotated[
        bool,
        Field(
            description="True if conversations and tickets can be assigned to the member: the role has `conversations.reply`."
        ),
    ]
    mentionable: Annotated[
        bool,
        Field(description="True if notes can mention the member: the role has `conversations.read`."),
    ]
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
    expires_at: Moment | None
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


class EndingCredentialSummary(Shape):
    """A server key or machine credential that expires within seven days."""

    type: CredentialType
    id: Annotated[str, Field(examples=["key_01JC4T2V9QZ6D3M8W5N7R1XKPH"])]
    name: Annotated[str, Field(examples=["CRM"])]
    expires_at: Moment


class ProjectHealth(Shape):
    """The health of a project. It is `healthy` if every webhook endpoint is."""

    healthy: bool
    endpoints: list[EndpointSummary]
    consumers: list[ConsumerSummary]
    outstanding: Count
    oldest_waiting: LongestWait | None
    uploads: UploadRoom
    credentials_ending: list[EndingCredentialSummary]


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
