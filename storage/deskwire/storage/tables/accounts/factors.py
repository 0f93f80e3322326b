"""Second factors of users, and the challenges that ask for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from deskwire.engine.accounts.factors.challenge import Challenge
from deskwire.engine.accounts.factors.factor import Factors, Passkey, Totp
from deskwire.engine.accounts.people import Organisation
from deskwire.engine.audit.audited_changes import differences
from deskwire.engine.audit.trail import AuditEntry
from deskwire.storage.connection import Connection
from deskwire.storage.dialect import either
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries

_TOTP: Final = "SELECT t.sealed_secret, t.created_at, t.used_step FROM totps t"
_PASSKEY: Final = (
    'SELECT p.id, p.credential, p.public_key, p.sign_count, p.name, p.created_at, p.last_used_at, p."user", u.id '
    'FROM passkeys p JOIN users u ON u.rowid = p."user"'
)
_CHALLENGE: Final = (
    "SELECT c.kind, u.id, c.generation, c.expires_at, c.session, c.wrong_codes, c.webauthn, c.carried, c.rowid "
    'FROM challenges c LEFT JOIN users u ON u.rowid = c."user"'
)
_CLAIMED: Final = either(f"{_CHALLENGE} WHERE c.hash = ? {{locking[c]}}")
_PROOF: Final = either(f"{_CHALLENGE} WHERE c.session = ? AND c.kind = 'proof' {{locking[c]}}")
_LOCKED: Final = either("SELECT u.rowid FROM users u WHERE u.rowid = ? {locking[u]}")
HAS_FACTOR: Final = (
    '(EXISTS (SELECT 1 FROM totps t WHERE t."user" = {0} AND t.confirmed = 1) '
    'OR EXISTS (SELECT 1 FROM passkeys p WHERE p."user" = {0}))'
)


class FactorReads(Queries):
    """Queries. Implements `FactorReader`."""

    def factors(self, user: int) -> Factors:
        codes = self.conn.execute(
            'SELECT count(*) FROM recovery_codes r WHERE r."user" = ?', (user,)
        ).fetchone()
        passkeys = self.conn.execute(f'{_PASSKEY} WHERE p."user" = ? ORDER BY p.rowid', (user,))
        return Factors(self._totp(user, 1), [Passkey(*row) for row in passkeys], int(codes[0]))

    def passkey(self, credential: bytes) -> Passkey | None:
        row = self.conn.execute(
            f"{_PASSKEY} WHERE p.credential = ? AND u.deleted_at IS NULL", (credential,)
        ).fetchone()
        return None if row is None else Passkey(*row)

    def has_passkeys(self) -> bool:
        return self.conn.execute("SELECT 1 FROM passkeys LIMIT 1").fetchone() is not None

    def challenge(self, hashed: bytes) -> Challenge | None:
        row = self.conn.execute(f"{_CHALLENGE} WHERE c.hash = ?", (hashed,)).fetchone()
        return None if row is None else Challenge(*row)

    def lacks_factor(self, organisation: int, user: int) -> bool:
        sql = (
            "SELECT 1 FROM organisations o WHERE o.rowid = ? AND o.second_factor = 1 AND NOT "
            + HAS_FACTOR.format("?")
        )
        return self.conn.execute(sql, (organisation, user, user)).fetchone() is not None

    def requires_factor(self, organisation: int) -> bool:
        row = self.conn.execute(
            "SELECT o.second_factor FROM organisations o WHERE o.rowid = ?", (organisation,)
        ).fetchone()
        return bool(row[0])

    def organisations_requiring_factor(self, user: int) -> Sequence[Organisation]:
        rows = self.conn.execute(
            "SELECT o.rowid, o.id, o.name, o.created_at FROM memberships m JOIN organisations o ON o.rowid = m.organisation "
            'WHERE m."user" = ? AND o.second_factor = 1 ORDER BY o.rowid',
            (user,),
        )
        return [Organisation(*row) for row in rows]

    def owner_has_factor(self, organisation: int) -> bool:
        sql = (
            "SELECT 1 FROM memberships m WHERE m.organisation = ? AND m.role = 'owner' AND "
            + HAS_FACTOR.format('m."user"')
            + " LIMIT 1"
        )
        return self.conn.execute(sql, (organisation,)).fetchone() is not None

    def pending_totp(self, user: int) -> Totp | None:
        return self._totp(user, 0)

    def _totp(self, user: int, confirmed: int) -> Totp | None:
        row = self.conn.execute(
            f'{_TOTP} WHERE t."user" = ? AND t.confirmed = ?', (user, confirmed)
        ).fetchone()
        return None if row is None else Totp(*row)


class FactorWrites(FactorReads, AuditWrites):
    """Changes. Implements `FactorTransaction`."""

    def lock_user(self, user: int) -> None:
        self.conn.execute(_LOCKED[self.dialect], (user,)).fetchone()

    def put_pending_totp(self, user: int, sealed: bytes, at: int) -> None:
        self.conn.execute('DELETE FROM totps WHERE totps."user" = ? AND confirmed = 0', (user,))
        self.conn.execute(
            'INSERT INTO totps ("user", confirmed, sealed_secret, created_at, used_step) VALUES (?, 0, ?, ?, 0)',
            (user, sealed, at),
        )

    def confirm_totp(self, user: int, step: int, at: int) -> None:
        self.delete_totp(user)
        self.conn.execute(
            'UPDATE totps SET confirmed = 1, used_step = ?, created_at = ? WHERE totps."user" = ? AND confirmed = 0',
            (step, at, user),
        )

    def use_totp(self, user: int, step: int) -> bool:
        sql = 'UPDATE totps SET used_step = ? WHERE totps."user" = ? AND confirmed = 1 AND used_step < ?'
        return self.conn.execute(sql, (step, user, step)).rowcount == 1

    def delete_totp(self, user: int) -> bool:
        sql = 'DELETE FROM totps WHERE totps."user" = ? AND confirmed = 1'
        return self.conn.execute(sql, (user,)).rowcount == 1

    def insert_passkey(self, passkey: Passkey) -> None:
        self.conn.execute(
            'INSERT INTO passkeys (id, "user", credential, public_key, sign_count, name, created_at) '
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                passkey.id,
                passkey.user,
                passkey.credential,
                passkey.public_key,
                passkey.sign_count,
                passkey.name,
                passkey.created_at,
            ),
        )

    def use_passkey(self, passkey_id: str, before: int, sign_count: int, at: int) -> bool:
        sql = "UPDATE passkeys SET sign_count = ?, last_used_at = ? WHERE id = ? AND sign_count = ?"
        return self.conn.execute(sql, (sign_count, at, passkey_id, before)).rowcount == 1

    def delete_passkey(self, user: int, passkey_id: str) -> bool:
        sql = 'DELETE FROM passkeys WHERE passkeys."user" = ? AND id = ?'
        return self.conn.execute(sql, (user, passkey_id)).rowcount == 1

    def replace_recovery_codes(self, user: int, hashes: Sequence[bytes]) -> None:
        self.conn.execute('DELETE FROM recovery_codes WHERE recovery_codes."user" = ?', (user,))
        for each in hashes:
            self.conn.execute('INSERT INTO recovery_codes ("user", hash) VALUES (?, ?)', (user, each))

    def use_recovery_code(self, user: int, hashed: bytes) -> bool:
        sql = 'DELETE FROM recovery_codes WHERE recovery_codes."user" = ? AND hash = ?'
        return self.conn.execute(sql, (user, hashed)).rowcount == 1

    def record_factor(self, action: str, user: int, factor: str | None) -> None:
        (public_id,) = self.conn.execute("SELECT id FROM users WHERE rowid = ?", (user,)).fetchone()
        details = {} if factor is None else {"factor": factor}
        self.record(AuditEntry(action, public_id, account=user, details=details))

    def delete_factors(self, user: int) -> None:
        for table in ("totps", "passkeys", "recovery_codes", "challenges"):
            self.conn.execute(f'DELETE FROM {table} WHERE {table}."user" = ?', (user,))

    def require_factor(self, organisation: int, required: bool) -> None:
        before = self.requires_factor(organisation)
        self.conn.execute(
            "UPDATE organisations SET second_factor = ? WHERE rowid = ?", (int(required), organisation)
        )
        changes = differences({"requireSecondFactor": before}, {"requireSecondFactor": required})
        if changes:
            (public_id,) = self.conn.execute(
                "SELECT id FROM organisations WHERE rowid = ?", (organisation,)
            ).fetchone()
            self.record(
                AuditEntry("organisation.changed", public_id, organisation=organisation, changes=changes)
            )

    def insert_challenge(self, challenge: Challenge, hashed: bytes) -> None:
        if challenge.session is not None:
            self.conn.execute(
                "DELETE FROM challenges WHERE session = ? AND kind = ?", (challenge.session, challenge.kind)
            )
        self.conn.execute(
            'INSERT INTO challenges (hash, kind, "user", generation, expires_at, session, wrong_codes, webauthn, carried) '
            "VALUES (?, ?, (SELECT u.rowid FROM users u WHERE u.id = ?), ?, ?, ?, ?, ?, ?)",
            (
                hashed,
                challenge.kind,
                challenge.user_id,
                challenge.generation,
                challenge.expires_at,
                challenge.session,
                challenge.wrong_codes,
                challenge.webauthn,
                challenge.carried,
            ),
        )

    def proof_challenge(self, session_id: str) -> Challenge | None:
        row = self.conn.execute(_PROOF[self.dialect], (session_id,)).fetchone()
        return None if row is None else Challenge(*row)

    def claim_challenge(self, hashed: bytes) -> Challenge | None:
        row = self.conn.execute(_CLAIMED[self.dialect], (hashed,)).fetchone()
        return None if row is None else Challenge(*row)

    def ask_passkey(self, challenge: int, webauthn: bytes) -> None:
        self.conn.execute("UPDATE challenges SET webauthn = ? WHERE rowid = ?", (webauthn, challenge))

    def count_wrong_code(self, challenge: int) -> None:
        self.conn.execute("UPDATE challenges SET wrong_codes = wrong_codes + 1 WHERE rowid = ?", (challenge,))

    def end_challenge(self, challenge: int) -> bool:
        return self.conn.execute("DELETE FROM challenges WHERE rowid = ?", (challenge,)).rowcount == 1

    def prune_challenges(self, now: int, limit: int) -> int:
        return self.conn.execute(
            "DELETE FROM challenges WHERE rowid IN (SELECT rowid FROM challenges WHERE expires_at <= ? LIMIT ?)",
            (now, limit),
        ).rowcount


def renew_totp_seals(connection: Connection, renewed: Callable[[bytes], bytes]) -> int:
    """Re-encrypt the secrets of all authenticator apps with `renewed`.

    Return the number of changed ones.
    """
    changed = 0
    rows: list[Any] = connection.execute("SELECT rowid, sealed_secret FROM totps").fetchall()
    for rowid, before in rows:
        after = renewed(before)
        if after != before:
            changed += 1
            connection.execute("UPDATE totps SET sealed_secret = ? WHERE rowid = ?", (after, rowid))
    return changed
