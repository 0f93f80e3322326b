"""The claims of a signed token, whatever its signer has written into it.

A signature says who wrote the claims, not that they are sound. JSON as Python reads it has more than JSON has
(RFC 8259): halves of surrogate pairs, which are no text and which no database takes; numbers without end; and
nesting without end.
"""

from __future__ import annotations

import json
from typing import Any

import jwt


class UnsoundClaims(jwt.InvalidTokenError):
    """A signed token holds what can't be used."""


def claims_of(token: str, key: Any, algorithm: str, **checks: Any) -> dict[str, Any]:
    """Return a token's claims, checked as `jwt.decode` does by `checks`. Raises jwt.InvalidTokenError."""
    try:
        claims: dict[str, Any] = jwt.decode(token, key, algorithms=[algorithm], **checks)
        json.dumps(claims, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise UnsoundClaims("A claim holds half a surrogate pair, which is no text.") from None
    except (OverflowError, RecursionError, ValueError) as error:
        raise UnsoundClaims(f"A claim holds what JSON can't: {error}.") from None
    return claims
