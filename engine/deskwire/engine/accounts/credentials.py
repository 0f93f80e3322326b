"""Access tokens and passwords: how they are made and checked (contract 5, decisions 2)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final, Literal

import argon2
import jwt
from msgspec import Struct

from deskwire.engine.accounts.access_tokens import ID_PREFIX, foreign_id
from deskwire.engine.accounts.identity.claims import audiences_of, claims_of, reason_of
from deskwire.engine.accounts.people import User
from deskwire.engine.core.errors import Unauthenticated
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.secret import Secrets

HS256: Final = "HS256"
STREAM_AUDIENCE: Final = "stream"  # `aud` of the realtime stream's authorizations
ONE_TIME_PASSWORD_LIFETIME_S: Final = 72 * 3_600.0
"""The time, in seconds, for which a one-time password is good unless a setting says otherwise."""

TOKEN_LIFETIME_S: Final = 3_600
"""The lifetime of a token from `POST /v3/auth/token`, in seconds."""


class TokenIdentity(Struct, frozen=True):
    """The user that a valid token speaks for, by id or e-mail address.

    Args:
        generation: the user's `generation` when the token was issued, None if another party has issued it.
        token: the token's id; see `access_tokens`.
        expires_at: the token's end (ms).
    """

    claim: Literal["id", "email"]
    value: str
    generation: int | None = None
    token: str = ""
    expires_at: int = 0


class Tokens:
    """Access tokens: JWTs signed with the installation's secret.

    Args:
        secrets: each at least 32 characters; used as UTF-8 bytes, so that others can sign tokens, too.
        issuer, audience: written into tokens as `iss` and `aud`, and demanded, if given.
    """

    def __init__(self, secrets: Secrets, issuer: str | None = None, audience: str | None = None) -> None:
        self._secrets = secrets
        self._marks = {
            name: value for name, value in (("iss", issuer), ("aud", audience)) if value is not None
        }

    def issue(
        self,
        user_id: str,
        now_ms: int,
        lifetime_s: int = TOKEN_LIFETIME_S,
        generation: int = 0,
        token_id: str | None = None,
    ) -> str:
        """Return a token for the user, valid for `lifetime_s` seconds or until the user has another password.

        Args:
            token_id: the id by which it can be ended; see `access_tokens`.
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
        """Return the identity that a token proves. Raises Unauthenticated as `checked_claims` does."""
        claims = self._claims(token)
        generation, token_id = claims.get("gen"), claims.get("jti")
        if not isinstance(token_id, str) or not is_id(token_id, ID_PREFIX):
            token_id = foreign_id(
                token
            )  # signed by another party that has the secret, or by an older version
        return TokenIdentity(
            "id",
            claims["sub"],
            generation if isinstance(generation, int) else None,
            token_id,
            expiry_of(claims),
        )

    def _claims(self, token: str) -> dict[str, Any]:
        current, *others = self._secrets.accepted
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
        # The same secret signs the stream's authorizations, which must open nothing else (RFC 8725 3.9).
        if audience is None and STREAM_AUDIENCE in audiences_of(claims):
            raise InvalidToken("Its audience (`aud`) is the realtime stream.")
        return claims


class InvalidToken(Unauthenticated):
    """An access token that proves nothing; the detail says why."""

    code: ClassVar[str] = "invalid_token"

    def __init__(self, reason: str) -> None:
        super().__init__(f"The access token is not valid. {reason}")
        self.why: Final = reason


class BadSignature(InvalidToken):
    """A token whose signature does not fit the key: an altered one, or a key that was replaced under its id."""


def expiry_of(claims: Mapping[str, Any]) -> int:
    """Return when a token expires (ms), which its verified claims say."""
    return int(float(claims["exp"]) * 1000)


def checked_claims(
    token: str, key: Any, algorithm: str, issuer: str | None, audience: str | None, leeway_s: float = 0
) -> dict[str, Any]:
    """Return the claims of a valid token.

    `iss` and `aud` are checked only if they are given (decisions 2): providers put an `aud` into every token.

    Raises:
        BadSignature: the key has not signed it.
        InvalidToken: it lacks `sub` or `exp`, is for another audience or from another issuer, or holds what can't be used.
        Unauthenticated: it has expired (`token_expired`).
    """
    # PyJWT refuses a token with an `aud` if it is given none; and a clock set back must refuse no token by its `iat`.
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
        raise Unauthenticated("The access token has expired.", code="token_expired") from None
    except jwt.InvalidSignatureError as error:
        raise BadSignature(reason_of(error)) from None
    except jwt.PyJWTError as error:
        raise InvalidToken(reason_of(error)) from None


class Passwords:
    """Password hashes by argon2id (RFC 9106). Hashing and checking take tens of milliseconds: use a thread.

    Args:
        one_time_s: the seconds for which a one-time password is good.
    """

    def __init__(self, memory_kib: int, one_time_s: float = ONE_TIME_PASSWORD_LIFETIME_S) -> None:
        self._hasher = argon2.PasswordHasher(memory_cost=memory_kib)
        self._one_time_s = one_time_s

    @property
    def lifetime(self) -> str:
        """The time for which a one-time password is good, for people: `72 hours`."""
        seconds = self._one_time_s
        for unit, size in (("hour", 3_600), ("minute", 60)):
            if seconds >= 2 * size and seconds % size == 0:
                return f"{seconds / size:,.0f} {unit}s"
        return f"{seconds:,.0f} seconds"

    def ends_at(self, user: User) -> int | None:
        """Return when (ms) the user's one-time password ends; None for a password of the user's own."""
        if not user.password_temporary or user.password_made_at is None:
            return None
        return user.password_made_at + int(self._one_time_s * 1000)

    @property
    def cost(self) -> str:
        """The beginning of the hashes made now: algorithm, version and cost."""
        memory, passes, lanes = self._hasher.memory_cost, self._hasher.time_cost, self._hasher.parallelism
        return f"$argon2id$v={argon2.low_level.ARGON2_VERSION}$m={memory},t={passes},p={lanes}$"

    def is_of_today(self, user: User) -> bool:
        """Tell whether a user's hash has the cost that it would have if it were made now."""
        return user.password_hash is not None and user.password_hash.startswith(self.cost)

    def hash(self, password: str) -> str:
        """Return the hash to store: that of the password in its one form."""
        return self._hasher.hash(normal_password(password))

    def check(self, user: User | None, password: str, stand_in: str) -> User:
        """Return the user if that is the password; the work of a check is done for an unknown one, too.

        Args:
            stand_in: the hash to check against if there is no such user, or none with a password; it fits no password.

        Raises Unauthenticated if user or password are wrong, without saying which.
        """
        stored = stand_in if user is None or user.password_hash is None else user.password_hash
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
    """Return a password in the form that is hashed, whichever keyboard and system it was typed on (NIST SP 800-63B: NFKC)."""
    return unicodedata.normalize("NFKC", password)


def _forms(password: str) -> tuple[str, ...]:
    """Return the form that is hashed, and those that hashes of older versions are of: as it was typed then, with marks or without."""
    if password.isascii():
        return (password,)
    typed = (
        normal_password(password),
        password,
        *(unicodedata.normalize(form, password) for form in ("NFC", "NFD")),
    )
    return tuple(dict.fromkeys(typed))
