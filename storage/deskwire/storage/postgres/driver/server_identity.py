"""The system identifier and timeline of a server, which distinguish two primaries.

A promotion begins a new timeline. The control file has it only after the next checkpoint, for which a
promotion does not wait; the name of the current WAL file has it immediately. So that name is queried first.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeAlias

from msgspec import Struct
from psycopg import pq

from deskwire.engine.core.database_identity import Reason

_SYSTEM: Final = "SELECT CAST(system_identifier AS text) FROM pg_control_system()"
_WAL_NAME: Final = "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
_CHECKPOINT: Final = "SELECT lpad(to_hex(timeline_id), 8, '0') FROM pg_control_checkpoint()"
_STANDBY: Final = "SELECT pg_is_in_recovery()"
_ALL_AT_ONCE: Final = (
    f"SELECT pg_is_in_recovery(), ({_SYSTEM}), CASE WHEN pg_is_in_recovery() THEN NULL ELSE ({_WAL_NAME}) END"
)

# Yields statements, and receives the first row of each; None for a refused statement.
Answers: TypeAlias = Generator[str, list[str | None] | None, "ServerIdentity"]


class ServerIdentity(Struct, frozen=True):
    """The identity of a session's server.

    Args:
        system: the system identifier; None if this account may not query it.
        timeline: the timeline on which the server writes; None for a standby, or if this account may not
            query it.
        standby: True if the server follows another one.
    """

    system: str | None = None
    timeline: int | None = None
    standby: bool = False


class KnownServer(Struct, frozen=True):
    """The newest server that the installation has used; unknown parts are None."""

    system: str | None = None
    timeline: int | None = None

    def refusal(self, found: ServerIdentity) -> Reason | None:
        """Return why a server is not the installation's; None if it may be."""
        if self.system is not None and found.system is not None and found.system != self.system:
            return "other_system"
        if self.timeline is not None and found.timeline is not None and found.timeline < self.timeline:
            return "older_timeline"
        return None

    def is_older_than(self, found: ServerIdentity) -> bool:
        """Return whether a server was promoted after the newest known one."""
        return self.timeline is not None and found.timeline is not None and found.timeline > self.timeline

    def updated_with(self, found: ServerIdentity) -> KnownServer:
        """Return this identity, updated with that of an accepted server."""
        return KnownServer(found.system or self.system, found.timeline or self.timeline)


def identity_queries() -> Answers:
    """Query the identity, in one statement if the account may query all of it."""
    row = yield _ALL_AT_ONCE
    if row is not None:
        return ServerIdentity(row[1], _timeline(row[2]), row[0] == "t")
    standby = yield _STANDBY
    is_standby = standby is not None and standby[0] == "t"
    system = yield _SYSTEM
    timeline = None
    if not is_standby:
        timeline = (yield _WAL_NAME) or (yield _CHECKPOINT)
    return ServerIdentity(_first(system), _timeline(_first(timeline)), is_standby)


def first_row(answer: pq.abc.PGresult) -> list[str | None] | None:
    """Return the first row of a result in text form; None if the statement was refused."""
    if answer.status != pq.ExecStatus.TUPLES_OK or not answer.ntuples:
        return None
    values = [answer.get_value(0, column) for column in range(answer.nfields)]
    return [None if value is None else value.decode() for value in values]


def _first(row: list[str | None] | None) -> str | None:
    return None if row is None else row[0]


def _timeline(name: str | None) -> int | None:
    return None if name is None else int(name, 16)
