"""The period of a report, and its days as a time zone has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from deskwire.engine.core.clock import milliseconds
from deskwire.engine.core.errors import Problem

DAYS_MAX: Final = 400
DAYS_DEFAULT: Final = 30
DAY_MS: Final = 86_400_000
_EARLIEST: Final = date(1971, 1, 1)
_LATEST: Final = date(9000, 1, 1)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_OFFSET: Final = re.compile(r".*T.*(Z|[+-]\d{2}:?\d{2})")
_NAME: Final = re.compile(r"(?!posix/|right/)[A-Za-z][A-Za-z0-9_+/-]{0,63}")
_EPOCH: Final = date(1970, 1, 1)


class OffsetSpan(Struct, frozen=True):
    """A time up to which (ms) the clocks of a zone are this far (ms) ahead of UTC."""

    until: int
    ahead: int


class Period(Struct, frozen=True):
    """The times from `start` up to but without `end`, in milliseconds; `stretches` cover them."""

    start: int
    end: int
    timezone: str
    stretches: tuple[OffsetSpan, ...]

    def days(self) -> Iterator[int]:
        """Yield the numbers of the days that it touches, counted from 1970-01-01."""
        if self.start < self.end:
            yield from range(self.day_of(self.start), self.day_of(self.end - 1) + 1)

    def day_of(self, at: int) -> int:
        """Return the number of the day that a time of the period is on."""
        return (at + next(each.ahead for each in self.stretches if at < each.until)) // DAY_MS


def day_name(number: int) -> str:
    """Return a day's date from its number."""
    return (_EPOCH + timedelta(number)).isoformat()


def period_of(given: Mapping[str, str], now: int | None) -> tuple[Period | None, list[Problem]]:
    """Return the period that query parameters name, or everything that is wrong with them.

    Without `to` it ends now, without `from` it begins with the day that makes it thirty days long, the last one included.

    Args:
        given: `from`, `to` and `timezone`, each as it was sent, if it was.
        now: in milliseconds; None if only problems are asked for.
    """
    name, problems = given.get("timezone", "UTC"), list[Problem]()
    zone = _zone(name)
    if zone is None:
        said = "There is no such time zone; name one of the IANA database, such as Europe/Berlin or UTC."
        problems.append(Problem("?timezone", "unknown_time_zone", said))
        zone = ZoneInfo("UTC")
    start = _time("from", given["from"], zone, problems) if "from" in given else None
    end = _time("to", given["to"], zone, problems) if "to" in given else now
    if problems or end is None:
        return None, problems
    return _checked(_thirty_days_before(end, zone) if start is None else start, end, name, zone, given)


def _checked(
    start: int, end: int, name: str, zone: ZoneInfo, given: Mapping[str, str]
) -> tuple[Period | None, list[Problem]]:
    if end < start:
        pointer = "?to" if "to" in given else "?from"
        return None, [Problem(pointer, "not_allowed", "The period ends before it begins.")]
    if end - start > DAYS_MAX * DAY_MS + DAY_MS // 24:  # an hour more where clocks are set back
        said = f"A report covers at most {DAYS_MAX} days."
        return None, [Problem("?to" if "to" in given else "?from", "too_long", said)]
    return Period(start, end, name, tuple(_stretches(start, end, zone))), []


def _time(name: str, text: str, zone: ZoneInfo, problems: list[Problem]) -> int | None:
    """Return the time (ms) of a parameter: a day begins at its midnight in the zone. What is wrong is added to `problems`."""
    try:
        at = _day_start(date.fromisoformat(text), zone) if _DATE.fullmatch(text) else _moment(text)
    except ValueError:
        said = (
            "This must be a day, such as 2026-11-01, or a time with its offset, such as 2026-11-01T12:00:00Z."
        )
        problems.append(Problem(f"?{name}", "invalid", said))
        return None
    if not _ms(_EARLIEST) <= at <= _ms(_LATEST):
        said = f"This must be between {_EARLIEST} and {_LATEST}."
        problems.append(Problem(f"?{name}", "not_allowed", said))
        return None
    return at


def _ms(day: date) -> int:
    return (day - _EPOCH).days * DAY_MS


def _moment(text: str) -> int:
    if not _OFFSET.fullmatch(text):
        raise ValueError("no offset")
    return milliseconds(text)


def _day_start(day: date, zone: ZoneInfo) -> int:
    """Return when a day begins: its first moment, which is later than midnight where clocks are set forward then."""
    if not _EARLIEST < day < _LATEST:
        return _ms(day)
    number = (day - _EPOCH).days
    before, after = number * DAY_MS - DAY_MS, number * DAY_MS + DAY_MS
    while before + 1 < after:  # the first millisecond whose local date is this one, or a later one
        middle = (before + after) // 2
        if (middle + _ahead(middle, zone)) // DAY_MS < number:
            before = middle
        else:
            after = middle
    return after


def _thirty_days_before(end: int, zone: ZoneInfo) -> int:
    last = (end - 1 + _ahead(end - 1, zone)) // DAY_MS
    return _day_start(_EPOCH + timedelta(last - DAYS_DEFAULT + 1), zone)


def _stretches(start: int, end: int, zone: ZoneInfo) -> Iterator[OffsetSpan]:
    """Yield the stretches of a period; where the clocks are set is found to the millisecond."""
    at, ahead = start, _ahead(start, zone)
    while at < end:
        following = min(at + DAY_MS // 4, end)
        there = _ahead(following, zone)
        if there != ahead:
            yield OffsetSpan(_change(at, following, ahead, zone), ahead)
            ahead = there
        at = following
    yield OffsetSpan(end + 1, ahead)


def _change(before: int, after: int, ahead: int, zone: ZoneInfo) -> int:
    """Return the first time at which clocks are no longer this far ahead; at `before` they are, at `after` not."""
    while before + 1 < after:
        middle = (before + after) // 2
        if _ahead(middle, zone) == ahead:
            before = middle
        else:
            after = middle
    return after


def _ahead(at: int, zone: ZoneInfo) -> int:
    seconds, rest = divmod(at, 1000)
    offset = (
        (datetime.fromtimestamp(seconds, UTC) + timedelta(milliseconds=rest)).astimezone(zone).utcoffset()
    )
    assert offset is not None, "a zone tells its offset"
    return round(offset.total_seconds() * 1000)


def _zone(name: str) -> ZoneInfo | None:
    if not _NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones is none
        return None
