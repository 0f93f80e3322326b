"""Audit pushes: where the trail is pushed, and how far it got.

Separate from the trail, because read-only commands must start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from deskwire.engine.audit.audited_changes import differences, made, shown_url
from deskwire.engine.audit.push import AuditPush, PushHealth, Unpushed
from deskwire.engine.audit.trail import (
    AuditEntry,
)
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.storage.connection import Connection
from deskwire.storage.tables.audit import RECORDS, AuditWrites, as_record
from deskwire.storage.tables.base import Queries

_PUSH: Final = (
    "SELECT id, organisation, url, sealed_secret, secret_tail, created_at, updated_at, old_secret, old_secret_until, "
    "attempts, due_at, failing_since, last_at, last_status, last_error, missed, rowid FROM audit_pushes"
)
_ERROR_MAX: Final = 500


class PushReads(Queries):
    """Queries. Implements `PushReader`."""

    def audit_push(self, organisation: int) -> AuditPush | None:
        return self._found_push("organisation", organisation)

    def audit_push_with(self, push: int) -> AuditPush | None:
        return self._found_push("rowid", push)

    def due_audit_pushes(self, now: int) -> Sequence[int]:
        sql = (
            "SELECT p.rowid FROM audit_pushes p WHERE (p.due_at IS NULL OR p.due_at <= ?) "
            "AND EXISTS (SELECT 1 FROM audit_unpushed u WHERE u.push = p.rowid)"
        )
        return [row[0] for row in self.conn.execute(sql, (now,))]

    def unpushed(self, push: int, limit: int) -> Sequence[Unpushed]:
        sql = "SELECT rowid, record FROM audit_unpushed WHERE push = ? ORDER BY rowid LIMIT ?"
        notes = self.conn.execute(sql, (push, limit)).fetchall()
        if not notes:
            return []
        marks = ", ".join("?" * len(notes))
        rows = self.conn.execute(
            f"{RECORDS} WHERE a.position IN ({marks})", tuple(record for _, record in notes)
        )
        records = {record.position: record for record in map(as_record, rows)}
        return [Unpushed(note, records[position]) for note, position in notes if position in records]

    def count_unpushed(self, push: int) -> int:
        sql = "SELECT count(*) FROM audit_unpushed WHERE push = ?"
        return int(self.conn.execute(sql, (push,)).fetchone()[0])

    def audit_push_health(self, bound: int) -> PushHealth:
        pushes = self.conn.execute(
            "SELECT count(*), count(failing_since), min(failing_since), coalesce(sum(missed), 0) FROM audit_pushes"
        ).fetchone()
        waiting = "SELECT count(*) FROM (SELECT 1 FROM audit_unpushed LIMIT ?) AS waiting"
        (unpushed,) = self.conn.execute(waiting, (bound,)).fetchone()
        return PushHealth(int(pushes[0]), int(pushes[1]), pushes[2], int(unpushed), int(pushes[3]))

    def _found_push(self, column: str, value: int) -> AuditPush | None:
        row = self.conn.execute(f"{_PUSH} WHERE {column} = ?", (value,)).fetchone()
        return None if row is None else AuditPush(*row)


class PushWrites(PushReads, AuditWrites):
    """Changes. Implements `PushTransaction`."""

    def insert_audit_push(self, push: AuditPush) -> AuditPush:
        rowid = self.inserted(
            "INSERT INTO audit_pushes (id, organisation, url, sealed_secret, secret_tail, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                push.id,
                push.organisation,
                push.url,
                push.sealed_secret,
                push.secret_tail,
                push.created_at,
                push.updated_at,
            ),
        )
        changes = made({"url": shown_url(push.url)})
        self.record(
            AuditEntry("audit.push_created", push.id, organisation=push.organisation, changes=changes)
        )
        stored = self.audit_push_with(rowid)
        assert stored is not None, "it was stored just now"
        return stored

    def save_audit_push(self, push: AuditPush) -> None:
        before = self.audit_push_with(push.rowid)
        assert before is not None, "only a stored one is changed"
        self.conn.execute(
            "UPDATE audit_pushes SET url = ?, sealed_secret = ?, secret_tail = ?, old_secret = ?, old_secret_until = ?, "
            "updated_at = ?, due_at = NULL WHERE rowid = ?",
            (
                push.url,
                push.sealed_secret,
                push.secret_tail,
                push.old_secret,
                push.old_secret_until,
                push.updated_at,
                push.rowid,
            ),
        )
        if before.url != push.url:
            changes = differences({"url": shown_url(before.url)}, {"url": shown_url(push.url)})
            entry = AuditEntry("audit.push_changed", push.id, organisation=push.organisation, changes=changes)
            self.record(entry)
        if before.sealed_secret != push.sealed_secret:
            self.record(AuditEntry("audit.push_secret_rotated", push.id, organisation=push.organisation))

    def delete_audit_push(self, push: AuditPush) -> None:
        self.conn.execute("DELETE FROM audit_unpushed WHERE push = ?", (push.rowid,))
        self.conn.execute("DELETE FROM audit_pushes WHERE rowid = ?", (push.rowid,))
        self.record(AuditEntry("audit.push_deleted", push.id, organisation=push.organisation))

    def note_push(self, push: int, attempt: Attempt, attempts: int, due_at: int | None) -> None:
        error = None if attempt.error is None else attempt.error[:_ERROR_MAX]
        self.conn.execute(
            "UPDATE audit_pushes SET attempts = ?, due_at = ?, last_at = ?, last_status = ?, last_error = ? WHERE rowid = ?",
            (attempts, due_at, attempt.at, attempt.status, error, push),
        )
        if attempts == 0:
            self.conn.execute("UPDATE audit_pushes SET failing_since = NULL WHERE rowid = ?", (push,))
        else:
            sql = "UPDATE audit_pushes SET failing_since = ? WHERE rowid = ? AND failing_since IS NULL"
            self.conn.execute(sql, (attempt.at, push))

    def delete_push_notes(self, notes: Sequence[int]) -> None:
        marks = ", ".join("?" * len(notes))
        self.conn.execute(f"DELETE FROM audit_unpushed WHERE rowid IN ({marks})", tuple(notes))


def renew_push_seals(connection: Connection, renewed: Callable[[bytes], bytes]) -> int:
    """Re-encrypt the secrets of all pushes with `renewed`.

    Return the number of changed pushes.
    """
    changed = 0
    rows: list[Any] = connection.execute(
        "SELECT rowid, sealed_secret, old_secret FROM audit_pushes"
    ).fetchall()
    for rowid, *before in rows:
        after = [None if sealed is None else renewed(sealed) for sealed in before]
        if after != before:
            changed += 1
            connection.execute(
                "UPDATE audit_pushes SET sealed_secret = ?, old_secret = ? WHERE rowid = ?", (*after, rowid)
            )
    return changed
