"""Times as texts: the usual forms are read the quick way, and as the standard library reads them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.clock import iso, milliseconds

TIMES = st.integers(0, 253_402_300_799_999)


@given(TIMES)
def test_a_time_that_is_written_is_read_as_it_was(at: int) -> None:
    assert milliseconds(iso(at)) == at
    assert milliseconds(iso(at)[:-5] + "Z") == at // 1000 * 1000


@given(
    st.text(alphabet="0123456789-:.TZ+W ", max_size=30)
    | TIMES.map(iso).map(lambda text: text.replace("0", "", 1))
)
def test_other_texts_are_parsed_as_the_standard_library_parses_them(text: str) -> None:
    try:
        at = datetime.fromisoformat(text)
        expected = round(at.replace(tzinfo=at.tzinfo or UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        with pytest.raises(ValueError, match="no time in ISO 8601"):
            milliseconds(text)
    else:
        assert milliseconds(text) == expected


@pytest.mark.parametrize(
    "text", ["20240301T090000Z", "2024-W10-1T09:00:00Z", "2024-03-01T09:00", "2024-03-01"]
)
def test_other_forms_of_iso_8601_are_read_too(text: str) -> None:
    assert iso(milliseconds(text))[:4] == "2024"
