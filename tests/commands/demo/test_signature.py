"""Signatures as a receiver must check them (contract 6.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.webhooks.signature import signature_header
from tests.support.replay.signature import signature_fault

BODY = b'{"id":"evt_1"}'
# printf '1790000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_known
KNOWN = "9b658ee1a66f3233d76d5c0a9e0b2396aac35d5825b14ad24c57b453e2590949"


def test_signature_matches_a_known_answer() -> None:
    assert signature_fault("whsec_known", f"t=1790000000,v1={KNOWN}", BODY, 1790000000) is None


@pytest.mark.parametrize(("seconds", "right"), [(-300, True), (300, True), (-301, False), (301, False)])
def test_five_minutes_of_difference_are_tolerated_both_ways(seconds: int, right: bool) -> None:
    verdict = signature_fault("whsec_known", f"t=1790000000,v1={KNOWN}", BODY, 1790000000 + seconds)
    assert (verdict is None) == right


def test_one_right_signature_of_several_is_enough_while_a_secret_is_rotated() -> None:
    header = signature_header(("whsec_new", "whsec_old"), 1790000000, BODY)
    assert signature_fault("whsec_new", header, BODY, 1790000000) is None
    assert signature_fault("whsec_old", header, BODY, 1790000000) is None
    assert signature_fault("whsec_other", header, BODY, 1790000000) is not None


@pytest.mark.parametrize(
    "header",
    [
        "",
        "t=1",
        f"v1={KNOWN}",
        f"t=x,v1={KNOWN}",
        f"t=1,t=2,v1={KNOWN}",
        f"t=\u0661,v1={KNOWN}",
        f"t={'9' * 5_000},v1={KNOWN}",
    ],
)
def test_a_header_without_time_and_signature_is_refused(header: str) -> None:
    assert (
        signature_fault("whsec_known", header, BODY, 1) == f"the signature header {header!r} has no t and v1"
    )


@given(st.text(), st.binary())
def test_no_header_makes_the_check_fail_or_pass_by_chance(header: str, body: bytes) -> None:
    assert signature_fault("whsec_known", header, body, 1790000000) is not None
    assert signature_fault("whsec_known", f"t=1790000000,v1={header}", body, 1790000000) is not None
