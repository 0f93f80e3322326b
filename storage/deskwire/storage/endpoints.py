"""Webhook endpoints and the deliveries to them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from deskwire.engine.endpoint import Endpoint
from deskwire.engine.events import StoredEvent
from deskwire.engine.ids import Mint
from deskwire.engine.ports import Attempt, Delivery, DeliveryStatus
from deskwire.storage.events import EVENT_COLUMNS, event_of

_ENDPOINT: Final = (
    "rowid, id, project, url, events, sealed_secret, secret_tail, created_at, updated_at, status, description, "
    "last_delivery_at, last_delivery_status"
)
_DELIVERY: Final = "d.position, d.id, d.endpoint, d.lane, d.previous, d.attempts, d.due_at, d.created_at"
_DELIVERY_WIDTH: Final = len(_DELIVERY.split(", "))


class EndpointReads:
    """Queries on endpoints; the methods are those of `ports.Reader`."""

    conn: sqlite3.Connection

    def endpoints(self, project: int | None = None) -> Sequence[Endpoint]:
        rows = self.conn.execute(
            f"SELECT {_ENDPOINT} FROM endpoints WHERE ?1 IS NULL OR project = ?1 ORDER BY rowid", (project,)
        )
        return [_endpoint_of(row) for row in rows]

    def pending_deliveries(self, endpoint: int, after: int, limit: int) -> Sequence[Delivery]:
        rows = self.conn.execute(
            f"SELECT {_DELIVERY}, {EVENT_COLUMNS} FROM deliveries d JOIN events e ON e.position = d.event "
            "WHERE d.endpoint = ? AND d.status = 'pending' AND d.position > ? ORDER BY d.position LIMIT ?",
            (endpoint, after, limit),
        )
        return [_delivery_of(row) for row in rows]


class EndpointWrites:
    """Changes of endpoints and deliveries; the methods are those of `ports.Transaction`."""

    conn: sqlite3.Connection
    deliveries: list[Delivery]
    _enabled: dict[int, tuple[Endpoint, ...]]

    def start_deliveries(self) -> None:
        """Go on behind what is stored."""
        sql = "SELECT position, id FROM deliveries ORDER BY position DESC LIMIT 1"
        row = self.conn.execute(sql).fetchone()
        self._delivery_position: int = row[0] if row else 0
        self._delivery_ids = Mint(row[1] if row else None)
        self._enabled = {}

    def forget_endpoints(self) -> None:
        """Read the endpoints anew; after a rollback, and after every change."""
        self._enabled.clear()

    def enabled_endpoints(self, project: int) -> Sequence[Endpoint]:
        found = self._enabled.get(project)
        if found is None:
            rows = self.conn.execute(
                f"SELECT {_ENDPOINT} FROM endpoints WHERE project = ? AND status = 'enabled' ORDER BY rowid",
                (project,),
            )
            found = self._enabled[project] = tuple(_endpoint_of(row) for row in rows)
        return found

    def insert_endpoint(self, endpoint: Endpoint) -> Endpoint:
        cursor = self.conn.execute(
            f"INSERT INTO endpoints ({_ENDPOINT.removeprefix('rowid, ')}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                endpoint.id,
                endpoint.project,
                endpoint.url,
                orjson.dumps(sorted(endpoint.events)).decode(),
                endpoint.sealed_secret,
                endpoint.secret_tail,
                endpoint.created_at,
                endpoint.updated_at,
                endpoint.status,
                endpoint.description,
                endpoint.last_delivery_at,
                endpoint.last_delivery_status,
            ),
        )
        self.forget_endpoints()
        assert cursor.lastrowid is not None
        return replace(endpoint, rowid=cursor.lastrowid)

    def delete_endpoint(self, endpoint: Endpoint) -> None:
        self._delete_deliveries("endpoint = ?", endpoint.rowid)
        self.conn.execute("DELETE FROM endpoints WHERE rowid = ?", (endpoint.rowid,))
        self.deliveries[:] = [waiting for waiting in self.deliveries if waiting.endpoint != endpoint.rowid]
        self.forget_endpoints()

    def insert_delivery(self, endpoint: int, event: StoredEvent, previous: int | None, at: int) -> None:
        self._delivery_position += 1
        delivery = Delivery(
            self._delivery_position,
            self._delivery_ids.new("dlv", at),
            endpoint,
            event,
            event.conversation,
            previous,
            0,
            at,
            at,
        )
        self.conn.execute(
            "INSERT INTO deliveries (position, id, endpoint, event, lane, previous, status, attempts, due_at, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?, 'pending', 0, ?, ?)",
            (
                delivery.position,
                delivery.id,
                endpoint,
                event.position,
                delivery.lane,
                previous,
                at,
                at,
            ),
        )
        self.deliveries.append(delivery)

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
        if ended is not None:
            self._note_last(delivery.endpoint, status, ended)
        return True

    def end_delivery(self, delivery: Delivery, status: DeliveryStatus, reason: str, at: int) -> bool:
        changed = self.conn.execute(
            "UPDATE deliveries SET status = ?, reason = ?, ended_at = ? WHERE position = ? AND status = 'pending'",
            (status, reason, at, delivery.position),
        ).rowcount
        if changed:
            self._note_last(delivery.endpoint, status, at)
        return bool(changed)

    def erase_deliveries(self, conversation: int) -> None:
        """Remove all deliveries of a conversation's events, also of events that were pruned before."""
        self._delete_deliveries("lane = ?", conversation)
        self.deliveries[:] = [delivery for delivery in self.deliveries if delivery.lane != conversation]

    def prune_deliveries(self, older_than: int, limit: int) -> int:
        rows = self.conn.execute(
            "SELECT position, created_at, status FROM deliveries ORDER BY position LIMIT ?", (limit,)
        ).fetchall()
        old = [row[0] for row in rows if row[1] < older_than and row[2] != "pending"]
        if old:
            marks = ", ".join("?" for _ in old)
            self.conn.execute(f"DELETE FROM attempts WHERE delivery IN ({marks})", old)
            self.conn.execute(f"DELETE FROM deliveries WHERE position IN ({marks})", old)
        return len(old)

    def _delete_deliveries(self, condition: str, value: int) -> None:
        chosen = f"SELECT position FROM deliveries WHERE {condition}"
        self.conn.execute(f"DELETE FROM attempts WHERE delivery IN ({chosen})", (value,))
        self.conn.execute(f"DELETE FROM deliveries WHERE {condition}", (value,))

    def _note_last(self, endpoint: int, status: str, at: int) -> None:
        self.conn.execute(
            "UPDATE endpoints SET last_delivery_at = ?, last_delivery_status = ? WHERE rowid = ?",
            (at, status, endpoint),
        )


def _endpoint_of(row: Sequence[Any]) -> Endpoint:
    rowid, endpoint_id, project, url, events, *rest = row
    return Endpoint(rowid, endpoint_id, project, url, frozenset(orjson.loads(events)), *rest)


def _delivery_of(row: Sequence[Any]) -> Delivery:
    position, delivery_id, endpoint, lane, previous, attempts, due_at, created_at = row[:_DELIVERY_WIDTH]
    event = event_of(row[_DELIVERY_WIDTH:])
    return Delivery(position, delivery_id, endpoint, event, lane, previous, attempts, due_at, created_at)
