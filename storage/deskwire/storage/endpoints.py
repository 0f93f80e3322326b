"""Webhook endpoints."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from deskwire.engine.deliveries import Delivery, DeliveryStatus
from deskwire.engine.delivery.circuit import CLOSED, Circuit
from deskwire.engine.endpoint import Endpoint

_COLUMNS: Final = (
    "rowid, id, project, url, events, sealed_secret, secret_tail, created_at, updated_at, status, status_reason, "
    "description, last_delivery_at, last_delivery_status, old_secret, old_secret_until, "
    "failed_attempts, exhausted, open_until, open_reason"
)
_CIRCUIT_WIDTH: Final = 4


class EndpointReads:
    """Queries on endpoints; the methods are those of `ports.Reader`."""

    conn: sqlite3.Connection

    def endpoints(self, project: int | None = None) -> Sequence[Endpoint]:
        rows = self.conn.execute(
            f"SELECT {_COLUMNS} FROM endpoints WHERE (?1 IS NULL OR project = ?1) AND status != 'removed' "
            "ORDER BY rowid",
            (project,),
        )
        return [_endpoint_of(row) for row in rows]

    def unserved_endpoints(self) -> Sequence[int]:
        rows = self.conn.execute("SELECT rowid FROM endpoints WHERE status != 'enabled' ORDER BY rowid")
        return [row[0] for row in rows]


class EndpointWrites:
    """Changes of endpoints; the methods are those of `ports.Transaction`."""

    conn: sqlite3.Connection
    deliveries: list[Delivery]
    _routed: dict[int, tuple[Endpoint, ...]]

    def start_endpoints(self) -> None:
        """Know no endpoint yet."""
        self._routed = {}

    def forget_endpoints(self) -> None:
        """Read the endpoints anew; after a rollback, and after every change."""
        self._routed.clear()

    def routed_endpoints(self, project: int) -> Sequence[Endpoint]:
        found = self._routed.get(project)
        if found is None:
            rows = self.conn.execute(
                f"SELECT {_COLUMNS} FROM endpoints WHERE project = ? AND status != 'removed' ORDER BY rowid",
                (project,),
            )
            found = self._routed[project] = tuple(_endpoint_of(row) for row in rows)
        return found

    def insert_endpoint(self, endpoint: Endpoint) -> Endpoint:
        rowid = self.conn.execute(
            "INSERT INTO endpoints (id, project, url, events, sealed_secret, secret_tail, created_at, updated_at, "
            "status, status_reason, description) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                endpoint.id,
                endpoint.project,
                endpoint.url,
                _listed(endpoint),
                endpoint.sealed_secret,
                endpoint.secret_tail,
                endpoint.created_at,
                endpoint.updated_at,
                endpoint.status,
                endpoint.status_reason,
                endpoint.description,
            ),
        ).lastrowid
        self.forget_endpoints()
        assert rowid is not None
        return replace(endpoint, rowid=rowid)

    def save_endpoint(self, endpoint: Endpoint) -> None:
        self.conn.execute(
            "UPDATE endpoints SET url = ?, events = ?, sealed_secret = ?, secret_tail = ?, updated_at = ?, "
            "status = ?, status_reason = ?, description = ?, old_secret = ?, old_secret_until = ? WHERE rowid = ?",
            (
                endpoint.url,
                _listed(endpoint),
                endpoint.sealed_secret,
                endpoint.secret_tail,
                endpoint.updated_at,
                endpoint.status,
                endpoint.status_reason,
                endpoint.description,
                endpoint.old_secret,
                endpoint.old_secret_until,
                endpoint.rowid,
            ),
        )
        if endpoint.status != "enabled":
            self._withhold(endpoint.rowid)
        self.forget_endpoints()

    def reset_circuit(self, endpoint: int) -> None:
        self.note_deliveries(endpoint, None, CLOSED)

    def disable_endpoint(self, endpoint: int, reason: str, at: int) -> bool:
        changed = self.conn.execute(
            "UPDATE endpoints SET status = 'disabled', status_reason = ?, updated_at = ? "
            "WHERE rowid = ? AND status = 'enabled'",
            (reason, at, endpoint),
        ).rowcount
        self._withhold(endpoint)
        self.forget_endpoints()
        return bool(changed)

    def note_deliveries(
        self, endpoint: int, last: tuple[int, DeliveryStatus] | None, circuit: Circuit | None
    ) -> None:
        if last is not None:
            self.conn.execute(
                "UPDATE endpoints SET last_delivery_at = ?, last_delivery_status = ? WHERE rowid = ?",
                (*last, endpoint),
            )
        if circuit is not None:
            self.conn.execute(
                "UPDATE endpoints SET failed_attempts = ?, exhausted = ?, open_until = ?, open_reason = ? "
                "WHERE rowid = ?",
                (circuit.failed_attempts, circuit.exhausted, circuit.open_until, circuit.reason, endpoint),
            )

    def forget_old_secrets(self, now: int) -> int:
        return self.conn.execute(
            "UPDATE endpoints SET old_secret = NULL, old_secret_until = NULL WHERE old_secret_until <= ?",
            (now,),
        ).rowcount

    def _withhold(self, endpoint: int) -> None:
        """Do not make known what this commit has made for an endpoint that is served no more."""
        self.deliveries[:] = [delivery for delivery in self.deliveries if delivery.endpoint != endpoint]


def _listed(endpoint: Endpoint) -> str:
    return orjson.dumps(sorted(endpoint.events)).decode()


def _endpoint_of(row: Sequence[Any]) -> Endpoint:
    rowid, endpoint_id, project, url, events, *rest = row
    rest[-_CIRCUIT_WIDTH:] = [Circuit(*rest[-_CIRCUIT_WIDTH:])]
    return Endpoint(rowid, endpoint_id, project, url, frozenset(orjson.loads(events)), *rest)
