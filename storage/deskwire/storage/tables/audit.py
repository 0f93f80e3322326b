"""The audit trail. Tables with audited changes record their entries in the same transaction."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import orjson

from deskwire.engine.audit.actions import ACTIONS
from deskwire.engine.audit.trail import (
    ACTOR_TYPES,
    COUNT_WINDOW_MS,
    NETWORKS_MAX,
    UNKNOWN_ACCOUNT_NETWORKS_MAX,
    UNKNOWN_ORIGIN,
    AuditEntry,
    AuditFilter,
    AuditRecord,
    ChangeOrigin,
    Changes,
    Detail,
)
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.limits.network import network_of
from deskwire.storage.tables import base

_ERASED: Final = "erased_"
_NAMES: Final = frozenset({"name", "email"})
"""Changed fields that identify a user."""
_DISTINGUISHING_DETAILS: Final = ("reason", "kind", "method", "secondFactor", "provider")
"""Details that are part of the key of a counted record. Numbers in other details are summed, other texts overwritten."""
RECORDS: Final = """
SELECT a.position, a.id, a.at, a.last_at, a.count, a.action, a.actor_type, a.actor,
    coalesce((SELECT email FROM users WHERE id = a.actor AND deleted_at IS NULL),
        (SELECT label FROM server_keys WHERE id = a.actor), (SELECT name FROM machine_credentials WHERE id = a.actor)),
    a.object,
    coalesce((SELECT email FROM users WHERE id = a.object AND deleted_at IS NULL),
        (SELECT label FROM server_keys WHERE id = a.object), (SELECT name FROM machine_credentials WHERE id = a.object),
        (SELECT name FROM projects WHERE id = a.object), (SELECT name FROM channels WHERE id = a.object),
        (SELECT name FROM organisations WHERE id = a.object),
        (SELECT name FROM roles WHERE id = a.object)),
    (SELECT id FROM organisations WHERE rowid = a.organisation), (SELECT id FROM projects WHERE rowid = a.project),
    a.changes, a.details, a.address, a.request
FROM audit a
"""
_INSERT: Final = """
INSERT INTO audit (id, at, last_at, count, organisation, project, action, actor_type, actor, object, changes, details,
    address, request, slot, tally)
VALUES (?1, ?2, ?2, ?15, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
RETURNING position
"""


class AuditReads(base.Queries):
    """Queries. Implements `AuditReader`."""

    def audit_records(
        self, organisation: int | None, wanted: AuditFilter, before: int | None, limit: int
    ) -> Sequence[AuditRecord]:
        bound = ("a.position < ?", before) if before is not None else None
        return self._audit_records(organisation, wanted, bound, "DESC", limit)

    def audit_records_after(
        self, organisation: int | None, wanted: AuditFilter, after: int, limit: int
    ) -> Sequence[AuditRecord]:
        return self._audit_records(organisation, wanted, ("a.position > ?", after), "ASC", limit)

    def _audit_records(
        self,
        organisation: int | None,
        wanted: AuditFilter,
        bound: tuple[str, int] | None,
        order: str,
        limit: int,
    ) -> Sequence[AuditRecord]:
        terms: list[tuple[str, Any]] = [
            ("a.organisation = ?", organisation),
            ("a.actor_type = ?" if wanted.actor in ACTOR_TYPES else "a.actor = ?", wanted.actor),
            ("a.action = ?", wanted.action),
            ("a.object = ?", wanted.object),
            ("a.at >= ?", wanted.since),
            ("a.at < ?", wanted.until),
        ]
        conditions = [each for each in terms if each[1] is not None] + ([bound] if bound else [])
        where = f"WHERE {' AND '.join(condition for condition, _ in conditions)}" if conditions else ""
        sql = f"{RECORDS} {where} ORDER BY a.position {order} LIMIT ?"
        return [
            as_record(row) for row in self.conn.execute(sql, (*(value for _, value in conditions), limit))
        ]


class AuditWrites(base.Changes):
    """Changes of the audit trail. Base class of all tables with audited changes."""

    _origin: ChangeOrigin = UNKNOWN_ORIGIN

    @contextmanager
    def signed(self, origin: ChangeOrigin) -> Iterator[None]:
        before, self._origin = self._origin, origin
        try:
            yield
        finally:
            self._origin = before

    def record(self, *entries: AuditEntry) -> None:
        for entry in entries:
            for organisation in self._concerned(entry):
                if ACTIONS[entry.action].counted:
                    self._count(organisation, entry)
                else:
                    self._insert_record(organisation, entry, self._origin.address)

    def prune_audit(self, older_than: int, limit: int) -> int:
        """See the port.

        Only the oldest positions are checked because records are stored roughly in order of time.
        """
        pruned = self.conn.execute(
            "DELETE FROM audit WHERE last_at < ? AND position IN (SELECT position FROM audit ORDER BY position LIMIT ?)",
            (older_than, limit),
        ).rowcount
        if pruned:
            gone = "NOT EXISTS (SELECT 1 FROM audit a WHERE a.position = u.record)"
            self.conn.execute(
                "UPDATE audit_pushes SET missed = missed + "
                f"(SELECT count(*) FROM audit_unpushed u WHERE u.push = audit_pushes.rowid AND {gone})"
            )
            self.conn.execute(
                f"DELETE FROM audit_unpushed WHERE rowid IN (SELECT u.rowid FROM audit_unpushed u WHERE {gone})"
            )
            self.conn.execute("UPDATE audit_window SET since = ?1 WHERE since < ?1", (older_than,))
        return pruned

    def redact_user_in_audit(self, user_id: str) -> None:
        """Remove names and client addresses from the records of a user's actions and of changes to the account."""
        self.conn.execute(
            "UPDATE audit SET address = NULL, slot = NULL, tally = NULL "
            "WHERE actor = ?1 OR (object = ?1 AND actor_type = 'anonymous')",
            (user_id,),
        )
        rows = self.conn.execute(
            "SELECT position, changes FROM audit WHERE object = ?", (user_id,)
        ).fetchall()
        for position, changes in rows:
            left = {name: each for name, each in orjson.loads(changes).items() if name not in _NAMES}
            self.conn.execute("UPDATE audit SET changes = ? WHERE position = ?", (_json(left), position))

    def pseudonymise_in_audit(self, contact_id: str) -> None:
        """Replace the id of an erased contact in all its records by one random alias."""
        alias = _ERASED + secrets.token_hex(8)
        self.conn.execute(
            "UPDATE audit SET object = ?, slot = NULL, tally = NULL WHERE object = ?", (alias, contact_id)
        )

    def _concerned(self, entry: AuditEntry) -> Sequence[int | None]:
        """Return the organisations whose trail gets the record.

        None means visible to the operator only.
        """
        if entry.account is not None and entry.organisation is None:
            rows = self.conn.execute(
                "SELECT m.organisation FROM memberships m WHERE m.user = ?", (entry.account,)
            )
            return [row[0] for row in rows] or [None]
        if entry.project is not None:
            sql = "SELECT organisation FROM projects WHERE rowid = ?"
            return [row[0] for row in self.conn.execute(sql, (entry.project,))] or [None]
        if entry.organisation is None and self._origin.actor.type == "user":
            sql = 'SELECT m.organisation FROM memberships m JOIN users u ON u.rowid = m."user" WHERE u.id = ?'
            return [row[0] for row in self.conn.execute(sql, (self._origin.actor.id,))] or [None]
        return [entry.organisation]

    def _count(self, organisation: int | None, entry: AuditEntry) -> None:
        """Add to the record of this actor, object and network, or to one without a network if there are too many."""
        origin = self._origin
        slot, key = origin.at // COUNT_WINDOW_MS, _key(organisation, entry, origin.actor)
        for place, address in ((f"{key} {network_of(origin.address)}", origin.address), (key, None)):
            if self._add(slot, place, organisation, entry, origin):
                return
            if address is None or self._has_room(slot, entry):
                self._insert_record(organisation, entry, address, slot, place)
                return

    def _add(
        self, slot: int, tally: str, organisation: int | None, entry: AuditEntry, origin: ChangeOrigin
    ) -> bool:
        """Count a repetition in the record of this window.

        Return False if there is no such record.
        """
        row = self.conn.execute(
            "SELECT position, details FROM audit WHERE slot = ? AND tally = ?", (slot, tally)
        ).fetchone()
        if row is None:
            return False
        position, details = row
        self.conn.execute(
            "UPDATE audit SET count = count + ?4, last_at = CASE WHEN last_at < ?1 THEN ?1 ELSE last_at END, details = ?2 "
            "WHERE position = ?3",
            (origin.at, _json(_summed(orjson.loads(details), entry.details)), position, entry.times),
        )
        self._note_unpushed(organisation, position)
        return True

    def _has_room(self, slot: int, entry: AuditEntry) -> bool:
        which = "object IS NULL" if entry.object is None else "object IS NOT NULL"
        sql = f"SELECT count(*) FROM audit WHERE slot = ? AND action = ? AND {which}"
        (taken,) = self.conn.execute(sql, (slot, entry.action)).fetchone()
        return int(taken) < (UNKNOWN_ACCOUNT_NETWORKS_MAX if entry.object is None else NETWORKS_MAX)

    def _insert_record(
        self,
        organisation: int | None,
        entry: AuditEntry,
        address: str | None,
        slot: int | None = None,
        tally: str | None = None,
    ) -> None:
        origin = self._origin
        (position,) = self.conn.execute(
            _INSERT,
            (
                new_id("aud", origin.at),
                origin.at,
                organisation,
                entry.project,
                entry.action,
                origin.actor.type,
                origin.actor.id,
                entry.object,
                _json(_shown(entry.changes)),
                _json(entry.details),
                address,
                origin.request_id,
                slot,
                tally,
                max(1, entry.times),
            ),
        ).fetchone()
        self._note_unpushed(organisation, position)

    def _note_unpushed(self, organisation: int | None, position: int) -> None:
        """Store a note that a record is unpushed, if its organisation has a push."""
        if organisation is None:
            return
        for (push,) in self.conn.execute(
            "SELECT rowid FROM audit_pushes WHERE organisation = ?", (organisation,)
        ).fetchall():
            # A record whose count grows gets a new note. A push in progress, which has the old count, does not delete it.
            self.conn.execute("DELETE FROM audit_unpushed WHERE push = ? AND record = ?", (push, position))
            self.conn.execute("INSERT INTO audit_unpushed (push, record) VALUES (?, ?)", (push, position))


def _key(organisation: int | None, entry: AuditEntry, actor: Actor) -> str:
    """Return the key of a counted record, without its network."""
    distinguishing = [entry.details[name] for name in _DISTINGUISHING_DETAILS if name in entry.details]
    parts = (entry.action, organisation, entry.object, actor.type, actor.id, *(distinguishing or [None]))
    return " ".join(str(each or "-") for each in parts)


def _shown(changes: Changes) -> Mapping[str, Any]:
    return {name: {"before": before, "after": after} for name, (before, after) in changes.items()}


def _summed(before: Mapping[str, Detail], added: Mapping[str, Detail]) -> Mapping[str, Detail]:
    """Return the new details, with numbers added to the existing ones."""
    return {
        name: value + known if isinstance(value, int) and isinstance(known, int) else value
        for name, value in added.items()
        for known in (before.get(name),)
    }


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def as_record(row: Sequence[Any]) -> AuditRecord:
    *head, actor_type, actor, actor_name, target, target_name, organisation, project = row[:-4]
    changes, details, address, request_id = row[-4:]
    names = [target, target_name, organisation, project]
    decoded = [orjson.loads(changes), orjson.loads(details), address, request_id]
    fields: list[Any] = [*head, Actor(actor_type, actor, actor_name), *names, *decoded]
    return AuditRecord(*fields)
