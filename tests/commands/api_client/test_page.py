"""A list's pages, cut into the very bytes that were sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.commands.api_client.service import raw_items


@given(st.lists(st.dictionaries(st.text(), st.text() | st.floats(allow_nan=False) | st.none())))
def test_the_items_of_a_page_are_cut_out_as_they_are(items: list[dict[str, object]]) -> None:
    bodies = [json.dumps(each, ensure_ascii=False) for each in items]  # with spaces, unlike the service
    page = '{"items":[' + ",".join(bodies) + '],"nextCursor":null}'
    assert raw_items(page.encode()) == [each.encode() for each in bodies]


def test_a_page_of_another_layout_is_refused() -> None:
    with pytest.raises(ValueError, match="does not begin"):
        raw_items(b'{"nextCursor":null,"items":[]}')
