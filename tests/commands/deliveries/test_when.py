"""Times as operators type them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.commands.shell.times import api_time
from deskwire.engine.core.clock import iso

NOW = 1_790_000_000_000  # 2026-09-21T14:13:20Z


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-01T12:00:00Z", "2026-11-01T12:00:00.000Z"),
        ("2026-11-01T12:00:00.5+01:00", "2026-11-01T11:00:00.500Z"),
        ("2026-11-01", "2026-11-01T00:00:00.000Z"),
        ("90s", iso(NOW - 90_000)),
        ("30m", iso(NOW - 1_800_000)),
        ("2h", iso(NOW - 7_200_000)),
        ("7d", iso(NOW - 604_800_000)),
        ("999999d", "1970-01-01T00:00:00.000Z"),
    ],
)
def test_a_time_is_iso_8601_or_so_long_ago(text: str, expected: str) -> None:
    assert api_time(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2", "-2h", "2 h", "2w", "2026-13-01", "evt_1"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write 2026-11-01T12:00:00Z, or an age such as 30m"):
        api_time(text, NOW)


@given(st.text(max_size=12))
def test_any_text_gives_a_time_or_that_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert api_time(text, NOW).endswith("Z")
