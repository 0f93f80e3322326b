"""Identities of accounts at OpenID providers, requests for a sign-in there, and remembered logout tokens."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

from deskwire.engine.accounts.identity.oidc.identities import Identity
from deskwire.engine.accounts.identity.oidc.requests import OidcRequest
from deskwire.engine.accounts.people import User
from deskwire.engine.audit.trail import AuditEntry
from deskwire.storage.tables.accounts.people import USER, as_user
from deskwire.storage.tables.accounts.sessions import SessionWrites
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries

_IDENTITY: Final = "i.id, i.issuer, i.provider, i.subject, i.email, i.gives_role, i.created_at, i.rowid"
_IDENTITY_WIDTH: Final = 8
_REQUEST: Final = "state, browser, provider, purpose, return_to, session, created_at, expires_at"


def _as_identity(row: Sequence[Any]) -> Identity:
    identity_id, issuer, provider, subject, email, gives_role, *rest = row
    return Identity(identity_id, issuer, provider, subject, email, bool(gives_role), *rest)


class IdentityReads(Queries):
    """Queries. Implements `IdentityReader`."""

    def identity(self, issuer: str, subject: str) -> tuple[Identity, User] | None:
        row = self.conn.execute(
            f'SELECT {_IDENTITY}, {USER} FROM identities i JOIN users u ON u.rowid = i."user" '
            "WHERE i.issuer = ? AND i.subject = ? AND u.deleted_at IS NULL",
            (issuer, subject),
        ).fetchone()
        return None if row is None else (_as_identity(row[:_IDENTITY_WIDTH]), as_user(row[_IDENTITY_WIDTH:]))

    def identities_of(self, user: int) -> Sequence[Identity]:
        sql = f'SELECT {_IDENTITY} FROM identities i WHERE i."user" = ? ORDER BY i.rowid'
        return [_as_identity(row) for row in self.conn.execute(sql, (user,))]


class IdentityWrites(IdentityReads, AuditWrites):
    """Changes of identities, recorded in the audit trail."""

    def insert_identity(self, identity: Identity, user: int) -> None:
        self.conn.execute(
            'INSERT INTO identities (id, "user", issuer, provider, subject, email, gives_role, created_at) '
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                identity.id,
                user,
                identity.issuer,
                identity.provider,
                identity.subject,
                identity.email,
                int(identity.gives_role),
                identity.created_at,
            ),
        )
        self._record_identity("identity.linked", identity, user)

    def save_identity(self, identity: Identity) -> None:
        self.conn.execute(
            "UPDATE identities SET provider = ?, email = ?, gives_role = ? WHERE rowid = ?",
            (identity.provider, identity.email, int(identity.gives_role), identity.rowid),
        )

    def delete_identity(self, identity: Identity, user: int) -> None:
        self.conn.execute("DELETE FROM identities WHERE rowid = ?", (identity.rowid,))
        self._record_identity("identity.unlinked", identity, user)

    def _record_identity(self, action: str, identity: Identity, user: int) -> None:
        (user_id,) = self.conn.execute("SELECT id FROM users WHERE rowid = ?", (user,)).fetchone()
        details = {"provider": identity.provider, "identity": identity.id}
        self.record(AuditEntry(action, user_id, account=user, details=details))


class OidcWrites(IdentityWrites, SessionWrites):
    """Changes. Implements `IdentityChanges` and `OidcRequestTransaction`."""

    def end_provider_sessions(self, provider: str, user: int | None, sid: str | None) -> int:
        # A session whose sign-in had no `sid` may be the one that is named, if it is this user's.
        named = "provider_sid = ?" if user is None else "(provider_sid = ? OR provider_sid IS NULL)"
        where = "provider = ?" if sid is None else f"provider = ? AND {named}"
        values = (provider,) if sid is None else (provider, sid)
        owners = [user]
        if user is None:
            found = self.conn.execute(f'SELECT DISTINCT sessions."user" FROM sessions WHERE {where}', values)
            owners = [owner for (owner,) in found.fetchall()]
        return sum(self._end(owner, where, *values) for owner in owners if owner is not None)

    def remember_logout(self, issuer: str, jti: str, until: int) -> bool:
        digest = sha256(f"{issuer}\n{jti}".encode()).digest()
        return bool(
            self.conn.execute(
                "INSERT INTO oidc_logouts (digest, until) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING",
                (digest, until),
            ).rowcount
        )

    def insert_oidc_request(self, request: OidcRequest) -> None:
        self.conn.execute(
            f"INSERT INTO oidc_requests ({_REQUEST}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                request.state,
                request.browser,
                request.provider,
                request.purpose,
                request.return_to,
                request.session,
                request.created_at,
                request.expires_at,
            ),
        )

    def take_oidc_request(self, state: bytes) -> OidcRequest | None:
        row = self.conn.execute(f"SELECT {_REQUEST} FROM oidc_requests WHERE state = ?", (state,)).fetchone()
        # Of two answers at once, only the one that deletes the row has taken it.
        if (
            row is None
            or not self.conn.execute("DELETE FROM oidc_requests WHERE state = ?", (state,)).rowcount
        ):
            return None
        return OidcRequest(*row)

    def prune_oidc(self, now: int, limit: int) -> int:
        requests = self.conn.execute(
            "DELETE FROM oidc_requests WHERE state IN (SELECT state FROM oidc_requests WHERE expires_at <= ? LIMIT ?)",
            (now, limit),
        ).rowcount
        self.conn.execute(
            "DELETE FROM oidc_logouts WHERE digest IN (SELECT digest FROM oidc_logouts WHERE until <= ? LIMIT ?)",
            (now, limit),
        )
        return requests
