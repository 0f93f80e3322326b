"""Access tokens and passwords: issuing, hashing and checking (contract 5, decisions 2)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal

import argon2
import jwt
from msgspec import Struct

from deskwire.engine.accounts.access_tokens import ID_PREFIX, foreign_id
from deskwire.engine.accounts.identity.claims import audiences_of, claims_of, reason_of
from deskwire.engine.accounts.people import User
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.errors import Unauthenticated
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.secret import Secrets

HS256: Final = "HS256"
STREAM_AUDIENCE: Final = "stream"  # `aud` of authorizations for the realtime stream
ONE_TIME_PASSWORD_LIFETIME_S: Final = 72 * 3_600.0
"""Default lifetime of a one-time password."""

TOKEN_LIFETIME_S: Final = 3_600
"""Lifetime of a token from `POST /v3/auth/token`."""

_VERIFIED_MAX: Final = 1_024
"""Tokens whose signatures are not verified again at each call."""


class TokenIdentity(Struct, frozen=True):
    """The user of a valid token, by id or e-mail address.

    Args:
        generation: the user's `generation` when the token was issued, None for a token of another party.
        token: id of the token (`access_tokens`).
        expires_at: expiry time of the token (ms).
    """

    claim: Literal["id", "email"]
    value: str
    generation: int | None = None
    token: str = ""
    expires_at: int = 0


class Tokens:
    """Issues and verifies access tokens: JWTs signed with the secret of the installation.

    Args:
        secrets: at least 32 characters each. Their UTF-8 bytes are the keys, so that other programs can sign tokens.
        issuer, audience: if given, written into tokens as `iss` and `aud`, and required of them.
    """

    def __init__(self, secrets: Secrets, issuer: str | None = None, audience: str | None = None) -> None:
        self._secrets = secrets
        self._marks = {
            name: value for name, value in (("iss", issuer), ("aud", audience)) if value is not None
        }
        self._verified = lru_cache(maxsize=_VERIFIED_MAX)(self._verify)

    def issue(
        self,
        user_id: str,
        now_ms: int,
        lifetime_s: int = TOKEN_LIFETIME_S,
        generation: int = 0,
        token_id: str | None = None,
    ) -> str:
        """Return a token for the user, valid for `lifetime_s` seconds or until the password changes.

        Args:
            token_id: id by which the token can be revoked (`access_tokens`).
        """
        now = now_ms // 1000
        named = {} if token_id is None else {"jti": token_id}
        claims = {
            "sub": user_id,
            "iat": now,
            "exp": now + lifetime_s,
            "gen": generation,
            **named,
            **self._marks,
        }
        return jwt.encode(claims, self._secrets.current.encode(), algorithm=HS256)

    def identity(self, token: str) -> TokenIdentity:
        """Return the identity that a token proves.

        Raises Unauthenticated as `checked_claims` does.
        """
        identity = self._verified(token, self._secrets.accepted)
        if identity.expires_at // 1_000 <= wall_clock() // 1_000:  # in whole seconds, as PyJWT compares them
            raise _expired()
        return identity

    def _verify(self, token: str, secrets: tuple[str, ...]) -> TokenIdentity:
        claims = self._claims(token, secrets)
        generation, token_id = claims.get("gen"), claims.get("jti")
        if not isinstance(token_id, str) or not is_id(token_id, ID_PREFIX):
            # Signed by another party that has the secret, or by an older version.
            token_id = foreign_id(token)
        return TokenIdentity(
            "id",
            claims["sub"],
            generation if isinstance(generation, int) else None,
            token_id,
            expiry_of(claims),
        )

    def _claims(self, token: str, secrets: tuple[str, ...]) -> dict[str, Any]:
        current, *others = secrets
        try:
            return self._claims_under(current, token)
        except BadSignature:
            for secret in others:
                with suppress(BadSignature):
                    return self._claims_under(secret, token)
            raise

    def _claims_under(self, secret: str, token: str) -> dict[str, Any]:
        audience = self._marks.get("aud")
        claims = checked_claims(token, secret.encode(), HS256, self._marks.get("iss"), audience)
        # The same secret signs authorizations for the stream, which must not be accepted as access tokens (RFC 8725 3.9).
        if audience is None and STREAM_AUDIENCE in audiences_of(claims):
            raise InvalidToken("Its audience (`aud`) is the realtime stream.")
        return claims


class InvalidToken(Unauthenticated):
    """An access token that is not valid. The detail says why."""

    code: ClassVar[str] = "invalid_token"

    def __init__(self, reason: str) -> None:
        super().__init__(f"The access token is not valid. {reason}")
        self.why: Final = reason


class BadSignature(InvalidToken):
    """A token whose signature does not match the key: the token was altered, or the key with this id was replaced."""


def expiry_of(claims: Mapping[str, Any]) -> int:
    """Return the expiry time (ms) in the verified claims of a token."""
    return int(float(claims["exp"]) * 1000)


def checked_claims(
    token: str, key: Any, algorithm: str, issuer: str | None, audience: str | None, leeway_s: float = 0
) -> dict[str, Any]:
    """Return the claims of a valid token.

    `iss` and `aud` are checked only if the parameters are given because providers put an `aud` into every token (decisions 2).

    Raises:
        BadSignature: the signature does not match the key.
        InvalidToken: `sub` or `exp` is missing, issuer or audience is wrong, or a claim has an unusable value.
        Unauthenticated: the token has expired (`token_expired`).
    """
    # By default PyJWT refuses a token with an `aud` that it is not asked to check. `iat` is not verified because a clock
    # that was set back would refuse valid tokens.
    options: jwt.types.Options = {
        "require": ["exp", "sub"],
        "verify_iat": False,
        "verify_aud": audience is not None,
    }
    try:
        return claims_of(
            token, key, algorithm, issuer=issuer, audience=audience, leeway=leeway_s, options=options
        )
    except jwt.ExpiredSignatureError:
        raise _expired() from None
    except jwt.InvalidSignatureError as error:
        raise BadSignature(reason_of(error)) from None
    except jwt.PyJWTError as error:
        raise InvalidToken(reason_of(error)) from None


def _expired() -> Unauthenticated:
    return Unauthenticated("The access token has expired.", code="token_expired")


class Passwords:
    """Hashes and checks passwords with argon2id (RFC 9106).

    Both take tens of milliseconds: use a thread.

    Args:
        memory_kib: memory cost of new hashes.
        one_time_s: lifetime of a one-time password in seconds.
    """

    def __init__(self, memory_kib: int, one_time_s: float = ONE_TIME_PASSWORD_LIFETIME_S) -> None:
        self._hasher = argon2.PasswordHasher(memory_cost=memory_kib)
        self._one_time_s = one_time_s

    @property
    def lifetime(self) -> str:
        """The lifetime of a one-time password as text, for example `72 hours`."""
        seconds = self._one_time_s
        for unit, size in (("hour", 3_600), ("minute", 60)):
            if seconds >= 2 * size and seconds % size == 0:
                return f"{seconds / size:,.0f} {unit}s"
        return f"{seconds:,.0f} seconds"

    def ends_at(self, user: User) -> int | None:
        """Return the expiry time (ms) of the user's one-time password.

        None if the user chose the password.
        """
        if not user.password_temporary or user.password_made_at is None:
            return None
        return user.password_made_at + int(self._one_time_s * 1000)

    @property
    def cost(self) -> str:
        """The prefix of new hashes: algorithm, version and cost parameters."""
        memory, passes, lanes = self._hasher.memory_cost, self._hasher.time_cost, self._hasher.parallelism
        return f"$argon2id$v={argon2.low_level.ARGON2_VERSION}$m={memory},t={passes},p={lanes}$"

    def is_of_today(self, user: User) -> bool:
        """Return whether the user's hash has the current cost parameters."""
        return user.password_hash is not None and user.password_hash.startswith(self.cost)

    def hash(self, password: str) -> str:
        """Return the hash to store, made from the normal form of the password."""
        return self._hasher.hash(normal_password(password))

    def check(self, user: User | None, password: str, dummy_hash: str) -> User:
        """Return the user if the password is correct. An unknown user takes the same time.

        Args:
            dummy_hash: hash that is checked if there is no user, or the user has no password. It matches no password.

        Raises Unauthenticated if user or password is wrong, without saying which.
        """
        stored = dummy_hash if user is None or user.password_hash is None else user.password_hash
        if not any(self._fits(stored, form) for form in _forms(password)):
            user = None
        if user is None or user.password_hash is None:
            raise Unauthenticated("E-mail address or password are wrong.", code="invalid_login")
        return user

    def _fits(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (argon2.exceptions.VerifyMismatchError, argon2.exceptions.InvalidHashError):
            return False


def normal_password(password: str) -> str:
    """Return the normal form of a password, the same for all keyboards and systems (NIST SP 800-63B: NFKC)."""
    return unicodedata.normalize("NFKC", password)


def _forms(password: str) -> tuple[str, ...]:
    """Return the normal form, and the forms that older versions hashed: as typed, with composed or decomposed marks."""
    if password.isascii():
        return (password,)
    typed = (
        normal_password(password),
        password,
        *(unicodedata.normalize(form, password) for form in ("NFC", "NFD")),
    )
    return tuple(dict.fromkeys(typed))
