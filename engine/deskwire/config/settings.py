"""Every setting of the program, read once from the command line and the environment.

An option beats the environment, which beats the default. A variable that is empty counts as not set. Nothing
else in the program reads the environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from deskwire.config.locations import database_url, files_place, node_name, shown_database
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
    key_text,
    keys_url,
    networks,
    number,
    numbers,
    optional,
    path,
    proxy_url,
    secret_text,
    setting,
    several,
    web_origin,
    words,
)
from deskwire.engine.accounts.identity.algorithms import ALGORITHMS, Algorithm, UserClaim
from deskwire.engine.core.limits.body_limits import DEFAULT_BODY_LIMITS
from deskwire.engine.webhooks.retry.schedule import DEFAULT_RETRY_DELAYS_S

# Fixed, because receivers see the number of the attempt (contract 6.4.2).
RETRIES: Final = len(DEFAULT_RETRY_DELAYS_S)

LogFormat: TypeAlias = Literal["auto", "text", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]


def _all_default() -> Mapping[str, Origin]:
    return MappingProxyType(dict.fromkeys(SETTINGS, "default"))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The fields of `Config`: every setting, with its unit in its name."""

    # Where it lives and what it listens to
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
        "Where uploads are kept: disk (the data directory), database, or s3://bucket/prefix; unset: beside the rows.",
    )
    node: str | None = setting(  # ADR 61
        None,
        optional(node_name),
        "Name of this node among those that share the database; unset: the host's name with a random ending.",
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
        "Base URL by which clients reach this server; unset means the address it listens on.",
        option="--public-url",
        metavar="URL",
    )
    tls_cert: Path | None = setting(  # ADR 25
        None,
        optional(path),
        "File with the server's certificate and what leads to its authority (PEM), for https; unset: plain http.",
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
        "CIDR blocks, with commas between them, of proxies whose `X-Forwarded-For` is believed.",
    )
    ui: bool = setting(  # ADR 56
        True,
        flag,
        "Whether there is a page for agents, the desk, at `/desk`.",
    )
    web_dir: Path | None = setting(  # ADR 56
        None,
        optional(path),
        "Folder to read the desk's files from at each request, for those who change them; unset: the package's own.",
        option="--web",
        metavar="DIRECTORY",
    )
    demo: bool = setting(  # decisions 2
        True,
        flag,
        "Whether an empty data directory is given a demo organisation, project, user and key; `--no-demo`: false.",
        option="--no-demo",
        off="Leave an empty data directory empty: make no demo organisation, project, user and key.",
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
        "The secret before that one, accepted besides for as long as this is set.",
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
        "Seconds after which a one-time password that nobody has replaced ends.",
    )
    session_idle_s: float = setting(  # ADR 15
        DAY_S / 2,
        number(300, YEAR_S),
        "Seconds after its last use that a browser's session ends.",
    )
    session_max_s: float = setting(  # ADR 15
        30 * DAY_S, number(300, YEAR_S), "Seconds that a browser's session lasts at most, however it is used."
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
        None, optional(keys_url), "URL of the identity provider's JWK Set, which is kept fresh."
    )
    jwt_jwks_refresh_s: float = setting(
        600.0, number(30, DAY_S), "Seconds after which the JWK Set behind the URL is fetched anew."
    )
    jwt_jwks_keep_s: float = setting(
        DAY_S, number(30, YEAR_S), "Seconds that the last good JWK Set is used while its URL fails."
    )
    jwt_algorithms: tuple[Algorithm, ...] = setting(  # decisions 2
        ALGORITHMS, several(choice(*ALGORITHMS)), "Algorithms that the identity provider's tokens may use."
    )
    jwt_issuer: str | None = setting(  # decisions 2
        None, optional(words), "What `iss` of every token must be; our own tokens get it, too."
    )
    jwt_audience: str | None = setting(  # decisions 2
        None, optional(words), "What `aud` of every token must be or contain; our own tokens get it, too."
    )
    jwt_user_claim: UserClaim = setting(
        "sub",
        choice("sub", "email"),
        "How the identity provider's tokens name a user: sub is a user id; email a verified address.",
    )
    metrics_token: str | None = setting(
        None,
        optional(secret_text),
        "Token for reading `/metrics`, at least 32 characters; unset means only from this machine, without one.",
        secret=True,
    )
    log_format: LogFormat = setting(
        "auto",
        choice("auto", "text", "json"),
        "Form of the log: text, json, or auto, which is text on a terminal and json otherwise.",
        option="--log-format",
        metavar="FORMAT",
    )
    log_level: LogLevel = setting(
        "info",
        choice("debug", "info", "warning", "error"),
        "Least severity that is logged: debug, info, warning or error.",
        option="--log-level",
        metavar="LEVEL",
    )

    # Requests
    connections: int = setting(  # ADR 41
        10_000,
        integer(1, 1_000_000),
        "Connections that clients may have at once; a further one ends the one that has done nothing for longest.",
    )
    body_limit_bytes: int = setting(  # decisions 8
        DEFAULT_BODY_LIMITS["body_limit_bytes"],
        integer(KIB, GIB),
        "Largest JSON body in bytes of any call, most of which take less; a larger one is answered with 413.",
    )
    network_logs_limit_bytes: int = setting(  # contract 8
        DEFAULT_BODY_LIMITS["network_logs_limit_bytes"],
        integer(KIB, GIB),
        "Largest body of a network log snapshot in bytes.",
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
        "Bytes of request bodies that may be in memory at once (ADR 41), and of answers whose clients do not read.",
    )
    requests_under_way: int = setting(
        1_000,
        integer(1, 1_000_000),
        "Requests that may be worked on at once, half of them a project's; further ones get 503, or 429.",
    )
    feed_waits: int = setting(
        1_000,
        integer(1, 1_000_000),
        "Calls of the feed that may wait for events at the same time, half of them a project's.",
    )
    rate_limit_per_minute: int = setting(  # decisions 8
        6_000,
        integer(0, 60_000_000),
        "Calls with one project's server keys in a minute, on average; 0 means no limit.",
    )
    rate_limit_burst: int = setting(  # decisions 8
        1_000,
        integer(1, 1_000_000),
        "Calls that a project, or a user, may make at once before that limit holds.",
    )
    user_rate_limit_per_minute: int | None = setting(  # ADR 15
        None,
        optional(integer(0, 60_000_000)),
        "Calls of one signed-in user in a minute, on average; 0 means no limit; unset: a fifth of a project's.",
    )
    auth_failures_per_minute: int = setting(
        120, integer(0, 1_000_000), "Wrong credentials that one network may show in a minute; 0: no limit."
    )
    members_per_hour: int = setting(  # ADR 41
        500,
        integer(0, 1_000_000),
        "Members that one organisation may add through the API in an hour, and at once; 0 means no limit.",
    )
    idempotency_s: float = setting(  # decisions 1
        DAY_S, number(1, YEAR_S), "Seconds that the answer to a request with an Idempotency-Key is kept."
    )
    idle_connection_s: float = setting(  # decisions 8
        120.0, number(1, DAY_S), "Seconds after which an idle connection is closed."
    )
    cors_origins: tuple[str, ...] = setting(  # ADR 25
        (),
        several(web_origin),
        "Web origins, with commas between them, whose pages may call the API from a browser; unset: none.",
    )
    argon2_memory_kib: int = setting(
        65_536,  # RFC 9106, section 4, second recommended option
        integer(8 * KIB, 4 * MIB),
        "Memory in KiB that hashing one password takes.",
    )

    # Conversations and the event log
    mailbox_commands: int = setting(  # decisions 8
        256,
        integer(1, 1_000_000),
        "Commands that may wait for one conversation; further ones are answered with 503.",
    )
    actor_idle_s: float = setting(
        60.0, number(0.1, DAY_S), "Seconds without a command after which a conversation leaves memory."
    )
    actors_live: int = setting(
        20_000, integer(1, 10_000_000), "Conversations that are in memory at the same time at most."
    )
    log_ring_events: int = setting(
        10_000, integer(1, 100_000_000), "Newest events that are kept in memory for readers, at most."
    )
    log_ring_bytes: int = setting(
        32 * MIB, integer(MIB, 64 * GIB), "Bytes that those newest events may take in memory."
    )
    event_window_s: float = setting(  # decisions 4 and 8
        7 * DAY_S, number(60, 100 * YEAR_S), "Seconds that stored events can be read again."
    )
    bot_only_retention_s: float = setting(  # contract 8, decisions 8
        33 * DAY_S,
        number(1, 100 * YEAR_S),
        "Seconds after its creation that a conversation is kept in which no agent has had a part.",
    )
    retention_day_s: float = setting(
        DAY_S,
        number(0.01, DAY_S),
        "Seconds that a day of the project setting `archivedRetentionDays` lasts; shorter only to try it out.",
    )
    retention_interval_s: float = setting(  # decisions 8
        600.0, number(1, DAY_S), "Seconds between two looks for what has passed its retention."
    )

    audit_s: float = setting(  # ADR 45
        365 * DAY_S, number(60, 100 * YEAR_S), "Seconds that records of the audit trail are kept."
    )

    # Storage
    writer_batch: int = setting(256, integer(1, 100_000), "Commands that one commit takes together at most.")
    writer_queue: int = setting(
        10_000,
        integer(16, 10_000_000),
        "Changes that may wait for a commit; calls that change something get 503 from half of them on.",
    )
    read_connections: int = setting(
        4,
        integer(1, 256),
        "Database connections for reading, each with a thread; a project has half of them at most.",
    )
    read_timeout_s: float = setting(  # ADR 41
        1.0,
        number(0.01, HOUR_S),
        "Seconds that one look into the database may take for a request, which is answered with 503 then.",
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
        "Copies of the database, made before upgrades, that are kept; 0 upgrades without a copy.",
    )
    upgrade_copies_s: float = setting(  # ADR 22
        7 * DAY_S,
        number(60, YEAR_S),
        "Seconds that such a copy is kept; until then it holds what is erased meanwhile.",
    )

    # Webhooks
    allow_private_webhooks: bool = setting(  # decisions 6
        False,
        flag,
        "Lets webhooks go to private addresses and plain http; for development only.",
        option="--allow-private-webhooks",
    )
    webhook_allow: tuple[Network, ...] = setting(  # decisions 6
        (),
        networks,
        "CIDR blocks, with commas between them, that webhooks may go to although they are private.",
    )
    webhook_proxy: str | None = setting(  # ADR 6
        None,
        optional(proxy_url),
        "URL of the HTTP proxy that webhooks go through; unset means straight to the receivers.",
        secret=True,
    )
    webhook_timeout_s: float = setting(  # contract 6.4.1
        5.0, number(0.1, 60), "Seconds that a receiver has from connecting to its status line."
    )
    webhook_retry_after_s: tuple[float, ...] = setting(  # contract 6.4.2, decisions 6
        DEFAULT_RETRY_DELAYS_S,
        numbers(RETRIES, number(0, HOUR_S)),
        f"Seconds from the start of each attempt to the next one's, for the {RETRIES} retries.",
    )
    webhook_retry_jitter: float = setting(  # decisions 6
        0.2,
        number(0, 0.9),
        "Share of the time since the first attempt by which a retry varies at random, up and down.",
    )
    webhook_concurrency: int = setting(  # decisions 6
        16,
        integer(1, 1_000),
        "Requests under way to one endpoint at the same time at most, those that wait for their answer left out; "
        "typing has up to 4 more.",
    )
    webhook_waiting: int = setting(  # ADR 6
        96,
        integer(0, 1_000),
        "Requests to one endpoint that may wait for their answer besides, after a second without one.",
    )
    webhook_circuit_failures: int = setting(  # contract 6.4.3, ADR 10
        20, integer(1, 1_000_000), "Failed attempts in a row that open an endpoint's circuit, at the least."
    )
    webhook_circuit_s: float = setting(  # contract 6.4.3, ADR 10
        60.0, number(0, HOUR_S), "Seconds without a success that open it, at the least."
    )
    webhook_horizon_s: float = setting(  # ADR 10
        DAY_S,
        number(1, YEAR_S),
        "Seconds after which a delivery that is still pending is skipped; `DESKWIRE_EVENT_WINDOW_S` at most.",
    )
    webhook_catch_up_per_s: float = setting(  # ADR 10
        10_000.0,
        number(0.1, 100_000),
        "Deliveries of an outage that are sent to an endpoint in a second at most, beside new ones; it begins with 200.",
    )
    webhook_memory_deliveries: int = setting(
        1_000,
        integer(1, 1_000_000),
        "Deliveries of one endpoint that are in memory at most: that many for first attempts, and as many for retries.",
    )
    delivery_log_s: float = setting(  # decisions 8
        30 * DAY_S, number(60, 100 * YEAR_S), "Seconds that finished deliveries stay in the delivery log."
    )

    # Realtime stream
    stream_ping_s: float = setting(  # decisions 5
        25.0, number(0.1, HOUR_S), "Seconds between two pings to a consumer."
    )
    stream_write_timeout_s: float = setting(  # decisions 5
        20.0, number(0.1, HOUR_S), "Seconds after which a write that does not finish ends the connection."
    )
    stream_token_s: float = setting(  # decisions 5
        300.0, number(1, DAY_S), "Seconds that an authorization to subscribe is valid."
    )
    stream_auth_per_minute: int = setting(  # ADR 24
        30_000,
        integer(0, 60_000_000),
        "Authorizations to subscribe that a project may ask for in a minute, on average; 0 means no limit.",
    )
    stream_auth_burst: int = setting(
        10_000,
        integer(1, 1_000_000),
        "Authorizations that a project may ask for at once before that limit holds.",
    )
    stream_inbound_bytes: int = setting(
        64 * KIB, integer(KIB, 16 * MIB), "Largest message in bytes that a consumer may send."
    )
    stream_unsubscribed_s: float = setting(
        120.0, number(1, DAY_S), "Seconds that a connection may stay without any subscription."
    )
    stream_unsubscribed_each: int = setting(  # ADR 41
        50,
        integer(1, 1_000_000),
        "Connections of one address that may be without a subscription at once; a further one waits for its turn.",
    )
    agent_streams: int = setting(  # ADR 51
        2_000,
        integer(1, 100_000),
        "Streams of agents that may be open, at most half of them an organisation's; a user has up to 20 of them.",
    )
    stream_resume_window_s: float = setting(  # decisions 5 and 8
        2 * HOUR_S,
        number(0, 100 * YEAR_S),
        "Seconds of missed events that a returning consumer is sent by itself.",
    )

    # Uploads
    upload_limit_bytes: int = setting(  # decisions 7
        DEFAULT_BODY_LIMITS["upload_limit_bytes"],
        integer(1, GIB),
        "Largest file in bytes that may be uploaded; a larger one is answered with 413.",
    )
    upload_timeout_s: float = setting(
        600.0, number(1, DAY_S), "Seconds that a client may take to send a file, and to fetch one."
    )
    upload_url_s: float = setting(  # contract 8, decisions 7
        30 * DAY_S, number(60, 10 * YEAR_S), "Seconds that a signed URL of an upload is valid."
    )
    upload_unattached_s: float = setting(
        DAY_S, number(60, 10 * YEAR_S), "Seconds that an upload is kept which no message refers to."
    )

    # Language model
    model_url: str | None = setting(  # decisions 8
        None,
        optional(http_url),
        "Base URL of an OpenAI chat-completions server, such as http://localhost:8000/v1; unset: no model.",
    )
    model_key: str | None = setting(  # decisions 8
        None, optional(key_text), "Key that this server asks for; unset sends none.", secret=True
    )
    model_name: str | None = setting(  # decisions 8
        None, optional(words), "Name of the model there; for voice replies it must take audio."
    )
    model_timeout_s: float = setting(  # decisions 7
        60.0, number(1, HOUR_S), "Seconds that one call of the model may take."
    )

    voice_audio_bytes: int = setting(
        10 * MIB, integer(KIB, GIB), "Largest recording in bytes that a voice reply is made from."
    )
    voice_audio_s: float = setting(
        300.0, number(1, HOUR_S), "Longest recording in seconds that a voice reply is made from."
    )
    voice_at_once: int = setting(
        4,
        integer(1, 1_000),
        "Voice replies made at once; each holds its recording in memory about three times, and one more is refused with 503.",
    )

    # Stopping
    shutdown_s: float = setting(  # decisions 5
        10.0, number(0.1, HOUR_S), "Seconds that a stop may take before what is left is cut off."
    )

    origin: Mapping[str, Origin] = field(default_factory=_all_default, compare=False, repr=False)

    @property
    def uploads_at(self) -> str:
        """The place of uploads: `disk`, `database` or a bucket's URL; what is set, else beside the rows."""
        if self.database_url is None:
            return "disk"
        return self.files or "database"


SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {each.name: described(each) for each in fields(Settings) if each.name != "origin"}
)
VARIABLES: Final = frozenset(each.variable for each in SETTINGS.values())
