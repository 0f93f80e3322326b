"""Identities of customers, signed by the integrator's backend as JSON Web Tokens (RFC 7519, RFC 8725).

A token is checked with the keys of its channel only. Each key has one algorithm, so the header of a token selects among them and
can't choose another use of a key. Keys within a token (`jwk`, `jku`, `x5c`) are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from msgspec import Struct

from deskwire.engine.accounts.credentials import HS256
from deskwire.engine.accounts.identity.claims import audiences_of, claims_of, reason_of
from deskwire.engine.channels.channel import KEY_ALGORITHMS, Channel
from deskwire.engine.core.errors import Unauthenticated
from deskwire.engine.core.text import NUL
from deskwire.engine.customers.session import SIGNABLE

IDENTITY_MAX: Final = 16 * 1024  # characters of a token
LIFETIME_MAX_S: Final = 24 * 3_600  # a stolen token is of no use after a day
LEEWAY_S: Final = 60  # tolerated difference between the clocks of the backend and of this service
USER_ID_MAX: Final = 255  # as in other calls

_ALGORITHMS: Final = (HS256, *KEY_ALGORITHMS)
_FORM: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
# The claims with a time are checked against this service's clock, which tests can set.
_OPTIONS: Final[jwt.types.Options] = {
    "require": ["sub", "aud", "exp"],
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,  # a claim of other systems, which may have any form
}


class SignedIdentity(Struct, frozen=True):
    """A verified identity.

    Args:
        user_id: the claim `sub`.
        profile: the claims among SIGNABLE, which are not validated yet.
    """

    user_id: str
    profile: Mapping[str, Any]


def verify_identity(channel: Channel, secrets: Sequence[str], token: str, now: int) -> SignedIdentity:
    """Return the identity that a token proves in a channel.

    Args:
        secrets: the channel's secrets that count now, the current one first.
        now: in milliseconds.

    Raises Unauthenticated: `identity_expired`, or `identity_invalid` with the reason.
    """
    if len(token) > IDENTITY_MAX:
        raise identity_invalid(f"It has {len(token):,} characters; at most {IDENTITY_MAX:,} are accepted.")
    claims = _signed_claims(channel, secrets, token)
    if channel.id not in audiences_of(claims):
        raise identity_invalid("Its audience (`aud`) is not the id of this channel.")
    _check_times(claims, now // 1000)
    user_id = claims["sub"]
    if not isinstance(user_id, str) or not 0 < len(user_id) <= USER_ID_MAX or user_id.isspace():
        raise identity_invalid(f"Its subject (`sub`) must be a text of 1 to {USER_ID_MAX} characters.")
    if NUL in user_id:
        raise identity_invalid("Its subject (`sub`) contains U+0000.")
    return SignedIdentity(user_id, {name: claims[name] for name in SIGNABLE if name in claims})


def identity_invalid(reason: str) -> Unauthenticated:
    """Return the refusal of an identity. `reason` is a sentence without text from the token."""
    return Unauthenticated(f"The identity is not valid. {reason}", code="identity_invalid")


def _signed_claims(channel: Channel, secrets: Sequence[str], token: str) -> dict[str, Any]:
    """Return the claims of a token whose signature fits one of the keys."""
    algorithm, kid = _header(token)
    keys = _keys(channel, secrets, algorithm, kid)
    if not keys:
        raise identity_invalid(
            f"The channel has no key for {algorithm}."
            if kid is None
            else f"The channel has no key for {algorithm} with the id that `kid` names."
        )
    for key in keys:
        try:
            return claims_of(token, key, algorithm, options=_OPTIONS)
        except jwt.InvalidSignatureError:
            pass  # another key may fit
        except jwt.PyJWTError as error:
            raise identity_invalid(reason_of(error)) from None
    owner = "the secret" if algorithm == HS256 else "a key"
    raise identity_invalid(f"Its signature was not made with {owner} of this channel.")


def _header(token: str) -> tuple[str, str | None]:
    """Return the algorithm and the key id that the header of a token names."""
    try:
        if _FORM.fullmatch(token) is None:
            raise jwt.DecodeError
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise identity_invalid("It can't be read as a JWT.") from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in _ALGORITHMS:
        raise identity_invalid(f"Its algorithm (`alg`) must be one of {', '.join(_ALGORITHMS)}.")
    if "crit" in header:
        raise identity_invalid("Its header has extensions (`crit`), of which none is supported.")
    return algorithm, kid if isinstance(kid, str) else None


def _keys(channel: Channel, secrets: Sequence[str], algorithm: str, kid: str | None) -> Sequence[Any]:
    """Return the keys that a token may be signed with.

    A secret has no id, so `kid` selects among public keys only.
    """
    if algorithm == HS256:
        return [secret.encode() for secret in secrets]
    return [
        _public_key(each.key)
        for each in channel.public_keys
        if each.algorithm == algorithm and kid in (None, each.id)
    ]


@lru_cache(maxsize=256)  # parsing costs as much as a check
def _public_key(pem: str) -> Any:
    return load_pem_public_key(pem.encode())


def _check_times(claims: Mapping[str, Any], now_s: int) -> None:
    """Check `exp` and `nbf`. Raises Unauthenticated."""
    expires, begins = claims["exp"], claims.get("nbf", now_s)
    if not _is_time(expires) or not _is_time(begins):
        raise identity_invalid("Its times (`exp`, `nbf`) must be seconds since 1970 as numbers.")
    if expires <= now_s - LEEWAY_S:
        raise Unauthenticated(
            "The identity has expired (`exp`); the site's backend must sign another one.",
            code="identity_expired",
        )
    if expires > now_s + LIFETIME_MAX_S + LEEWAY_S:
        raise identity_invalid("It expires (`exp`) more than 24 hours from now; sign one for a shorter time.")
    if begins > now_s + LEEWAY_S:
        raise identity_invalid("It is not valid yet (`nbf`); are the clocks right?")


def _is_time(value: object) -> bool:
    """Return whether a claim is a number. `claims_of` has refused infinite ones and those that are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)
