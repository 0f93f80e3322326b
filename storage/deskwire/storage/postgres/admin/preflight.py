"""Checks of a PostgreSQL server before a node starts, and advice for connection errors.

Each refusal says what to do. Doubtful settings become notes, which the log and `deskwire check` show.

libpq gives no code for a refused connection, only the server's message, so the message is part of each error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import Any, Final

import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from deskwire.storage.postgres.driver.blocking import ThreadSession
from deskwire.storage.postgres.driver.errors import ConnectionLost, DatabaseUnusableError
from deskwire.storage.postgres.driver.servers import Servers, watched
from deskwire.storage.postgres.driver.session import DEFAULT_OPTIONS, SESSION_NAME_PREFIX

OLDEST_SERVER_VERSION: Final = 15
CLOCK_OFFSET_WARNING_S: Final = 1.0
CLOCK_OFFSET_MAX_S: Final = 5.0
CONNECT_TIMEOUT_S: Final = 10
# Maximum sessions of a node: four for reads (DESKWIRE_READ_CONNECTIONS), four for files, three for single
# jobs, one each for batches, small reads, heartbeats, the bus and search, one each for the two watchdogs,
# lanes, days and vacuum, and two that query the server's identity: one every few seconds, and one while a
# heartbeat has no response.
SESSIONS_MAX: Final = 23
_NO_POOLER: Final = f"Name PostgreSQL itself in DESKWIRE_DATABASE_URL: a node keeps up to {SESSIONS_MAX} sessions open, more with DESKWIRE_READ_CONNECTIONS, and needs no pooler."
_LIMIT: Final = (
    "SELECT CASE WHEN rolsuper THEN -1 ELSE rolconnlimit END FROM pg_roles WHERE rolname = current_user"
)
_PROBE_SETTING: Final = "deskwire.settings_arrive"  # a setting without a meaning to the server


class ServerReport(Struct, frozen=True):
    """The server's properties.

    Args:
        version: such as 160004.
        synchronous: True if a commit waits for a standby.
        clock_s: seconds that the server's clock is ahead of this machine's.
        notes: doubtful settings, one sentence each.
    """

    version: int
    synchronous: bool
    clock_s: float
    notes: tuple[str, ...]


def examine(
    url: str,
    *,
    require_sync_standby: bool = False,
    now: Callable[[], float] = time.time,
    servers: Servers | None = None,
) -> ServerReport:
    """Check the server, which takes a few round trips and changes nothing.

    Args:
        require_sync_standby: True to refuse a server that commits without a standby.
        now: returns this machine's time in seconds.
        servers: those of a node that starts.

    Raises DatabaseUnusableError.
    """
    with connected(url, "setup", servers=servers) as connection:
        require_fit(connection, url)
        _require_session(connection, url, servers)
        _require_settings(url, servers)
        offset_s = _clock_offset_s(connection, now)
        if abs(offset_s) >= CLOCK_OFFSET_MAX_S:
            raise DatabaseUnusableError(
                f"The clocks of this machine and of the PostgreSQL {database_location(url)} differ by {abs(offset_s):.1f} s. "
                "Have both follow the time by NTP."
            )
        settings = _settings(connection)
        synchronous = _is_synchronous(settings)
        if require_sync_standby and not synchronous:
            raise DatabaseUnusableError(
                f"The PostgreSQL {database_location(url)} confirms commits without a standby (synchronous_standby_names is "
                f"{settings['synchronous_standby_names']!r}, synchronous_commit is {settings['synchronous_commit']}), and "
                "DESKWIRE_REQUIRE_SYNC_STANDBY is set. Set up a synchronous standby, or unset that."
            )
        return ServerReport(
            connection.info.server_version,
            synchronous,
            offset_s,
            (*_warnings(settings, offset_s), *_session_warnings(connection)),
        )


@contextmanager
def connected(
    url: str, role: str, options: str = "", servers: Servers | None = None
) -> Iterator[ThreadSession]:
    """Open a session that commits after each statement; closed with the context.

    Args:
        options: settings of the session, besides those of the URL.
        servers: those of a node, which watches them; None for a command, whose session watches its own
            server.

    Raises DatabaseUnusableError if the session can't be opened.
    """
    given = url_parts(url)
    own = {name: value for name, value in DEFAULT_OPTIONS.items() if name not in given}
    own |= {
        "options": f"{options} {given.get('options') or ''}".strip(),
        "application_name": f"{SESSION_NAME_PREFIX}/{role}",
        "connect_timeout": str(given.get("connect_timeout") or CONNECT_TIMEOUT_S),
        "target_session_attrs": "read-write",
    }
    options_used = make_conninfo(url, **own).encode()
    servers_used = servers or Servers()
    try:
        session = ThreadSession(servers_used.open(options_used), servers_used)
    except ConnectionLost as error:
        raise unreachable_error(url, error.message) from error
    with watched(servers_used, options_used) if servers is None else nullcontext(), closing(session):
        yield session


def require_fit(connection: psycopg.Connection[Any], url: str) -> None:
    """Make sure that the server is new enough and its database uses UTF-8.

    Raises DatabaseUnusableError.
    """
    major = connection.info.server_version // 10_000
    if major < OLDEST_SERVER_VERSION:
        raise DatabaseUnusableError(
            f"The server {database_location(url)} is PostgreSQL {major}; Deskwire needs {OLDEST_SERVER_VERSION} or newer."
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise DatabaseUnusableError(
            f"The database {database_location(url)} has the encoding {encoding}; Deskwire needs UTF8: create one with "
            "`CREATE DATABASE deskwire ENCODING 'UTF8' TEMPLATE template0`."
        )


def _require_session(connection: psycopg.Connection[Any], url: str, servers: Servers | None) -> None:
    """Make sure that each session has a server process of its own.

    A pooler that shares sessions between transactions is refused.
    """
    with connected(url, "setup", servers=servers) as other:
        pids = [
            _single_value(each, "SELECT pg_backend_pid()") for each in (connection, other, connection, other)
        ]
    if pids[0] != pids[2] or pids[1] != pids[3] or pids[0] == pids[1]:
        raise DatabaseUnusableError(
            f"The address {database_location(url)} is that of a pooler which shares sessions between transactions, as PgBouncer's "
            f"transaction mode. {_NO_POOLER}"
        )


def _require_settings(url: str, servers: Servers | None) -> None:
    """Make sure that the settings of a session arrive at the server."""
    with connected(url, "setup", f"-c {_PROBE_SETTING}=on", servers) as marked:
        arrived = _single_value(marked, f"SELECT current_setting('{_PROBE_SETTING}', true)")
    if arrived != "on":
        raise DatabaseUnusableError(
            f"The address {database_location(url)} is that of a pooler which drops a session's settings, as PgBouncer with "
            f"ignore_startup_parameters. {_NO_POOLER}"
        )


def _clock_offset_s(connection: psycopg.Connection[Any], now: Callable[[], float]) -> float:
    """Return how far the server's clock is ahead; time spent on the way does not count."""
    before = now()
    theirs = float(_single_value(connection, "SELECT extract(epoch FROM clock_timestamp())"))
    after = now()
    return theirs - min(max(theirs, before), after)


def _settings(connection: psycopg.Connection[Any]) -> dict[str, str]:
    names = ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names")
    rows = connection.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (list(names),))
    return {"synchronous_standby_names": "", **dict(rows.fetchall())}


def _is_synchronous(settings: dict[str, str]) -> bool:
    waits = settings["synchronous_commit"] in {"on", "remote_apply"}
    return waits and settings["synchronous_standby_names"].strip() != ""


def _warnings(settings: dict[str, str], offset_s: float) -> Iterator[str]:
    for name in ("fsync", "full_page_writes"):
        if settings[name] != "on":
            yield f"{name} is {settings[name]}: a power failure of the server may lose or damage acknowledged changes."
    if settings["synchronous_commit"] in {"off", "local", "remote_write"}:
        lost = "a crash of the server" if settings["synchronous_commit"] == "off" else "a fail-over"
        yield f"synchronous_commit is {settings['synchronous_commit']}: {lost} may lose acknowledged changes."
    if abs(offset_s) >= CLOCK_OFFSET_WARNING_S:
        yield f"The server's clock and this machine's differ by {abs(offset_s):.1f} s."


def _session_warnings(connection: psycopg.Connection[Any]) -> Iterator[str]:
    limit = int(_single_value(connection, _LIMIT))
    if 0 <= limit < SESSIONS_MAX:
        yield (
            f"The user's CONNECTION LIMIT is {limit}, and each node takes up to {SESSIONS_MAX} sessions: without them requests wait in "
            "vain. Raise it (`ALTER ROLE … CONNECTION LIMIT`)."
        )


def _single_value(connection: psycopg.Connection[Any], sql: str) -> Any:
    row = connection.execute(sql.encode()).fetchone()
    assert row is not None, "it has no FROM"
    return row[0]


_ADVICE: Final = (
    (
        r"password authentication failed|no password supplied|no pg_hba\.conf entry|Peer authentication|Ident auth",
        (
            "refuses this user. Look at user and password in DESKWIRE_DATABASE_URL (what is special in a password is written as "
            "%40 for @, %2F for /), and at the server's pg_hba.conf"
        ),
    ),
    (
        r'database ".*" does not exist',
        (
            "has no such database. Create it (`CREATE DATABASE deskwire ENCODING 'UTF8' TEMPLATE template0`), or correct "
            "DESKWIRE_DATABASE_URL"
        ),
    ),
    (r'role ".*" does not exist', "has no such user. Create it, or correct DESKWIRE_DATABASE_URL"),
    (
        r"permission denied for database",
        "does not let this user into the database: GRANT CONNECT, CREATE ON DATABASE … TO …",
    ),
    (
        r"too many (connections|clients)|remaining connection slots",
        "has no session left. A node takes up to 23, more with DESKWIRE_READ_CONNECTIONS: raise max_connections, or the user's CONNECTION LIMIT",
    ),
    (
        r"starting up|shutting down|not yet accepting connections|in recovery mode",
        "is starting, recovering or stopping. Start the node again when it is up",
    ),
    (
        r"is a primary that was replaced|is another one \(system identifier",
        "is not the one to use",
    ),
    (
        r"session is read-only|hot standby mode|server is in recovery|cannot execute .* in a read-only",
        (
            "is a standby, or takes no writes. Name the primary in DESKWIRE_DATABASE_URL, or all hosts with commas between them: "
            "the one that takes writes is found"
        ),
    ),
    (
        r"unsupported startup parameter",
        (
            "is behind a pooler that does not pass a session's settings on, as PgBouncer. Name PostgreSQL itself in "
            "DESKWIRE_DATABASE_URL: a node keeps its sessions open and needs no pooler"
        ),
    ),
    (
        r"certificate|SSL|GSSAPI",
        "and this node do not agree about encryption. Look at sslmode and sslrootcert",
    ),
    (
        r"[Cc]onnection refused|could not translate|[Nn]ame or service|timed? ?out|No route|unreachable|No such file|no answer within|could not look up",
        "can't be reached. Look whether it runs, and at host and port in DESKWIRE_DATABASE_URL",
    ),
)
_UNKNOWN_OPTION: Final = re.compile(r'invalid (?:URI query parameter|connection option):? "([a-z_]+)"')


def unreachable_error(url: str, error: psycopg.Error | str) -> DatabaseUnusableError:
    """Return the error for a session that could not be opened, with advice."""
    words = " ".join(str(error).split())
    advice = next((advice for pattern, advice in _ADVICE if re.search(pattern, words)), "can't be used")
    return DatabaseUnusableError(f"The PostgreSQL {database_location(url)} {advice}. Reason: {words}")


def url_parts(url: str) -> dict[str, Any]:
    """Return the parts of a URL.

    Raises DatabaseUnusableError, which quotes nothing of the URL but the name of an option.
    """
    try:
        return conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        unknown = _UNKNOWN_OPTION.search(str(error))
    what = f"has the option {unknown[1]}, which" if unknown else "is written in a way that"
    raise DatabaseUnusableError(
        f"The URL of the PostgreSQL {what} PostgreSQL's client library does not know. Look at DESKWIRE_DATABASE_URL; it is not "
        "repeated here, because it may contain a password."
    )


def database_location(url: str) -> str:
    """Return the host and database of a URL, without its user. Raises DatabaseUnusableError."""
    parts = url_parts(url)
    hosts = str(parts.get("host") or parts.get("hostaddr") or "on this machine")
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{hosts}{port}/{parts.get('dbname') or parts.get('user') or ''}"
