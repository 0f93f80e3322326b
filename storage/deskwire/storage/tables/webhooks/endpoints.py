"""Webhook endpoints, their secrets and circuits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from deskwire.engine.audit.audited_changes import endpoint_changed, endpoint_made
from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Delivery, DeliveryStatus
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, Circuit
from deskwire.storage.connection import Connection
from deskwire.storage.tables.accounts.factors import renew_totp_seals
from deskwire.storage.tables.accounts.web_push import renew_web_push_seals
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.audit_push import renew_push_seals
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.channels import renew_channel_seals
from deskwire.storage.tables.mail import renew_mail_seals

_COLUMNS: Final = (
    "rowid, id, project, url, events, sealed_secret, secret_tail, created_at, updated_at, status, status_reason, "
    "description, last_delivery_at, last_delivery_status, last_success_at, held_upto, catch_up, old_secret, "
    "old_secret_until, internal, credential, api_version, failed_attempts, failing_since, probes, probe_at, open_reason, paused_until"
)
_CIRCUIT_WIDTH: Final = 6
# Maximum count of pending deliveries for an audit record; it takes some milliseconds of the writer's time.
_PENDING_MAX: Final = 100_000


class EndpointReads(Queries):
    """Queries on endpoints; see `ports.Reader`."""

    def endpoints(self, project: int | None = None) -> Sequence[Endpoint]:
        which, values = ("", ()) if project is None else ("AND project = ?", (project,))
        rows = self.conn.execute(
            f"SELECT {_COLUMNS} FROM endpoints WHERE status != 'removed' {which} ORDER BY rowid", values
        )
        return [_endpoint_of(row) for row in rows]

    def secret_id(self) -> str | None:
        row = self.conn.execute("SELECT secret_id FROM installation").fetchone()
        return None if row is None else row[0]

    def unserved_endpoints(self) -> Sequence[int]:
        rows = self.conn.execute("SELECT rowid FROM endpoints WHERE status != 'enabled' ORDER BY rowid")
        return [row[0] for row in rows]


class EndpointWrites(AuditWrites):
    """Changes of endpoints; see `ports.Transaction`."""

    deliveries: list[Delivery]
    _routed: dict[int, tuple[Endpoint, ...]]

    def start_endpoints(self) -> None:
        """Start with an empty cache of endpoints."""
        self._routed = {}

    def forget_endpoints(self) -> None:
        """Invalidate the cache of endpoints, after a rollback and after every change."""
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
        rowid = self.inserted(
            "INSERT INTO endpoints (id, project, url, events, sealed_secret, secret_tail, created_at, updated_at, "
            "status, status_reason, description, catch_up, internal, credential, api_version) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
                endpoint.catch_up,
                int(endpoint.internal),
                endpoint.credential,
                endpoint.api_version,
            ),
        )
        self.forget_endpoints()
        self.record(endpoint_made(endpoint))
        return replace(endpoint, rowid=rowid)

    def save_endpoint(self, endpoint: Endpoint) -> None:
        row = self.conn.execute(
            f"SELECT {_COLUMNS} FROM endpoints WHERE rowid = ?", (endpoint.rowid,)
        ).fetchone()
        pending = self._pending(endpoint.rowid) if endpoint.status != "enabled" else 0
        self.record(*endpoint_changed(_endpoint_of(row), endpoint, pending))
        self.conn.execute(
            "UPDATE endpoints SET url = ?, events = ?, sealed_secret = ?, secret_tail = ?, updated_at = ?, "
            "status = ?, status_reason = ?, description = ?, catch_up = ?, internal = ?, credential = ?, api_version = ?, "
            "old_secret = ?, old_secret_until = ? WHERE rowid = ?",
            (
                endpoint.url,
                _listed(endpoint),
                endpoint.sealed_secret,
                endpoint.secret_tail,
                endpoint.updated_at,
                endpoint.status,
                endpoint.status_reason,
                endpoint.description,
                endpoint.catch_up,
                int(endpoint.internal),
                endpoint.credential,
                endpoint.api_version,
                endpoint.old_secret,
                endpoint.old_secret_until,
                endpoint.rowid,
            ),
        )
        if endpoint.status != "enabled":
            self._withhold(endpoint.rowid)
        self.forget_endpoints()

    def reset_circuit(self, endpoint: int) -> None:
        row = self.conn.execute("SELECT probe_at FROM endpoints WHERE rowid = ?", (endpoint,)).fetchone()
        if row is not None and row[0] is not None:
            self.release_held(endpoint, None)
        self.save_circuit(endpoint, CLOSED)

    def record_last_delivery(
        self, endpoint: int, at: int, status: DeliveryStatus, succeeded_at: int | None
    ) -> None:
        self.conn.execute(
            "UPDATE endpoints SET last_delivery_at = ?, last_delivery_status = ?, last_success_at = ? WHERE rowid = ?",
            (at, status, succeeded_at, endpoint),
        )

    def circuit_changes(self, endpoint: int, *, closed: bool) -> bool:
        locked = self.conn.execute(
            "UPDATE endpoints SET probe_at = probe_at WHERE rowid = ? AND (probe_at IS NULL) = ?",
            (endpoint, not closed),
        )
        return locked.rowcount == 1

    def save_circuit(self, endpoint: int, circuit: Circuit) -> None:
        self.conn.execute(
            "UPDATE endpoints SET failed_attempts = ?, failing_since = ?, probes = ?, probe_at = ?, open_reason = ?, "
            "paused_until = ? WHERE rowid = ?",
            (
                circuit.failed_attempts,
                circuit.failing_since,
                circuit.probes,
                circuit.probe_at,
                circuit.reason,
                circuit.paused_until,
                endpoint,
            ),
        )

    def release_held(self, endpoint: int, upto: int | None) -> int:
        if upto is None:
            (upto,) = self.conn.execute(
                "SELECT coalesce(max(position), 0) FROM deliveries WHERE endpoint = ? AND status = 'pending'",
                (endpoint,),
            ).fetchone()
        assert upto is not None
        self.conn.execute("UPDATE endpoints SET held_upto = ? WHERE rowid = ?", (upto, endpoint))
        return upto

    def clear_held_position(self, endpoint: int) -> None:
        self.conn.execute("UPDATE endpoints SET held_upto = NULL WHERE rowid = ?", (endpoint,))

    def set_secret_id(self, secret_id: str) -> None:
        self.conn.execute("UPDATE installation SET secret_id = ?", (secret_id,))

    def renew_seals(self, renewed: Callable[[bytes], bytes]) -> int:
        self.forget_endpoints()
        return renew_seals(self.conn, renewed)

    def forget_old_secrets(self, now: int) -> int:
        endpoints = self.conn.execute(
            "UPDATE endpoints SET old_secret = NULL, old_secret_until = NULL WHERE old_secret_until <= ?",
            (now,),
        )
        channels = self.conn.execute(
            "UPDATE channels SET old_secret = NULL, old_secret_until = NULL WHERE old_secret_until <= ?",
            (now,),
        )
        return endpoints.rowcount + channels.rowcount

    def _pending(self, endpoint: int) -> int:
        """Return the number of pending deliveries of an endpoint, at most `_PENDING_MAX`."""
        (pending,) = self.conn.execute(
            "SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE endpoint = ? AND status = 'pending' LIMIT ?) AS waiting",
            (endpoint, _PENDING_MAX),
        ).fetchone()
        return int(pending)

    def _withhold(self, endpoint: int) -> None:
        """Remove this commit's deliveries to a disabled endpoint before publishing."""
        self.deliveries[:] = [delivery for delivery in self.deliveries if delivery.endpoint != endpoint]


def renew_seals(connection: Connection, renewed: Callable[[bytes], bytes]) -> int:
    """Reseal all secrets with `renewed`.

    Returns the number of changed endpoints, channels, audit pushes, mails and authenticator apps.
    """
    changed = sum(
        each(connection, renewed)
        for each in (
            renew_push_seals,
            renew_channel_seals,
            renew_mail_seals,
            renew_totp_seals,
            renew_web_push_seals,
        )
    )
    for rowid, *before in connection.execute(
        "SELECT rowid, sealed_secret, old_secret FROM endpoints"
    ).fetchall():
        after = [None if sealed is None else renewed(sealed) for sealed in before]
        if after != before:
            changed += 1
            connection.execute(
                "UPDATE endpoints SET sealed_secret = ?, old_secret = ? WHERE rowid = ?", (*after, rowid)
            )
    return changed


def _listed(endpoint: Endpoint) -> str:
    return orjson.dumps(sorted(endpoint.events)).decode()


def _endpoint_of(row: Sequence[Any]) -> Endpoint:
    rowid, endpoint_id, project, url, events, *rest = row
    internal, credential, api_version, *circuit = rest[-_CIRCUIT_WIDTH - 3 :]
    rest[-_CIRCUIT_WIDTH - 3 :] = [bool(internal), credential, api_version, Circuit(*circuit)]
    return Endpoint(rowid, endpoint_id, project, url, frozenset(orjson.loads(events)), *rest)
