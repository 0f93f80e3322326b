"""The demo's inbox before it is made: the same each time, and as mixed as real ones are."""

from __future__ import annotations

import unicodedata
import zlib
from collections import Counter

import orjson

from deskwire.commands.demo.chats import bundled
from deskwire.commands.demo.stories import (
    COLLEAGUES,
    CONVERSATIONS,
    CUSTOMERS,
    LIVE_CONVERSATIONS,
    import_records,
    load_stories,
    plan,
)
from deskwire.engine.snippets.snippet import unknown_placeholders

NOW = 1_800_000_000_000
AGENTS = ["usr_1", "usr_2", "usr_3"]
TEAMS = ["team_1", "team_2"]


def test_the_plan_is_the_same_each_time_and_has_all_customers() -> None:
    planned = plan(load_stories())
    assert planned == plan(load_stories())
    assert len(planned) == CONVERSATIONS
    assert {each.customer for each in planned} == set(CUSTOMERS)
    assert len({each.user_id for each in CUSTOMERS}) == len(CUSTOMERS) == 40


def test_customers_write_in_many_languages_and_directions() -> None:
    stories = {story.language for story in load_stories()}
    assert {customer.language for customer in CUSTOMERS} <= stories
    assert len(stories) >= 20
    planned = plan(load_stories())
    directions = Counter(unicodedata.bidirectional(each.turns[0].text[0]) for each in planned)
    assert directions["R"] + directions["AL"] >= 5
    said = "".join(turn.text for each in planned for turn in each.turns)
    assert any(unicodedata.category(each) == "So" for each in said), "there are emoji"


def test_conversations_are_short_and_long_and_in_every_state() -> None:
    planned = plan(load_stories())
    lengths = sorted(len(each.turns) for each in planned)
    assert (lengths[0], lengths[-1] >= 55) == (1, True)
    assert {each.status for each in planned} == {"OPEN", "PENDING", "CLOSED"}
    assert {each.assigned for each in planned} == {"nobody", "user", "team"}
    assert any(each.snoozed for each in planned[:-LIVE_CONVERSATIONS])
    assert any(turn.speaker == "note" for each in planned for turn in each.turns)
    assert {each.agent for each in planned} == set(range(len(COLLEAGUES)))


def test_every_placeholder_of_a_story_is_filled() -> None:
    for each in plan(load_stories()):
        for said in (each.title, *(turn.text for turn in each.turns)):
            assert not any(name in said for name in ("{name}", "{order}", "{city}")), said
    assert all(
        unknown_placeholders(snippet["text"]) == ()
        for snippet in orjson.loads(bundled("inbox.json"))["snippets"]
    )


def test_past_messages_are_in_order_and_never_in_the_future() -> None:
    for each in plan(load_stories())[:-LIVE_CONVERSATIONS]:
        conversation, *messages = import_records(each, NOW, AGENTS, TEAMS)
        times = [conversation["createdAt"], *(message["createdAt"] for message in messages)]
        assert times == sorted(times)
        assert times[-1] < "2027-01-15T08:00:00.000Z"  # which NOW is
        assert len(messages) == len(each.turns)


def test_the_picture_is_a_whole_png() -> None:
    data = bundled("parcel.png")
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, kinds, pixels = 8, [], b""
    while at < len(data):
        size = int.from_bytes(data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(data[at + 8 + size : at + 12 + size])
        kinds.append(kind)
        pixels += zlib.decompress(body) if kind == b"IDAT" else b""
        at += 12 + size
    assert kinds == [b"IHDR", b"IDAT", b"IEND"]
    assert len(pixels) == 220 * (1 + 3 * 320)
