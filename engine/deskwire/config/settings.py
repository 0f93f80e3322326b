"""All settings of the program, read from the command line and the environment.

An option overrides the environment, which overrides the default. An empty variable counts as not set. No other module
reads the environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from deskwire.config.locations import database_url, files_place, node_name, shown_database
from deskwire.config.oidc import (
    DEFAULT_LABEL,
    DEFAULT_SCOPES,
    PARSERS,
    SHORT_NAME,
    OidcProvider,
)
from deskwire.config.parsers import (
    DAY_S,
    GIB,
    HOUR_S,
    KIB,
    MIB,
    YEAR_S,
    Network,
    Origin,
    Setting,
    choice,
    described,
    flag,
    http_url,
    integer,
    issuer_url,
    key_text,
    keys_url,
    mail_sender,
    networks,
    number,
    numbers,
    optional,
    path,
    proxy_url,
    role_rules,
    scopes,
    secret_text,
    setting,
    several,
    web_origin,
    words,
)
from deskwire.engine.accounts.identity.algorithms import ALGORITHMS, Algorithm, UserClaim
from deskwire.engine.accounts.identity.oidc.role_rules import RoleRule
from deskwire.engine.core.limits.body_limits import DEFAULT_BODY_LIMITS
from deskwire.engine.mail.security import Security
from deskwire.engine.webhooks.retry.schedule import DEFAULT_RETRY_DELAYS_S

# Fixed, because receivers see the number of the attempt (contract 6.4.2).
RETRIES: Final = len(DEFAULT_RETRY_DELAYS_S)

LogFormat: TypeAlias = Literal["auto", "text", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]


def _all_default() -> Mapping[str, Origin]:
    return MappingProxyType(dict.fromkeys(SETTINGS, "default"))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The fields of `Config`: all settings, with their units in their names."""

    # Location of data and address
    data_dir: Path = setting(
        Path("data"),
        path,
        "Directory of the database and the generated secret.",
        variable="DESKWIRE_DATA",
        option="--data",
        metavar="DIRECTORY",
    )
    database_url: str | None = setting(  # ADR 61
        None,
        optional(database_url),
        "URL of the PostgreSQL database that one or more nodes share; unset means an SQLite file in the data directory.",
        option="--database-url",
        metavar="URL",
        secret=True,
        masked=shown_database,
    )
    files: str | None = setting(  # ADR 61
        None,
        optional(files_place),
        "Storage of uploads: disk (the data directory), database, or s3://bucket/prefix; unset: the storage of rows.",
    )
    node: str | None = setting(  # ADR 61
        None,
        optional(node_name),
        "Name of this node among those that share the database; unset: the host's name with a random suffix.",
    )
    host: str = setting(
        "127.0.0.1", words, "Address or host name to listen on.", option="--host", metavar="HOST"
    )
    port: int = setting(
        8080,
        integer(0, 65_535),
        "TCP port to listen on; 0 takes any free one.",
        option="--port",
        metavar="PORT",
    )
    public_url: str | None = setting(  # decisions 8
        None,
        optional(http_url),
        "Base URL for clients of this server; unset means the address it listens on.",
        option="--public-url",
        metavar="URL",
    )
    tls_cert: Path | None = setting(  # ADR 25
        None,
        optional(path),
        "File with the server's certificate chain (PEM), for https; unset: plain http.",
        option="--tls-cert",
        metavar="FILE",
    )
    tls_key: Path | None = setting(
        None,
        optional(path),
        "File with that certificate's private key (PEM).",
        option="--tls-key",
        metavar="FILE",
    )
    trusted_proxies: tuple[Network, ...] = setting(  # ADR 25
        (),
        networks,
        "CIDR blocks, separated by commas, of proxies whose `X-Forwarded-For` is trusted.",
    )
    ui: bool = setting(  # ADR 56
        True,
        flag,
        "Whether the page for agents, the desk, is served at `/desk`.",
    )
    web_dir: Path | None = setting(  # ADR 56
        None,
        optional(path),
        "Folder to read the desk's files from, again after each change, for its developers; unset: the package's own.",
        option="--web",
        metavar="DIRECTORY",
    )
    demo: bool = setting(  # decisions 2
        True,
        flag,
        "Whether an empty data directory gets a demo organisation, project, user and key; `--no-demo`: false.",
        option="--no-demo",
        off="Leave an empty data directory empty: create no demo organisation, project, user and key.",
    )
    secret: str | None = setting(  # decisions 2
        None,
        optional(secret_text),
        "The installation's secret, at least 32 characters; unset means a generated file in the data directory.",
        secret=True,
    )
    secret_previous: str | None = setting(  # ADR 25
        None,
        optional(secret_text),
        "The previous secret, which is accepted as long as this is set.",
        secret=True,
    )
    own_tokens: bool = setting(  # decisions 2
        True,
        flag,
        "Whether users sign in with a password; if not, only tokens of the JWT keys below are accepted.",
    )
    one_time_password_s: float = setting(  # ADR 15
        3 * DAY_S,
        number(60, 10 * YEAR_S),
        "Seconds after which a one-time password expires unless it was replaced.",
    )
    credential_max_s: float | None = setting(  # ADR 70
        None,
        optional(number(DAY_S, 10 * YEAR_S)),
        "Longest life of a new server key or machine credential in seconds; without this they can be made without an end.",
    )
    session_idle_s: float = setting(  # ADR 15
        DAY_S / 2,
        number(300, YEAR_S),
        "Seconds after its last use that a browser session ends.",
    )
    session_max_s: float = setting(  # ADR 15
        30 * DAY_S,
        number(300, YEAR_S),
        "Maximum lifetime of a browser session in seconds, even if it stays in use.",
    )
    jwt_public_key_file: Path | None = setting(  # decisions 2
        None, optional(path), "File with the public key (PEM) of an identity provider's tokens."
    )
    jwt_jwks_file: Path | None = setting(  # decisions 2
        None,
        optional(path),
        "File with the identity provider's keys as a JWK Set; read again when it changes.",
    )
    jwt_jwks_url: str | None = setting(  # decisions 2
        None, optional(keys_url), "URL of the identity provider's JWK Set, which is refreshed."
    )
    jwt_jwks_refresh_s: float = setting(
        600.0, number(30, DAY_S), "Seconds after which the JWK Set is fetched again from its URL."
    )
    jwt_jwks_keep_s: float = setting(
        DAY_S, number(30, YEAR_S), "Seconds that the last valid JWK Set is used while its URL fails."
    )
    jwt_algorithms: tuple[Algorithm, ...] = setting(  # decisions 2
        ALGORITHMS, several(choice(*ALGORITHMS)), "Algorithms that the identity provider's tokens may use."
    )
    jwt_issuer: str | None = setting(  # decisions 2
        None, optional(words), "Required `iss` of every token; our own tokens get it, too."
    )
    jwt_audience: str | None = setting(  # decisions 2
        None,
        optional(words),
        "Required `aud` of every token, or one of its values; our own tokens get it, too.",
    )
    jwt_type: str | None = setting(
        None,
        optional(words),
        "Required `typ` of the identity provider's tokens, such as at+jwt, which refuses ID tokens; without this none, JWT and at+jwt are accepted.",
    )
    jwt_user_claim: UserClaim = setting(
        "sub",
        choice("sub", "email"),
        "How the identity provider's tokens name a user: sub is a user id; email a verified address.",
    )
    oidc_issuer: str | None = setting(
        None,
        optional(issuer_url),
        "Issuer of an OpenID provider with which users sign in at the desk; exactly as the provider writes it.",
    )
    oidc_client_id: str | None = setting(
        None, optional(words), "Id of the client that is registered at this provider."
    )
    oidc_client_secret_file: Path | None = setting(
        None, optional(path), "File with the client's secret; unset: a public client, without a secret."
    )
    oidc_scopes: tuple[str, ...] = setting(
        DEFAULT_SCOPES,
        scopes,
        "Scopes that the provider is asked for, separated by blanks.",
    )
    oidc_role_claim: str | None = setting(
        None,
        optional(words),
        "Claim with the user's groups or roles; a dot descends into an object, as in realm_access.roles.",
    )
    oidc_roles: tuple[RoleRule, ...] = setting(
        (),
        role_rules,
        "Roles by value of that claim, such as desk-admins=admin;support=agent;*=viewer: the first that fits. Unset: "
        "the provider gives no roles, and makes no accounts.",
    )
    oidc_label: str = setting(DEFAULT_LABEL, words, "Name of the provider on the page for signing in.")
    oidc_organisation: str | None = setting(
        None,
        optional(words),
        "Id or name of the organisation to which the provider belongs; unset: the installation's only one.",
    )
    oidc_second_factor: bool = setting(
        False, flag, "Whether the provider vouches for a second factor of its users."
    )
    metrics_token: str | None = setting(
        None,
        optional(secret_text),
        "Token for reading `/metrics`, at least 32 characters; unset means access only from this machine, without a token.",
        secret=True,
    )
    log_format: LogFormat = setting(
        "auto",
        choice("auto", "text", "json"),
        "Format of the log: text, json, or auto, which is text on a terminal and json otherwise.",
        option="--log-format",
        metavar="FORMAT",
    )
    log_level: LogLevel = setting(
        "info",
        choice("debug", "info", "warning", "error"),
        "Lowest severity that is logged: debug, info, warning or error.",
        option="--log-level",
        metavar="LEVEL",
    )

    # Mail
    smtp_host: str | None = setting(  # ADR 15
        None,
        optional(words),
        "Host name of the SMTP server that sends invitations and links for new passwords; unset: no mails.",
    )
    smtp_port: int | None = setting(
        None,
        optional(integer(1, 65_535)),
        "Its port; unset: 587 with starttls, 465 with tls, 25 with none.",
    )
    smtp_security: Security = setting(
        "starttls",
        choice("starttls", "tls", "none"),
        "Encryption of the connection: starttls, tls from the start, or none. Certificates are always verified.",
    )
    smtp_user: str | None = setting(None, optional(words), "User to sign in to it; unset: no sign-in.")
    smtp_password_file: Path | None = setting(
        None, optional(path), "File with that user's password; it is read again for each mail."
    )
    smtp_from: str | None = setting(
        None,
        optional(mail_sender),
        "Sender of all mails: an address, or a name and an address such as Support <support@example.com>.",
    )

    # Requests
    connections: int = setting(  # ADR 41
        30_000,
        integer(1, 1_000_000),
        "Maximum client connections; one more closes the connection that has been idle longest.",
    )
    body_limit_bytes: int = setting(  # decisions 8
        DEFAULT_BODY_LIMITS["body_limit_bytes"],
        integer(KIB, GIB),
        "Maximum bytes of a JSON body; most calls allow less. A larger body is answered with 413.",
    )
    network_logs_limit_bytes: int = setting(  # contract 8
        DEFAULT_BODY_LIMITS["network_logs_limit_bytes"],
        integer(KIB, GIB),
        "Maximum bytes of a network log snapshot's body.",
    )
    body_timeout_s: float = setting(
        30.0, number(0.1, HOUR_S), "Seconds that a client may take to send a request body."
    )
    head_timeout_s: float = setting(
        10.0, number(0.1, HOUR_S), "Seconds that a client may take to send a request's head."
    )
    request_bodies_bytes: int = setting(
        256 * MIB,
        integer(MIB, 64 * GIB),
        "Maximum bytes of request bodies in memory (ADR 41), and of responses whose clients do not read.",
    )
    requests_under_way: int = setting(
        1_000,
        integer(1, 1_000_000),
        "Maximum requests in progress, half of them for one project; further ones get 503, or 429.",
    )
    feed_waits: int = setting(
        1_000,
        integer(1, 1_000_000),
        "Maximum calls of the feed that wait for events, half of them for one project.",
    )
    rate_limit_per_minute: int = setting(  # decisions 8
        6_000,
        integer(0, 60_000_000),
        "Calls per minute with one project's server keys, on average; 0 means no limit.",
    )
    rate_limit_burst: int = setting(  # decisions 8
        1_000,
        integer(1, 1_000_000),
        "Calls that a project or user may make in a burst before that limit applies.",
    )
    user_rate_limit_per_minute: int | None = setting(  # ADR 15
        None,
        optional(integer(0, 60_000_000)),
        "Calls per minute of one signed-in user, on average; 0 means no limit; unset: a fifth of a project's.",
    )
    customer_calls_per_minute: int = setting(  # ADR 107
        60_000,
        integer(0, 60_000_000),
        "Calls per minute of all signed-in customers of one project, and as many of its visitors; 0 means no limit.",
    )
    auth_failures_per_minute: int = setting(
        120, integer(0, 1_000_000), "Wrong credentials per minute from one network; 0: no limit."
    )
    members_per_hour: int = setting(  # ADR 41
        500,
        integer(0, 1_000_000),
        "Members that one organisation may add through the API per hour, and in a burst; 0 means no limit.",
    )
    idempotency_s: float = setting(  # decisions 1
        DAY_S, number(1, YEAR_S), "Seconds that the response to a request with an Idempotency-Key is kept."
    )
    idle_connection_s: float = setting(  # decisions 8
        120.0, number(1, DAY_S), "Seconds after which an idle connection is closed."
    )
    cors_origins: tuple[str, ...] = setting(  # ADR 25
        (),
        several(web_origin),
        "Web origins, separated by commas, whose pages may call the API from a browser; unset: none.",
    )
    argon2_memory_kib: int = setting(
        65_536,  # RFC 9106, section 4, second recommended option
        integer(8 * KIB, 4 * MIB),
        "Memory in KiB for hashing one password.",
    )

    # Conversations and the event log
    mailbox_commands: int = setting(  # decisions 8
        256,
        integer(1, 1_000_000),
        "Maximum commands that wait for one conversation; further ones are answered with 503.",
    )
    actor_idle_s: float = setting(
        60.0,
        number(0.1, DAY_S),
        "Seconds without a command after which a conversation is evicted from memory.",
    )
    actors_live: int = setting(20_000, integer(1, 10_000_000), "Maximum conversations in memory.")
    log_ring_events: int = setting(
        10_000, integer(1, 100_000_000), "Maximum newest events that are kept in memory for readers."
    )
    log_ring_bytes: int = setting(
        32 * MIB, integer(MIB, 64 * GIB), "Maximum bytes in memory of those newest events."
    )
    event_window_s: float = setting(  # decisions 4 and 8
        7 * DAY_S, number(60, 100 * YEAR_S), "Seconds that stored events can be read again."
    )
    bot_only_retention_s: float = setting(  # contract 8, decisions 8
        33 * DAY_S,
        number(1, 100 * YEAR_S),
        "Seconds after its creation that a conversation without an agent's participation is kept.",
    )
    retention_day_s: float = setting(
        DAY_S,
        number(0.01, DAY_S),
        "Seconds of a day in the project setting `archivedRetentionDays`; shorter only for tests.",
    )
    retention_interval_s: float = setting(  # decisions 8
        600.0, number(1, DAY_S), "Seconds between two searches for data past its retention."
    )

    audit_s: float = setting(  # ADR 45
        365 * DAY_S, number(60, 100 * YEAR_S), "Seconds that records of the audit trail are kept."
    )

    # Storage
    writer_batch: int = setting(256, integer(1, 100_000), "Maximum commands in one commit.")
    writer_queue: int = setting(
        10_000,
        integer(16, 10_000_000),
        "Maximum changes that wait for a commit; calls that change data get 503 from half of it on.",
    )
    read_connections: int = setting(
        4,
        integer(1, 256),
        "Database connections for reading, each with a thread; a project uses at most half of them.",
    )
    read_timeout_s: float = setting(  # ADR 41
        1.0,
        number(0.01, HOUR_S),
        "Maximum seconds of one database read for a request, which is then answered with 503.",
    )

    require_sync_standby: bool = setting(  # ADR 61
        False,
        flag,
        "Whether a start is refused unless PostgreSQL confirms commits only after a synchronous standby has them.",
    )
    scrub_s: float = setting(  # ADR 61
        DAY_S,
        number(0, YEAR_S),
        "Seconds within which PostgreSQL's tables are vacuumed after an erasure; 0 leaves that to its autovacuum.",
    )
    upgrade_copies: int = setting(  # ADR 22
        2,
        integer(0, 100),
        "Number of copies of the database, made before upgrades, to keep; 0 upgrades without a copy.",
    )
    upgrade_copies_s: float = setting(  # ADR 22
        7 * DAY_S,
        number(60, YEAR_S),
        "Seconds that such a copy is kept; until then it contains data that was erased since.",
    )

    # Webhooks
    allow_private_webhooks: bool = setting(  # decisions 6
        False,
        flag,
        "Allow webhooks to private addresses and over plain http; for development only.",
        option="--allow-private-webhooks",
    )
    webhook_allow: tuple[Network, ...] = setting(  # decisions 6
        (),
        networks,
        "CIDR blocks, separated by commas, of private addresses that webhooks may use.",
    )
    webhook_proxy: str | None = setting(  # ADR 6
        None,
        optional(proxy_url),
        "URL of the HTTP proxy for webhooks; unset means direct connections.",
        secret=True,
    )
    webhook_timeout_s: float = setting(  # contract 6.4.1
        5.0, number(0.1, 60), "Seconds for a receiver to respond, from connecting to its status line."
    )
    webhook_retry_after_s: tuple[float, ...] = setting(  # contract 6.4.2, decisions 6
        DEFAULT_RETRY_DELAYS_S,
        numbers(RETRIES, number(0, HOUR_S)),
        f"Seconds from the start of each attempt to the next one, for the {RETRIES} retries.",
    )
    webhook_retry_jitter: float = setting(  # decisions 6
        0.2,
        number(0, 0.9),
        "Random variation of a retry, up and down, as a share of the time since the first attempt.",
    )
    webhook_concurrency: int = setting(  # decisions 6
        16,
        integer(1, 1_000),
        "Maximum requests to one endpoint in progress, without those waiting for a response; "
        "typing has up to 4 more.",
    )
    webhook_waiting: int = setting(  # ADR 6
        96,
        integer(0, 1_000),
        "Maximum additional requests to one endpoint that have waited for a response for more than a second.",
    )
    webhook_circuit_failures: int = setting(  # contract 6.4.3, ADR 10
        20, integer(1, 1_000_000), "Minimum consecutive failed attempts that open an endpoint's circuit."
    )
    webhook_circuit_s: float = setting(  # contract 6.4.3, ADR 10
        60.0, number(0, HOUR_S), "Minimum seconds without a success that open it."
    )
    webhook_horizon_s: float = setting(  # ADR 10
        DAY_S,
        number(1, YEAR_S),
        "Seconds after which a pending delivery is skipped; at most `DESKWIRE_EVENT_WINDOW_S`.",
    )
    webhook_catch_up_per_s: float = setting(  # ADR 10
        10_000.0,
        number(0.1, 100_000),
        "Maximum missed deliveries sent to an endpoint per second, besides new ones; it starts with 200.",
    )
    webhook_memory_deliveries: int = setting(
        1_000,
        integer(1, 1_000_000),
        "Maximum deliveries of one endpoint in memory: that many for first attempts, and as many for retries.",
    )
    delivery_log_s: float = setting(  # decisions 8
        30 * DAY_S, number(60, 100 * YEAR_S), "Seconds that finished deliveries stay in the delivery log."
    )

    # Realtime stream
    stream_ping_s: float = setting(  # decisions 5
        25.0, number(0.1, HOUR_S), "Seconds between two pings to a consumer."
    )
    stream_write_timeout_s: float = setting(  # decisions 5
        20.0, number(0.1, HOUR_S), "Seconds after which an unfinished write closes the connection."
    )
    stream_token_s: float = setting(  # decisions 5
        300.0, number(1, DAY_S), "Seconds that an authorization to subscribe is valid."
    )
    stream_auth_per_minute: int = setting(  # ADR 24
        30_000,
        integer(0, 60_000_000),
        "Authorizations to subscribe per minute for a project, on average; 0 means no limit.",
    )
    stream_auth_burst: int = setting(
        10_000,
        integer(1, 1_000_000),
        "Authorizations that a project may request in a burst before that limit applies.",
    )
    stream_inbound_bytes: int = setting(
        64 * KIB, integer(KIB, 16 * MIB), "Maximum bytes of a consumer's message."
    )
    stream_unsubscribed_s: float = setting(
        120.0, number(1, DAY_S), "Seconds that a connection may stay without any subscription."
    )
    stream_unsubscribed_each: int = setting(  # ADR 41
        50,
        integer(1, 1_000_000),
        "Maximum connections of one address without a subscription; another one waits.",
    )
    agent_streams: int = setting(  # ADR 51
        2_000,
        integer(1, 100_000),
        "Maximum open streams of agents, half of them for one organisation; a user has up to 20.",
    )
    customer_streams: int = setting(
        20_000,
        integer(1, 1_000_000),
        "Maximum open streams and long polls of customers, half of them for one organisation, and at most three quarters of "
        "DESKWIRE_CONNECTIONS.",
    )
    stream_resume_window_s: float = setting(  # decisions 5 and 8
        2 * HOUR_S,
        number(0, 100 * YEAR_S),
        "Seconds of missed events that a returning consumer receives automatically.",
    )

    # Uploads
    upload_limit_bytes: int = setting(  # decisions 7
        DEFAULT_BODY_LIMITS["upload_limit_bytes"],
        integer(1, GIB),
        "Maximum bytes of an uploaded file; a larger file is answered with 413.",
    )
    upload_timeout_s: float = setting(
        600.0, number(1, DAY_S), "Seconds that a client may take to send or fetch a file."
    )
    upload_url_s: float = setting(  # contract 8, decisions 7
        30 * DAY_S, number(60, 10 * YEAR_S), "Seconds that a signed URL of an upload is valid."
    )
    upload_unattached_s: float = setting(
        DAY_S, number(60, 10 * YEAR_S), "Seconds that an upload without a message is kept."
    )

    # Language model
    model_url: str | None = setting(  # decisions 8
        None,
        optional(http_url),
        "Base URL of an OpenAI chat-completions server, such as http://localhost:8000/v1; unset: no model.",
    )
    model_key: str | None = setting(  # decisions 8
        None, optional(key_text), "Key for this server; unset sends none.", secret=True
    )
    model_name: str | None = setting(  # decisions 8
        None, optional(words), "Name of its model; voice replies need one that accepts audio."
    )
    model_timeout_s: float = setting(  # decisions 7
        60.0, number(1, HOUR_S), "Maximum seconds of one model call."
    )

    voice_audio_bytes: int = setting(
        10 * MIB, integer(KIB, GIB), "Maximum bytes of a recording for a voice reply."
    )
    voice_audio_s: float = setting(
        300.0, number(1, HOUR_S), "Maximum seconds of a recording for a voice reply."
    )
    voice_at_once: int = setting(
        4,
        integer(1, 1_000),
        "Maximum voice replies in progress; each holds its recording in memory about three times, and another one is refused with 503.",
    )

    # Stopping
    shutdown_s: float = setting(  # decisions 5
        10.0, number(0.1, HOUR_S), "Maximum seconds of a stop before remaining work is cut off."
    )

    oidc_named: tuple[OidcProvider, ...] = ()
    origin: Mapping[str, Origin] = field(default_factory=_all_default, compare=False, repr=False)

    @property
    def oidc_providers(self) -> tuple[OidcProvider, ...]:
        """Return all OpenID providers, that of the short form first."""
        if self.oidc_issuer is None:
            return self.oidc_named
        values = {name: getattr(self, f"oidc_{name}") for name in PARSERS}
        return (OidcProvider(name=SHORT_NAME, **values), *self.oidc_named)

    @property
    def uploads_at(self) -> str:
        """Return the storage of uploads: the setting, else `disk` or `database` like the rows."""
        if self.database_url is None:
            return "disk"
        return self.files or "database"


SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {each.name: described(each) for each in fields(Settings) if each.metadata}
)
VARIABLES: Final = frozenset(each.variable for each in SETTINGS.values())
