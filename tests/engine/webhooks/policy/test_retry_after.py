"""The pause that a receiver asks for with `Retry-After`.

Source: RFC 9110, section 10.2.3.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.webhooks.http.retry_after import asked_wait_ms

NOON = 1_793_534_400_000  # Sun, 01 Nov 2026 12:00:00 GMT


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("value", "wait_ms"),
    [
        (b"0", 0),
        (b"120", 120_000),
        (b" 7 ", 7_000),
        (b"Sun, 01 Nov 2026 12:00:30 GMT", 30_000),
        (b"Sun, 01 Nov 2026 13:00:30 +0100", 30_000),
        (b"Sun, 01 Nov 2026 11:00:00 GMT", 0),
        (b"99999999999999999999", 10_000_000_000),
        (b"soon", None),
        (b"-5", None),
        (b"1.5", None),
        (b"\xff\xfe", None),
        ("١٢".encode(), None),
        (b"", None),
        (b"Sun, 01 Nov 99999 12:00:30 GMT", None),
    ],
)
def test_seconds_and_dates_are_understood_and_nothing_else(
    status: int, value: bytes, wait_ms: int | None
) -> None:
    assert asked_wait_ms(status, [(b"Content-Type", b"x"), (b"retry-After", value)], NOON) == wait_ms


@pytest.mark.parametrize("status", [None, 200, 301, 410, 500, 502])
def test_no_other_status_asks_for_a_pause(status: int | None) -> None:
    assert asked_wait_ms(status, [(b"Retry-After", b"60")], NOON) is None


def test_an_answer_without_the_header_asks_for_none() -> None:
    assert asked_wait_ms(503, [], NOON) is None


@given(st.binary(max_size=80))
def test_any_bytes_give_a_pause_or_none(value: bytes) -> None:
    wait_ms = asked_wait_ms(503, [(b"Retry-After", value)], NOON)
    assert wait_ms is None or wait_ms >= 0
