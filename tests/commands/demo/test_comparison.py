"""The comparison of the demo finds and names every fault that is planted in a complete replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.commands.demo.channels import FEED, STREAM, WEBHOOK, Arrival, DemoChannel
from deskwire.commands.demo.comparison import ChannelReport, ExpectedEvent, compare
from deskwire.commands.demo.replay import PROBLEMS_SHOWN_MAX, ReplayReport
from deskwire.engine.core.values import replace
from tests.support.replay.histories import SECRET, good_history
from tests.support.replay.history import Delivery, Effect

EVERYWHERE = (WEBHOOK, STREAM, FEED)
lengths = st.lists(st.integers(0, 6), min_size=1, max_size=5)
channels = st.sampled_from(EVERYWHERE)


class Replayed:
    """Conversations with a number of messages each, which may be interleaved, and their arrivals."""

    def __init__(self, messages: list[int]) -> None:
        history = good_history(messages)
        self.expected = [
            ExpectedEvent(str(command.conversation), command.sent_at, effect.type, *shown_by(effect))
            for command in history.commands
            for effect in command.effects
        ]
        self.arrivals = {
            name: [
                Arrival(each.at, each.body, each.signature, each.received_at)
                if isinstance(each, Delivery)
                else Arrival(each.at, each.body)
                for each in arrivals
            ]
            for name, arrivals in history.channels.items()
        }

    def compared(self) -> dict[str, ChannelReport]:
        return compare(self.expected, {name: filled(each) for name, each in self.arrivals.items()}, SECRET)

    def report(self) -> ReplayReport:
        return ReplayReport(1, len(self.expected), 0, 1.0, self.compared())


def shown_by(effect: Effect) -> tuple[str, Any]:
    """Return the object in an event's data that shows the effect, and its content."""
    noun = "message" if "message" in effect.data else "conversation"
    return noun, effect.data[noun]


def filled(arrivals: list[Arrival]) -> DemoChannel:
    channel = DemoChannel()
    for arrival in arrivals:
        channel.record(arrival)
    return channel


@given(lengths)
def test_complete_replay_has_no_problem_and_all_events(messages: list[int]) -> None:
    replayed = Replayed(messages)
    report = replayed.report()
    assert report.problems == []
    assert (
        {each.events for each in report.channels.values()}
        == {report.events}
        == {sum(messages) + 2 * len(messages)}
    )


@given(lengths, channels, st.data())
def test_lost_event_is_counted_and_named_on_its_channel(
    messages: list[int], channel: str, data: st.DataObject
) -> None:
    replayed = Replayed(messages)
    arrivals = replayed.arrivals[channel]
    arrivals.pop(data.draw(st.integers(0, len(arrivals) - 1)))
    compared = replayed.compared()
    assert {name: each.missing for name, each in compared.items()} == {
        name: int(name == channel) for name in EVERYWHERE
    }
    kinds = [each.partition(" ")[0] for each in compared[channel].problems]
    assert kinds[0].startswith("cnv_")
    assert kinds[1:] == ["no"]


@given(lengths, channels, st.data())
def test_silent_channel_is_found(messages: list[int], channel: str, data: st.DataObject) -> None:
    replayed = Replayed(messages)
    arrivals = replayed.arrivals[channel]
    rest = data.draw(st.integers(0, len(arrivals) - 1))
    missing = len(arrivals) - rest
    del arrivals[rest:]
    assert replayed.compared()[channel].missing == missing


@given(lengths, channels, st.data())
def test_duplicate_is_counted_and_is_no_problem(
    messages: list[int], channel: str, data: st.DataObject
) -> None:
    replayed = Replayed(messages)
    arrivals = replayed.arrivals[channel]
    arrivals.append(arrivals[data.draw(st.integers(0, len(arrivals) - 1))])
    report = replayed.report()
    assert report.problems == []
    assert (report.channels[channel].duplicates, report.channels[channel].out_of_order) == (1, 0)


@given(st.integers(0, 6), channels, st.data())
def test_swap_is_a_problem_except_on_webhooks(messages: int, channel: str, data: st.DataObject) -> None:
    replayed = Replayed([messages])
    arrivals = replayed.arrivals[channel]
    first = data.draw(st.integers(0, len(arrivals) - 2))
    arrivals[first], arrivals[first + 1] = arrivals[first + 1], arrivals[first]
    compared = replayed.compared()[channel]
    assert compared.out_of_order == 1
    assert [each.endswith(" of cnv_1 came too late") for each in compared.problems] == (
        [] if channel == WEBHOOK else [True]
    )


def forge(arrival: Arrival) -> Arrival:
    return replace(arrival, signature=arrival.signature[:-1] + ("0" if arrival.signature[-1] != "0" else "1"))


def delay(arrival: Arrival) -> Arrival:
    return replace(arrival, received_at=arrival.received_at + 301)


def unsign(arrival: Arrival) -> Arrival:
    return replace(arrival, signature="")


@pytest.mark.parametrize("spoil", [forge, delay, unsign])
def test_wrong_signature_is_counted_and_named(spoil: Callable[[Arrival], Arrival]) -> None:
    replayed = Replayed([1])
    replayed.arrivals[WEBHOOK][1] = spoil(replayed.arrivals[WEBHOOK][1])
    report = replayed.report()
    assert report.channels[WEBHOOK].bad_signatures == 1
    (problem,) = report.problems
    assert problem.startswith("webhook: the signature ")


@given(lengths, channels, st.data())
def test_any_flipped_bit_is_found(messages: list[int], channel: str, data: st.DataObject) -> None:
    replayed = Replayed(messages)
    arrivals = replayed.arrivals[channel]
    index = data.draw(st.integers(0, len(arrivals) - 1))
    body = bytearray(arrivals[index].body)
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    arrivals[index] = replace(arrivals[index], body=bytes(body))
    assert replayed.report().problems


@pytest.mark.parametrize("channel", EVERYWHERE)
def test_altered_bytes_are_named(channel: str) -> None:
    replayed = Replayed([1])
    arrivals = replayed.arrivals[channel]
    # A space after a comma has no meaning in JSON, but the bytes differ.
    arrivals[1] = replace(arrivals[1], body=arrivals[1].body.replace(b",", b", ", 1))
    assert any("event 2 of cnv_1 has other bytes" in each for each in replayed.report().problems)


def test_event_with_other_content_than_the_response_is_not_accepted() -> None:
    replayed = Replayed([1])
    first, second, *rest = replayed.expected
    replayed.expected = [first, replace(second, fields={"text": "Another"}), *rest]
    assert replayed.report().problems == [
        f"{channel}: no message.created shows a command in cnv_1" for channel in EVERYWHERE
    ]


def test_two_events_with_one_sequence_are_named() -> None:
    replayed = Replayed([2])
    second = replayed.arrivals[STREAM][1]
    other = orjson.dumps({**orjson.loads(second.body), "id": "evt_other"})
    replayed.arrivals[STREAM].append(replace(second, body=other))
    assert replayed.report().problems == ["stream: event 2 of cnv_1 has other bytes than before"]


def test_body_that_is_no_event_is_named() -> None:
    replayed = Replayed([0])
    replayed.arrivals[STREAM].append(Arrival(1.0, b"not an event"))
    assert replayed.report().problems == ["stream: this is no event: b'not an event'"]


def test_events_of_other_conversations_are_ignored() -> None:
    replayed = Replayed([1])
    replayed.arrivals[STREAM] += [
        replace(each, body=each.body.replace(b"_1", b"_9")) for each in Replayed([3]).arrivals[STREAM][:2]
    ]
    assert replayed.report().problems == []


def test_replay_without_an_acknowledged_command_does_not_pass() -> None:
    reports = compare([], {STREAM: DemoChannel(), FEED: DemoChannel()}, "")
    assert ReplayReport(0, 0, 0, 1.0, reports).problems == ["no command was acknowledged"]


def test_latency_is_the_time_from_the_request_to_the_first_arrival() -> None:
    replayed = Replayed([0])  # commands at 0 and 1 s, their events on the stream at 5 and 6 s
    replayed.arrivals[STREAM].append(replace(replayed.arrivals[STREAM][0], at=60.0))
    compared = replayed.compared()
    assert compared[STREAM].latency_ms == {"p50": 5000, "p99": 5000, "most": 5000}
    assert compared[FEED].latency_ms is None


def test_document_has_the_first_problems_and_counts_all() -> None:
    replayed = Replayed([6] * 12)
    replayed.arrivals[STREAM] = []
    document = replayed.report().document()
    assert not document["passed"]
    assert len(document["problems"]) == PROBLEMS_SHOWN_MAX == 10
    assert document["problemCount"] > 100
    assert document["channels"]["stream"]["missing"] == 12 * 8
    assert orjson.loads(orjson.dumps(document)) == document
