"""Settings of where the service lives, whom it believes, and what requests may take; the others are in `config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from deskwire.config.parsers import (
    DAY_S,
    GIB,
    HOUR_S,
    KIB,
    MIB,
    YEAR_S,
    Network,
    choice,
    flag,
    http_url,
    integer,
    keys_url,
    networks,
    number,
    optional,
    origin,
    path,
    secret_text,
    setting,
    several,
    words,
)
from deskwire.engine.accounts.identity.algorithms import ALGORITHMS, Algorithm

UserClaim: TypeAlias = Literal["sub", "email"]
LogFormat: TypeAlias = Literal["auto", "text", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, kw_only=True)
class Listening:
    """The first part of `Config`."""

    # Where it lives and what it listens to
    data_dir: Path = setting(
        Path("data"),
        path,
        "Directory of the database and the generated secret.",
        variable="DESKWIRE_DATA",
        option="--data",
    )
    host: str = setting("127.0.0.1", words, "Address or host name to listen on.", option="--host")
    port: int = setting(
        8080, integer(0, 65_535), "TCP port to listen on; 0 takes any free one.", option="--port"
    )
    public_url: str | None = setting(  # decisions 8
        None,
        optional(http_url),
        "Base URL by which clients reach this server; unset means the address it listens on.",
        option="--public-url",
    )
    tls_cert: Path | None = setting(  # ADR 25
        None,
        optional(path),
        "File with the server's certificate and what leads to its authority (PEM), for https; unset: plain http.",
        option="--tls-cert",
    )
    tls_key: Path | None = setting(
        None, optional(path), "File with that certificate's private key (PEM).", option="--tls-key"
    )
    trusted_proxies: tuple[Network, ...] = setting(  # ADR 25
        (),
        networks,
        "CIDR blocks, with commas between them, of proxies whose `X-Forwarded-For` is believed.",
    )
    demo: bool = setting(  # decisions 2
        True,
        flag,
        "Gives an empty data directory a demo organisation, project, user and key; the option: does not.",
        option="--no-demo",
    )
    secret: str | None = setting(  # decisions 2
        None,
        optional(secret_text),
        "The installation's secret, at least 32 characters; unset means a generated file in the data directory.",
        secret=True,
    )
    secret_previous: str | None = setting(  # ADR 46
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
    )
    log_level: LogLevel = setting(
        "info",
        choice("debug", "info", "warning", "error"),
        "Least severity that is logged: debug, info, warning or error.",
        option="--log-level",
    )

    # Requests
    connections: int = setting(  # ADR 41
        10_000,
        integer(1, 1_000_000),
        "Connections that clients may have at once; a further one ends the one that has done nothing for longest.",
    )
    body_limit_bytes: int = setting(  # decisions 8
        1 * MIB,
        integer(KIB, GIB),
        "Largest JSON body in bytes of any call, most of which take less; a larger one is answered with 413.",
    )
    network_logs_limit_bytes: int = setting(  # contract 8
        2 * MIB, integer(KIB, GIB), "Largest body of a network log snapshot in bytes."
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
        "Bytes of request bodies that may be in memory at once (ADR 43), and of answers whose clients do not read.",
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
        6_000, integer(0, 60_000_000), "Calls of one project in a minute, on average; 0 means no limit."
    )
    rate_limit_burst: int = setting(  # decisions 8
        1_000, integer(1, 1_000_000), "Calls that a project may make at once before that limit holds."
    )
    auth_failures_per_minute: int = setting(
        120, integer(0, 1_000_000), "Wrong credentials that one network may show in a minute; 0: no limit."
    )
    idempotency_s: float = setting(  # decisions 1
        DAY_S, number(1, YEAR_S), "Seconds that the answer to a request with an Idempotency-Key is kept."
    )
    idle_connection_s: float = setting(  # decisions 8
        120.0, number(1, DAY_S), "Seconds after which an idle connection is closed."
    )
    cors_origins: tuple[str, ...] = setting(  # ADR 26
        (),
        several(origin),
        "Web origins, with commas between them, whose pages may call the API from a browser; unset: none.",
    )
    argon2_memory_kib: int = setting(
        65_536,  # RFC 9106, section 4, second recommended option
        integer(8 * KIB, 4 * MIB),
        "Memory in KiB that hashing one password takes.",
    )
