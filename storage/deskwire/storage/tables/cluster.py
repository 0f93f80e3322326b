"""Queries on the leases of nodes, and on everything that is held with a lease.

The database has functions for its own clock: `lease_now()`, `lease_end(ms)` for the time `ms` milliseconds from now,
`lease_left(end)` for the milliseconds until a time, and `clock_ms()` for the milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deskwire.engine.cluster.ports import HeartbeatResult, JoiningNode, NodeLease
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.ports import EndpointLease
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import Changes, Queries

# SQL condition: the holder's lease is over, or there is no holder.
_OVER: Final = "(incarnation IS NULL OR incarnation NOT IN (SELECT n.incarnation FROM nodes n))"

_ATTEMPTS: Final = either(
    "SELECT attempts FROM deliveries WHERE position = ? {of_day} AND status = 'pending'"
)

# SQL condition: a node prevents another one with this name and place of uploads from joining.
BARS: Final = "(node = ? OR files <> ? OR files = 'disk')"


class ClusterReads(Queries):
    """Queries on leases; the methods implement `ports.Reader`."""

    def epoch(self) -> int:
        row = self.conn.execute("SELECT epoch FROM installation").fetchone()
        return int(row[0])

    def leases(self) -> Sequence[NodeLease]:
        rows = self.conn.execute(
            "SELECT node, incarnation, lease_left(expires), epoch_seen FROM nodes ORDER BY incarnation"
        )
        return [NodeLease(*row) for row in rows]

    def is_live(self, incarnation: int) -> bool:
        row = self.conn.execute("SELECT 1 FROM nodes WHERE incarnation = ?", (incarnation,)).fetchone()
        return row is not None

    def endpoint_leases(self) -> Sequence[EndpointLease]:
        rows = self.conn.execute(
            "SELECT e.rowid, e.updated_at, c.incarnation, coalesce(c.generation, 0) FROM endpoints e "
            "LEFT JOIN couriers c ON c.endpoint = e.rowid WHERE e.status = 'enabled' ORDER BY e.rowid"
        )
        return [EndpointLease(*row) for row in rows]

    def abandoned_erasures(self) -> Sequence[int]:
        rows = self.conn.execute(
            "SELECT k.rowid FROM contacts k WHERE k.erasing = 1 AND NOT EXISTS (SELECT 1 FROM contact_erasures e "
            "JOIN nodes n ON n.incarnation = e.incarnation WHERE e.contact = k.rowid) ORDER BY k.rowid"
        )
        return [row[0] for row in rows]

    def refresh_goes_on(self, survey: int, but: int) -> bool:
        row = self.conn.execute(
            "SELECT 1 FROM survey_refreshes r JOIN nodes n ON n.incarnation = r.incarnation "
            "WHERE r.survey = ? AND r.status = 'running' AND r.incarnation <> ?",
            (survey, but),
        ).fetchone()
        return row is not None

    def endpoint_lease_generation(self, endpoint: int) -> int | None:
        row = self.conn.execute("SELECT generation FROM couriers WHERE endpoint = ?", (endpoint,)).fetchone()
        return None if row is None else int(row[0])

    def is_untried(self, delivery: Delivery) -> bool:
        key = delivery.position, *self.dialect.day_of(delivery.id)
        row = self.conn.execute(_ATTEMPTS[self.dialect], key).fetchone()
        return row is not None and not row[0]


class ClusterWrites(ClusterReads, Changes):
    """Changes of leases; the methods implement `ports.Transaction`."""

    def join(self, candidate: JoiningNode, lease_ms: int) -> int:
        name, run, version, files = candidate.name, candidate.run, candidate.version, candidate.files
        # This locks the row, so that concurrent calls are serialized.
        self.conn.execute("UPDATE installation SET epoch = epoch")
        self.conn.execute(
            f"DELETE FROM nodes WHERE run = ? OR (expires <= lease_now() AND {BARS})", (run, name, files)
        )
        other = self.conn.execute(
            f"SELECT node, files FROM nodes WHERE {BARS} ORDER BY node = ? DESC, incarnation LIMIT 1",
            (name, files, name),
        ).fetchone()
        if other is not None:
            raise candidate.refusal(*other)
        row = self.conn.execute(
            "INSERT INTO nodes (node, run, files, expires, version, epoch_seen) VALUES (?, ?, ?, lease_end(?), ?, -1) "
            "RETURNING incarnation",
            (name, run, files, lease_ms, version),
        ).fetchone()
        return int(row[0])

    def heartbeat(self, incarnation: int, lease_ms: int, epoch_seen: int) -> HeartbeatResult | None:
        row = self.conn.execute(
            "UPDATE nodes SET expires = lease_end(?), epoch_seen = ? WHERE incarnation = ? RETURNING clock_ms()",
            (lease_ms, epoch_seen, incarnation),
        ).fetchone()
        if row is None:
            return None
        return HeartbeatResult(int(row[0]), self.epoch(), self.leases(), self._elect(incarnation))

    def expire_nodes(self) -> Sequence[str]:
        rows = self.conn.execute("DELETE FROM nodes WHERE expires <= lease_now() RETURNING node").fetchall()
        return [row[0] for row in rows]

    def leave(self, incarnation: int) -> None:
        self.conn.execute("DELETE FROM nodes WHERE incarnation = ?", (incarnation,))

    def claim_erasure(self, contact: int, incarnation: int) -> bool:
        taken = self.conn.execute(
            "INSERT INTO contact_erasures (contact, incarnation) VALUES (?, ?) "
            "ON CONFLICT (contact) DO UPDATE SET incarnation = excluded.incarnation WHERE contact_erasures.incarnation NOT IN "
            "(SELECT n.incarnation FROM nodes n WHERE n.incarnation <> excluded.incarnation)",
            (contact, incarnation),
        )
        return bool(taken.rowcount)

    def acquire_endpoint_lease(self, endpoint: int, generation: int, incarnation: int) -> int | None:
        if not generation:
            self.conn.execute(
                "INSERT INTO couriers (endpoint, generation) VALUES (?, 0) ON CONFLICT (endpoint) DO NOTHING",
                (endpoint,),
            )
        row = self.conn.execute(
            "UPDATE couriers SET incarnation = ?, generation = generation + 1 "
            f"WHERE endpoint = ? AND generation = ? AND {_OVER} RETURNING generation",
            (incarnation, endpoint, generation),
        ).fetchone()
        return None if row is None else int(row[0])

    def release_endpoint_lease(self, endpoint: int, generation: int) -> None:
        self.conn.execute(
            "UPDATE couriers SET incarnation = NULL WHERE endpoint = ? AND generation = ?",
            (endpoint, generation),
        )

    def delete_stale_endpoint_leases(self) -> None:
        self.conn.execute("DELETE FROM couriers WHERE endpoint NOT IN (SELECT e.rowid FROM endpoints e)")

    def _elect(self, incarnation: int) -> bool:
        """Return whether a node is the leader, after making it the leader if there is none."""
        (holder, generation) = self.conn.execute("SELECT incarnation, generation FROM duties").fetchone()
        if holder == incarnation:
            return True
        taken = self.conn.execute(
            f"UPDATE duties SET incarnation = ?, generation = generation + 1 WHERE generation = ? AND {_OVER}",
            (incarnation, generation),
        )
        return bool(taken.rowcount)
