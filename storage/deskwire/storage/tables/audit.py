"""The audit trail. Whatever changes the tables that it is about records that by itself, in the same transaction."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import orjson

from deskwire.engine.audit.actions import ACTIONS
from deskwire.engine.audit.trail import (
    ACTOR_TYPES,
    COUNTED_MS,
    PLACES_MAX,
    PLACES_OF_NOBODY_MAX,
    UNKNOWN_ORIGIN,
    AuditFilter,
    AuditRecord,
    ChangeOrigin,
    Changes,
    Deed,
    Detail,
)
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.limits.network import network_of
from deskwire.storage.tables import base

_ERASED: Final = "erased_"
_NAMES: Final = frozenset({"name", "email"})
"""The changes that say who somebody is."""
_TELLING_APART: Final = ("reason", "kind")
"""The details that a counted record is found by; of others the last one counts, or their sum."""
RECORDS: Final = """
SELECT a.position, a.id, a.at, a.last_at, a.count, a.action, a.actor_type, a.actor,
    coalesce((SELECT email FROM users WHERE id = a.actor AND deleted_at IS NULL),
        (SELECT label FROM server_keys WHERE id = a.actor), (SELECT name FROM machine_credentials WHERE id = a.actor)),
    a.object,
    coalesce((SELECT email FROM users WHERE id = a.object AND deleted_at IS NULL),
        (SELECT label FROM server_keys WHERE id = a.object), (SELECT name FROM machine_credentials WHERE id = a.object),
        (SELECT name FROM projects WHERE id = a.object),
        (SELECT name FROM organisations WHERE id = a.object)),
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
    """Queries; the methods are those of `AuditReader`."""

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
    """The writer of the audit trail; a base of all tables whose changes are recorded."""

    _by: ChangeOrigin = UNKNOWN_ORIGIN

    @contextmanager
    def signed(self, by: ChangeOrigin) -> Iterator[None]:
        before, self._by = self._by, by
        try:
            yield
        finally:
            self._by = before

    def record(self, *deeds: Deed) -> None:
        for deed in deeds:
            for organisation in self._concerned(deed):
                if ACTIONS[deed.action].counted:
                    self._count(organisation, deed)
                else:
                    self._insert_record(organisation, deed, self._by.address)

    def prune_audit(self, older_than: int, limit: int) -> int:
        """See the port. They are stored about in the order in which things were done, so none is searched for."""
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

    def forget_in_audit(self, user_id: str) -> None:
        """Leave of a user's deeds, and of what was done to the account, no name and no client's address."""
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
        """Give an erased contact another name, one and the same in all its records, that leads nowhere."""
        alias = _ERASED + secrets.token_hex(8)
        self.conn.execute(
            "UPDATE audit SET object = ?, slot = NULL, tally = NULL WHERE object = ?", (alias, contact_id)
        )

    def _concerned(self, deed: Deed) -> Sequence[int | None]:
        """Return the organisations whose trail has the record; None is the operator's alone."""
        if deed.account is not None and deed.organisation is None:
            rows = self.conn.execute(
                "SELECT m.organisation FROM memberships m WHERE m.user = ?", (deed.account,)
            )
            return [row[0] for row in rows] or [None]
        if deed.project is not None:
            sql = "SELECT organisation FROM projects WHERE rowid = ?"
            return [row[0] for row in self.conn.execute(sql, (deed.project,))] or [None]
        if deed.organisation is None and self._by.actor.type == "user":
            sql = 'SELECT m.organisation FROM memberships m JOIN users u ON u.rowid = m."user" WHERE u.id = ?'
            return [row[0] for row in self.conn.execute(sql, (self._by.actor.id,))] or [None]
        return [deed.organisation]

    def _count(self, organisation: int | None, deed: Deed) -> None:
        """Add to the record of this actor, object and network; of any network if too many have one already."""
        by = self._by
        slot, key = by.at // COUNTED_MS, _key(organisation, deed, by.actor)
        for place, address in ((f"{key} {network_of(by.address)}", by.address), (key, None)):
            if self._add(slot, place, organisation, deed, by):
                return
            if address is None or self._has_room(slot, deed):
                self._insert_record(organisation, deed, address, slot, place)
                return

    def _add(self, slot: int, tally: str, organisation: int | None, deed: Deed, by: ChangeOrigin) -> bool:
        """Count a repetition in the record of its slot; False if there is no such record."""
        row = self.conn.execute(
            "SELECT position, details FROM audit WHERE slot = ? AND tally = ?", (slot, tally)
        ).fetchone()
        if row is None:
            return False
        position, details = row
        self.conn.execute(
            "UPDATE audit SET count = count + ?4, last_at = CASE WHEN last_at < ?1 THEN ?1 ELSE last_at END, details = ?2 "
            "WHERE position = ?3",
            (by.at, _json(_summed(orjson.loads(details), deed.details)), position, deed.times),
        )
        self._note_unpushed(organisation, position)
        return True

    def _has_room(self, slot: int, deed: Deed) -> bool:
        which = "object IS NULL" if deed.object is None else "object IS NOT NULL"
        sql = f"SELECT count(*) FROM audit WHERE slot = ? AND action = ? AND {which}"
        (taken,) = self.conn.execute(sql, (slot, deed.action)).fetchone()
        return int(taken) < (PLACES_OF_NOBODY_MAX if deed.object is None else PLACES_MAX)

    def _insert_record(
        self,
        organisation: int | None,
        deed: Deed,
        address: str | None,
        slot: int | None = None,
        tally: str | None = None,
    ) -> None:
        by = self._by
        (position,) = self.conn.execute(
            _INSERT,
            (
                new_id("aud", by.at),
                by.at,
                organisation,
                deed.project,
                deed.action,
                by.actor.type,
                by.actor.id,
                deed.object,
                _json(_shown(deed.changes)),
                _json(deed.details),
                address,
                by.request_id,
                slot,
                tally,
                max(1, deed.times),
            ),
        ).fetchone()
        self._note_unpushed(organisation, position)

    def _note_unpushed(self, organisation: int | None, position: int) -> None:
        """Note that a record is to be pushed, if those of its organisation are; see `audit_pushes`."""
        if organisation is None:
            return
        for (push,) in self.conn.execute(
            "SELECT rowid FROM audit_pushes WHERE organisation = ?", (organisation,)
        ).fetchall():
            # A record that is counted on gets a new note, so that the end of a push that had the old count leaves it.
            self.conn.execute("DELETE FROM audit_unpushed WHERE push = ? AND record = ?", (push, position))
            self.conn.execute("INSERT INTO audit_unpushed (push, record) VALUES (?, ?)", (push, position))


def _key(organisation: int | None, deed: Deed, actor: Actor) -> str:
    """Return the key by which repetitions are counted, beside the network."""
    told_apart = [deed.details[name] for name in _TELLING_APART if name in deed.details]
    parts = (deed.action, organisation, deed.object, actor.type, actor.id, *(told_apart or [None]))
    return " ".join(str(each or "-") for each in parts)


def _shown(changes: Changes) -> Mapping[str, Any]:
    return {name: {"before": before, "after": after} for name, (before, after) in changes.items()}


def _summed(before: Mapping[str, Detail], added: Mapping[str, Detail]) -> Mapping[str, Detail]:
    """Return the details of both: numbers are added up."""
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
    said = [orjson.loads(changes), orjson.loads(details), address, request_id]
    fields: list[Any] = [*head, Actor(actor_type, actor, actor_name), *names, *said]
    return AuditRecord(*fields)
