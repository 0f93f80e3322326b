"""Queries on the browsers with which users have signed in. They implement `KnownBrowserTransaction`."""

from __future__ import annotations

from deskwire.storage.tables.base import Queries


class KnownBrowserWrites(Queries):
    """Changes."""

    def browser_known(self, user: int, hashed: bytes, since: int) -> bool:
        sql = 'SELECT 1 FROM known_browsers WHERE "user" = ? AND hash = ? AND used_at > ?'
        return self.conn.execute(sql, (user, hashed, since)).fetchone() is not None

    def note_browser(self, user: int, hashed: bytes, at: int, kept: int) -> None:
        self.conn.execute(
            'INSERT INTO known_browsers ("user", hash, created_at, used_at) VALUES (?, ?, ?, ?) '
            'ON CONFLICT ("user", hash) DO UPDATE SET used_at = excluded.used_at',
            (user, hashed, at, at),
        )
        self.conn.execute(
            'DELETE FROM known_browsers WHERE "user" = ? AND hash <> ? AND rowid NOT IN (SELECT b.rowid FROM known_browsers b '
            'WHERE b."user" = ? AND b.hash <> ? ORDER BY b.used_at DESC, b.rowid DESC LIMIT ?)',
            (user, hashed, user, hashed, kept - 1),
        )

    def prune_browsers(self, before: int, limit: int) -> int:
        return self.conn.execute(
            "DELETE FROM known_browsers WHERE rowid IN (SELECT rowid FROM known_browsers WHERE used_at <= ? LIMIT ?)",
            (before, limit),
        ).rowcount

    def forget_browsers(self, user: int) -> None:
        """Delete the known browsers of a user."""
        self.conn.execute('DELETE FROM known_browsers WHERE "user" = ?', (user,))
