"""Codes of authenticator apps, by the test vectors of RFC 6238."""

from __future__ import annotations

import base64

import pytest

from deskwire.engine.accounts.factors.recovery_codes import CODES, hash_recovery_code, new_recovery_codes
from deskwire.engine.accounts.factors.totp import matching_step, new_totp_secret, totp_code, totp_uri

KEY = b"12345678901234567890"  # RFC 6238 appendix B, the key for SHA-1
SECRET = base64.b32encode(KEY).decode()


@pytest.mark.parametrize(
    ("seconds", "code"),
    [
        (59, "94287082"),
        (1111111109, "07081804"),
        (1111111111, "14050471"),
        (1234567890, "89005924"),
        (2000000000, "69279037"),
        (20000000000, "65353130"),
    ],
)
def test_codes_are_those_of_the_rfc(seconds: int, code: str) -> None:
    assert totp_code(KEY, seconds // 30, 8) == code
    assert matching_step(SECRET, code[2:], seconds * 1000, 0) == seconds // 30


@pytest.mark.parametrize(("drift", "accepted"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_clock_may_differ_by_one_step(drift: int, accepted: bool) -> None:
    now = 1_111_111_109_000
    code = totp_code(KEY, now // 30_000 + drift)
    assert (matching_step(SECRET, code, now, 0) is not None) is accepted


def test_code_up_to_the_used_step_is_not_accepted_again() -> None:
    now = 1_111_111_109_000
    step = now // 30_000
    assert matching_step(SECRET, totp_code(KEY, step), now, step - 1) == step
    assert matching_step(SECRET, totp_code(KEY, step), now, step) is None
    assert matching_step(SECRET, totp_code(KEY, step - 1), now, step) is None
    assert matching_step(SECRET, totp_code(KEY, step + 1), now, step) == step + 1


@pytest.mark.parametrize(
    "code", ["", "12345", "1234567", "abcdef", "\uff11\uff12\uff13\uff14\uff15\uff16", "\ud800", "0" * 40]
)
def test_other_texts_are_wrong_codes(code: str) -> None:
    assert matching_step(SECRET, code, 59_000, 0) is None


def test_secret_has_160_bits_and_its_uri_names_the_account() -> None:
    secret = new_totp_secret()
    assert len(base64.b32decode(secret)) == 20
    assert totp_uri(secret, "ada+1@example.org") == (
        f"otpauth://totp/Deskwire:ada%2B1@example.org?secret={secret}&issuer=Deskwire&algorithm=SHA1&digits=6&period=30"
    )


def test_recovery_codes_differ_and_are_read_in_any_writing() -> None:
    codes = new_recovery_codes()
    assert len(set(codes)) == CODES
    for code in codes:
        assert hash_recovery_code(f" {code.upper().replace('-', ' ')}") == hash_recovery_code(code)
