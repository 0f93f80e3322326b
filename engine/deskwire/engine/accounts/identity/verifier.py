"""Verification of access tokens, by the secret of the installation or the keys of an identity provider."""

from __future__ import annotations

from typing import Any, Final

import jwt
import structlog
from msgspec import Struct

from deskwire.engine.accounts.access_tokens import foreign_id
from deskwire.engine.accounts.credentials import (
    HS256,
    BadSignature,
    InvalidToken,
    TokenIdentity,
    Tokens,
    checked_claims,
    expiry_of,
)
from deskwire.engine.accounts.identity.algorithms import UserClaim
from deskwire.engine.accounts.identity.claims import reason_of
from deskwire.engine.accounts.identity.provider_keys import KeySource, VerifyingKey
from deskwire.engine.accounts.people import User
from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.core.errors import Unauthenticated

log: Final = structlog.get_logger(__name__)

LEEWAY_S: Final = 30.0
"""Tolerated clock difference to an identity provider."""
_ACCESS_TOKEN_TYPES: Final = (None, "jwt", "at+jwt")
"""Values of `typ` that are accepted unless one is required: many providers write none, or `JWT` into every token."""
_TYPES: Final = frozenset({"jwt", "at+jwt"})
"""Types of access tokens (RFC 9068 2.1), in lower case and without `application/`."""
_OTHER_KINDS: Final = frozenset({"id", "logout", "refresh", "offline"})
"""The claim `typ` of other tokens of Keycloak, in lower case."""
_OF_ID_TOKENS: Final = ("nonce", "at_hash", "c_hash", "events")
"""Claims that ID tokens and logout tokens have, and access tokens never."""
_SHOWN_MAX: Final = 80  # characters of a header's value in the log


class Provider(Struct, frozen=True):
    """An identity provider whose tokens are accepted.

    Args:
        algorithms: accepted signature algorithms.
        issuer, audience: required values of `iss` and `aud`, if given.
        user_claim: `sub` if it holds our user id, or `email` if it holds the verified address of a user.
        token_type: required value of the header `typ`, if given, such as `at+jwt` (RFC 9068).
    """

    keys: KeySource
    algorithms: frozenset[str]
    issuer: str | None = None
    audience: str | None = None
    user_claim: UserClaim = "sub"
    token_type: str | None = None

    async def identity(
        self, token: str, algorithm: str, kid: str | None, typ: object = None
    ) -> TokenIdentity:
        """Return the identity in the token.

        Args:
            typ: the header `typ` of the token.

        Raises Unauthenticated, or Unavailable while there are no keys.
        """
        self._check_type(typ)
        if algorithm not in self.algorithms:
            raise InvalidToken("Its algorithm is not accepted here.")
        key = await self.keys.find(kid, algorithm)
        if key is None:
            raise InvalidToken("No key of the identity provider has the id and algorithm that it names.")
        try:
            claims = self._claims(token, key)
        except BadSignature:
            replaced = await self.keys.find_replaced(key)
            if replaced is None:
                raise
            claims = self._claims(token, replaced)
        if "events" in claims:
            raise InvalidToken("It reports an event (`events`), such as a logout, and identifies no caller.")
        known_by = (None, foreign_id(token), expiry_of(claims))
        _check_kind(claims)
        if self.user_claim == "sub":
            return TokenIdentity("id", claims["sub"], *known_by)
        return TokenIdentity("email", _verified_email(claims), *known_by)

    def _check_type(self, typ: object) -> None:
        """Raise InvalidToken for a token that was made for another purpose, by its header `typ` (RFC 8725 3.11)."""
        given = None if typ is None else str(typ).lower().removeprefix("application/")
        accepted = _ACCESS_TOKEN_TYPES if self.token_type is None else (self.token_type.lower(),)
        if given not in accepted:
            raise InvalidToken("Its type (`typ`) is not that of an access token here.")

    def _claims(self, token: str, key: VerifyingKey) -> dict[str, Any]:
        return checked_claims(token, key.key, key.algorithm, self.issuer, self.audience, LEEWAY_S)


class Verifier:
    """Verifies all kinds of access tokens that the installation accepts.

    Args:
        tokens: verifies tokens signed with the secret of the installation. None to refuse them.
        provider: verifies tokens signed with a private key. None to refuse them.
    """

    def __init__(self, tokens: Tokens | None, provider: Provider | None) -> None:
        self._tokens = tokens
        self._provider = provider

    async def identity(self, token: str) -> TokenIdentity:
        """Return the identity in the token.

        The algorithm in its header only selects the verifier, so an HMAC is never checked with a public key. The reason of
        each refusal is logged, with the algorithm and key id from the token.

        Raises Unauthenticated, or Unavailable (`signing_keys_unavailable`).
        """
        header: dict[str, Any] = {}
        try:
            header = _header(token)
            _check_type(header)
            return await self._identity(token, header)
        except InvalidToken as refusal:
            named = {name: _shown(header.get(name)) for name in ("alg", "kid")}
            log.info("identity.token_refused", reason=refusal.why, **named)
            raise

    async def _identity(self, token: str, header: dict[str, Any]) -> TokenIdentity:
        algorithm = header.get("alg")
        if algorithm == HS256 and self._tokens is not None:
            return self._tokens.identity(token)
        if isinstance(algorithm, str) and self._provider is not None:
            return await self._provider.identity(token, algorithm, header.get("kid"), header.get("typ"))
        raise InvalidToken("Its algorithm is not accepted here.")


def user_of(reader: AccountReader, identity: TokenIdentity) -> User:
    """Return the user of an identity.

    Raises Unauthenticated if the user is gone or has changed the password since.
    """
    known = reader.user if identity.claim == "id" else reader.user_by_email
    user = known(identity.value)
    if user is None:
        raise Unauthenticated("The access token's user does not exist.", code="invalid_token")
    if identity.generation is not None and identity.generation != user.generation:
        raise Unauthenticated("The password has changed since; sign in again.", code="token_expired")
    return user


def _header(token: str) -> dict[str, Any]:
    try:
        return jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise InvalidToken(reason_of(error)) from None


def _check_type(header: dict[str, Any]) -> None:
    """Raise Unauthenticated for a token whose header names another type than that of access tokens (RFC 8725 3.11)."""
    kind = header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise InvalidToken("Its header `typ` is that of another kind of token.")


def _check_kind(claims: dict[str, Any]) -> None:
    """Raise Unauthenticated for an identity provider's ID token, logout token or refresh token.

    Browsers and other clients handle these, and they are not meant for calls.
    """
    kind = claims.get("typ")
    if isinstance(kind, str) and kind.lower() in _OTHER_KINDS:
        raise InvalidToken("Its claim `typ` is that of another kind of token.")
    if any(name in claims for name in _OF_ID_TOKENS):
        raise InvalidToken("It is an ID token or a logout token; send the access token.")


def _verified_email(claims: dict[str, Any]) -> str:
    """Return the verified e-mail address in the claims.

    Raises Unauthenticated if there is none.
    """
    email = claims.get("email")
    if not isinstance(email, str):
        raise InvalidToken("It has no claim `email`.")
    if claims.get("email_verified") is not True:
        raise InvalidToken("Its `email_verified` is not true.")
    return email


def _shown(value: object) -> str | None:
    """Return a value of an unverified header for the log, shortened so that attackers can't flood the log."""
    return value[:_SHOWN_MAX] if isinstance(value, str) else None
