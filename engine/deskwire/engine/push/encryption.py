"""The encryption of a push for its browser (RFC 8291): one record of `aes128gcm` (RFC 8188).

The push service sees neither the text nor the conversation: only the browser has the private key.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDH,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PUBLIC_KEY_BYTES: Final = 65  # an uncompressed point of P-256
AUTH_BYTES: Final = 16
_SALT_BYTES: Final = 16
_RECORD_SIZE: Final = 4096  # push services accept no larger body (RFC 8030, 7.2)
_LAST_RECORD: Final = b"\x02"  # RFC 8188, 2
_TAG_BYTES: Final = 16
_HEAD_BYTES: Final = _SALT_BYTES + 4 + 1 + PUBLIC_KEY_BYTES
PAYLOAD_MAX: Final = _RECORD_SIZE - _HEAD_BYTES - len(_LAST_RECORD) - _TAG_BYTES
"""Maximum size of a payload before its encryption, in bytes."""


def public_point(key: EllipticCurvePublicKey) -> bytes:
    """Return a public key in the form of the wire."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def browser_key(point: bytes) -> EllipticCurvePublicKey:
    """Return the public key of a browser. Raises ValueError if the bytes are no point of P-256."""
    if len(point) != PUBLIC_KEY_BYTES:
        raise ValueError(f"a point of P-256 has {PUBLIC_KEY_BYTES} bytes")
    return EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)


def encrypt(
    payload: bytes,
    point: bytes,
    auth: bytes,
    *,
    salt: bytes | None = None,
    own: EllipticCurvePrivateKey | None = None,
) -> bytes:
    """Return the body of a push. Raises ValueError if the payload is too long, or the key invalid.

    Args:
        point: the public key of the browser.
        auth: the secret of the browser.
        salt, own: given by tests with known answers; random for each push otherwise.
    """
    if len(payload) > PAYLOAD_MAX:
        raise ValueError(f"the payload has {len(payload)} bytes; at most {PAYLOAD_MAX} fit")
    salt = salt or os.urandom(_SALT_BYTES)
    own = own or generate_private_key(SECP256R1())
    own_point = public_point(own.public_key())
    shared = own.exchange(ECDH(), browser_key(point))
    material = _derived(auth, shared, b"WebPush: info\0" + point + own_point, 32)
    key = _derived(salt, material, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(salt, material, b"Content-Encoding: nonce\0", 12)
    head = salt + _RECORD_SIZE.to_bytes(4, "big") + bytes([PUBLIC_KEY_BYTES]) + own_point
    return head + AESGCM(key).encrypt(nonce, payload + _LAST_RECORD, None)


def _derived(salt: bytes, material: bytes, info: bytes, size: int) -> bytes:
    return HKDF(SHA256(), size, salt, info).derive(material)


def to_base64url(data: bytes) -> str:
    """Return bytes in base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """Return the bytes of a text in base64url, with or without padding. Raises ValueError."""
    bare = text.rstrip("=")
    data = urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    if to_base64url(data) != bare:  # the decoder skips foreign characters
        raise ValueError("it is not in base64url")
    return data
