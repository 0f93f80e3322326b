"""No check that cannot fail: every fault that is planted in a good history is found, and named."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.values import replace
from tests.support.replay.check import problems, timelines
from tests.support.replay.histories import OURS, good_history, state, with_arrivals, with_outcome
from tests.support.replay.history import FEED, STREAM, WEBHOOK, Arrival, Delivery, History

EVERYWHERE = (WEBHOOK, STREAM, FEED)
ORDERED = (STREAM, FEED)

histories = st.lists(st.integers(0, 6), min_size=1, max_size=5).map(good_history)
channels = st.sampled_from(EVERYWHERE)


def found(history: History) -> list[str]:
    return problems(history, timelines(history))


def changed(arrival: Arrival, **fields: Any) -> Arrival:
    """Return the arrival with other fields in its envelope; all but the body stays."""
    return replace(arrival, body=orjson.dumps({**orjson.loads(arrival.body), **fields}))


@given(histories)
def test_a_history_without_a_fault_passes_with_all_its_events(history: History) -> None:
    assert found(history) == []
    assert {len(each.events) for each in timelines(history).values()} == {len(history.channels[FEED])}


@given(histories, channels, st.data())
def test_a_lost_event_is_found_on_whichever_channel_lost_it(
    history: History, channel: str, data: st.DataObject
) -> None:
    arrivals = list(history.channels[channel])
    arrivals.pop(data.draw(st.integers(0, len(arrivals) - 1)))
    spoilt = with_arrivals(history, channel, arrivals)
    assert any(each.startswith(f"{channel}: ") for each in found(spoilt))
    assert sum("has no event" in each for each in found(spoilt)) == 1


@given(histories, channels, st.data())
def test_a_channel_that_falls_silent_is_found(history: History, channel: str, data: st.DataObject) -> None:
    arrivals = history.channels[channel]
    rest = arrivals[: data.draw(st.integers(0, len(arrivals) - 1))]
    spoilt = with_arrivals(history, channel, rest)
    assert len(timelines(spoilt)[channel].events) == len(rest)
    assert any("has no event" in each for each in found(spoilt))


@given(histories, channels, st.data())
def test_a_duplicate_is_counted_and_is_no_fault(history: History, channel: str, data: st.DataObject) -> None:
    arrivals = list(history.channels[channel])
    again = arrivals[data.draw(st.integers(0, len(arrivals) - 1))]
    spoilt = with_arrivals(history, channel, [*arrivals, again])
    assert found(spoilt) == []
    sorted_out = timelines(spoilt)[channel]
    assert (len(sorted_out.duplicates), len(sorted_out.inversions)) == (1, 0)


@given(histories, channels, st.data())
def test_swap_is_a_fault_on_ordered_channels_and_counted_on_webhooks(
    history: History, channel: str, data: st.DataObject
) -> None:
    arrivals = list(history.channels[channel])
    ours = [
        n
        for n, each in enumerate(arrivals)
        if orjson.loads(each.body)["data"]["conversation"]["id"] == "cnv_1"
    ]
    first = data.draw(st.integers(0, len(ours) - 2))
    one, other = ours[first], ours[first + 1]
    arrivals[one], arrivals[other] = arrivals[other], arrivals[one]
    spoilt = with_arrivals(history, channel, arrivals)
    assert len(timelines(spoilt)[channel].inversions) == 1
    assert (found(spoilt) == []) == (channel == WEBHOOK)
    assert all("came too late" in each for each in found(spoilt))


@given(histories, st.data())
def test_a_forged_signature_is_found(history: History, data: st.DataObject) -> None:
    arrivals = list(history.channels[WEBHOOK])
    index = data.draw(st.integers(0, len(arrivals) - 1))
    genuine = arrivals[index]
    assert isinstance(genuine, Delivery)
    forged = genuine.signature[:-1] + ("0" if genuine.signature[-1] != "0" else "1")
    arrivals[index] = replace(genuine, signature=forged)
    assert found(with_arrivals(history, WEBHOOK, arrivals)) == [
        f"webhook: delivery {genuine.delivery_id}: the signature does not fit the body"
    ]


@given(histories, channels, st.data())
def test_altered_bytes_are_found_on_every_channel(
    history: History, channel: str, data: st.DataObject
) -> None:
    arrivals = list(history.channels[channel])
    index = data.draw(st.integers(0, len(arrivals) - 1))
    body = arrivals[index].body
    # A space after a comma changes nothing for a JSON reader, but the bytes differ.
    arrivals[index] = replace(arrivals[index], body=body.replace(b",", b", ", 1))
    spoilt = found(with_arrivals(history, channel, arrivals))
    assert any("has other bytes than on" in each for each in spoilt)
    assert any("does not fit the body" in each for each in spoilt) == (channel == WEBHOOK)


@given(histories, channels, st.data())
def test_any_flipped_bit_is_found(history: History, channel: str, data: st.DataObject) -> None:
    arrivals = list(history.channels[channel])
    index = data.draw(st.integers(0, len(arrivals) - 1))
    body = bytearray(arrivals[index].body)
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    arrivals[index] = replace(arrivals[index], body=bytes(body))
    assert found(with_arrivals(history, channel, arrivals))


@pytest.mark.parametrize("channel", [WEBHOOK, STREAM])
def test_an_event_under_another_name_than_its_own_is_found(channel: str) -> None:
    history = good_history([1])
    first, *rest = history.channels[channel]
    spoilt = with_arrivals(history, channel, [replace(first, label="message.created"), *rest])
    assert found(spoilt) == [
        f"{channel}: evt_1_1 is a conversation.created but was announced as 'message.created'"
    ]


@pytest.mark.parametrize("previous", [None, "1", "", "+0"])
def test_a_delivery_that_names_a_wrong_predecessor_is_found(previous: str | None) -> None:
    history = good_history([1])
    first, *rest = history.channels[WEBHOOK]
    assert isinstance(first, Delivery)
    spoilt = with_arrivals(history, WEBHOOK, [replace(first, previous=previous), *rest])
    assert found(spoilt) == [f"webhook: evt_1_1 names {previous} as its predecessor, not 0"]


def test_a_delivery_without_a_proper_id_is_found() -> None:
    history = good_history([1])
    first, *rest = history.channels[WEBHOOK]
    assert isinstance(first, Delivery)
    spoilt = with_arrivals(history, WEBHOOK, [replace(first, delivery_id="evt_1"), *rest])
    assert found(spoilt) == ["webhook: 'evt_1' is no delivery id"]


def test_two_events_with_one_number_are_found() -> None:
    history = good_history([2])
    arrivals = [*history.channels[STREAM], changed(history.channels[STREAM][1], id="evt_other")]
    assert "stream: evt_other and evt_1_2 are both 2 of cnv_1" in found(
        with_arrivals(history, STREAM, arrivals)
    )


def test_a_number_below_one_is_found() -> None:
    history = good_history([0])
    arrivals = [*history.channels[STREAM], changed(history.channels[STREAM][0], id="evt_zero", sequence=0)]
    assert "stream: evt_zero of cnv_1 has the number 0" in found(with_arrivals(history, STREAM, arrivals))


def test_invalid_event_is_found() -> None:
    history = good_history([0])
    arrivals = [*history.channels[STREAM], Arrival(1.0, b"not an event", "message.created")]
    assert found(with_arrivals(history, STREAM, arrivals)) == ["stream: this is no event: b'not an event'"]


def test_unrequested_event_is_found_unless_others_may_write() -> None:
    history = with_outcome(good_history([1, 1]), 0, "acknowledged")  # its effects are forgotten
    assert [each for each in found(history) if "nobody asked for evt_1_1" in each]
    assert found(replace(history, exact=False)) == []


def test_an_event_of_a_lost_answer_is_neither_expected_nor_wrong() -> None:
    history = with_outcome(good_history([1, 1]), 1, "unacknowledged")
    assert found(history) == []


def test_a_refused_command_is_a_fault_with_its_reason() -> None:
    history = with_outcome(good_history([1, 1]), 1, "refused")
    assert found(history) == ["step in cnv_1 was refused: for a test"]


def test_difference_between_the_apis_state_and_the_last_event_is_found() -> None:
    history = replace(good_history([1]), finals={"cnv_1": state(1, 3)})
    assert found(history) == [
        f"{channel}: the last event of cnv_1 shows another state than the API" for channel in EVERYWHERE
    ]


def test_a_conversation_that_cannot_be_fetched_is_found() -> None:
    assert found(replace(good_history([1]), finals={"cnv_1": None})) == ["cnv_1 can't be fetched"]


def test_state_ahead_of_all_channels_is_a_gap_on_each() -> None:
    history = replace(good_history([0]), finals={"cnv_1": state(1, 3)})
    assert [each for each in found(history) if "no event 3 of 3" in each] == [
        f"{channel}: cnv_1 has no event 3 of 3" for channel in EVERYWHERE
    ]


def test_an_effect_with_other_content_than_the_answer_is_not_accepted() -> None:
    history = good_history([1])
    spoilt = history
    for channel in EVERYWHERE:  # the same wrong bytes everywhere, and nothing signed: only the answer tells
        first, second, *rest = history.channels[channel]
        data = orjson.loads(second.body)["data"]
        altered = changed(second, data={**data, "message": {**data["message"], "text": "Another"}})
        spoilt = with_arrivals(spoilt, channel, [first, altered, *rest])
    assert "feed: no message.created shows the step in cnv_1" in found(spoilt)


def test_events_of_other_contacts_are_left_alone() -> None:
    history, other = good_history([1]), good_history([3])
    strangers = [
        replace(each, body=each.body.replace(OURS.encode(), b"real-").replace(b"_1", b"_9"))
        for each in other.channels[STREAM]
    ]
    assert found(with_arrivals(history, STREAM, [*strangers[:2], *history.channels[STREAM]])) == []
