"""Checks of the tokens that an OpenID provider signs: ID tokens (OpenID Connect Core 3.1.3.7) and logout tokens (Back-Channel
Logout 1.0, 2.6)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeGuard

import jwt
from msgspec import Struct

from deskwire.engine.accounts.identity.algorithms import ALGORITHMS
from deskwire.engine.accounts.identity.claims import audiences_of, claims_of, reason_of
from deskwire.engine.accounts.identity.provider_keys import KeySource, VerifyingKey

LEEWAY_S: Final = 30.0
"""Tolerated clock difference to the provider."""
ID_TOKEN_AGE_MAX_S: Final = 600.0
LOGOUT_TOKEN_AGE_MAX_S: Final = 3_600.0
SUBJECT_MAX: Final = 255
"""Maximum length of `sub` (Core 2)."""
TOKEN_MAX: Final = 64 * 1024
LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"
_ID_TOKEN_TYPES: Final = frozenset({"jwt"})
_LOGOUT_TYPES: Final = frozenset({"jwt", "logout+jwt"})
_HASHES: Final = {"RS256": hashlib.sha256, "ES256": hashlib.sha256, "EdDSA": hashlib.sha512}


class BadToken(Exception):
    """A token that is not accepted. The text says why, without text from the token."""


class ExpectedToken(Struct, frozen=True):
    """The values that an ID token must have.

    Args:
        nonce: of the request that the token answers.
        access_token: the token that came with it, for `at_hash`.
        signed_in_since: earliest time (seconds) of the sign-in at the provider, None for any.
    """

    issuer: str
    client_id: str
    nonce: str
    access_token: str | None = None
    signed_in_since: float | None = None


class LogoutToken(Struct, frozen=True):
    """A request of the provider to end sessions: of a user (`subject`), of one of its own sessions (`sid`), or both.

    `expires_at` is the time (seconds) until which `jti` must be remembered.
    """

    issuer: str
    jti: str
    subject: str | None
    sid: str | None
    expires_at: float


async def checked_id_token(
    token: str, keys: KeySource, expected: ExpectedToken, now_s: float
) -> Mapping[str, Any]:
    """Return the claims of an ID token. Raises BadToken, or Unavailable while there are no keys."""
    header, claims = await _signed_claims(token, keys, _ID_TOKEN_TYPES)
    _check_party(claims, expected.issuer, expected.client_id)
    _check_times(claims, now_s, ID_TOKEN_AGE_MAX_S)
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_MAX:
        raise BadToken(f"Its `sub` is not a text of at most {SUBJECT_MAX} characters.")
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), expected.nonce.encode()):
        raise BadToken("Its `nonce` is not that of the request.")
    if "events" in claims:
        raise BadToken("It is a logout token.")
    _check_access_token(claims, header["alg"], expected.access_token)
    if expected.signed_in_since is not None:
        signed_in = claims.get("auth_time")
        if not _is_number(signed_in) or signed_in < expected.signed_in_since - LEEWAY_S:
            raise BadToken("Its `auth_time` is not after the request for a new sign-in.")
    return claims


async def checked_logout_token(
    token: str, keys: KeySource, issuer: str, client_id: str, now_s: float
) -> LogoutToken:
    """Return the content of a logout token. Raises BadToken, or Unavailable while there are no keys."""
    _, claims = await _signed_claims(token, keys, _LOGOUT_TYPES)
    _check_party(claims, issuer, client_id)
    _check_times(claims, now_s, LOGOUT_TOKEN_AGE_MAX_S)
    events = claims.get("events")
    if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
        raise BadToken("Its `events` do not have the event of a back-channel logout.")
    if "nonce" in claims:
        raise BadToken("It has a `nonce`, which logout tokens never have.")
    jti, subject, sid = (_text(claims, name) for name in ("jti", "sub", "sid"))
    if jti is None:
        raise BadToken("It has no `jti`.")
    if subject is None and sid is None:
        raise BadToken("It has neither `sub` nor `sid`.")
    until = min(float(claims["exp"]), now_s + LOGOUT_TOKEN_AGE_MAX_S) + LEEWAY_S
    return LogoutToken(issuer, jti, subject, sid, until)


def issuer_named(token: str) -> str:
    """Return the issuer that a token names, unverified, to find the provider. Raises BadToken."""
    if len(token) > TOKEN_MAX:
        raise BadToken("It is too long.")
    try:
        claims = jwt.decode_complete(token, options={"verify_signature": False})["payload"]
    except (jwt.PyJWTError, RecursionError, ValueError):
        raise BadToken("It can't be read as a JWT.") from None
    issuer = claims.get("iss")
    if not isinstance(issuer, str):
        raise BadToken("It has no claim `iss`.")
    return issuer


async def _signed_claims(
    token: str, keys: KeySource, types: frozenset[str]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return header and claims of a token whose signature is the provider's.

    The key decides the algorithm, so neither `none` nor an HMAC with a public key is ever tried.
    """
    if len(token) > TOKEN_MAX:
        raise BadToken("It is too long.")
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise BadToken(reason_of(error)) from None
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if algorithm not in ALGORITHMS:
        raise BadToken("Its algorithm is not accepted here.")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in types:
        raise BadToken("Its header `typ` is that of another kind of token.")
    key = await keys.find(kid, algorithm)
    if key is None:
        raise BadToken("No key of the provider has the id and algorithm that it names.")
    return header, await _verified(token, key, keys.find_replaced)


async def _verified(
    token: str, key: VerifyingKey, replacement: Callable[[VerifyingKey], Awaitable[VerifyingKey | None]]
) -> dict[str, Any]:
    try:
        return _claims(token, key)
    except jwt.InvalidSignatureError as error:
        replaced = await replacement(key)
        if replaced is None:
            raise BadToken(reason_of(error)) from None
    except jwt.PyJWTError as error:
        raise BadToken(reason_of(error)) from None
    try:
        return _claims(token, replaced)
    except jwt.PyJWTError as error:
        raise BadToken(reason_of(error)) from None


def _claims(token: str, key: VerifyingKey) -> dict[str, Any]:
    """Return the claims. Times and parties are checked here, not by PyJWT, against the clock of the caller."""
    unchecked = {f"verify_{name}": False for name in ("exp", "iat", "nbf", "aud", "iss", "sub", "jti")}
    return claims_of(token, key.key, key.algorithm, options=unchecked)


def _check_party(claims: Mapping[str, Any], issuer: str, client_id: str) -> None:
    """Check that the token is from the provider and for this service alone, or authorized for it."""
    if claims.get("iss") != issuer:
        raise BadToken("Its issuer (`iss`) is another one.")
    audiences = audiences_of(claims)
    if client_id not in audiences:
        raise BadToken("Its audience (`aud`) is another client.")
    authorized = claims.get("azp")
    if (len(audiences) > 1 and authorized is None and "events" not in claims) or authorized not in (
        None,
        client_id,
    ):
        raise BadToken("Its authorized party (`azp`) is not this client.")


def _check_times(claims: Mapping[str, Any], now_s: float, age_max_s: float) -> None:
    expires, issued, earliest = claims.get("exp"), claims.get("iat"), claims.get("nbf", 0)
    if not _is_number(expires) or not _is_number(issued) or not _is_number(earliest):
        raise BadToken("Its `exp`, `iat` or `nbf` is not a time.")
    if now_s >= expires + LEEWAY_S:
        raise BadToken("It has expired.")
    if issued > now_s + LEEWAY_S or earliest > now_s + LEEWAY_S:
        raise BadToken("It is from the future.")
    if issued < now_s - age_max_s - LEEWAY_S:
        raise BadToken("It was issued too long ago.")


def _check_access_token(claims: Mapping[str, Any], algorithm: str, access_token: str | None) -> None:
    """Check `at_hash`, if the token has one (Core 3.1.3.6)."""
    named = claims.get("at_hash")
    if named is None:
        return
    digest = _HASHES[algorithm]((access_token or "").encode()).digest()
    expected = base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=")
    if not isinstance(named, str) or not hmac.compare_digest(named.encode(), expected):
        raise BadToken("Its `at_hash` is not that of the access token.")


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= SUBJECT_MAX:
        raise BadToken(f"Its `{name}` is not a text of at most {SUBJECT_MAX} characters.")
    return value


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
