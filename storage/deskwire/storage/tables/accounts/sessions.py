"""Sessions of people who have signed in with a browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deskwire.engine.accounts.access_tokens import ID_PREFIX
from deskwire.engine.accounts.sessions import Over, Session
from deskwire.engine.audit.trail import Deed
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries

_SESSION: Final = "SELECT s.id, u.id, s.client, s.created_at, s.last_seen_at, s.rowid FROM sessions s JOIN users u ON u.rowid = s.user"


class SessionReads(Queries):
    """Queries; the methods are those of `SessionReader`."""

    def session(self, hashed: bytes) -> Session | None:
        row = self.conn.execute(f"{_SESSION} WHERE s.hash = ?", (hashed,)).fetchone()
        return None if row is None else Session(*row)

    def lasts(self, session_id: str) -> bool:
        if session_id.startswith(f"{ID_PREFIX}_"):
            sql = "SELECT 1 FROM access_tokens WHERE id = ? AND ended_at IS NOT NULL"
            return self.conn.execute(sql, (session_id,)).fetchone() is None
        return self.conn.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone() is not None

    def sessions_of(self, user: int, over: Over, before: int, limit: int) -> Sequence[Session]:
        rows = self.conn.execute(
            f"{_SESSION} WHERE s.user = ? AND s.last_seen_at > ? AND s.created_at > ? AND s.rowid < ? "
            "ORDER BY s.rowid DESC LIMIT ?",
            (user, over.used, over.made, before, limit),
        )
        return [Session(*row) for row in rows]


class SessionWrites(AuditWrites):
    """Changes; the methods are those of `SessionTransaction`."""

    def insert_session(self, session: Session, user: int, hashed: bytes) -> None:
        self.conn.execute(
            'INSERT INTO sessions (id, "user", hash, client, created_at, last_seen_at) VALUES (?, ?, ?, ?, ?, ?)',
            (session.id, user, hashed, session.client, session.created_at, session.last_seen_at),
        )

    def touch_session(self, session_id: str, at: int) -> None:
        self.conn.execute("UPDATE sessions SET last_seen_at = ? WHERE id = ?", (at, session_id))

    def end_session(self, user: int, session_id: str) -> bool:
        return bool(self._end(user, "id = ?", session_id))

    def end_sessions(self, user: int, but: str | None) -> int:
        return self._end(user, "id <> ?", but or "")

    def crowd_out_sessions(self, user: int, kept: int) -> None:
        newest = "SELECT s.rowid FROM sessions s WHERE s.user = ? ORDER BY s.last_seen_at DESC, s.rowid DESC LIMIT ?"
        self._end(user, f"rowid NOT IN ({newest})", user, kept)

    def prune_sessions(self, over: Over, limit: int) -> int:
        return self.conn.execute(
            "DELETE FROM sessions WHERE rowid IN "
            "(SELECT rowid FROM sessions WHERE last_seen_at <= ? OR created_at <= ? LIMIT ?)",
            (over.used, over.made, limit),
        ).rowcount

    def _end(self, user: int, which: str, *values: str | int) -> int:
        """Delete sessions of a user, and record how many, if any; return that."""
        ended = self.conn.execute(
            f"DELETE FROM sessions WHERE sessions.user = ? AND {which}", (user, *values)
        ).rowcount
        if ended:
            (user_id,) = self.conn.execute("SELECT id FROM users WHERE rowid = ?", (user,)).fetchone()
            self.record(Deed("account.sessions_ended", user_id, account=user, details={"sessions": ended}))
        return ended
