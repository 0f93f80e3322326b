"""Delivery log and delivery statistics (decisions 6)."""

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
from deskwire.engine.webhooks.outcome import Outcome, SequenceRange
from deskwire.storage.dialect import differing, either
from deskwire.storage.tables.base import Queries

_STATUSES: Final[Sequence[DeliveryStatus]] = get_args(DeliveryStatus)
_RECORD_COLUMNS: Final = (
    "d.position, d.id, w.id, d.event_id, d.type, c.id, d.sequence, d.status, d.reason, d.due_at, "
    "d.redelivery_of, d.redelivered_as, d.created_at, d.ended_at, e.body, {day[d]}"
)
_RELATED_OFFSET: Final = -6
# Ids of deliveries that repeat a record or that a record repeats. They are few, and their days are unknown.
_IDS_AT: Final = either(
    "SELECT d.position, d.id FROM {numbers} n {and_then} deliveries d ON d.position = n.value"
)

_JOINED: Final = (
    "JOIN endpoints w ON w.rowid = d.endpoint "
    "LEFT JOIN conversations c ON c.rowid = d.lane "
    "LEFT JOIN events e ON e.position = d.event AND c.rowid IS NULL"  # a deletion names its conversation itself
)
_LIST_RECORDS: Final = either(f"SELECT {_RECORD_COLUMNS} FROM {{placed}} {_JOINED} ORDER BY d.position DESC")
_RECORD_AT: Final = either(
    f"SELECT {_RECORD_COLUMNS} FROM deliveries d {_JOINED} "
    "WHERE d.position = {hidden} {of_day_or_none} AND w.project = ? AND w.status != 'removed'"
)
_POSITION_MAX: Final = (1 << 63) - 1
# Deliveries of each status that one search examines, which takes 10 to 40 ms (ADR 54).
SEARCH_MAX = 10_000
# The endpoint's deliveries of a status between two positions, newest first, from the index
# `deliveries_by_status`.
#
# The row comparisons keep PostgreSQL from reading the order from the primary key, which would scan all positions.
_WITH_STATUS: Final = differing(
    sqlite="endpoint = :endpoint AND status = '{status}' AND position > :low AND position < :high {and_more} ORDER BY position DESC",
    postgres="(endpoint, status, position) > (:endpoint, '{status}', :low) AND (endpoint, status, position) < "
    "(:endpoint, '{status}', :high) {and_more} ORDER BY endpoint DESC, status DESC, position DESC",
)
# Condition on deliveries `d`: of this endpoint, not delivered, and not redelivered.
FAILED: Final = "d.endpoint = ? AND d.status IN ('dropped', 'skipped') AND d.redelivered_as IS NULL"


_OUTCOMES: Final = either(
    "SELECT d.position, d.endpoint, d.sequence, d.event_id, e.created_at, d.status, d.reason, d.attempts, a.status, "
    "a.error, d.due_at, d.ended_at, d.missed FROM deliveries d "
    "JOIN endpoints w ON w.rowid = d.endpoint AND w.status != 'removed' "
    "LEFT JOIN events e ON e.position = d.event "
    "LEFT JOIN attempts a ON a.delivery = d.position {same_day[a]} "
    "AND a.number = (SELECT max(x.number) FROM attempts x WHERE x.delivery = d.position {same_day[x]}) "
)
# Condition on deliveries `d`: of an event's deliveries to an endpoint, the first that arrived, else the
# newest.
_IS_OUTCOME: Final = (
    "(d.redelivered_as IS NULL OR d.status = 'delivered') AND (d.redelivery_of IS NULL OR NOT EXISTS ("
    "WITH RECURSIVE earlier(position) AS (SELECT d.redelivery_of UNION SELECT r.redelivery_of FROM deliveries r "
    "JOIN earlier ON r.position = earlier.position WHERE r.redelivery_of IS NOT NULL) "
    "SELECT 1 FROM deliveries x JOIN earlier ON x.position = earlier.position WHERE x.status = 'delivered'))"
)


_CREATED_AT: Final = either("SELECT created_at FROM deliveries WHERE position = ? {of_day}")
_IN_RANGE: Final = "endpoint = :endpoint AND position > :low AND position < :high"
_CONDITIONS: Final = {
    "type": "AND type = :type",
    "since": "AND created_at >= :since",
    "until": "AND created_at < :until",
    "conversation": "AND lane = (SELECT rowid FROM conversations WHERE id = :conversation)",
    "status": "AND status = :status",
}


class DeliveryPositions(Queries):
    """Queries for positions in the delivery log, which depend on the database."""

    def delivery_positions_before(self, project: int, times: Sequence[int]) -> list[int]:
        """Return `delivery_position_before` for each of these times (ms)."""
        return [self.delivery_position_before(project, at) for at in times]

    @abstractmethod
    def delivery_position(self, project: int, delivery_id: str) -> int | None:
        """Return a delivery's position, None if there is no such delivery."""

    @abstractmethod
    def delivery_position_before(self, project: int, at: int) -> int:
        """Return the position before the first delivery since this time (ms)."""


class DeliveryLogReads(DeliveryPositions):
    """Queries on the delivery log; see `ports.Reader`."""

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
        else:  # by lane: a conversation has few deliveries
            parts = [f"SELECT {keys} FROM deliveries WHERE {_IN_RANGE} {_conditions(wanted)}"]
        chosen = f"{' UNION ALL '.join(parts)} ORDER BY position DESC LIMIT :limit"
        found = self.conn.execute(chosen, values).fetchall()
        return FoundDeliveries(
            self._records(_LIST_RECORDS[self.dialect], self.dialect.placed(found)), reached
        )

    def delivery_record(self, project: int, delivery_id: str) -> DeliveryRecord | None:
        position = self.delivery_position(project, delivery_id)
        if position is None:
            return None
        values = (position, *self.dialect.day_of(delivery_id), project)
        return next(iter(self._records(_RECORD_AT[self.dialect], values)), None)

    def conversation_id(self, conversation: int) -> str | None:
        row = self.conn.execute("SELECT id FROM conversations WHERE rowid = ?", (conversation,)).fetchone()
        return None if row is None else row[0]

    def outcomes(
        self, conversation: int, wanted: SequenceRange, before: tuple[int, int] | None, limit: int
    ) -> Sequence[Outcome]:
        last = (_POSITION_MAX, _POSITION_MAX) if wanted.last is None else (wanted.last + 1, 0)
        rows = self.conn.execute(
            f"{_OUTCOMES[self.dialect]} WHERE d.lane = ? AND d.sequence >= ? AND (d.sequence, d.position) < (?, ?) "
            f"AND d.event_id IS NOT NULL AND {_IS_OUTCOME} ORDER BY d.sequence DESC, d.position DESC LIMIT ?",
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
        """Return the range of positions for the filter and cursor, ends excluded."""
        low = 0 if wanted.since is None else self.delivery_position_before(project, wanted.since)
        high = _POSITION_MAX if before is None else before
        if wanted.until is not None:
            high = min(high, self.delivery_position_before(project, wanted.until) + 1)
        return low, high

    def _status_conditions(self, wanted: DeliveryFilter, and_more: str = "") -> list[str]:
        """Return a condition with ORDER BY for each status of the filter."""
        statuses = _STATUSES if wanted.status is None else [wanted.status]
        return [_WITH_STATUS[self.dialect].format(status=each, and_more=and_more) for each in statuses]

    def _search_end(self, wanted: DeliveryFilter, values: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return position and time where a search stops; None if it completes."""
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
        (at,) = self.conn.execute(_CREATED_AT[self.dialect], newest).fetchone()
        return newest[0], at

    def _records(self, sql: str, arguments: Sequence[Any]) -> list[DeliveryRecord]:
        rows = self.conn.execute(sql, arguments).fetchall()
        attempts = self._attempts([(row[0], row[-1]) for row in rows])
        ids = self._ids({each for row in rows for each in row[_RELATED_OFFSET:][:2] if each is not None})
        return [_record_of(row, attempts, ids) for row in rows]

    def _ids(self, positions: Collection[int]) -> Mapping[int, str]:
        if not positions:
            return {}
        listed = self.dialect.listed(sorted(positions))
        return dict(self.conn.execute(_IDS_AT[self.dialect], (listed,)).fetchall())

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
    """Return the conditions that the index does not cover, in a fixed order.

    With a fixed order there is one statement for each set of filters.
    """
    return " ".join(_CONDITIONS[name] for name in _values(wanted))


def _values(wanted: DeliveryFilter) -> dict[str, Any]:
    """Return the values of the filter's conditions."""
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
    """Return the conversation id in a deletion event's envelope."""
    if body is None:
        return None
    conversation_id: str | None = orjson.loads(body)["data"].get("conversation", {}).get("id")
    return conversation_id


# Number of deliveries of a status in ranges of positions, each range without its first position.
#
# Each range is counted separately: a GROUP BY would sort all rows, which took SQLite 3.9 s for a million
# instead of 0.2 s.
_COUNT_RANGES: Final = either(
    "SELECT p.number, p.text, (SELECT count(*) FROM deliveries d WHERE d.endpoint = ? AND d.status = ? "
    "{in_span} AND d.position > p.number AND d.position <= CAST(p.text AS bigint)) FROM {spans} p"
)
_FOREVER_MS: Final = 1 << 48
_LATENCIES: Final = (
    "SELECT ended_at - created_at FROM deliveries WHERE endpoint = ? AND status = 'delivered' AND position > ? "
    "AND position <= ? ORDER BY position DESC LIMIT ?"
)


class DeliveryFigureReads(DeliveryPositions):
    """Delivery statistics by time; see `ports.Reader`."""

    def delivery_figures(
        self, project: int, endpoint: int, starts: Sequence[int], until: int | None
    ) -> Figures:
        times = [*starts] if until is None else [*starts, until]
        bounds = self.delivery_positions_before(project, times)
        end = _POSITION_MAX if until is None else bounds.pop()
        ranges = [(low, str(high)) for low, high in pairwise([*bounds, end])]
        spans = self.dialect.spanned(ranges, [*starts, _FOREVER_MS if until is None else until])
        counts = {status: self._deliveries_in(endpoint, status, spans) for status in _STATUSES}
        took = self.conn.execute(_LATENCIES, (endpoint, bounds[0], end, LATENCY_SAMPLE_MAX)).fetchall()
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
        return {
            (low, high): count for low, high, count in self.conn.execute(_COUNT_RANGES[self.dialect], values)
        }
