"""Signatures compared with known values and a published verifier (contract 6.3)."""

from __future__ import annotations

import base64
import time

import pytest
import standardwebhooks
import stripe

from deskwire.engine.webhooks.signature import (
    SigningSecrets,
    new_secret,
    sign,
    signature_header,
    standard_key,
    standard_signature,
)

SECRET = "whsec_4fzCwFMCBvyqXbTV9vXSKlcJTUGcRh3n5WtGWTiMpkL"
OLD = "whsec_0000000000000000000000000000000000000000001"
BODY = '{"id":"evt_1","data":{"text":"Grüße"}}'.encode()


@pytest.mark.parametrize(
    ("secret", "t", "body", "v1"),
    [
        (SECRET, 1_790_000_000, BODY, "dbe9b2d18928ea4ea15c41ef81ff18ecad6c6ca4b2e16d55fbff3701a74caf81"),
        (SECRET, 1_790_000_001, BODY, "3f6f5188fc0dfb47535cb596aeaf4fa0ad3a103c481ee7a3d0cc1ff15949add7"),
        (OLD, 1_790_000_000, BODY, "e921a45dcec70bfc3d49385fd337ec73f46a8e499b8333a596f47c856a8f062a"),
        (SECRET, 0, b"", "2e71e43c7419fe20d9ee2bf4fd7fdbb3847878fa198243ae15b986894b7639bb"),
    ],
)
def test_the_signature_is_the_known_answer(secret: str, t: int, body: bytes, v1: str) -> None:
    """Contract 6.3.1; computed with `openssl dgst -sha256 -hmac`."""
    assert sign(secret, t, body) == v1


def test_the_key_is_the_whole_secret_without_decoding() -> None:
    """Decisions 6: a key made by base64-decoding the secret gives another signature."""
    decoded = base64.b64decode(SECRET.removeprefix("whsec_") + "=").decode("latin-1")
    assert sign(decoded, 1, BODY) != sign(SECRET, 1, BODY)


def test_a_header_has_one_signature_for_each_secret_in_their_order() -> None:
    """Decisions 6: `t=...,v1=<new>,v1=<old>` during a rotation."""
    header = signature_header([SECRET, OLD], 5, BODY)
    assert header == f"t=5,v1={sign(SECRET, 5, BODY)},v1={sign(OLD, 5, BODY)}"


def test_the_published_verifier_accepts_the_header_with_either_secret() -> None:
    """Contract 6.3.2."""
    header = signature_header([SECRET, OLD], int(time.time()), BODY)
    for secret in (SECRET, OLD):
        assert stripe.WebhookSignature.verify_header(BODY.decode(), header, secret, tolerance=300)


@pytest.mark.parametrize(
    ("age_s", "body", "secret"),
    [(301, BODY, SECRET), (0, BODY + b" ", SECRET), (0, BODY, OLD)],
    ids=["stale", "altered body", "wrong secret"],
)
def test_the_published_verifier_rejects_invalid_headers(age_s: int, body: bytes, secret: str) -> None:
    """Contract 6.3.2: five minutes' tolerance."""
    header = signature_header([SECRET], int(time.time()) - age_s, BODY)
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header(body.decode(), header, secret, tolerance=300)


def test_secrets_have_their_prefix_and_are_never_the_same() -> None:
    """Contract 2.9."""
    made = {new_secret() for _ in range(1000)}
    assert len(made) == 1000
    assert all(secret.startswith("whsec_") and secret[6:].isalnum() and len(secret) == 50 for secret in made)


def test_new_secrets_are_base64_that_strict_decoders_accept() -> None:
    """Go, Java, Rust and .NET refuse missing padding, and Rust and .NET bits that are left over."""
    for secret in (new_secret() for _ in range(100)):
        key = base64.b64decode(secret[6:], validate=True)
        assert len(key) == 33
        assert base64.b64encode(key).decode() == secret[6:]


@pytest.mark.parametrize("secret", [SECRET, OLD, "whsec_dGVzdA==", "whsec_dGVzdA", "dGVzdA"])
def test_the_key_of_standard_webhooks_is_that_of_the_published_library(secret: str) -> None:
    assert standard_key(secret) == standardwebhooks.Webhook(secret)._whsecret


@pytest.mark.parametrize("secret", ["whsec_a", "whsec_a-b_", "whsec_ab.c", "whsec_abcde", "whsec_ab=cd"])
def test_a_secret_that_is_no_base64_is_the_key_of_standard_webhooks_itself(secret: str) -> None:
    """`deskwire listen --secret` takes any text; libraries verify it in their format "raw"."""
    key = secret.removeprefix("whsec_").encode()
    assert standard_key(secret) == key
    t = int(time.time())
    headers = {"webhook-id": "evt_1", "webhook-timestamp": str(t)}
    headers["webhook-signature"] = standard_signature([secret], "evt_1", t, BODY)
    assert standardwebhooks.Webhook(key).verify(BODY, headers)


def test_the_standard_signature_is_the_known_answer() -> None:
    """The example of the specification's reference libraries."""
    body = b'{"test": 2432232314}'
    made = standard_signature(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body
    )
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_old_secret_signs_until_its_end() -> None:
    """Decisions 6: both sign for 24 h, the new one first."""
    rotated = SigningSecrets(SECRET, OLD, 1_000)
    assert rotated.at(999) == (SECRET, OLD)
    assert rotated.at(1_000) == (SECRET,)


@pytest.mark.parametrize(
    "secrets", [SigningSecrets(SECRET), SigningSecrets(SECRET, OLD), SigningSecrets(SECRET, None, 1)]
)
def test_a_secret_without_one_before_signs_alone(secrets: SigningSecrets) -> None:
    assert secrets.at(0) == (SECRET,)
