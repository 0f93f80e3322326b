"""Passkeys (WebAuthn Level 2), verified by the library `webauthn`.

The library takes half a second to import, so only the first call that needs it does so. It raises its own exceptions, and
others of its parsers for hostile input; all of them are one refusal here.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from msgspec import Struct

from deskwire.engine.accounts.factors.factor import Passkey
from deskwire.engine.accounts.people import User
from deskwire.engine.core.errors import Unauthenticated

_CHALLENGE_BYTES: Final = 32
_TIMEOUT_MS: Final = 5 * 60_000


class RelyingParty(Struct, frozen=True):
    """The service as authenticators know it: its domain, and the origins of its pages."""

    id: str
    origins: tuple[str, ...]


class VerifiedPasskey(Struct, frozen=True):
    """A new passkey whose authenticator has answered correctly."""

    credential: bytes
    public_key: bytes
    sign_count: int


def new_webauthn_challenge() -> bytes:
    """Return random bytes that a passkey is to sign."""
    return secrets.token_bytes(_CHALLENGE_BYTES)


def creation_options(
    party: RelyingParty, user: User, passkeys: Sequence[Passkey], challenge: bytes
) -> dict[str, Any]:
    """Return the options for `navigator.credentials.create()`, without the authenticators that the user has already."""
    from webauthn import generate_registration_options, options_to_json
    from webauthn.helpers.structs import (
        AuthenticatorSelectionCriteria,
        PublicKeyCredentialDescriptor,
        ResidentKeyRequirement,
        UserVerificationRequirement,
    )

    options = generate_registration_options(
        rp_id=party.id,
        rp_name="Deskwire",
        user_id=user.id.encode(),
        user_name=user.email,
        user_display_name=user.name or user.email,
        challenge=challenge,
        timeout=_TIMEOUT_MS,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED,
            user_verification=UserVerificationRequirement.REQUIRED,
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=each.credential) for each in passkeys],
    )
    shown: dict[str, Any] = json.loads(options_to_json(options))
    return shown


def request_options(party: RelyingParty, passkeys: Sequence[Passkey], challenge: bytes) -> dict[str, Any]:
    """Return the options for `navigator.credentials.get()`.

    Args:
        passkeys: those of the user; none for a sign-in without a user's name.
    """
    from webauthn import generate_authentication_options, options_to_json
    from webauthn.helpers.structs import PublicKeyCredentialDescriptor, UserVerificationRequirement

    options = generate_authentication_options(
        rp_id=party.id,
        challenge=challenge,
        timeout=_TIMEOUT_MS,
        allow_credentials=[PublicKeyCredentialDescriptor(id=each.credential) for each in passkeys],
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    shown: dict[str, Any] = json.loads(options_to_json(options))
    return shown


_UNATTESTED: Final = ("none", "packed")
"""Formats of attestation statements without an attestation: none, and the passkey's own signature (WebAuthn 8.2, 8.7)."""


def verify_creation(party: RelyingParty, credential: Mapping[str, Any], challenge: bytes) -> VerifiedPasskey:
    """Return the new passkey. Raises Unauthenticated (`invalid_passkey`) if the answer is not to this challenge.

    No attestation was requested, so other formats than those of unattested passkeys are refused: their certificates would be
    parsed for nothing.
    """
    from webauthn import base64url_to_bytes, verify_registration_response
    from webauthn.helpers import parse_attestation_object

    with _refusing():
        attestation = parse_attestation_object(
            base64url_to_bytes(credential["response"]["attestationObject"])
        )
        if attestation.fmt not in _UNATTESTED:
            raise invalid_passkey()
        verified = verify_registration_response(
            credential=dict(credential),
            expected_challenge=challenge,
            expected_rp_id=party.id,
            expected_origin=list(party.origins),
            require_user_verification=True,
        )
    return VerifiedPasskey(verified.credential_id, verified.credential_public_key, verified.sign_count)


def credential_id(assertion: Mapping[str, Any]) -> bytes:
    """Return the id of the passkey in an assertion. Raises Unauthenticated (`invalid_passkey`)."""
    from webauthn import base64url_to_bytes

    given = assertion.get("id")
    if not isinstance(given, str):
        raise invalid_passkey()
    with _refusing():
        return base64url_to_bytes(given)


def verify_assertion(
    party: RelyingParty, assertion: Mapping[str, Any], challenge: bytes, passkey: Passkey
) -> int:
    """Return the new sign count of a passkey that has signed this challenge, after verifying its user.

    An authenticator whose count does not rise was cloned, or the assertion is repeated (WebAuthn 7.2, step 21).

    Raises Unauthenticated (`invalid_passkey`).
    """
    from webauthn import verify_authentication_response

    with _refusing():
        verified = verify_authentication_response(
            credential=dict(assertion),
            expected_challenge=challenge,
            expected_rp_id=party.id,
            expected_origin=list(party.origins),
            credential_public_key=passkey.public_key,
            credential_current_sign_count=passkey.sign_count,
            require_user_verification=True,
        )
    return int(verified.new_sign_count)


def invalid_passkey() -> Unauthenticated:
    """Return the refusal of an answer of an authenticator. It does not repeat the reason, which the caller made up."""
    return Unauthenticated("The passkey's answer is not valid here; try again.", code="invalid_passkey")


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn exceptions of the library, and of the parsers that it calls, into a refusal."""
    from webauthn.helpers.exceptions import WebAuthnException

    try:
        yield
    except (
        WebAuthnException,
        UnsupportedAlgorithm,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise invalid_passkey() from error
