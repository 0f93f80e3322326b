"""Challenges: a sign-in, a proof or an enrolment that waits for a second factor.

They are in the store, so that every node can finish them and a restart loses none. A challenge is found by the hash of
its secret, ends after 10 minutes, after 5 wrong codes, with its use, and with a change of the user's password.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final, Literal

from msgspec import Struct

ChallengeKind = Literal["sign_in", "passkey", "proof", "enrolment"]
LIFETIME_MS: Final = 10 * 60_000
WRONG_CODES_MAX: Final = 5
"""Number of wrong codes that end a challenge."""
_SECRET_BYTES: Final = 24
_PREFIXES: Final[dict[str, str]] = {
    "sign_in": "sic",
    "passkey": "pkc",
    "proof": "prc",
    "enrolment": "pke",
}


class Challenge(Struct, frozen=True):
    """A challenge. Times are in milliseconds.

    Args:
        kind: `sign_in` follows a password, `passkey` is a sign-in by passkey alone, `proof` a step-up of a session,
            `enrolment` a new passkey.
        user_id: public id of its user; None for a sign-in by passkey alone.
        generation: the user's `generation` when it was made. A later one ends the challenge.
        session: public id of the session that asks for a proof or enrolment.
        wrong_codes: number of wrong codes so far.
        webauthn: the bytes that a passkey has to sign; None if none was asked for.
        carried: the data of the sign-in that waits, as JSON.
        rowid: storage key, 0 before it is stored.
    """

    kind: ChallengeKind
    user_id: str | None
    generation: int
    expires_at: int
    session: str | None = None
    wrong_codes: int = 0
    webauthn: bytes | None = None
    carried: bytes = b""
    rowid: int = 0

    def lasts(self, now: int) -> bool:
        """Return whether the challenge can still be met at `now` (ms)."""
        return now < self.expires_at and self.wrong_codes < WRONG_CODES_MAX


def new_challenge_secret(kind: ChallengeKind) -> str:
    """Return the secret of a new challenge, which its browser shows again."""
    return f"{_PREFIXES[kind]}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def hash_challenge_secret(secret: str) -> bytes:
    """Return the SHA-256 of a challenge's secret, which is stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
