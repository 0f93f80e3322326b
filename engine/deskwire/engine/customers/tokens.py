"""The tokens of customers' sessions.

A session of a signed-in customer has a random token (`ct_`), of which only the SHA-256 is stored. A visitor's token (`cv_`) is
signed instead, so that a visitor costs no row before the first message. It names the visitor and the channel. The commit of the
first message stores its SHA-256, and from then on the row decides about it, as about the other kind.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Final

from msgspec import Struct

from deskwire.engine.core.ids import id_of_value, id_time_ms, new_id, ulid_value
from deskwire.engine.core.secret import Keyring

SESSION_PREFIX: Final = "ct_"
VISITOR_PREFIX: Final = "cv_"
VISITOR_KEY: Final = "visitor tokens"  # purpose of the keys derived from the installation's secrets

_TOKEN_BYTES: Final = 32
_ULID_BYTES: Final = 16
_BODY_BYTES: Final = 2 * _ULID_BYTES
_MAC_BYTES: Final = 32


class Visitor(Struct, frozen=True):
    """A visitor named by a token.

    Args:
        ulid: the visitor's own ULID, 26 characters.
        channel_id: the channel for which the token was issued.
    """

    ulid: str
    channel_id: str

    @property
    def user_id(self) -> str:
        """The `userId` of the visitor's contact."""
        return visitor_user_id(self.session_id)

    @property
    def session_id(self) -> str:
        """The id of the visitor's session, the same before and after the first message."""
        return f"cse_{self.ulid}"

    @property
    def issued_at(self) -> int:
        """The time at which the token was issued, in milliseconds."""
        return id_time_ms(self.session_id)


def visitor_user_id(session_id: str) -> str:
    """Return the `userId` of the visitor whose session has this id."""
    return f"visitor-{session_id.partition('_')[2]}"


def new_session_token() -> str:
    """Return a token for a new session of a signed-in customer."""
    return f"{SESSION_PREFIX}{secrets.token_urlsafe(_TOKEN_BYTES)}"


def hash_token(token: str) -> bytes:
    """Return the SHA-256 of a token, which is stored.

    It needs no salt because the token is random, or signed.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class VisitorTokens:
    """Issues and reads the tokens of visitors.

    Args:
        keys: the keys of the purpose VISITOR_KEY.
    """

    def __init__(self, keys: Keyring) -> None:
        self._keys = keys

    def issue(self, channel_id: str, now: int) -> str:
        """Return a token for a new visitor of the channel. `now` is in milliseconds."""
        body = b"".join(
            ulid_value(each).to_bytes(_ULID_BYTES, "big") for each in (new_id("cse", now), channel_id)
        )
        return f"{VISITOR_PREFIX}{_encoded(body + _mac(self._keys()[0], body))}"

    def read(self, token: str) -> Visitor | None:
        """Return the visitor of a token.

        Returns None if the token is not of this service, was altered, or has another spelling than the issued one: an ended
        token must not come back as another one of the same visitor.
        """
        data = _decoded(token.removeprefix(VISITOR_PREFIX)) if token.startswith(VISITOR_PREFIX) else None
        if data is None or len(data) != _BODY_BYTES + _MAC_BYTES:
            return None
        body, mac = data[:_BODY_BYTES], data[_BODY_BYTES:]
        if not any(hmac.compare_digest(_mac(key, body), mac) for key in self._keys()):
            return None
        visitor, channel = (int.from_bytes(each, "big") for each in (body[:_ULID_BYTES], body[_ULID_BYTES:]))
        return Visitor(id_of_value("cse", visitor).partition("_")[2], id_of_value("chn", channel))


def _mac(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes | None:
    """Return the bytes of base64url text, None unless `_encoded` returns the same text for them."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return data if _encoded(data) == text else None
