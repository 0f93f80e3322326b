"""Recovery codes: each one replaces the second factor once, for a user who has lost the telephone or key."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Final

CODES: Final = 10
_BYTES: Final = 10
"""80 random bits a code, so that its SHA-256 needs no salt and no slow hash."""
_GROUP: Final = 4


def new_recovery_codes() -> tuple[str, ...]:
    """Return new codes, such as `k5xw-2a7q-mzge-3bfo`."""
    return tuple(_new_code() for _ in range(CODES))


def hash_recovery_code(code: str) -> bytes:
    """Return the SHA-256 of a code, which is stored. Case, blanks and hyphens do not matter."""
    return hashlib.sha256("".join(each for each in code.lower() if each.isalnum()).encode()).digest()


def _new_code() -> str:
    text = base64.b32encode(secrets.token_bytes(_BYTES)).decode().lower()
    return "-".join(text[at : at + _GROUP] for at in range(0, len(text), _GROUP))
