"""Safe decoding of the claims of a signed token.

A signature proves who wrote the claims, not that they are well-formed. Python's parser accepts more than JSON (RFC 8259):
unpaired surrogates, which no database stores, infinite numbers, and unlimited nesting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import jwt


class UnsoundClaims(jwt.InvalidTokenError):
    """A signed token has a claim with an unusable value."""


_REASONS: Final[tuple[tuple[type[jwt.PyJWTError], str], ...]] = (
    (jwt.InvalidSignatureError, "Its signature was not made with the key that it names."),
    (jwt.InvalidAudienceError, "Its audience (`aud`) is not the one that is accepted here."),
    (jwt.InvalidIssuerError, "Its issuer (`iss`) is not the one that is accepted here."),
    (jwt.ImmatureSignatureError, "It is not valid yet (`nbf`)."),
    (jwt.exceptions.InvalidSubjectError, "Its subject (`sub`) is not a string."),
    (jwt.exceptions.InvalidJTIError, "Its id (`jti`) is not a string."),
)


def reason_of(error: jwt.PyJWTError) -> str:
    """Return a sentence that says why a token was refused. It contains no text from the token."""
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"It has no claim `{error.claim}`."
    if isinstance(error, UnsoundClaims):
        return str(error)
    return next((text for kind, text in _REASONS if isinstance(error, kind)), "It can't be read as a JWT.")


def claims_of(token: str, key: Any, algorithm: str, **checks: Any) -> dict[str, Any]:
    """Return the claims of a token, checked by `jwt.decode` with the options `checks`.

    Raises jwt.InvalidTokenError.
    """
    try:
        claims: dict[str, Any] = jwt.decode(token, key, algorithms=[algorithm], **checks)
        json.dumps(claims, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise UnsoundClaims("A claim holds half a surrogate pair, which is no text.") from None
    except (OverflowError, RecursionError, ValueError) as error:
        raise UnsoundClaims(f"A claim holds what JSON can't: {error}.") from None
    return claims


def audiences_of(claims: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the audiences in `aud`, which may be a string or a list (RFC 7519 4.1.3)."""
    audience = claims.get("aud")
    return tuple(audience) if isinstance(audience, list) else (audience,)
