"""CSV in a spreadsheet of any country: no cell is split, and none becomes a formula."""

from __future__ import annotations

import csv
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.spreadsheet import csv_lines, escape_formula

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"


@given(
    st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4), max_size=4)
)
def test_every_cell_comes_back(rows: list[list[str]]) -> None:
    assert list(csv.reader(StringIO(csv_lines(rows), newline=""))) == rows


@pytest.mark.parametrize(
    "text", ["x;=cmd|' /C calc'!A0;", "a;b", "a\tb", "\u00fc;-1", "a|b", " a", "a ", 'a"b', "a\nb"]
)
def test_a_cell_at_which_some_spreadsheet_splits_is_within_quotes(text: str) -> None:
    assert csv_lines([["1", text]]) == '1,"{}"\r\n'.format(text.replace('"', '""'))


def test_plain_words_and_numbers_are_bare() -> None:
    assert csv_lines([["Ada", "-1.5", "a b", ""]]) == "Ada,-1.5,a b,\r\n"


@pytest.mark.parametrize(
    "before", ["", " ", "\u200b", "\ufeff", "\u00a0", "\u202e", "\t", "\u2060\u200d ", "\x00", "\u3000"]
)
@pytest.mark.parametrize("sign", SIGNS)
def test_sign_at_the_beginning_is_escaped_also_after_invisible_characters(before: str, sign: str) -> None:
    assert escape_formula(f"{before}{sign}1+1") == f"'{before}{sign}1+1"


@pytest.mark.parametrize("text", ["a=1", "1-2", "", "'=1", "ada@example.org", "\u00bd"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert escape_formula(text) == text
