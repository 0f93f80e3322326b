"""The period of a report, and its days in a time zone."""

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
    """A span with a constant UTC offset: its end and the offset, in milliseconds."""

    until: int
    ahead: int


class Period(Struct, frozen=True):
    """The times from `start` (inclusive) to `end` (exclusive) in milliseconds, and the UTC offsets in that time."""

    start: int
    end: int
    timezone: str
    stretches: tuple[OffsetSpan, ...]

    def days(self) -> Iterator[int]:
        """Yield the days that overlap the period, counted from 1970-01-01."""
        if self.start < self.end:
            yield from range(self.day_of(self.start), self.day_of(self.end - 1) + 1)

    def day_of(self, at: int) -> int:
        """Return the day of a time within the period, counted from 1970-01-01."""
        return (at + next(each.ahead for each in self.stretches if at < each.until)) // DAY_MS


def day_name(number: int) -> str:
    """Return a day's date from its number."""
    return (_EPOCH + timedelta(number)).isoformat()


def period_of(given: Mapping[str, str], now: int | None) -> tuple[Period | None, list[Problem]]:
    """Return the period of some query parameters, or all their problems.

    `to` defaults to now, and `from` to the first of thirty days that include the last one.

    Args:
        given: the parameters `from`, `to` and `timezone` that the request has.
        now: in milliseconds; None to check the parameters only.
    """
    name, problems = given.get("timezone", "UTC"), list[Problem]()
    zone = _zone(name)
    if zone is None:
        message = "There is no such time zone; name one of the IANA database, such as Europe/Berlin or UTC."
        problems.append(Problem("?timezone", "unknown_time_zone", message))
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
    if end - start > DAYS_MAX * DAY_MS + DAY_MS // 24:  # a day on which clocks are set back has an hour more
        message = f"A report covers at most {DAYS_MAX} days."
        return None, [Problem("?to" if "to" in given else "?from", "too_long", message)]
    return Period(start, end, name, tuple(_stretches(start, end, zone))), []


def _time(name: str, text: str, zone: ZoneInfo, problems: list[Problem]) -> int | None:
    """Return the time (ms) of a parameter, or add its problem to `problems`. A date means its first moment in the zone."""
    try:
        at = _day_start(date.fromisoformat(text), zone) if _DATE.fullmatch(text) else _moment(text)
    except ValueError:
        message = (
            "This must be a day, such as 2026-11-01, or a time with its offset, such as 2026-11-01T12:00:00Z."
        )
        problems.append(Problem(f"?{name}", "invalid", message))
        return None
    if not _ms(_EARLIEST) <= at <= _ms(_LATEST):
        message = f"This must be between {_EARLIEST} and {_LATEST}."
        problems.append(Problem(f"?{name}", "not_allowed", message))
        return None
    return at


def _ms(day: date) -> int:
    return (day - _EPOCH).days * DAY_MS


def _moment(text: str) -> int:
    if not _OFFSET.fullmatch(text):
        raise ValueError("no offset")
    return milliseconds(text)


def _day_start(day: date, zone: ZoneInfo) -> int:
    """Return the first moment (ms) of a day, which is after midnight if clocks are set forward at midnight."""
    if not _EARLIEST < day < _LATEST:
        return _ms(day)
    number = (day - _EPOCH).days
    before, after = number * DAY_MS - DAY_MS, number * DAY_MS + DAY_MS
    while before + 1 < after:  # bisect for the first millisecond whose local date is this one or later
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
    """Yield the spans of a period between changes of the UTC offset, exact to the millisecond."""
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
    """Return the first time with another offset; `before` still has this one, `after` does not."""
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
    assert offset is not None, "every zone has an offset"
    return round(offset.total_seconds() * 1000)


def _zone(name: str) -> ZoneInfo | None:
    if not _NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name of a folder of zones
        return None
