"""Replays: the events of one conversation for one endpoint, and the newest delivery of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.webhooks.replay import Replayable, Replayed
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.events.events import EVENT_COLUMNS, event_of
from deskwire.storage.tables.webhooks.deliveries import DeliveryWrites

_LARGEST: Final = (1 << 63) - 1
_OF_EVENT: Final = "d.lane = e.conversation AND d.sequence = e.sequence AND d.endpoint = :endpoint"
_NEWEST: Final = f"(SELECT max(d.position) FROM deliveries d WHERE {_OF_EVENT})"
_WANTED: Final = "e.conversation = :conversation AND e.internal = 0 AND e.sequence >= :first AND e.sequence <= :last AND e.type IN ({types})"
_COUNTED: Final = (
    "SELECT count(*), count(p.position) FROM events e LEFT JOIN deliveries p "
    f"ON p.position = {_NEWEST} AND p.status = 'pending' WHERE {_WANTED}"
)
_GONE: Final = (
    "SELECT count(*) FROM deliveries d WHERE d.lane = :conversation AND d.sequence >= :first AND d.sequence <= :last "
    "AND d.endpoint = :endpoint AND d.redelivered_as IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM events e WHERE e.position = d.event)"
)
_LISTED: Final = (
    f"SELECT n.position, n.status, {EVENT_COLUMNS} FROM events e LEFT JOIN deliveries n ON n.position = {_NEWEST} "
    f"WHERE {_WANTED} ORDER BY e.sequence LIMIT :limit"
)
_PREVIOUS: Final = (
    "SELECT coalesce(max(sequence), 0) FROM deliveries WHERE lane = ? AND endpoint = ? AND sequence < ?"
)


class ReplayReads(Queries):
    """Queries on what a replay would send; the methods are those of `ports.Reader`."""

    def replayable(self, endpoint: int, conversation: int, wanted: Replayed) -> Replayable:
        if not wanted.types:
            return Replayable(0, 0, 0)
        sql, values = _asked(_COUNTED, endpoint, conversation, wanted)
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
        sql, values = _asked(_LISTED, endpoint, conversation, wanted)
        rows = self.conn.execute(sql, {**values, "limit": limit}).fetchall()
        made = sum(self._send_again(endpoint, conversation, row, at) for row in rows)
        return made, event_of(rows[-1][2:]).sequence if len(rows) == limit else None

    def _send_again(self, endpoint: int, conversation: int, row: Sequence[Any], at: int) -> bool:
        newest, status, *columns = row
        if status == "pending":
            return False
        if newest is not None:
            return self.redeliver(newest, at) is not None
        event = event_of(columns)
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
