"""Deliveries to webhook endpoints, and their attempts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.deliveries import Attempt, Delivery, DeliveryStatus
from deskwire.engine.endpoint import disabled_reason
from deskwire.engine.events import StoredEvent
from deskwire.engine.ids import Mint
from deskwire.storage.delivery_log import FAILED
from deskwire.storage.events import EVENT_COLUMNS, event_of

_DELIVERY: Final = "d.position, d.id, d.endpoint, d.lane, d.previous, d.attempts, d.due_at, d.created_at"
_DELIVERY_WIDTH: Final = len(_DELIVERY.split(", "))


class DeliveryReads:
    """Queries on what is to be delivered; the methods are those of `ports.Reader`."""

    conn: sqlite3.Connection

    def pending_deliveries(self, endpoint: int, after: int, limit: int) -> Sequence[Delivery]:
        rows = self.conn.execute(
            f"SELECT {_DELIVERY}, {EVENT_COLUMNS} FROM deliveries d JOIN events e ON e.position = d.event "
            "WHERE d.endpoint = ? AND d.status = 'pending' AND d.position > ? ORDER BY d.position LIMIT ?",
            (endpoint, after, limit),
        )
        return [_delivery_of(row) for row in rows]


class DeliveryWrites:
    """Changes of deliveries; the methods are those of `ports.Transaction`."""

    conn: sqlite3.Connection
    deliveries: list[Delivery]

    def start_deliveries(self) -> None:
        """Go on behind what is stored."""
        sql = "SELECT position, id FROM deliveries ORDER BY position DESC LIMIT 1"
        row = self.conn.execute(sql).fetchone()
        self._delivery_position: int = row[0] if row else 0
        self._delivery_ids = Mint(row[1] if row else None)

    def insert_delivery(
        self, endpoint: int, event: StoredEvent, previous: int | None, at: int, *, skipped: str | None = None
    ) -> Delivery:
        return self._insert_delivery(endpoint, event, event.conversation, previous, at, skipped=skipped)

    def redeliver(self, position: int, at: int) -> Delivery | None:
        row = self.conn.execute(
            f"SELECT d.endpoint, d.lane, d.previous, {EVENT_COLUMNS} "
            "FROM deliveries d JOIN events e ON e.position = d.event WHERE d.position = ?",
            (position,),
        ).fetchone()
        if row is None:
            return None
        endpoint, lane, previous, *event = row
        again = self._insert_delivery(endpoint, event_of(event), lane, previous, at, redelivery_of=position)
        self.conn.execute(
            "UPDATE deliveries SET redelivered_as = ? WHERE position = ?", (again.position, position)
        )
        return again

    def recover(self, endpoint: int, after: str, at: int, limit: int) -> int:
        found = self.conn.execute(
            "SELECT d.position FROM deliveries d JOIN events e ON e.position = d.event "
            f"WHERE {FAILED} AND d.event_id > ? ORDER BY d.event, d.position LIMIT ?",
            (endpoint, after, limit),
        ).fetchall()
        for (position,) in found:
            self.redeliver(position, at)
        return len(found)

    def record_attempt(
        self, delivery: Delivery, attempt: Attempt, status: DeliveryStatus, due_at: int, reason: str | None
    ) -> bool:
        ended = None if status == "pending" else attempt.at + attempt.latency_ms
        changed = self.conn.execute(
            "UPDATE deliveries SET status = ?, attempts = ?, due_at = ?, ended_at = ?, reason = ? "
            "WHERE position = ? AND status = 'pending'",
            (status, attempt.number, due_at, ended, reason, delivery.position),
        ).rowcount
        if not changed:
            return False
        self.conn.execute(
            "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                delivery.position,
                attempt.number,
                attempt.at,
                attempt.latency_ms,
                attempt.status,
                attempt.error,
                attempt.answer,
            ),
        )
        return True

    def end_delivery(self, delivery: Delivery, status: DeliveryStatus, reason: str, at: int) -> bool:
        changed = self.conn.execute(
            "UPDATE deliveries SET status = ?, reason = ?, ended_at = ? WHERE position = ? AND status = 'pending'",
            (status, reason, at, delivery.position),
        ).rowcount
        return bool(changed)

    def close_deliveries(self, endpoint: int, at: int, limit: int) -> int:
        row = self.conn.execute(
            "SELECT status, status_reason FROM endpoints WHERE rowid = ?", (endpoint,)
        ).fetchone()
        match row:
            case ("disabled", reason):
                return self._skip_pending(endpoint, disabled_reason(reason), at, limit)
            case ("removed", _):
                return self._delete_some(endpoint, limit) or self._delete_endpoint(endpoint)
        return 0

    def erase_deliveries(self, conversation: int) -> None:
        """Remove all deliveries of a conversation's events, also of events that were pruned before."""
        chosen = "SELECT position FROM deliveries WHERE lane = ?"
        self.conn.execute(f"DELETE FROM attempts WHERE delivery IN ({chosen})", (conversation,))
        self.conn.execute("DELETE FROM deliveries WHERE lane = ?", (conversation,))
        self.deliveries[:] = [delivery for delivery in self.deliveries if delivery.lane != conversation]

    def drop_without_event(self, upto: int, at: int) -> None:
        """Drop what is pending for events up to this position that are no longer there."""
        self.conn.execute(
            "UPDATE deliveries SET status = 'dropped', reason = 'the event is no longer stored', ended_at = ?1 "
            "WHERE position IN (SELECT d.position FROM endpoints e JOIN deliveries d "
            "ON d.endpoint = e.rowid AND d.status = 'pending' AND d.event <= ?2 "
            "WHERE NOT EXISTS (SELECT 1 FROM events v WHERE v.position = d.event))",
            (at, upto),
        )

    def prune_deliveries(self, older_than: int, limit: int) -> int:
        rows = self.conn.execute(
            "SELECT position, created_at, status FROM deliveries ORDER BY position LIMIT ?", (limit,)
        ).fetchall()
        return self._delete([row[0] for row in rows if row[1] < older_than and row[2] != "pending"])

    def _insert_delivery(
        self,
        endpoint: int,
        event: StoredEvent,
        lane: int | None,
        previous: int | None,
        at: int,
        *,
        skipped: str | None = None,
        redelivery_of: int | None = None,
    ) -> Delivery:
        self._delivery_position += 1
        position, delivery_id = self._delivery_position, self._delivery_ids.new("dlv", at)
        delivery = Delivery(position, delivery_id, endpoint, event, lane, previous, 0, at, at)
        status, ended = ("pending", None) if skipped is None else ("skipped", at)
        self.conn.execute(
            "INSERT INTO deliveries (position, id, endpoint, event, lane, previous, status, attempts, due_at, "
            "created_at, ended_at, reason, event_id, type, sequence, redelivery_of) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                position,
                delivery_id,
                endpoint,
                event.position,
                lane,
                previous,
                status,
                at,
                at,
                ended,
                skipped,
                event.id,
                event.type,
                event.sequence,
                redelivery_of,
            ),
        )
        if skipped is None:
            self.deliveries.append(delivery)
        return delivery

    def _skip_pending(self, endpoint: int, reason: str, at: int, limit: int) -> int:
        return self.conn.execute(
            "UPDATE deliveries SET status = 'skipped', reason = ?, ended_at = ? WHERE position IN "
            "(SELECT position FROM deliveries WHERE endpoint = ? AND status = 'pending' LIMIT ?)",
            (reason, at, endpoint, limit),
        ).rowcount

    def _delete_some(self, endpoint: int, limit: int) -> int:
        rows = self.conn.execute(
            "SELECT position FROM deliveries WHERE endpoint = ? LIMIT ?", (endpoint, limit)
        ).fetchall()
        return self._delete([row[0] for row in rows])

    def _delete(self, positions: Sequence[int]) -> int:
        if positions:
            marks = ", ".join("?" for _ in positions)
            self.conn.execute(f"DELETE FROM attempts WHERE delivery IN ({marks})", positions)
            self.conn.execute(f"DELETE FROM deliveries WHERE position IN ({marks})", positions)
        return len(positions)

    def _delete_endpoint(self, endpoint: int) -> int:
        self.conn.execute("DELETE FROM endpoints WHERE rowid = ?", (endpoint,))
        return 0


def _delivery_of(row: Sequence[Any]) -> Delivery:
    position, delivery_id, endpoint, lane, previous, attempts, due_at, created_at = row[:_DELIVERY_WIDTH]
    event = event_of(row[_DELIVERY_WIDTH:])
    return Delivery(position, delivery_id, endpoint, event, lane, previous, attempts, due_at, created_at)
