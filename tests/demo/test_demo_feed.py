"""The feed's pages, cut into the very bytes that were sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.demo.errors import DemoError
from deskwire.demo.feed import just_before, raw_items
from deskwire.engine.ids import Mint, is_id, new_id


@given(st.lists(st.dictionaries(st.text(), st.text() | st.floats(allow_nan=False) | st.none())))
def test_the_items_of_a_page_are_cut_out_as_they_are(items: list[dict[str, object]]) -> None:
    bodies = [json.dumps(each, ensure_ascii=False) for each in items]  # with spaces, unlike the service
    page = '{"items":[' + ",".join(bodies) + '],"nextCursor":null}'
    assert raw_items(page.encode()) == [each.encode() for each in bodies]


def test_a_page_of_another_layout_is_refused() -> None:
    with pytest.raises(DemoError):
        raw_items(b'{"nextCursor":null,"items":[]}')


def test_reading_begins_before_the_first_event_of_all_conversations_and_behind_all_earlier_ones() -> None:
    now, mint = 1_790_000_000_000, Mint()
    earlier = mint.new("evt", now - 1)
    start = just_before([new_id("cnv", now + 7), new_id("cnv", now), new_id("evt", now + 3)])
    assert start is not None
    assert is_id(start, "evt")
    assert earlier < start < mint.new("evt", now)


def test_without_any_conversation_there_is_nothing_to_begin_with() -> None:
    assert just_before([]) is None
