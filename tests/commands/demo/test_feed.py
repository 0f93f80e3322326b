"""The place from which the demo reads the feed."""

from __future__ import annotations

from deskwire.engine.core.ids import IdGenerator, is_id, new_id
from tests.support.replay.feed import just_before


def test_reading_begins_before_the_first_own_event_and_after_all_earlier_ones() -> None:
    now, mint = 1_790_000_000_000, IdGenerator()
    earlier = mint.new("evt", now - 1)
    start = just_before([new_id("cnv", now + 7), new_id("cnv", now), new_id("evt", now + 3)])
    assert start is not None
    assert is_id(start, "evt")
    assert earlier < start < mint.new("evt", now)


def test_feed_without_conversations_has_no_start() -> None:
    assert just_before([]) is None
