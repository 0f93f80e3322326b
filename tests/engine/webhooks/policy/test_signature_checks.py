"""Verifiers with arbitrary headers: the demo's receiver and the published example."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.webhooks.signature import sign, signature_header
from tests.support.properties import budget
from tests.support.replay.signature import signature_fault
from tests.support.root import ROOT

# Returns whether a secret signed a header and a body, at a time in seconds.
Check = Callable[[str, str, bytes, float], bool]

SECRET: Final = "whsec_4fzCwFMCBvyqXbTV9vXSKlcJTUGcRh3n5WtGWTiMpkL"
NOW: Final = 1_790_000_000.5


def the_demos(secret: str, header: str, body: bytes, now: float) -> bool:
    return signature_fault(secret, header, body, now) is None


def the_examples(secret: str, header: str, body: bytes, now: float) -> bool:
    return EXAMPLE["verify"](secret, header, body, now) is True


EXAMPLE: Final = runpy.run_path(str(ROOT / "docs" / "examples" / "verify.py"))
CHECKS: Final = pytest.mark.parametrize("check", [the_demos, the_examples])

SECRETS: Final = st.from_regex(r"whsec_[0-9A-Za-z]{1,50}", fullmatch=True)
TIMES: Final = st.integers(0, 10**11)
# Position of the character to change, modulo the length.
AT: Final = st.integers(0, 10**6)
NUMBERS: Final = st.integers(0, 6_000).map(lambda digits: "9" * digits) | st.integers().map(str)
VALUES: Final = st.text() | NUMBERS | st.sampled_from(["0" * 64, f"{NOW:.0f}", "\u0661"])
PARTS: Final = st.tuples(
    st.sampled_from(["t", "v1", "v0", " t", "T", ""]), st.sampled_from(["=", "", "=="]), VALUES
)
HEADERS: Final = (
    st.text()
    | st.lists(st.text() | PARTS.map("".join), max_size=5).map(",".join)
    | st.tuples(st.just("t="), NUMBERS, st.just(",v1="), VALUES).map("".join)
)


def changed(text: str, at: int, to: str) -> str:
    """Return the text with a different character at one position."""
    at %= len(text)
    other = to if text[at] != to else chr(ord(to) + 1)
    return text[:at] + other + text[at + 1 :]


@pytest.mark.thorough
@CHECKS
@budget(300)
@given(HEADERS, st.binary(max_size=80))
def test_unsigned_headers_are_refused_without_an_exception(check: Check, header: str, body: bytes) -> None:
    assert not check(SECRET, header, body, NOW)


@CHECKS
@pytest.mark.parametrize("digits", [400, 5_000])
def test_a_time_of_very_many_digits_is_refused_like_any_other(check: Check, digits: int) -> None:
    """Python can convert one of these to no float, and the other to no int."""
    t = "9" * digits
    assert not check(SECRET, f"t={t},v1={'0' * 64}", b"{}", NOW)


@CHECKS
@budget(100)
@given(st.lists(SECRETS, min_size=1, max_size=2), TIMES, st.binary(), st.integers(-300, 300))
def test_a_signed_header_verifies_with_each_of_its_secrets(
    check: Check, secrets: list[str], t: int, body: bytes, away_s: int
) -> None:
    header = signature_header(secrets, t, body)
    assert all(check(secret, header, body, t + away_s) for secret in secrets)


@CHECKS
@budget(100)
@given(TIMES, st.binary(min_size=1), AT, st.integers(1, 255))
def test_a_body_with_another_byte_is_refused(
    check: Check, t: int, body: bytes, at: int, flipped: int
) -> None:
    header = signature_header([SECRET], t, body)
    other = bytearray(body)
    other[at % len(body)] ^= flipped
    assert not check(SECRET, header, bytes(other), t)


@CHECKS
@budget(100)
@given(TIMES, st.binary(), AT, st.characters() | st.sampled_from("0123456789,=. "))
def test_a_time_with_another_character_is_refused(
    check: Check, t: int, body: bytes, at: int, to: str
) -> None:
    """Even if the changed time is close enough to now."""
    header = f"t={changed(str(t), at, to)},v1={sign(SECRET, t, body)}"
    assert not check(SECRET, header, body, t)


@CHECKS
@budget(100)
@given(TIMES, st.binary(), AT, st.characters() | st.sampled_from("0123456789abcdefABCDEF,=. "))
def test_a_signature_with_another_character_is_refused(
    check: Check, t: int, body: bytes, at: int, to: str
) -> None:
    header = f"t={t},v1={changed(sign(SECRET, t, body), at, to)}"
    assert not check(SECRET, header, body, t)
