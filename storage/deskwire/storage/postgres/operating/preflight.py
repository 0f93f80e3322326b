"""The look at a PostgreSQL before a node begins: whether it is one that what we promise can rest on.

Each refusal says what to do. What is only doubtful is noted, and told by the log and by `deskwire check`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import Any, Final

import psycopg
from msgspec import Struct
from psycopg.conninfo import make_conninfo

from deskwire.storage.postgres.driver.refusals import ConnectionLost
from deskwire.storage.postgres.driver.servers import Servers
from deskwire.storage.postgres.driver.session import ALWAYS, PREFIX
from deskwire.storage.postgres.driver.thread_session import ThreadSession, watched
from deskwire.storage.postgres.driver.unusable import DatabaseUnusableError
from deskwire.storage.postgres.operating.advice import parts_of, place, unreachable

OLDEST_SERVER: Final = 15
CLOCK_WARNED_S: Final = 1.0
CLOCK_REFUSED_S: Final = 5.0
CONNECT_S: Final = 10
SESSIONS: Final = 23
"""The most sessions that a node opens: four for reads (DESKWIRE_READ_CONNECTIONS), four for files, three for single writes, one
each for batches, looks, beats, the bus and search, one each for the two watchdogs, lanes, days and vacuum, and two that ask the
server who it is: one every few seconds, and one while a beat has no answer."""
_NO_POOLER: Final = f"Name PostgreSQL itself in DESKWIRE_DATABASE_URL: a node keeps up to {SESSIONS} sessions open, more with DESKWIRE_READ_CONNECTIONS, and needs no pooler."
_LIMIT: Final = (
    "SELECT CASE WHEN rolsuper THEN -1 ELSE rolconnlimit END FROM pg_roles WHERE rolname = current_user"
)
_MARK: Final = "deskwire.settings_arrive"
"""A setting that means nothing to the server."""


class Found(Struct, frozen=True):
    """The server as it was found.

    Args:
        version: such as 160004.
        synchronous: whether a commit waits for a standby.
        clock_s: seconds that the server's clock is ahead of this machine's.
        notes: what is doubtful, a sentence each.
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
) -> Found:
    """Look at the server, which takes a few round trips and changes nothing.

    Args:
        require_sync_standby: whether one that confirms commits by itself is refused.
        now: the seconds by this machine's clock.
        servers: those of a node that begins.

    Raises DatabaseUnusableError.
    """
    with connected(url, "setup", servers=servers) as connection:
        require_fit(connection, url)
        _require_session(connection, url, servers)
        _require_settings(url, servers)
        offset_s = _clock_offset_s(connection, now)
        if abs(offset_s) >= CLOCK_REFUSED_S:
            raise DatabaseUnusableError(
                f"The clocks of this machine and of the PostgreSQL {place(url)} differ by {abs(offset_s):.1f} s. "
                "Have both follow the time by NTP."
            )
        settings = _settings(connection)
        synchronous = _is_synchronous(settings)
        if require_sync_standby and not synchronous:
            raise DatabaseUnusableError(
                f"The PostgreSQL {place(url)} confirms commits without a standby (synchronous_standby_names is "
                f"{settings['synchronous_standby_names']!r}, synchronous_commit is {settings['synchronous_commit']}), and "
                "DESKWIRE_REQUIRE_SYNC_STANDBY is set. Set up a synchronous standby, or unset that."
            )
        return Found(
            connection.info.server_version,
            synchronous,
            offset_s,
            (*_doubts(settings, offset_s), *_few_sessions(connection)),
        )


@contextmanager
def connected(
    url: str, role: str, options: str = "", servers: Servers | None = None
) -> Iterator[ThreadSession]:
    """Open a session for a command, statement by statement a transaction; closed with the context.

    Args:
        options: settings that it begins with, besides those of the URL.
        servers: those of a node, which watches them; None for a session of a command, which watches its own server.

    Raises DatabaseUnusableError if it can't be begun.
    """
    given = parts_of(url)
    own = {name: value for name, value in ALWAYS.items() if name not in given}
    own |= {
        "options": f"{options} {given.get('options') or ''}".strip(),
        "application_name": f"{PREFIX}/{role}",
        "connect_timeout": str(given.get("connect_timeout") or CONNECT_S),
        "target_session_attrs": "read-write",
    }
    asked = make_conninfo(url, **own).encode()
    here = servers or Servers()
    try:
        session = ThreadSession(here.open(asked), here)
    except ConnectionLost as error:
        raise unreachable(url, error.message) from error
    with watched(here, asked) if servers is None else nullcontext(), closing(session):
        yield session


def require_fit(connection: psycopg.Connection[Any], url: str) -> None:
    """Make sure that the server is new enough, and the database one of UTF-8. Raises DatabaseUnusableError."""
    major = connection.info.server_version // 10_000
    if major < OLDEST_SERVER:
        raise DatabaseUnusableError(
            f"The server {place(url)} is PostgreSQL {major}; Deskwire needs {OLDEST_SERVER} or newer."
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise DatabaseUnusableError(
            f"The database {place(url)} has the encoding {encoding}; Deskwire needs UTF8: create one with "
            "`CREATE DATABASE deskwire ENCODING 'UTF8' TEMPLATE template0`."
        )


def _require_session(connection: psycopg.Connection[Any], url: str, servers: Servers | None) -> None:
    """Make sure that a session is one of the server's own: two that are open at once have not the same."""
    with connected(url, "setup", servers=servers) as other:
        pids = [_one(each, "SELECT pg_backend_pid()") for each in (connection, other, connection, other)]
    if pids[0] != pids[2] or pids[1] != pids[3] or pids[0] == pids[1]:
        raise DatabaseUnusableError(
            f"The address {place(url)} is that of a pooler which shares sessions between transactions, as PgBouncer's "
            f"transaction mode. {_NO_POOLER}"
        )


def _require_settings(url: str, servers: Servers | None) -> None:
    """Make sure that the settings that a node begins its sessions with arrive, such as how long a lock is waited for."""
    with connected(url, "setup", f"-c {_MARK}=on", servers) as marked:
        arrived = _one(marked, f"SELECT current_setting('{_MARK}', true)")
    if arrived != "on":
        raise DatabaseUnusableError(
            f"The address {place(url)} is that of a pooler which drops a session's settings, as PgBouncer with "
            f"ignore_startup_parameters. {_NO_POOLER}"
        )


def _clock_offset_s(connection: psycopg.Connection[Any], now: Callable[[], float]) -> float:
    """Say how far the server's clock is ahead; the time on the way counts for nobody."""
    before = now()
    theirs = float(_one(connection, "SELECT extract(epoch FROM clock_timestamp())"))
    after = now()
    return theirs - min(max(theirs, before), after)


def _settings(connection: psycopg.Connection[Any]) -> dict[str, str]:
    names = ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names")
    rows = connection.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (list(names),))
    return {"synchronous_standby_names": "", **dict(rows.fetchall())}


def _is_synchronous(settings: dict[str, str]) -> bool:
    waits = settings["synchronous_commit"] in {"on", "remote_apply"}
    return waits and settings["synchronous_standby_names"].strip() != ""


def _doubts(settings: dict[str, str], offset_s: float) -> Iterator[str]:
    for name in ("fsync", "full_page_writes"):
        if settings[name] != "on":
            yield f"{name} is {settings[name]}: a power failure of the server may lose or damage what was acknowledged."
    if settings["synchronous_commit"] in {"off", "local", "remote_write"}:
        lost = "a crash of the server" if settings["synchronous_commit"] == "off" else "a fail-over"
        yield f"synchronous_commit is {settings['synchronous_commit']}: {lost} may lose what was acknowledged."
    if abs(offset_s) >= CLOCK_WARNED_S:
        yield f"The server's clock and this machine's differ by {abs(offset_s):.1f} s."


def _few_sessions(connection: psycopg.Connection[Any]) -> Iterator[str]:
    limit = int(_one(connection, _LIMIT))
    if 0 <= limit < SESSIONS:
        yield (
            f"The user's CONNECTION LIMIT is {limit}, and each node takes up to {SESSIONS} sessions: without them requests wait in "
            "vain. Raise it (`ALTER ROLE … CONNECTION LIMIT`)."
        )


def _one(connection: psycopg.Connection[Any], sql: str) -> Any:
    row = connection.execute(sql.encode()).fetchone()
    assert row is not None, "it has no FROM"
    return row[0]
