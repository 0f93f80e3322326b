"""A passkey's authenticator in software, which answers as a browser's `PublicKeyCredential.toJSON()` does."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

_PRESENT, _VERIFIED, _ATTESTED = 0x01, 0x04, 0x40


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@dataclass
class Authenticator:
    """A key of one user at one domain.

    Args:
        counts: whether it counts its signatures.
        attestation: format and statement of the attestation that it gives.
    """

    origin: str
    user_id: str = ""
    counts: bool = True
    count: int = 0
    verifies: bool = True
    attestation: tuple[str, dict[str, Any]] = ("none", {})
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    credential: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        """Answer to the options of `navigator.credentials.create()`."""
        self.user_id = options["user"]["id"]
        numbers = self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        attested = bytes(16) + len(self.credential).to_bytes(2, "big") + self.credential + cbor2.dumps(cose)
        data = self._data(options["rp"]["id"], _ATTESTED) + attested
        return self._answer(
            clientDataJSON=_text(self._client_data("webauthn.create", options["challenge"])),
            attestationObject=_text(
                cbor2.dumps({"fmt": self.attestation[0], "attStmt": self.attestation[1], "authData": data})
            ),
        )

    def get(self, options: dict[str, Any], rp_id: str | None = None) -> dict[str, Any]:
        """Answer to the options of `navigator.credentials.get()`."""
        if self.counts:
            self.count += 1
        client = self._client_data("webauthn.get", options["challenge"])
        data = self._data(rp_id or options["rpId"], 0)
        signed = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(
            clientDataJSON=_text(client),
            authenticatorData=_text(data),
            signature=_text(signed),
            userHandle=self.user_id,
        )

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _data(self, rp_id: str, further: int) -> bytes:
        flags = _PRESENT | (_VERIFIED if self.verifies else 0) | further
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big")

    def _answer(self, **response: str) -> dict[str, Any]:
        return {
            "id": _text(self.credential),
            "rawId": _text(self.credential),
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "clientExtensionResults": {},
            "response": response,
        }
