"""The token that carries an authorization from the HTTP call to the socket (decisions 5).

It is a JWT signed with the installation's secret, so any node accepts it and nothing about it is stored. It is bound to one
socket, one channel and one consumer, and is valid only as long as the server key that requested it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

import jwt
from msgspec import Struct

from deskwire.engine.accounts.credentials import STREAM_AUDIENCE
from deskwire.engine.accounts.identity.claims import claims_of
from deskwire.engine.core.errors import Unauthenticated

TOKEN_S: Final = 300
LEEWAY_S: Final = 60
_ALGORITHM: Final = "HS256"


class TokenRefused(Unauthenticated):
    """The token in `auth` does not open this channel to this socket.

    Codes: `invalid_token` (not issued here, altered, or incomplete), `token_expired`, `wrong_project`,
    `wrong_socket`, `wrong_channel`, `revoked_server_key`,
    `revoked_machine_credential`.
    """

    code: ClassVar[str] = "invalid_token"


class Grant(Struct, frozen=True):
    """The subscription that an authorization allows a socket.

    Args:
        key_id: id of the server key, or of the machine credential's secret (`valid_until`), that requested the token.
        typing: whether the consumer wants typing events.
        resume: `auto`, `live`, or the id of the event after which to continue.
    """

    project_id: str
    key_id: str
    socket_id: str
    channel: str
    consumer_id: str
    typing: bool = False
    resume: str = "auto"


def issue(key: bytes, grant: Grant, *, now_ms: int, token_s: float = TOKEN_S) -> str:
    """Return the token for `grant`, valid for `token_s` seconds from `now_ms`.

    `auth` in the response to the client is `<stream key>:<token>` (Pusher protocol, authorization).
    """
    issued = now_ms // 1000
    claims = {
        "aud": STREAM_AUDIENCE,
        "prj": grant.project_id,
        "key": grant.key_id,
        "sid": grant.socket_id,
        "ch": grant.channel,
        "cid": grant.consumer_id,
        "typ": grant.typing,
        "res": grant.resume,
        "iat": issued,
        "exp": issued + int(token_s),
    }
    return jwt.encode(claims, key, algorithm=_ALGORITHM)


def verify(
    keys: Sequence[bytes], token: str, *, project_id: str, socket_id: str, channel: str, now_ms: int
) -> Grant:
    """Return the grant in `token`, if it is for this project, socket and channel.

    The caller checks that its server key or machine credential is still valid. The expiry has a leeway of a minute, because
    another node's clock may differ. Raises TokenRefused.
    """
    grant, expires = _read(keys, token)
    if now_ms > (expires + LEEWAY_S) * 1000:
        raise TokenRefused("The token has expired; authorize again.", code="token_expired")
    if grant.project_id != project_id:
        raise TokenRefused("The token is for another project.", code="wrong_project")
    if grant.socket_id != socket_id:
        raise TokenRefused("The token was issued for another socket_id.", code="wrong_socket")
    if grant.channel != channel:
        raise TokenRefused("The token was issued for another channel.", code="wrong_channel")
    return grant


def _claims(keys: Sequence[bytes], token: str) -> dict[str, Any]:
    """Return the claims of a token that one of the keys has signed. Raises jwt.InvalidTokenError."""
    required = ["aud", "prj", "key", "sid", "ch", "cid", "typ", "res", "iat", "exp"]
    options = {
        "require": required,
        "verify_exp": False,
        "verify_iat": False,
    }  # `verify` checks the time by its own clock
    *first, last = keys
    for key in first:
        with suppress(jwt.InvalidSignatureError):
            return claims_of(token, key, _ALGORITHM, audience=STREAM_AUDIENCE, options=options)
    return claims_of(token, last, _ALGORITHM, audience=STREAM_AUDIENCE, options=options)


def _read(keys: Sequence[bytes], token: str) -> tuple[Grant, int]:
    try:
        claims = _claims(keys, token)
    except jwt.InvalidTokenError as error:
        raise TokenRefused(f"The token is not valid: {error}") from None
    match claims:
        case {
            "prj": str(project_id),
            "key": str(key_id),
            "sid": str(socket_id),
            "ch": str(channel),
            "cid": str(consumer_id),
            "typ": bool(typing),
            "res": str(resume),
            "exp": int(expires),
        }:
            return Grant(project_id, key_id, socket_id, channel, consumer_id, typing, resume), expires
        case _:
            raise TokenRefused("The token lacks a claim, or has one of a wrong type.")
