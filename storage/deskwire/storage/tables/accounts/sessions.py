"""Browser sessions, and access tokens until they expire."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from deskwire.engine.accounts.access_tokens import ID_PREFIX, AccessToken
from deskwire.engine.accounts.sessions import BrowserSession, BrowserSessionLimits, SessionCutoffs
from deskwire.engine.audit.trail import AuditEntry
from deskwire.engine.core.values import replace
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries

_STRICTEST: Final = (
    '(SELECT min(o.{0}) FROM memberships m JOIN organisations o ON o.rowid = m.organisation WHERE m."user" = s."user" '
    "AND o.deleted_at IS NULL)"
)
_SESSION: Final = (
    "SELECT s.id, u.id, s.client, s.created_at, s.last_seen_at, s.rowid, s.method, s.proved_at, s.second_factor, s.provider, "
    f"s.provider_sid, {_STRICTEST.format('session_idle_s')}, {_STRICTEST.format('session_max_s')} "
    'FROM sessions s JOIN users u ON u.rowid = s."user"'
)
_LIMITS: Final = (
    "SELECT min(o.session_idle_s), min(o.session_max_s) FROM memberships m JOIN organisations o ON o.rowid = m.organisation "
    'WHERE m."user" = ? AND o.deleted_at IS NULL'
)
_OVER_LIMITS: Final = (
    'FROM sessions s JOIN memberships m ON m."user" = s."user" JOIN organisations o ON o.rowid = m.organisation '
    "WHERE (s.last_seen_at <= :now - o.session_idle_s * 1000 OR s.created_at <= :now - o.session_max_s * 1000)"
)
"""Finds sessions that have passed the limits of an organisation of their user. A limit of NULL matches none."""


_VOUCHED: Final = 2
"""The value of the column `second_factor` if an identity provider vouches for it."""


def _as_session(row: Sequence[Any]) -> BrowserSession:
    *columns, idle_s, longest_s = row
    session = BrowserSession(*columns)
    return replace(
        session,
        second_factor=bool(session.second_factor),
        limits=BrowserSessionLimits(idle_s, longest_s),
        vouched=session.second_factor == _VOUCHED,
    )


class SessionReads(Queries):
    """Queries. Implements `SessionReader`."""

    def session(self, hashed: bytes) -> BrowserSession | None:
        row = self.conn.execute(f"{_SESSION} WHERE s.hash = ?", (hashed,)).fetchone()
        return None if row is None else _as_session(row)

    def proved_at(self, session_id: str) -> int | None:
        row = self.conn.execute("SELECT proved_at FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return None if row is None else int(row[0])

    def session_with(self, session_id: str) -> BrowserSession | None:
        row = self.conn.execute(f"{_SESSION} WHERE s.id = ?", (session_id,)).fetchone()
        return None if row is None else _as_session(row)

    def lasts(self, session_id: str) -> bool:
        if session_id.startswith(f"{ID_PREFIX}_"):
            sql = "SELECT 1 FROM access_tokens WHERE id = ? AND ended_at IS NOT NULL"
            return self.conn.execute(sql, (session_id,)).fetchone() is None
        return self.conn.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone() is not None

    def session_limits(self, user: int) -> BrowserSessionLimits:
        return BrowserSessionLimits(*self.conn.execute(_LIMITS, (user,)).fetchone())

    def sessions_of(
        self, user: int, over: SessionCutoffs, before: int, limit: int
    ) -> Sequence[BrowserSession]:
        rows = self.conn.execute(
            f"{_SESSION} WHERE s.user = ? AND s.last_seen_at > ? AND s.created_at > ? AND s.rowid < ? "
            "ORDER BY s.rowid DESC LIMIT ?",
            (user, over.used, over.made, before, limit),
        )
        return [_as_session(row) for row in rows]


class SessionWrites(AuditWrites):
    """Changes. Implements `SessionTransaction`."""

    def insert_session(self, session: BrowserSession, user: int, hashed: bytes) -> None:
        self.conn.execute(
            'INSERT INTO sessions (id, "user", hash, client, created_at, last_seen_at, method, proved_at, second_factor, '
            "provider, provider_sid) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                session.id,
                user,
                hashed,
                session.client,
                session.created_at,
                session.last_seen_at,
                session.method,
                session.proved_at,
                _VOUCHED if session.vouched else int(session.second_factor),
                session.provider,
                session.provider_sid,
            ),
        )

    def touch_session(self, session_id: str, at: int) -> None:
        self.conn.execute("UPDATE sessions SET last_seen_at = ? WHERE id = ?", (at, session_id))

    def prove_session(self, session_id: str, at: int, provider_sid: str | None = None) -> bool:
        sql = "UPDATE sessions SET proved_at = ?, provider_sid = coalesce(?, provider_sid) WHERE id = ?"
        return self.conn.execute(sql, (at, provider_sid, session_id)).rowcount == 1

    def end_session(self, user: int, session_id: str) -> bool:
        return bool(self._end(user, "id = ?", session_id))

    def end_sessions(self, user: int, but: str | None) -> int:
        return self._end(user, "id <> ?", but or "")

    def evict_sessions(self, user: int, kept: int) -> None:
        newest = "SELECT s.rowid FROM sessions s WHERE s.user = ? ORDER BY s.last_seen_at DESC, s.rowid DESC LIMIT ?"
        self._end(user, f"rowid NOT IN ({newest})", user, kept)

    def prune_sessions(self, over: SessionCutoffs, now: int, limit: int) -> int:
        expired = self.conn.execute(
            "DELETE FROM sessions WHERE rowid IN "
            "(SELECT rowid FROM sessions WHERE last_seen_at <= ? OR created_at <= ? LIMIT ?)",
            (over.used, over.made, limit),
        ).rowcount
        sql = f"DELETE FROM sessions WHERE rowid IN (SELECT s.rowid {_OVER_LIMITS} LIMIT :limit)"
        return expired + self.conn.execute(sql, {"now": now, "limit": limit}).rowcount

    def end_sessions_over_limits(self, organisation: int, now: int) -> int:
        sql = f'SELECT s."user", s.id {_OVER_LIMITS} AND m.organisation = :organisation ORDER BY s."user"'
        found = self.conn.execute(sql, {"now": now, "organisation": organisation}).fetchall()
        ended: dict[int, list[str]] = {}
        for user, session in found:
            ended.setdefault(user, []).append(session)
        for user, sessions in ended.items():
            self._end(user, f"id IN ({', '.join('?' for _ in sessions)})", *sessions)
        return len(found)

    def _end(self, user: int, which: str, *values: str | int) -> int:
        """Delete sessions of a user and record their number if there were any. Return the number."""
        ended = self.conn.execute(
            f"DELETE FROM sessions WHERE sessions.user = ? AND {which}", (user, *values)
        ).rowcount
        if ended:
            (user_id,) = self.conn.execute("SELECT id FROM users WHERE rowid = ?", (user,)).fetchone()
            self.record(
                AuditEntry("account.sessions_ended", user_id, account=user, details={"sessions": ended})
            )
        return ended


_TOKEN: Final = (
    "SELECT t.id, u.id, t.source, t.client, t.generation, t.created_at, t.expires_at, t.ended_at, t.rowid "
    'FROM access_tokens t JOIN users u ON u.rowid = t."user"'
)


class AccessTokenReads(Queries):
    """Queries. Implements `AccessTokenReader`."""

    def access_token(self, token_id: str) -> AccessToken | None:
        row = self.conn.execute(f"{_TOKEN} WHERE t.id = ?", (token_id,)).fetchone()
        return None if row is None else AccessToken(*row)

    def access_tokens_of(self, user: int, now: int, before: int, limit: int) -> Sequence[AccessToken]:
        rows = self.conn.execute(
            f'{_TOKEN} WHERE t."user" = ? AND t.ended_at IS NULL AND t.expires_at > ? AND t.generation = u.generation '
            "AND t.rowid < ? ORDER BY t.rowid DESC LIMIT ?",
            (user, now, before, limit),
        )
        return [AccessToken(*row) for row in rows]

    def ended_tokens(self, now: int) -> Collection[str]:
        sql = "SELECT id FROM access_tokens WHERE ended_at IS NOT NULL AND expires_at > ?"
        return [row[0] for row in self.conn.execute(sql, (now,))]

    def count_ended_tokens(self, user: int, now: int) -> int:
        sql = (
            "SELECT count(*) FROM access_tokens t "
            'WHERE t."user" = ? AND t.ended_at IS NOT NULL AND t.expires_at > ?'
        )
        return int(self.conn.execute(sql, (user, now)).fetchone()[0])


class AccessTokenWrites(AccessTokenReads, AuditWrites):
    """Changes. Implements `AccessTokenTransaction`."""

    def insert_access_token(self, token: AccessToken, user: int) -> None:
        self.conn.execute(
            'INSERT INTO access_tokens (id, "user", source, client, generation, created_at, expires_at) '
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                token.id,
                user,
                token.source,
                token.client,
                token.generation,
                token.created_at,
                token.expires_at,
            ),
        )

    def end_access_token(self, token_id: str, user: int, at: int) -> None:
        self.conn.execute("UPDATE access_tokens SET ended_at = ? WHERE id = ?", (at, token_id))
        (user_id,) = self.conn.execute("SELECT id FROM users WHERE rowid = ?", (user,)).fetchone()
        self.record(AuditEntry("token.ended", user_id, account=user, details={"token": token_id}))

    def prune_access_tokens(self, now: int, limit: int) -> int:
        return self.conn.execute(
            "DELETE FROM access_tokens WHERE rowid IN "
            "(SELECT rowid FROM access_tokens WHERE expires_at <= ? LIMIT ?)",
            (now, limit),
        ).rowcount
