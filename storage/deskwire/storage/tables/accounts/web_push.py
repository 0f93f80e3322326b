"""Subscriptions of browsers, the positions of projects up to which events are decided, and pushes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deskwire.engine.accounts.people import READ
from deskwire.engine.push.ports import KEPT_MS, Push, PushRecipient, PushSubscription
from deskwire.storage.connection import Connection
from deskwire.storage.dialect import either
from deskwire.storage.tables.accounts.notifications import SETTINGS_COLUMNS, settings_of
from deskwire.storage.tables.accounts.people import granted
from deskwire.storage.tables.base import Queries

_SUBSCRIPTION: Final = 's.session, s."user", s.endpoint_hash, s.sealed, s.created_at, s.held_until, s.rowid FROM push_subscriptions s'
_PUSH: Final = (
    'p.id, p."user", p.project, p.subscription, p.client, p.conversation, p.event, p.cause, p.at, p.created_at, p.due_at, '
    "p.status, p.reason, p.detail, p.attempts, p.ended_at, p.rowid"
)
_PROJECTS: Final = (
    "SELECT DISTINCT j.rowid, c.position FROM push_subscriptions s "
    'JOIN memberships m ON m."user" = s."user" JOIN projects j ON j.organisation = m.organisation AND j.removed_at IS NULL '
    "LEFT JOIN push_cursors c ON c.project = j.rowid ORDER BY j.rowid"
)
_RECIPIENTS: Final = (
    "SELECT s.rowid, u.rowid, u.id, t.client, s.created_at, m.role, r.permissions, "
    f"{SETTINGS_COLUMNS}, (SELECT count(*) FROM pushes w WHERE w.subscription = s.rowid AND w.status = 'waiting') "
    "FROM projects j JOIN memberships m ON m.organisation = j.organisation "
    'JOIN push_subscriptions s ON s."user" = m."user" JOIN users u ON u.rowid = s."user" '
    "JOIN sessions t ON t.rowid = s.session "
    "LEFT JOIN roles r ON r.id = m.role AND r.organisation = m.organisation "
    'LEFT JOIN notification_settings n ON n."user" = u.rowid WHERE j.rowid = ? AND j.removed_at IS NULL'
)
_TEAMS: Final = (
    'SELECT k."user", e.id FROM team_members k JOIN teams e ON e.rowid = k.team '
    "WHERE e.project = ? AND e.deleted_at IS NULL "
    'AND k."user" IN (SELECT s."user" FROM push_subscriptions s)'
)
_DUE: Final = (
    "SELECT min(p.rowid) FROM pushes p LEFT JOIN push_subscriptions s ON s.rowid = p.subscription "
    "WHERE p.ended_at IS NULL AND p.due_at <= ? AND (p.status = 'sending' OR s.held_until IS NULL OR s.held_until <= ?) "
    "GROUP BY coalesce(p.subscription, -p.rowid) ORDER BY min(p.due_at), min(p.rowid) LIMIT ?"
)
_SAW_MESSAGE: Final = (
    'SELECT 1 FROM agent_seen a WHERE a."user" = ? AND a.conversation = ? AND a.at >= ? '
    "AND (CAST(? AS TEXT) IS NULL OR a.number >= "
    "(SELECT coalesce(m.number, -1) FROM messages m WHERE m.conversation = a.conversation AND m.id = ?))"
)
_MARKED_SEEN: Final = (
    "SELECT 1 FROM seen_marks k JOIN conversations v ON v.project = k.project "
    'WHERE k."user" = ? AND v.rowid = ? AND k.until >= ?'
)
_CLAIMED: Final = either(
    "SELECT s.rowid FROM push_subscriptions s WHERE s.rowid IN ({{}}) ORDER BY s.rowid {locking[s]}"
)


class WebPushReads(Queries):
    """Queries. Implements `WebPushReader`."""

    def push_key(self) -> bytes | None:
        row = self.conn.execute("SELECT sealed FROM push_keys").fetchone()
        return None if row is None else bytes(row[0])

    def push_subscription(self, session_id: str) -> PushSubscription | None:
        row = self.conn.execute(
            f"SELECT {_SUBSCRIPTION} JOIN sessions t ON t.rowid = s.session WHERE t.id = ?", (session_id,)
        ).fetchone()
        return None if row is None else PushSubscription(*row)

    def push_subscription_with(self, subscription: int) -> PushSubscription | None:
        row = self.conn.execute(f"SELECT {_SUBSCRIPTION} WHERE s.rowid = ?", (subscription,)).fetchone()
        return None if row is None else PushSubscription(*row)

    def push_session(self, subscription: int) -> str | None:
        row = self.conn.execute(
            "SELECT t.id FROM push_subscriptions s JOIN sessions t ON t.rowid = s.session WHERE s.rowid = ?",
            (subscription,),
        ).fetchone()
        return None if row is None else str(row[0])

    def push_projects(self) -> Sequence[tuple[int, int | None]]:
        return [(row[0], row[1]) for row in self.conn.execute(_PROJECTS).fetchall()]

    def push_recipients(self, project: int, subscription: int | None = None) -> Sequence[PushRecipient]:
        if subscription is None:
            rows = self.conn.execute(f"{_RECIPIENTS} ORDER BY s.rowid", (project,)).fetchall()
        else:
            rows = self.conn.execute(f"{_RECIPIENTS} AND s.rowid = ?", (project, subscription)).fetchall()
        if not rows:
            return ()
        teams: dict[int, set[str]] = {}
        for user, team in self.conn.execute(_TEAMS, (project,)).fetchall():
            teams.setdefault(user, set()).add(team)
        return [
            PushRecipient(
                key, user, user_id, client, at, settings_of(chosen), frozenset(teams.get(user, ())), waiting
            )
            for key, user, user_id, client, at, role, permissions, *chosen, waiting in rows
            if READ in granted(role, permissions).permissions
        ]

    def push_with(self, push: int) -> Push | None:
        row = self.conn.execute(f"SELECT {_PUSH} FROM pushes p WHERE p.rowid = ?", (push,)).fetchone()
        return None if row is None else Push(*row)

    def due_pushes(self, now: int, limit: int) -> Sequence[int]:
        return [row[0] for row in self.conn.execute(_DUE, (now, now, limit)).fetchall()]

    def own_pushes(self, user: int, before: int, limit: int) -> Sequence[tuple[Push, str]]:
        rows = self.conn.execute(
            f"SELECT {_PUSH}, j.id FROM pushes p JOIN projects j ON j.rowid = p.project "
            'WHERE p."user" = ? AND p.rowid < ? ORDER BY p.rowid DESC LIMIT ?',
            (user, before, limit),
        )
        return [(Push(*row[:-1]), row[-1]) for row in rows]

    def saw_since(self, user: int, conversation: int, message_id: str | None, at: int) -> bool:
        values = (user, conversation, at, message_id, message_id)
        return (
            self.conn.execute(_SAW_MESSAGE, values).fetchone() is not None
            or self.conn.execute(_MARKED_SEEN, (user, conversation, at)).fetchone() is not None
        )


class WebPushWrites(Queries):
    """Changes. Implements `WebPushTransaction`."""

    def put_push_key(self, sealed: bytes, replaced: bytes | None, at: int) -> bool:
        if replaced is None:
            sql = "INSERT INTO push_keys (number, sealed, created_at) VALUES (1, ?, ?) ON CONFLICT (number) DO NOTHING"
            return self.conn.execute(sql, (sealed, at)).rowcount == 1
        sql = "UPDATE push_keys SET sealed = ?, created_at = ? WHERE sealed = ?"
        if self.conn.execute(sql, (sealed, at, replaced)).rowcount == 0:
            return False
        self.conn.execute("DELETE FROM push_subscriptions")
        return True

    def put_push_subscription(self, subscription: PushSubscription) -> None:
        sql = "DELETE FROM push_subscriptions WHERE endpoint_hash = ? AND session <> ?"
        self.conn.execute(sql, (subscription.endpoint_hash, subscription.session))
        self.conn.execute(
            'INSERT INTO push_subscriptions (session, "user", endpoint_hash, sealed, created_at, held_until) '
            "VALUES (?, ?, ?, ?, ?, 0) ON CONFLICT (session) DO UPDATE SET endpoint_hash = excluded.endpoint_hash, "
            "sealed = excluded.sealed, held_until = 0",
            (
                subscription.session,
                subscription.user,
                subscription.endpoint_hash,
                subscription.sealed,
                subscription.created_at,
            ),
        )

    def delete_push_subscription(self, subscription: int) -> None:
        self.conn.execute("DELETE FROM push_subscriptions WHERE rowid = ?", (subscription,))

    def hold_push_subscription(self, subscription: int, until: int) -> None:
        self.conn.execute(
            "UPDATE push_subscriptions SET held_until = ? WHERE rowid = ?", (until, subscription)
        )

    def claim_push_subscriptions(self, subscriptions: Sequence[int]) -> Sequence[int]:
        if not subscriptions:
            return ()
        sql = _CLAIMED[self.dialect].format(", ".join("?" for _ in subscriptions))
        return [row[0] for row in self.conn.execute(sql, tuple(subscriptions)).fetchall()]

    def move_push_cursor(self, project: int, before: int | None, position: int) -> bool:
        if before is None:
            sql = (
                "INSERT INTO push_cursors (project, position) VALUES (?, ?) ON CONFLICT (project) DO NOTHING"
            )
            return self.conn.execute(sql, (project, position)).rowcount == 1
        sql = "UPDATE push_cursors SET position = ? WHERE project = ? AND position = ?"
        return self.conn.execute(sql, (position, project, before)).rowcount == 1

    def drop_idle_push_cursors(self) -> None:
        self.conn.execute(
            "DELETE FROM push_cursors WHERE project NOT IN (SELECT j.rowid FROM push_subscriptions s "
            'JOIN memberships m ON m."user" = s."user" JOIN projects j ON j.organisation = m.organisation)'
        )

    def supersede_pushes(self, push: Push) -> None:
        self.conn.execute(
            "UPDATE pushes SET status = 'notSent', reason = 'superseded', ended_at = ? "
            "WHERE subscription = ? AND conversation = ? AND status = 'waiting'",
            (push.created_at, push.subscription, push.conversation),
        )

    def insert_push(self, push: Push) -> None:
        self.conn.execute(
            'INSERT INTO pushes (id, "user", project, subscription, client, conversation, event, cause, at, created_at, due_at, '
            "status, reason, detail, attempts, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                push.id,
                push.user,
                push.project,
                push.subscription,
                push.client,
                push.conversation,
                push.event,
                push.cause,
                push.at,
                push.created_at,
                push.due_at,
                push.status,
                push.reason,
                push.detail,
                push.attempts,
                push.ended_at,
            ),
        )

    def save_push(self, push: Push) -> None:
        self.conn.execute(
            "UPDATE pushes SET due_at = ?, status = ?, reason = ?, detail = ?, attempts = ?, ended_at = ? WHERE rowid = ?",
            (
                push.due_at,
                push.status,
                push.reason,
                push.detail,
                push.attempts,
                push.ended_at,
                push.rowid,
            ),
        )

    def prune_pushes(self, now: int, limit: int) -> int:
        return self.conn.execute(
            "DELETE FROM pushes WHERE rowid IN (SELECT rowid FROM pushes WHERE ended_at <= ? LIMIT ?)",
            (now - KEPT_MS, limit),
        ).rowcount

    def forget_pushes(self, user: int) -> None:
        """Delete the subscriptions and pushes of a user (storage key)."""
        self.conn.execute('DELETE FROM push_subscriptions WHERE push_subscriptions."user" = ?', (user,))
        self.conn.execute('DELETE FROM pushes WHERE pushes."user" = ?', (user,))


def renew_web_push_seals(connection: Connection, renewed: Callable[[bytes], bytes]) -> int:
    """Re-encrypt the key and the endpoints of all subscriptions with `renewed`. Return the number of changed rows."""
    changed = 0
    for table, key in (("push_keys", "number"), ("push_subscriptions", "rowid")):
        for row, before in connection.execute(f"SELECT {key}, sealed FROM {table}").fetchall():
            after = renewed(before)
            if after != before:
                changed += 1
                connection.execute(f"UPDATE {table} SET sealed = ? WHERE {key} = ?", (after, row))
    return changed
