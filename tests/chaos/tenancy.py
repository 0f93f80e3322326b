"""Checks that additional projects are shown no erased data and no data of another project."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, Protocol

import orjson

from tests.chaos.tenants import Life, Told

GRACE_S: Final = 1.0
"""How long data that was sent before the erasure's answer may be in flight, if no fault delays it."""
_WORD: Final = re.compile(rb"tenant\d+word\d+end")


class Span(Protocol):
    """A fault that may have delayed bytes in flight."""

    @property
    def from_s(self) -> float:
        """When the fault began."""

    @property
    def until_s(self) -> float:
        """When the installation was as before the fault."""


def tenancy(
    tenants: Sequence[Told], faults: Sequence[Span], left: Mapping[str, Sequence[str]] = {}
) -> Iterator[str]:
    """Yield each broken promise.

    Args:
        left: by table, the words found in its rows after the run.
    """
    for told in tenants:
        lives = {life.word.encode(): life for life in told.lives}
        yield from _erased(told, lives, faults)
        yield from _strangers(told, lives)
        yield from _kept(told)
        yield from told.refused
    gone = {life.word for told in tenants for life in told.lives if life.erased_at < inf}
    for table, words in left.items():
        if found := sorted(gone & set(words)):
            yield f"a row of {table} has {found[0]}, which is erased"


def _erased(told: Told, lives: Mapping[bytes, Life], faults: Sequence[Span]) -> Iterator[str]:
    """Yield each reader that was shown an erased conversation or contact after the erasure was answered."""
    for life in told.lives:
        yield from (f"{path} shows {life.word}, which is erased" for path in life.shown)
    for page in (*told.pages, *told.last):
        for word in sorted(set(_WORD.findall(page.body))):
            if word in lives and lives[word].erased_at < page.asked_at:
                yield f"the feed shows {word.decode()}, {page.asked_at - lives[word].erased_at:.2f} s after its erasure"
    for name, journal in (("a webhook", told.mail), ("the stream", told.stream)):
        for arrival in journal.arrivals:
            for word in sorted(set(_WORD.findall(arrival.body))):
                if word in lives and _too_late(lives[word].erased_at, arrival.at, faults):
                    late_s = arrival.at - lives[word].erased_at
                    yield f"{name} brings {word.decode()}, {late_s:.2f} s after its erasure"


def _too_late(erased_at: float, at: float, faults: Sequence[Span]) -> bool:
    """Return whether the data was sent after the erasure's answer, that is, no fault explains the delay."""
    if at <= erased_at + GRACE_S:
        return False
    return not any(each.from_s <= erased_at and at <= each.until_s + GRACE_S for each in faults)


def _strangers(told: Told, lives: Mapping[bytes, Life]) -> Iterator[str]:
    """Yield words of another project, or of no project, that were shown."""
    bodies = [
        *(page.body for page in (*told.pages, *told.last)),
        *(arrival.body for journal in (told.mail, told.stream) for arrival in journal.arrivals),
    ]
    for word in sorted({word for body in bodies for word in _WORD.findall(body)} - lives.keys()):
        yield f"{told.word} is shown {word.decode()}, which is none of its own"


def _kept(told: Told) -> Iterator[str]:
    """Yield kept messages that are lost, doubled, out of order, or missing from the endpoint or the stream."""
    events = [event for page in told.last for event in orjson.loads(page.body)["items"]]
    texts = Counter(str(event["data"]["message"]["text"]) for event in events if "message" in event["data"])
    numbers: dict[str, list[int]] = defaultdict(list)
    for event in events:
        if event["sequence"] is not None and "conversation" in event["data"]:
            numbers[str(event["data"]["conversation"]["id"])].append(event["sequence"])
    for life in told.lives:
        if life.kind is not None:
            continue
        yield from (
            f"{text} was acknowledged and is there {texts[text]} times"
            for text in life.messages
            if texts[text] != 1
        )
        found = numbers[life.conversation]
        if found != list(range(1, len(found) + 1)):
            yield f"the events of {life.word} are numbered {found}"
    for name, ids in (("the endpoint", told.mail.ids), ("the stream", told.stream.ids)):
        if missing := [event["id"] for event in events if event["id"] not in ids]:
            yield f"{name} of {told.word} was not given {missing[0]} and {len(missing) - 1} others"


def words_in(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Return the words in rows, written as text or as hexadecimal bytes."""
    found: set[str] = set()
    for row in rows:
        for value in row:
            text = str(value)
            found.update(each.decode() for each in _WORD.findall(text.encode()))
            for part in _HEX.findall(text):
                found.update(each.decode() for each in _WORD.findall(bytes.fromhex(part[: len(part) & ~1])))
    return sorted(found)


_HEX: Final = re.compile(r"\\x([0-9a-f]+)")
