"""The endpoint and keys of a browser's subscription, which are stored encrypted because anyone with them can send to the browser."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import urlsplit

import orjson
from msgspec import Struct

from deskwire.engine.core.encryption import Encryption


class PushEndpoint(Struct, frozen=True):
    """The endpoint of a subscription.

    Args:
        url: the URL of the browser's push service for this subscription.
        point: the public key of the browser, an uncompressed point of P-256.
        auth: the secret of the browser.
    """

    url: str
    point: bytes
    auth: bytes

    @property
    def hash(self) -> bytes:
        """The SHA-256 of the URL, by which a browser is recognised."""
        return sha256(self.url.encode()).digest()

    @property
    def origin(self) -> str:
        """The origin of the push service, the audience of the installation's signature (RFC 8292, 2)."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def sealed(self, sealing: Encryption) -> bytes:
        """Return the endpoint encrypted for the store."""
        return sealing.seal_bytes(orjson.dumps([self.url, self.point.hex(), self.auth.hex()]))


def opened_endpoint(sealing: Encryption, sealed: bytes) -> PushEndpoint:
    """Return the endpoint that was sealed. Raises DecryptionFailed."""
    url, point, auth = orjson.loads(sealing.open_bytes(sealed))
    return PushEndpoint(url, bytes.fromhex(point), bytes.fromhex(auth))
