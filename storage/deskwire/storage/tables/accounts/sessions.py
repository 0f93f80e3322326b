"""Sessions of people who have signed in with a browser."""

from __future__ import annotations

import sqlite3
from typing import Final

from deskwire.engine.accounts.sessions import Session

_SESSION: Final = "SELECT s.id, u.id, s.client, s.created_at, s.last_seen_at FROM sessions s JOIN users u ON u.rowid = s.user"


class SessionReads:
    """Queries; the methods are those of `SessionReader`."""

    conn: sqlite3.Connection

    def session(self, hashed: bytes) -> Session | None:
        row = self.conn.execute(f"{_SESSION} WHERE s.hash = ?", (hashed,)).fetchone()
        return None if row is None else Session(*row)


class SessionWrites:
    """Changes; the methods are those of `SessionTransaction`."""

    conn: sqlite3.Connection

    def insert_session(self, session: Session, user: int, hashed: bytes) -> None:
        self.conn.execute(
            "INSERT INTO sessions (id, user, hash, client, created_at, last_seen_at) VALUES (?, ?, ?, ?, ?, ?)",
            (session.id, user, hashed, session.client, session.created_at, session.last_seen_at),
        )

    def touch_session(self, session_id: str, at: int) -> None:
        self.conn.execute("UPDATE sessions SET last_seen_at = ? WHERE id = ?", (at, session_id))

    def end_session(self, session_id: str) -> bool:
        return bool(self.conn.execute("DELETE FROM sessions WHERE id = ?", (session_id,)).rowcount)
