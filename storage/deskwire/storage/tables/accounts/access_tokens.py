"""The access tokens that were issued, until they expire."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from deskwire.engine.accounts.access_tokens import AccessToken
from deskwire.engine.audit.trail import Deed
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries

_TOKEN: Final = (
    "SELECT t.id, u.id, t.source, t.client, t.generation, t.created_at, t.expires_at, t.ended_at, t.rowid "
    'FROM access_tokens t JOIN users u ON u.rowid = t."user"'
)


class AccessTokenReads(Queries):
    """Queries; the methods are those of `AccessTokenReader`."""

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
    """Changes; the methods are those of `AccessTokenTransaction`."""

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
        self.record(Deed("token.ended", user_id, account=user, details={"token": token_id}))

    def prune_access_tokens(self, now: int, limit: int) -> int:
        return self.conn.execute(
            "DELETE FROM access_tokens WHERE rowid IN "
            "(SELECT rowid FROM access_tokens WHERE expires_at <= ? LIMIT ?)",
            (now, limit),
        ).rowcount
