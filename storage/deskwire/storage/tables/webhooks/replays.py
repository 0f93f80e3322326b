"""Replays: the events of one conversation for one endpoint, and the newest delivery of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.webhooks.replay import Replayable, Replayed
from deskwire.storage.dialect import Statement, differing, either
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.events.events import EVENT_COLUMNS, event_of
from deskwire.storage.tables.webhooks.deliveries import DeliveryWrites

_LARGEST: Final = (1 << 63) - 1
_EVENT_AT: Final = 3
_WANTED: Final = "e.conversation = :conversation AND e.internal = 0 AND e.sequence >= :first AND e.sequence <= :last AND e.type IN ({types})"
_PART_END: Final = f"(SELECT max(p.sequence) FROM (SELECT e.sequence FROM events e WHERE {_WANTED} ORDER BY e.sequence LIMIT :limit) AS p)"
"""The sequence of the last event of a part. Without this bound, each part would read the deliveries of all parts after it."""


def _newest(last: str) -> Statement:
    """Return the newest delivery of each of the conversation's events up to the sequence `last` to the endpoint."""
    deliveries = f"FROM deliveries d WHERE d.lane = :conversation AND d.sequence >= :first AND d.sequence <= {last} AND d.endpoint = :endpoint"
    return differing(
        # With max(), SQLite takes the other columns from the row that has it.
        sqlite=f"(SELECT d.sequence, max(d.position) AS position, d.status, 0 AS day {deliveries} GROUP BY d.sequence) AS n",
        postgres=f"(SELECT DISTINCT ON (d.sequence) d.sequence, d.position, d.status, d.day {deliveries} "
        "ORDER BY d.sequence, d.position DESC) AS n",
    )


_COUNTED: Final = either(
    "SELECT count(*), count(CASE WHEN n.status = 'pending' THEN 1 END) FROM events e LEFT JOIN {newest} "
    "ON n.sequence = e.sequence WHERE {wanted}",
    newest=_newest(":last"),
    wanted=differing(sqlite=_WANTED, postgres=_WANTED),
)
_GONE: Final = (
    "SELECT count(*) FROM deliveries d WHERE d.lane = :conversation AND d.sequence >= :first AND d.sequence <= :last "
    "AND d.endpoint = :endpoint AND d.redelivered_as IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM events e WHERE e.position = d.event)"
)
_LISTED: Final = either(
    f"SELECT n.status, n.position, n.day, {EVENT_COLUMNS} FROM events e LEFT JOIN {{newest}} ON n.sequence = e.sequence "
    "WHERE {wanted} ORDER BY e.sequence LIMIT :limit",
    newest=_newest(_PART_END),
    wanted=differing(sqlite=_WANTED, postgres=_WANTED),
)
_PREVIOUS: Final = (
    "SELECT coalesce(max(sequence), 0) FROM deliveries WHERE lane = ? AND endpoint = ? AND sequence < ?"
)


class ReplayReads(Queries):
    """Queries on what a replay would send; the methods are those of `ports.Reader`."""

    def replayable(self, endpoint: int, conversation: int, wanted: Replayed) -> Replayable:
        if not wanted.types:
            return Replayable(0, 0, 0)
        sql, values = _asked(_COUNTED[self.dialect], endpoint, conversation, wanted)
        found, pending = self.conn.execute(sql, values).fetchone()
        bounds = {name: values[name] for name in ("endpoint", "conversation", "first", "last")}
        (gone,) = self.conn.execute(_GONE, bounds).fetchone()
        return Replayable(found - pending, pending, gone)


class ReplayWrites(DeliveryWrites):
    """The deliveries of replays; the methods are those of `ports.Transaction`."""

    def replay(
        self, endpoint: int, conversation: int, wanted: Replayed, at: int, limit: int
    ) -> tuple[int, int | None]:
        if not wanted.types:
            return 0, None
        sql, values = _asked(_LISTED[self.dialect], endpoint, conversation, wanted)
        rows = self.conn.execute(sql, {**values, "limit": limit}).fetchall()
        made = sum(self._send_again(endpoint, conversation, row, at) for row in rows)
        return made, event_of(rows[-1][_EVENT_AT:]).sequence if len(rows) == limit else None

    def _send_again(self, endpoint: int, conversation: int, row: Sequence[Any], at: int) -> bool:
        status, *newest = row[:_EVENT_AT]
        if status == "pending":
            return False
        if status is not None:
            return self._repeat(self.dialect.key(*newest), at) is not None
        event = event_of(row[_EVENT_AT:])
        (previous,) = self.conn.execute(_PREVIOUS, (conversation, endpoint, event.sequence)).fetchone()
        self.insert_delivery(endpoint, event, conversation, previous, at)
        return True


def _asked(template: str, endpoint: int, conversation: int, wanted: Replayed) -> tuple[str, dict[str, Any]]:
    """Return a statement with the wanted types, and its values."""
    names = {f"type{number}": name for number, name in enumerate(sorted(wanted.types))}
    values = {
        "endpoint": endpoint,
        "conversation": conversation,
        "first": wanted.first or 1,
        "last": _LARGEST if wanted.last is None else wanted.last,
        **names,
    }
    return template.format(types=", ".join(f":{name}" for name in names)), values
