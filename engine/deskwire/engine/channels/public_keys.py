"""Public keys that verify customers' identities: checks of their PEM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deskwire.engine.accounts.identity.algorithms import Algorithm

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

PEM_LENGTH_MAX: Final = 4_096
"""Characters of a key. One of RSA with RSA_BITS_MAX has 3,500."""

RSA_BITS_MIN: Final = 2_048  # RFC 7518, section 3.3
RSA_BITS_MAX: Final = 8_192  # verification takes time by the square of the length
_PRIVATE: Final = "PRIVATE KEY-----"
_CERTIFICATE: Final = "BEGIN CERTIFICATE-----"


class PublicKeyRefused(ValueError):
    """The text is no public key for the algorithm; the message is the reason as a sentence."""


def canonical_public_key(pem: str, algorithm: Algorithm) -> str:
    """Return a public key in its usual PEM form, SubjectPublicKeyInfo.

    Raises PublicKeyRefused.
    """
    # Imported late: the library takes a tenth of the program's start.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    if _PRIVATE in pem:
        raise PublicKeyRefused(
            "This is a private key, which must stay in your backend: make a new pair, and send the public key alone."
        )
    if _CERTIFICATE in pem:
        raise PublicKeyRefused(
            "This is a certificate. Send its public key, which `openssl x509 -pubkey -noout` prints."
        )
    try:
        key = serialization.load_pem_public_key(pem.strip().encode())
    except (ValueError, UnsupportedAlgorithm):
        raise PublicKeyRefused(
            "This is no public key in PEM, which begins -----BEGIN PUBLIC KEY-----."
        ) from None
    reason = _mismatch(key, algorithm)
    if reason is not None:
        raise PublicKeyRefused(reason)
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.PEM, form).decode()


def _mismatch(key: PublicKeyTypes, algorithm: Algorithm) -> str | None:
    """Return why the key does not serve for the algorithm; None if it does."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    match algorithm:
        case "RS256":
            if not isinstance(key, rsa.RSAPublicKey):
                return "RS256 needs an RSA key."
            if not RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX:
                return (
                    f"The RSA key has {key.key_size:,} bits; it needs {RSA_BITS_MIN:,} to {RSA_BITS_MAX:,}."
                )
        case "ES256":
            if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
                return "ES256 needs a key of the curve P-256."
        case "EdDSA":
            if not isinstance(key, ed25519.Ed25519PublicKey):
                return "EdDSA needs an Ed25519 key."
    return None
