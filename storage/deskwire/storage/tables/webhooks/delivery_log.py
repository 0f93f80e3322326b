"""The delivery log: the outcome of each delivery, with its attempts (decisions 6)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, get_args

import orjson

from deskwire.engine.webhooks.delivery import (
    Attempt,
    DeliveryFilter,
    DeliveryRecord,
    DeliveryStatus,
    FoundDeliveries,
)
from deskwire.engine.webhooks.figures import LATENCY_SAMPLE_MAX, BucketCounts, Figures
from deskwire.engine.webhooks.outcome import Outcome, Sequences
from deskwire.storage.dialect import differing, either
from deskwire.storage.tables.base import Queries

_STATUSES: Final[Sequence[DeliveryStatus]] = get_args(DeliveryStatus)
_RECORD: Final = (
    "d.position, d.id, w.id, d.event_id, d.type, c.id, d.sequence, d.status, d.reason, d.due_at, "
    "d.redelivery_of, d.redelivered_as, d.created_at, d.ended_at, e.body, {day[d]}"
)
_OTHERS_AT: Final = -6
_IDS: Final = either(
    "SELECT d.position, d.id FROM {numbers} n {and_then} deliveries d ON d.position = n.value"
)
"""The ids of deliveries that a record names as its repetition or its original. They are few, and their days are unknown."""

_JOINED: Final = (
    "JOIN endpoints w ON w.rowid = d.endpoint "
    "LEFT JOIN conversations c ON c.rowid = d.lane "
    "LEFT JOIN events e ON e.position = d.event AND c.rowid IS NULL"  # a deletion names its conversation itself
)
_LISTED: Final = either(f"SELECT {_RECORD} FROM {{placed}} {_JOINED} ORDER BY d.position DESC")
_ONE: Final = either(
    f"SELECT {_RECORD} FROM deliveries d {_JOINED} "
    "WHERE d.position = {hidden} {of_day_or_none} AND w.project = ? AND w.status != 'removed'"
)
_LARGEST: Final = (1 << 63) - 1
SEARCH_MAX = 10_000
"""The deliveries of each status that one search looks at, which takes it 10 to 40 ms (ADR 54)."""
_OF_STATUS: Final = differing(
    sqlite="endpoint = :endpoint AND status = '{status}' AND position > :low AND position < :high {and_more} ORDER BY position DESC",
    postgres="(endpoint, status, position) > (:endpoint, '{status}', :low) AND (endpoint, status, position) < "
    "(:endpoint, '{status}', :high) {and_more} ORDER BY endpoint DESC, status DESC, position DESC",
)
"""The endpoint's deliveries of a status between two positions, newest first, from `deliveries_by_status`.

That PostgreSQL could read the order from the primary key has to be hidden from it: it would walk through all positions.
"""
FAILED: Final = "d.endpoint = ? AND d.status IN ('dropped', 'skipped') AND d.redelivered_as IS NULL"
"""A condition on deliveries `d`: of this endpoint, not delivered, and not repeated."""


_OUTCOME: Final = either(
    "SELECT d.position, d.endpoint, d.sequence, d.event_id, e.created_at, d.status, d.reason, d.attempts, a.status, "
    "a.error, d.due_at, d.ended_at, d.missed FROM deliveries d "
    "JOIN endpoints w ON w.rowid = d.endpoint AND w.status != 'removed' "
    "LEFT JOIN events e ON e.position = d.event "
    "LEFT JOIN attempts a ON a.delivery = d.position {same_day[a]} "
    "AND a.number = (SELECT max(x.number) FROM attempts x WHERE x.delivery = d.position {same_day[x]}) "
)
_COUNTS: Final = (
    "(d.redelivered_as IS NULL OR d.status = 'delivered') AND (d.redelivery_of IS NULL OR NOT EXISTS ("
    "WITH RECURSIVE earlier(position) AS (SELECT d.redelivery_of UNION SELECT r.redelivery_of FROM deliveries r "
    "JOIN earlier ON r.position = earlier.position WHERE r.redelivery_of IS NOT NULL) "
    "SELECT 1 FROM deliveries x JOIN earlier ON x.position = earlier.position WHERE x.status = 'delivered'))"
)
"""A condition on deliveries `d`: of those of an event to an endpoint, the first that arrived, else the last."""


_MADE_AT: Final = either("SELECT created_at FROM deliveries WHERE position = ? {of_day}")
_LANE: Final = "endpoint = :endpoint AND position > :low AND position < :high"
_CONDITIONS: Final = {
    "type": "AND type = :type",
    "since": "AND created_at >= :since",
    "until": "AND created_at < :until",
    "conversation": "AND lane = (SELECT rowid FROM conversations WHERE id = :conversation)",
    "status": "AND status = :status",
}


class DeliveryPositions(Queries):
    """Queries for the places of deliveries in the log, which each database finds in its own way."""

    def delivery_positions_before(self, project: int, times: Sequence[int]) -> list[int]:
        """Return `delivery_position_before` for each of these times (ms)."""
        return [self.delivery_position_before(project, at) for at in times]

    @abstractmethod
    def delivery_position(self, project: int, delivery_id: str) -> int | None:
        """Find a delivery's position."""

    @abstractmethod
    def delivery_position_before(self, project: int, at: int) -> int:
        """Return the position up to which no delivery was made at this time (ms) or later."""


class DeliveryLogReads(DeliveryPositions):
    """Queries on the delivery log; the methods are those of `ports.Reader`."""

    def delivery_records(
        self, project: int, endpoint: int, wanted: DeliveryFilter, before: int | None, limit: int
    ) -> FoundDeliveries:
        low, high = self._position_range(project, wanted, before)
        values = {**_values(wanted), "endpoint": endpoint, "low": low, "high": high, "limit": limit}
        reached, keys = None, self.dialect.text("{keys}")
        if wanted.event_type is not None and wanted.conversation_id is None:
            reached = self._search_end(wanted, values)
            values["low"] = low if reached is None else reached[0] - 1
        if wanted.conversation_id is None:
            parts = [
                f"SELECT * FROM (SELECT {keys} FROM deliveries WHERE {each} LIMIT :limit) AS newest"
                for each in self._status_conditions(wanted, _conditions(wanted))
            ]
        else:  # by lane, of which there are few
            parts = [f"SELECT {keys} FROM deliveries WHERE {_LANE} {_conditions(wanted)}"]
        chosen = f"{' UNION ALL '.join(parts)} ORDER BY position DESC LIMIT :limit"
        found = self.conn.execute(chosen, values).fetchall()
        return FoundDeliveries(self._records(_LISTED[self.dialect], self.dialect.placed(found)), reached)

    def delivery_record(self, project: int, delivery_id: str) -> DeliveryRecord | None:
        position = self.delivery_position(project, delivery_id)
        if position is None:
            return None
        values = (position, *self.dialect.day_of(delivery_id), project)
        return next(iter(self._records(_ONE[self.dialect], values)), None)

    def conversation_id(self, conversation: int) -> str | None:
        row = self.conn.execute("SELECT id FROM conversations WHERE rowid = ?", (conversation,)).fetchone()
        return None if row is None else row[0]

    def outcomes(
        self, conversation: int, wanted: Sequences, before: tuple[int, int] | None, limit: int
    ) -> Sequence[Outcome]:
        last = (_LARGEST, _LARGEST) if wanted.last is None else (wanted.last + 1, 0)
        rows = self.conn.execute(
            f"{_OUTCOME[self.dialect]} WHERE d.lane = ? AND d.sequence >= ? AND (d.sequence, d.position) < (?, ?) "
            f"AND d.event_id IS NOT NULL AND {_COUNTS} ORDER BY d.sequence DESC, d.position DESC LIMIT ?",
            (conversation, wanted.first or 1, *min(last, before or last), limit),
        )
        return [Outcome(*row) for row in rows]

    def recoverable(self, endpoint: int, after: str) -> tuple[int, int]:
        stored, gone = self.conn.execute(
            "SELECT count(e.position), count(*) - count(e.position) "
            f"FROM deliveries d LEFT JOIN events e ON e.position = d.event WHERE {FAILED} AND d.event_id > ?",
            (endpoint, after),
        ).fetchone()
        return stored, gone

    def _position_range(self, project: int, wanted: DeliveryFilter, before: int | None) -> tuple[int, int]:
        """Return the positions between which lies what the times and the cursor leave, both excluded."""
        low = 0 if wanted.since is None else self.delivery_position_before(project, wanted.since)
        high = _LARGEST if before is None else before
        if wanted.until is not None:
            high = min(high, self.delivery_position_before(project, wanted.until) + 1)
        return low, high

    def _status_conditions(self, wanted: DeliveryFilter, and_more: str = "") -> list[str]:
        """Return a condition, with its order, for each status that is wanted."""
        statuses = _STATUSES if wanted.status is None else [wanted.status]
        return [_OF_STATUS[self.dialect].format(status=each, and_more=and_more) for each in statuses]

    def _search_end(self, wanted: DeliveryFilter, values: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return position and time of the delivery at which a search stops; None if it gets through."""
        ends = [
            row
            for each in self._status_conditions(wanted)
            for row in self.conn.execute(
                self.dialect.text(f"SELECT {{keys}} FROM deliveries WHERE {each} LIMIT 1 OFFSET :skipped"),
                {**values, "skipped": SEARCH_MAX - 1},
            )
        ]
        if not ends:
            return None
        newest = max(ends)
        (at,) = self.conn.execute(_MADE_AT[self.dialect], newest).fetchone()
        return newest[0], at

    def _records(self, sql: str, arguments: Sequence[Any]) -> list[DeliveryRecord]:
        rows = self.conn.execute(sql, arguments).fetchall()
        attempts = self._attempts([(row[0], row[-1]) for row in rows])
        ids = self._ids({each for row in rows for each in row[_OTHERS_AT:][:2] if each is not None})
        return [_record_of(row, attempts, ids) for row in rows]

    def _ids(self, positions: Collection[int]) -> Mapping[int, str]:
        if not positions:
            return {}
        listed = self.dialect.listed(sorted(positions))
        return dict(self.conn.execute(_IDS[self.dialect], (listed,)).fetchall())

    def _attempts(self, keys: Sequence[Sequence[int]]) -> Mapping[int, list[Attempt]]:
        if not keys:
            return {}
        condition, values = self.dialect.among("delivery", keys)
        rows = self.conn.execute(
            "SELECT delivery, number, at, latency_ms, status, error, answer FROM attempts "
            f"WHERE {condition} ORDER BY delivery, number",
            values,
        )
        found: dict[int, list[Attempt]] = {position: [] for position, _ in keys}
        for position, *fields in rows:
            found[position].append(Attempt(*fields))
        return found


def _conditions(wanted: DeliveryFilter) -> str:
    """Return the conditions that the index does not answer, in a fixed order: there is one statement for each set of filters."""
    return " ".join(_CONDITIONS[name] for name in _values(wanted))


def _values(wanted: DeliveryFilter) -> dict[str, Any]:
    """Return the values of the conditions that there are."""
    values = {
        "type": wanted.event_type,
        "since": wanted.since,
        "until": wanted.until,
        "conversation": wanted.conversation_id,
        "status": wanted.status if wanted.conversation_id else None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _record_of(
    row: Sequence[Any], attempts: Mapping[int, list[Attempt]], ids: Mapping[int, str]
) -> DeliveryRecord:
    position, delivery_id, endpoint, event_id, kind, conversation, sequence, status, reason, due_at, *rest = (
        row
    )
    of, again, created_at, ended_at, body, _ = rest
    return DeliveryRecord(
        position,
        delivery_id,
        endpoint,
        event_id,
        kind,
        conversation or _conversation_in(body),
        sequence,
        status,
        reason,
        attempts[position],
        due_at,
        ids.get(of),
        ids.get(again),
        created_at,
        ended_at,
    )


def _conversation_in(body: bytes | None) -> str | None:
    """Return the conversation that a deletion's envelope names."""
    if body is None:
        return None
    conversation_id: str | None = orjson.loads(body)["data"].get("conversation", {}).get("id")
    return conversation_id


_COUNTED: Final = either(
    "SELECT p.number, p.text, (SELECT count(*) FROM deliveries d WHERE d.endpoint = ? AND d.status = ? "
    "{in_span} AND d.position > p.number AND d.position <= CAST(p.text AS bigint)) FROM {spans} p"
)
"""The deliveries of a status in ranges of positions, each from behind its first one to its last.

Each range is counted by itself: grouping their rows would sort all of them, which took SQLite 3.9 s for a million, not 0.2.
"""
_FOREVER_MS: Final = 1 << 48
_TOOK: Final = (
    "SELECT ended_at - created_at FROM deliveries WHERE endpoint = ? AND status = 'delivered' AND position > ? "
    "AND position <= ? ORDER BY position DESC LIMIT ?"
)


class DeliveryFigureReads(DeliveryPositions):
    """Queries on deliveries by time; the methods are those of `ports.Reader`."""

    def delivery_figures(
        self, project: int, endpoint: int, starts: Sequence[int], until: int | None
    ) -> Figures:
        times = [*starts] if until is None else [*starts, until]
        bounds = self.delivery_positions_before(project, times)
        end = _LARGEST if until is None else bounds.pop()
        ranges = [(low, str(high)) for low, high in pairwise([*bounds, end])]
        spans = self.dialect.spanned(ranges, [*starts, _FOREVER_MS if until is None else until])
        counts = {status: self._deliveries_in(endpoint, status, spans) for status in _STATUSES}
        took = self.conn.execute(_TOOK, (endpoint, bounds[0], end, LATENCY_SAMPLE_MAX)).fetchall()
        return Figures(
            [
                BucketCounts(at, {status: counts[status].get(part, 0) for status in _STATUSES})
                for at, part in zip(starts, ranges, strict=True)
            ],
            [max(0, ms) for (ms,) in took],
        )

    def dropped_since(self, project: int, endpoint: int, since: int, bound: int) -> int:
        (count,) = self.conn.execute(
            "SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE endpoint = ? AND status = 'dropped' AND position > ? "
            "AND redelivered_as IS NULL LIMIT ?) AS dropped",
            (endpoint, self.delivery_position_before(project, since), bound),
        ).fetchone()
        return int(count)

    def _deliveries_in(
        self, endpoint: int, status: DeliveryStatus, spans: Sequence[Any]
    ) -> dict[tuple[int, str], int]:
        values = (endpoint, status, *spans)
        return {(low, high): count for low, high, count in self.conn.execute(_COUNTED[self.dialect], values)}
