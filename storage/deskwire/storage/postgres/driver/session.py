"""The address of the database, and the settings of its sessions by their role."""

from __future__ import annotations

from typing import Final, Literal

import psycopg
from msgspec import Struct, field
from psycopg import conninfo, pq

from deskwire.storage.postgres.driver.errors import ConnectionLost
from deskwire.storage.postgres.driver.opening import apply_settings
from deskwire.storage.postgres.driver.servers import Servers

Role = Literal["batch", "look", "read", "lone", "search", "bus", "beat", "files", "setup"]

# Begins the `application_name` of each session; the watchdog ends only such sessions.
SESSION_NAME_PREFIX: Final = "deskwire"

# Options that the URL may override: a dead server is noticed within five seconds, and a standby is refused.
DEFAULT_OPTIONS: Final = {
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
    "target_session_attrs": "read-write",
    "client_encoding": "UTF8",
}

_LOCKS: Final = {"lock_timeout": "8s", "TimeZone": "UTC", "bytea_output": "hex"}
# For sessions whose statements are planned once and find rows by keys. A plan that was made while a day's
# partition was empty would otherwise read all of it at each use (ADR 104). Up to version 17 the first setting
# makes a scan that no index can replace so expensive that PostgreSQL would compile the statement without the
# second one.
_KEY_LOOKUPS: Final = {"enable_seqscan": "off", "jit": "off"}
# For sessions whose statements also read whole tables. With the server's default of 4, a page of a list would read all of some
# thousands of conversations instead of finding its own by their keys, which are in memory. The options of the URL override it.
_LISTS: Final = {"random_page_cost": "1.1"}

_SETTINGS: Final[dict[Role, dict[str, str]]] = {
    # A client that stops in the middle of a transaction releases its locks after two seconds. There is no
    # `statement_timeout`: it would not end a COMMIT that waits for a standby, and other long statements are
    # not faults.
    "batch": {**_LOCKS, **_KEY_LOOKUPS, "idle_in_transaction_session_timeout": "2s"},
    "lone": {**_LOCKS, **_KEY_LOOKUPS, "idle_in_transaction_session_timeout": "5s"},
    "search": {**_LOCKS, **_LISTS, "idle_in_transaction_session_timeout": "5s"},
    "look": {**_LOCKS, **_KEY_LOOKUPS, "idle_in_transaction_session_timeout": "10s"},
    "read": {**_LOCKS, **_LISTS, "idle_in_transaction_session_timeout": "10s"},
    "bus": {"synchronous_commit": "off"},
    "beat": dict(_LOCKS),
    "files": {"TimeZone": "UTC"},
    "setup": {"TimeZone": "UTC"},
}
# Settings that only newer servers have, by the first version that may.
_LATER: Final[dict[Role, dict[str, tuple[int, str]]]] = {
    "batch": {"transaction_timeout": (170_000, "10s"), "client_connection_check_interval": (140_000, "2s")},
    "lone": {"client_connection_check_interval": (140_000, "2s")},
}


class Database(Struct, frozen=True):
    """A database to which a node opens sessions.

    Args:
        url: in libpq's form; if it names several hosts, the writable one is chosen.
        node: the node's name, for the sessions' names.
        servers: the servers of the URL, and the one in use.
    """

    url: str
    node: str
    servers: Servers = field(default_factory=Servers)

    def options(self, role: Role) -> bytes:
        """Return the libpq options of a session."""
        given = conninfo.conninfo_to_dict(self.url)
        settings = " ".join(f"-c {name}={value}" for name, value in _SETTINGS[role].items())
        own: dict[str, str] = {name: value for name, value in DEFAULT_OPTIONS.items() if name not in given}
        own["application_name"] = f"{SESSION_NAME_PREFIX}/{role}/{self.node}"[:63]
        own["options"] = f"{settings} {given.get('options') or ''}".strip()
        return conninfo.make_conninfo(self.url, **own).encode()

    def versioned_settings(self, role: Role, server_version: int) -> list[bytes]:
        """Return the statements for settings that this server may have.

        A refused statement can be skipped.
        """
        wanted = _LATER.get(role, {})
        return [
            f"SET {name} = '{value}'".encode()
            for name, (since, value) in wanted.items()
            if server_version >= since
        ]

    def connect(self, role: Role) -> pq.abc.PGconn:
        """Open a session, from a thread; `release` ends it. Raises ConnectionLost."""
        options = self.options(role)
        connection = self.servers.open(options)
        try:
            connection.notice_handler = None
            apply_settings(connection, self.versioned_settings(role, connection.server_version), options)
        except (psycopg.Error, ConnectionLost) as error:
            self.release(connection)
            raise ConnectionLost(str(error)) from error
        return connection

    def release(self, connection: pq.abc.PGconn) -> None:
        """End a session."""
        self.servers.release(connection)

    def check_hosts(self, seconds: float) -> None:
        """Check which server to use, from a thread: see `Servers.check_hosts`."""
        self.servers.check_hosts(self.options("setup"), seconds)
