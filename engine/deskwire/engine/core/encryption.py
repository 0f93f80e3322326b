"""Encryption of secrets at rest, with keys derived from the secret of the installation.

Each purpose has its own keys, so that a leaked key of one purpose reveals nothing about the others (ADR 24).
"""

from __future__ import annotations

import base64
import os
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from deskwire.engine.core.secret import Secrets, derived_key

_SEALING_LABEL: Final = "sealing"
_FORM: Final = b"\x01"
"""First byte of the current format. Fernet tokens, the format of versions before 0.2, start with another byte."""
_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_LEAST_BYTES: Final = len(_FORM) + _SALT_BYTES + _NONCE_BYTES
_TEXTS_MAX: Final = 1 << 32
"""Maximum number of encryptions per key, because the nonces are random (NIST SP 800-38D 8.3)."""


class DecryptionFailed(Exception):
    """A stored secret can't be decrypted: it was altered, or encrypted with the secret of another installation."""


class Encryption:
    """Encrypts texts for storage with AES-256-GCM. Also decrypts Fernet tokens of older versions.

    Each instance encrypts with its own key, derived from the secret and a random salt that is part of the ciphertext. So
    nodes and restarts need no coordination of nonces.

    Args:
        secrets: the current and previous secrets of the installation, which decrypt.
        label: name of the purpose. The default is the purpose of webhook secrets.
    """

    def __init__(self, secrets: Secrets, label: str = _SEALING_LABEL) -> None:
        self._secrets = secrets
        self._label = label
        self._key: _Key | None = None

    def seal(self, text: str) -> bytes:
        """Encrypt a text for storage. Encrypting it twice gives two different results."""
        return self.seal_bytes(text.encode())

    def seal_bytes(self, plain: bytes) -> bytes:
        """Encrypt bytes for storage."""
        key = self._key
        if key is None or key.left <= 0 or key.secret is not self._secrets.current:
            key = self._key = _Key(self._secrets.current, self._label)
        return key.sealed(plain)

    def open(self, sealed: bytes) -> str:
        """Decrypt a text. Raises DecryptionFailed if no secret of the installation encrypted it."""
        return self.open_bytes(sealed).decode()

    def open_bytes(self, sealed: bytes) -> bytes:
        """Decrypt bytes. Raises DecryptionFailed if no secret of the installation encrypted them."""
        for secret in self._secrets.known:
            opened = self._opened(secret, sealed)
            if opened is not None:
                return opened
        raise DecryptionFailed(
            "A stored secret can't be opened: it was altered, or DESKWIRE_SECRET (or the secret's file "
            "in the data directory) is not the one it was sealed with."
        )

    def renewed(self, sealed: bytes) -> bytes:
        """Re-encrypt with the current secret.

        Return the input if it already is, or if it can't be decrypted.
        """
        if self._opened(self._secrets.current, sealed) is not None:
            return sealed
        try:
            return self.seal_bytes(self.open_bytes(sealed))
        except DecryptionFailed:
            return sealed

    def _opened(self, secret: str, sealed: bytes) -> bytes | None:
        try:
            if not sealed.startswith(_FORM):
                return _fernet(secret, self._label).decrypt(sealed)
            if len(sealed) < _LEAST_BYTES:
                return None
            salt, nonce = sealed[1 : 1 + _SALT_BYTES], sealed[1 + _SALT_BYTES : _LEAST_BYTES]
            return _aes(secret, self._label, salt).decrypt(nonce, sealed[_LEAST_BYTES:], None)
        except (InvalidToken, InvalidTag):
            return None


class _Key:
    """The key with which one `Encryption` encrypts.

    `left` is the number of encryptions it has left.
    """

    __slots__ = ("_aes", "_head", "left", "secret")

    def __init__(self, secret: str, label: str) -> None:
        salt = os.urandom(_SALT_BYTES)
        self.secret = secret
        self.left = _TEXTS_MAX
        self._aes = _aes(secret, label, salt)
        self._head = _FORM + salt

    def sealed(self, plain: bytes) -> bytes:
        self.left -= 1
        nonce = os.urandom(_NONCE_BYTES)
        return self._head + nonce + self._aes.encrypt(nonce, plain, None)


@lru_cache(maxsize=64)  # the keys of some days of restarts, whose stored responses may be asked for
def _aes(secret: str, label: str, salt: bytes) -> AESGCM:
    return AESGCM(derived_key(secret, label, salt))


@lru_cache(maxsize=16)
def _fernet(secret: str, label: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(derived_key(secret, label)))
