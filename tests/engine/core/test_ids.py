"""Identifiers: their shape, and that they only grow (decisions 1)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from deskwire.engine.core.ids import IdGenerator, fresh_ids, id_time_ms, is_id, new_id, ulid_value

TIMES = st.integers(0, (1 << 47))


@given(st.lists(TIMES, min_size=2, max_size=50))
def test_ids_grow_with_any_clock(times: list[int]) -> None:
    mint = IdGenerator()
    made = [mint.new("evt", at) for at in times]
    assert made == sorted(set(made))


@given(st.lists(TIMES, min_size=1, max_size=9), TIMES)
def test_ids_grow_over_a_restart_also_if_the_clock_was_set_back(times: list[int], later: int) -> None:
    before = IdGenerator()
    last = [before.new("evt", at) for at in times][-1]
    assert IdGenerator(last).new("evt", later) > last


def test_many_ids_of_one_millisecond_are_all_different_and_ordered() -> None:
    mint = IdGenerator()
    made = [mint.new("evt", 5) for _ in range(5_000)]
    assert made == sorted(set(made))


@given(TIMES)
def test_an_id_is_written_as_the_library_of_ulids_writes_it(at: int) -> None:
    written = new_id("cnv", at).removeprefix("cnv_")
    assert str(ULID.from_str(written)) == written
    assert ULID.from_str(written).milliseconds == at


@given(TIMES)
def test_an_id_has_the_documented_shape_and_knows_its_time(at: int) -> None:
    made = new_id("cnv", at)
    assert re.fullmatch(r"cnv_[0-9A-HJKMNP-TV-Z]{26}", made)
    assert is_id(made, "cnv")
    assert id_time_ms(made) == at


def test_an_earlier_id_sorts_in_front_of_a_later_one() -> None:
    assert new_id("msg", 1_000) < new_id("msg", 1_001)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cnv_",
        "msg_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "cnv_01ARZ3NDEKTSV4RRFFQ69G5FA",
        "cnv_01ARZ3NDEKTSV4RRFFQ69G5FAVV",
        "cnv_01arz3ndektsv4rrffq69g5fav",
        "cnv_81ARZ3NDEKTSV4RRFFQ69G5FAV",
        "cnv_01ARZ3NDEKTSV4RRFFQ69G5FAU",
        "cnv_01ARZ3NDEKTSV4RRFFQ69G5FAV\n",
        "cnv_\N{FULLWIDTH DIGIT ZERO}1ARZ3NDEKTSV4RRFFQ69G5FAV",
    ],
)
def test_a_text_of_another_shape_is_no_conversation_id(text: str) -> None:
    assert not is_id(text, "cnv")


def test_a_text_without_an_identifier_in_it_has_no_value() -> None:
    with pytest.raises(ValueError, match="ULID"):
        ulid_value("evt_nonsense")


@given(TIMES, st.integers(0, 300))
def test_ids_made_together_grow_and_are_like_others(at: int, count: int) -> None:
    made = fresh_ids("msg", at, count)
    assert len(made) == count
    assert made == sorted(set(made))
    assert all(is_id(each, "msg") and id_time_ms(each) == at for each in made)
