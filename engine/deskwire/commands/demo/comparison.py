"""The comparison of acknowledged commands with the events that arrived on each channel."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from deskwire.commands.demo.channels import FEED, WEBHOOK, Arrival, DemoChannel, parse_event

_SIGNATURE_TOLERANCE_S: Final = 300  # contract 8

# Events with their arrivals, by conversation and sequence.
_Events = dict[str, dict[int, tuple[dict[str, Any], Arrival]]]


class ExpectedEvent(Struct, frozen=True):
    """The event that an acknowledged command causes.

    Args:
        sent_at: when the command was sent, in seconds of Trio's clock.
        noun: the object in the event's `data` that shows the command's effect.
        fields: the fields of the response, which that object must have.
    """

    conversation: str
    sent_at: float
    type: str
    noun: str
    fields: Mapping[str, Any]


class ChannelReport(Struct, rename="camel"):
    """The figures of one channel.

    Args:
        missing: sequences of conversations without an event.
        bad_signatures: None on channels without signatures.
        latency_ms: percentiles from request to arrival; None for the feed, which is read at the end.
    """

    events: int = 0
    missing: int = 0
    duplicates: int = 0
    out_of_order: int = 0
    bad_signatures: int | None = None
    latency_ms: dict[str, float] | None = None
    problems: list[str] = field(default_factory=list)


def compare(
    expected: Sequence[ExpectedEvent], channels: Mapping[str, DemoChannel], secret: str
) -> dict[str, ChannelReport]:
    """Return whether every event is on every channel: complete, in order, signed, the same bytes.

    Args:
        secret: the webhook endpoint's signing secret.
    """
    conversations = {each.conversation for each in expected}
    bodies: dict[tuple[str, int], bytes] = {}
    reports: dict[str, ChannelReport] = {}
    events: dict[str, _Events] = {}
    for name, channel in channels.items():
        reports[name] = report = ChannelReport(bad_signatures=0 if name == WEBHOOK else None)
        # Contract 6.4.4: webhooks may overtake each other.
        events[name] = _sorted(channel, conversations, report, bodies, ordered=name != WEBHOOK)
        if name == WEBHOOK:
            _check_signatures(channel, secret, report)
    for name, report in reports.items():
        for conversation in conversations:
            last = max((n for each in events.values() for n in each.get(conversation, ())), default=0)
            gaps = set(range(1, last + 1)) - events[name].get(conversation, {}).keys()
            report.missing += len(gaps)
            report.problems += (f"{conversation} has no event {gap} of {last}" for gap in sorted(gaps))
        latencies_s = sorted(_latencies(expected, events[name], report))
        if latencies_s and name != FEED:
            shares = {"p50": 0.5, "p99": 0.99, "most": 1.0}
            report.latency_ms = {
                percentile: round(latencies_s[int(share * (len(latencies_s) - 1))] * 1000, 2)
                for percentile, share in shares.items()
            }
    return reports


def _sorted(
    channel: DemoChannel,
    conversations: set[str],
    report: ChannelReport,
    bodies: dict[tuple[str, int], bytes],
    *,
    ordered: bool,
) -> _Events:
    """Return the channel's events, and count its faults. `bodies` has the first bytes of each event."""
    found: _Events = {}
    for arrival in channel.arrivals:
        event = parse_event(arrival.body)
        if event is None:
            report.problems.append(f"this is no event: {arrival.body[:80]!r}")
            continue
        conversation = event["data"].get("conversation")
        about = conversation.get("id") if isinstance(conversation, dict) else None
        sequence = event["sequence"]
        if about not in conversations or sequence is None:
            continue  # not of this replay
        if bodies.setdefault((about, sequence), arrival.body) != arrival.body:
            report.problems.append(f"event {sequence} of {about} has other bytes than before")
        events = found.setdefault(about, {})
        if sequence in events:
            report.duplicates += 1
            continue
        report.events += 1
        if sequence < max(events, default=0):
            report.out_of_order += 1
            if ordered:
                report.problems.append(f"event {sequence} of {about} came too late")
        events[sequence] = event, arrival
    return found


def _latencies(expected: Sequence[ExpectedEvent], events: _Events, report: ChannelReport) -> Iterator[float]:
    """Yield the seconds from each command to its event, and report the commands without one."""
    for each in expected:
        for event, arrival in events.get(each.conversation, {}).values():
            shown = event["data"].get(each.noun)
            if event["type"] == each.type and shown and shown.items() >= each.fields.items():
                yield arrival.at - each.sent_at
                break
        else:
            report.problems.append(f"no {each.type} shows a command in {each.conversation}")


def _check_signatures(channel: DemoChannel, secret: str, report: ChannelReport) -> None:
    """Report the webhooks whose signature does not match the body (contract 6.3)."""
    bad = 0
    for arrival in channel.arrivals:
        signed_at, _, signature = arrival.signature.removeprefix("t=").partition(",v1=")
        content = signed_at.encode() + b"." + arrival.body
        right = hmac.digest(secret.encode(), content, "sha256").hex()
        recent = (
            signed_at.isdecimal() and abs(arrival.received_at - float(signed_at)) <= _SIGNATURE_TOLERANCE_S
        )
        if not recent or not hmac.compare_digest(right.encode(), signature.encode()):
            bad += 1
            report.problems.append(f"the signature {arrival.signature!r} does not fit the body")
    report.bad_signatures = bad
