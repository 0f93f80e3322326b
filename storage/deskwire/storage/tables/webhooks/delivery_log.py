"""The delivery log: the outcome of each delivery, with its attempts (decisions 6)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

import orjson

from deskwire.engine.webhooks.delivery import Attempt, DeliveryFilter, DeliveryRecord, DeliveryStatus
from deskwire.engine.webhooks.outcome import Outcome, Sequences
from deskwire.storage.tables.base import Queries

_STATUSES: Final = get_args(DeliveryStatus)
_RECORD: Final = (
    "d.position, d.id, w.id, d.event_id, d.type, c.id, d.sequence, d.status, d.reason, d.due_at, "
    "o.id, a.id, d.created_at, d.ended_at, e.body"
)
_JOINED: Final = (
    "deliveries d JOIN endpoints w ON w.rowid = d.endpoint "
    "LEFT JOIN conversations c ON c.rowid = d.lane "
    "LEFT JOIN deliveries o ON o.position = d.redelivery_of "
    "LEFT JOIN deliveries a ON a.position = d.redelivered_as "
    "LEFT JOIN events e ON e.position = d.event AND c.rowid IS NULL"  # a deletion names its conversation itself
)
_LARGEST: Final = (1 << 63) - 1
FAILED: Final = "d.endpoint = ? AND d.status IN ('dropped', 'skipped') AND d.redelivered_as IS NULL"
"""A condition on deliveries `d`: of this endpoint, not delivered, and not repeated."""


_OUTCOME: Final = (
    "SELECT d.position, d.endpoint, d.sequence, d.event_id, e.created_at, d.status, d.reason, d.attempts, a.status, "
    "a.error, d.due_at, d.ended_at, d.missed FROM deliveries d "
    "JOIN endpoints w ON w.rowid = d.endpoint AND w.status != 'removed' "
    "LEFT JOIN events e ON e.position = d.event "
    "LEFT JOIN attempts a ON a.delivery = d.position "
    "AND a.number = (SELECT max(number) FROM attempts WHERE delivery = d.position) "
)
_COUNTS: Final = (
    "(d.redelivered_as IS NULL OR d.status = 'delivered') AND (d.redelivery_of IS NULL OR NOT EXISTS ("
    "WITH RECURSIVE earlier(position) AS (SELECT d.redelivery_of UNION SELECT r.redelivery_of FROM deliveries r "
    "JOIN earlier ON r.position = earlier.position WHERE r.redelivery_of IS NOT NULL) "
    "SELECT 1 FROM deliveries x JOIN earlier ON x.position = earlier.position WHERE x.status = 'delivered'))"
)
"""A condition on deliveries `d`: of those of an event to an endpoint, the first that arrived, else the last."""


class DeliveryLogReads(Queries):
    """Queries on the delivery log; the methods are those of `ports.Reader`."""

    @abstractmethod
    def delivery_position(self, project: int, delivery_id: str) -> int | None:
        """Find a delivery's position."""

    def delivery_records(
        self, endpoint: int, wanted: DeliveryFilter, before: int | None, limit: int
    ) -> Sequence[DeliveryRecord]:
        chosen, arguments = _chosen(endpoint, wanted, before, limit)
        return self._records(
            f"SELECT {_RECORD} FROM {_JOINED} WHERE d.position IN ({chosen}) ORDER BY d.position DESC LIMIT ?",
            (*arguments, limit),
        )

    def delivery_record(self, project: int, delivery_id: str) -> DeliveryRecord | None:
        position = self.delivery_position(project, delivery_id)
        if position is None:
            return None
        sql = f"SELECT {_RECORD} FROM {_JOINED} WHERE d.position = ? AND w.project = ? AND w.status != 'removed'"
        return next(iter(self._records(sql, (position, project))), None)

    def conversation_id(self, conversation: int) -> str | None:
        row = self.conn.execute("SELECT id FROM conversations WHERE rowid = ?", (conversation,)).fetchone()
        return None if row is None else row[0]

    def outcomes(
        self, conversation: int, wanted: Sequences, before: tuple[int, int] | None, limit: int
    ) -> Sequence[Outcome]:
        last = (_LARGEST, _LARGEST) if wanted.last is None else (wanted.last + 1, 0)
        rows = self.conn.execute(
            f"{_OUTCOME} WHERE d.lane = ? AND d.sequence >= ? AND (d.sequence, d.position) < (?, ?) "
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

    def _records(self, sql: str, arguments: Sequence[Any]) -> list[DeliveryRecord]:
        rows = self.conn.execute(sql, arguments).fetchall()
        attempts = self._attempts([row[0] for row in rows])
        return [_record_of(row, attempts) for row in rows]

    def _attempts(self, positions: Sequence[int]) -> Mapping[int, list[Attempt]]:
        if not positions:
            return {}
        marks = ", ".join("?" for _ in positions)
        rows = self.conn.execute(
            "SELECT delivery, number, at, latency_ms, status, error, answer FROM attempts "
            f"WHERE delivery IN ({marks}) ORDER BY delivery, number",
            positions,
        )
        found: dict[int, list[Attempt]] = {position: [] for position in positions}
        for position, *fields in rows:
            found[position].append(Attempt(*fields))
        return found


def _chosen(
    endpoint: int, wanted: DeliveryFilter, before: int | None, limit: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the positions of the newest that fit, up to `limit` of each status, each from its own index range."""
    where, arguments = ["endpoint = ?"], [endpoint]
    for condition, value in _conditions(wanted, before):
        where.append(condition)
        arguments.append(value)
    if wanted.conversation_id is not None:  # by lane, of which there are few
        return f"SELECT position FROM deliveries WHERE {' AND '.join(where)}", tuple(arguments)
    statuses = [wanted.status] if wanted.status else _STATUSES
    one = (
        f"SELECT * FROM (SELECT position FROM deliveries WHERE {' AND '.join(where)} AND status = ? "
        "ORDER BY position DESC LIMIT ?) AS newest"
    )
    each = [(*arguments, status, limit) for status in statuses]
    return " UNION ALL ".join([one] * len(each)), tuple(value for some in each for value in some)


def _conditions(wanted: DeliveryFilter, before: int | None) -> list[tuple[str, Any]]:
    conditions = (
        ("position < ?", before),
        ("type = ?", wanted.event_type),
        ("created_at >= ?", wanted.since),
        ("created_at < ?", wanted.until),
        ("lane = (SELECT rowid FROM conversations WHERE id = ?)", wanted.conversation_id),
        ("status = ?", wanted.status if wanted.conversation_id else None),
    )
    return [(condition, value) for condition, value in conditions if value is not None]


def _record_of(row: Sequence[Any], attempts: Mapping[int, list[Attempt]]) -> DeliveryRecord:
    position, delivery_id, endpoint, event_id, kind, conversation, sequence, status, reason, due_at, *rest = (
        row
    )
    of, again, created_at, ended_at, body = rest
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
        of,
        again,
        created_at,
        ended_at,
    )


def _conversation_in(body: bytes | None) -> str | None:
    """Return the conversation that a deletion's envelope names."""
    if body is None:
        return None
    conversation_id: str | None = orjson.loads(body)["data"].get("conversation", {}).get("id")
    return conversation_id
