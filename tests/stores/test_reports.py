"""Reports: the same figures as a count by hand, across assignments and changes of a time zone's offset."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from io import StringIO
from statistics import fmean
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.accounts.people import Assignee, Project
from deskwire.engine.conversations.commands import (
    Assign,
    Close,
    Command,
    ContactRef,
    Create,
    Patch,
    PostMessage,
    Rate,
    Reopen,
)
from deskwire.engine.conversations.commit import carry_out, make_plan
from deskwire.engine.conversations.conversation import Author, Conversation
from deskwire.engine.core.ids import new_id
from deskwire.engine.reports.figures import columns_of
from deskwire.engine.reports.period import Period, period_of
from deskwire.engine.reports.ports import GroupBy, ReportScope
from deskwire.engine.reports.report import Metric, Report, compute, csv_of
from deskwire.storage.dialect import SQLITE
from deskwire.storage.sqlite import log
from tests.support.builders import OTHER_PROJECT, PROJECT
from tests.support.properties import budget

START: Final = round(datetime(2026, 10, 23, 9, tzinfo=UTC).timestamp() * 1000)
"""Two days before the clocks of Europe are set back, which makes that Sunday an hour longer."""
HOUR: Final = 3_600_000
METRICS: Final[Sequence[Metric]] = ("first-response", "time-to-close", "csat", "volume", "backlog")
GROUPS: Final[Sequence[GroupBy | None]] = (None, "agent", "team", "channel", "tag", "day")
ZONES: Final = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia")
TAGS: Final = ("=cmd", "late", "vip")
CHANNELS: Final = ("chn_1", "chn_2", None)
TEAMS: Final = {"team_1": "Returns", "team_2": "+Sales"}


@pytest.fixture(autouse=True)
def _people(tx: Any) -> None:
    for number, name in ((1, "Ada"), (2, "Bob")):
        tx.conn.execute(
            "INSERT INTO users (rowid, id, email, name, created_at) VALUES (?, ?, ?, ?, 0)",
            (number, f"usr_{number}", f"{number}@b.example", name),
        )
    for team_id, name in TEAMS.items():
        tx.conn.execute(
            "INSERT INTO teams (id, project, name, created_at) VALUES (?, ?, ?, 0)",
            (team_id, PROJECT.rowid, name),
        )


@dataclass
class Story:
    """The history of one conversation, kept by hand: `happened` has what reports count, with times and groups."""

    created: int
    open: bool = True
    since: int = 0
    asked: int | None = None
    waits: bool = False
    answered: bool = False
    assignee: str | None = None
    replier: str | None = None
    team: str | None = None
    rating: tuple[int, int, str | None, str | None] | None = None
    tags: tuple[str, ...] = ()
    channel: str | None = None
    happened: list[tuple[str, int, int, str | None, str | None]] = field(default_factory=list)

    @property
    def agent(self) -> str | None:
        """The agent whose conversation it is."""
        return self.assignee or self.replier

    def note(self, kind: str, at: int, lasted: int = 0) -> None:
        self.happened.append((kind, at, lasted, self.agent, self.team))

    def wrote(self, kind: str, at: int, agent: str | None) -> None:
        self.happened.append((kind, at, 0, agent, self.team))


Deed = Callable[[Story, int], Command | None]


def says(author: str, agent: str | None = None, *, internal: bool = False) -> Deed:
    def deed(story: Story, at: int) -> Command:
        if not internal:
            if author == "contact":
                if not story.open:
                    story.note("reopened", at)
                    story.open, story.since = True, at
                story.asked = at if story.asked is None else story.asked
                story.waits = True
            elif author != "system":
                story.waits = False
            if author == "agent":
                if story.asked is not None and not story.answered:
                    story.happened.append(("answered", at, at - story.asked, agent, story.team))
                    story.answered = True
                story.replier = agent
            story.wrote(author, at, agent if author == "agent" else None)
        return PostMessage(new_id("msg", at), Author(author, agent), "Hello", internal)  # type: ignore[arg-type]

    return deed


def closes(story: Story, at: int) -> Command:
    if story.open:
        story.note("closed", at, at - story.since)
    story.open = story.waits = False
    return Close("agent")


def reopens(story: Story, at: int) -> Command:
    if not story.open:
        story.note("reopened", at)
        story.open, story.since = True, at
    return Reopen()


def gives(assignee: Assignee | None) -> Deed:
    def deed(story: Story, _: int) -> Command:
        story.assignee = assignee.id if assignee is not None and assignee.type == "user" else None
        story.team = assignee.id if assignee is not None and assignee.type == "team" else story.team
        return Assign(assignee)

    return deed


def rates(score: int, comment: str | None = None) -> Deed:
    """The same rating with another comment is not a new rating."""

    def deed(story: Story, at: int) -> Command:
        if story.rating is None or story.rating[0] != score:
            story.rating = (score, at, story.agent, story.team)
        return Rate(score, comment)

    return deed


def tags(*names: str) -> Deed:
    def deed(story: Story, _: int) -> Command:
        story.tags = names
        return Patch({"tags": names})

    return deed


DEEDS: Final[Sequence[Deed]] = (
    says("contact"),
    says("contact"),
    says("agent", "usr_1"),
    says("agent", "usr_2"),
    says("agent"),
    says("bot"),
    says("system"),
    says("agent", "usr_1", internal=True),
    closes,
    closes,
    reopens,
    gives(Assignee("user", "usr_1", "Ada")),
    gives(Assignee("user", "usr_2", "Bob")),
    gives(Assignee("team", "team_1", "Returns")),
    gives(Assignee("team", "team_2", "+Sales")),
    gives(None),
    rates(3),
    rates(7),
    rates(7, "Quick."),
    rates(10),
    tags("vip"),
    tags("=cmd", "late"),
    tags(),
)

steps = st.tuples(
    st.integers(0, 3), st.integers(0, len(DEEDS) - 1), st.sampled_from((0, 1, 999, HOUR // 2, 7 * HOUR))
)
"""A conversation, a step in it, and the time since the previous step."""


def play(tx: Any, steps: Iterable[tuple[int, int, int]], project: Project) -> list[Story]:
    """Carry out the steps in the store and in the stories; a conversation is created before its first step."""
    now, stories, states = START, dict[int, Story](), dict[int, Conversation]()
    for which, what, pause in steps:
        now += pause
        if which not in states:
            channel = CHANNELS[which % len(CHANNELS)]
            contact = ContactRef(f"user-{which}", {})
            command = Create(new_id("cnv", now), project.rowid, contact, channel=channel)
            states[which] = carry_out(make_plan(project, None, command, now, None), tx).after
            stories[which] = Story(now, since=now, channel=channel)
        given = DEEDS[what](stories[which], now)
        assert given is not None
        states[which] = carry_out(make_plan(project, states[which], given, now, None), tx).after
    return [*stories.values()]


def local_date(at: int, zone: str) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).astimezone(ZoneInfo(zone)).date().isoformat()


def keys(
    by: GroupBy | None, at: int, agent: str | None, team: str | None, story: Story, zone: str
) -> Sequence[str | None]:
    """Return the groups that an occurrence belongs to."""
    if by == "tag":
        return story.tags or (None,)
    if by == "channel":
        return (story.channel,)
    return ({"agent": agent, "team": team, "day": local_date(at, zone)}.get(by or "", ""),)


def spread(lasted: Sequence[int]) -> Mapping[str, Any]:
    """Return the figures of durations by definition: nearest ranks of the sorted values."""
    if not lasted:
        return dict.fromkeys(("mean", "median", "p90", "min", "max"))
    by_size, count = sorted(lasted), len(lasted)
    rank = {share: next(n for n in range(1, count + 1) if n * 100 >= share * count) for share in (50, 90)}
    return {
        "mean": round(sum(lasted) / count) / 1000,
        "median": by_size[rank[50] - 1] / 1000,
        "p90": by_size[rank[90] - 1] / 1000,
        "min": by_size[0] / 1000,
        "max": by_size[-1] / 1000,
    }


def durations(
    stories: Sequence[Story], kind: str, period: Period, by: GroupBy | None
) -> dict[str | None, Any]:
    found: dict[str | None, list[int]] = {}
    for story in stories:
        for name, at, lasted, agent, team in story.happened:
            if name == kind and period.start <= at < period.end:
                for key in keys(by, at, agent, team, story, period.timezone):
                    found.setdefault(key, []).append(lasted)
    return {key: {"count": len(each), **spread(each)} for key, each in found.items()}


def ratings(stories: Sequence[Story], period: Period, by: GroupBy | None) -> dict[str | None, Any]:
    found: dict[str | None, list[int]] = {}
    for story in stories:
        if story.rating is not None and period.start <= story.rating[1] < period.end:
            score, at, agent, team = story.rating
            for key in keys(by, at, agent, team, story, period.timezone):
                found.setdefault(key, []).append(score)
    return {
        key: {
            "count": len(each),
            "average": round(fmean(each), 2),
            "csat": round(100 * sum(score >= 7 for score in each) / len(each), 1),
            "scores": [each.count(score) for score in range(11)],
        }
        for key, each in found.items()
    }


VOLUME: Final = {
    "created": "conversationsCreated",
    "closed": "conversationsClosed",
    "reopened": "conversationsReopened",
    "contact": "contactMessages",
    "agent": "agentMessages",
    "bot": "botMessages",
    "system": "systemMessages",
}


def volumes(stories: Sequence[Story], period: Period, by: GroupBy | None) -> dict[str | None, Any]:
    """Return the volume; messages and new conversations count for the current team of the conversation."""
    found: dict[str | None, Counter[str]] = {}
    for story in stories:
        all_of_it = [("created", story.created, 0, story.agent, story.team), *story.happened]
        for name, at, _, agent, team in all_of_it:
            if name not in VOLUME or not period.start <= at < period.end:
                continue
            then = team if name in ("closed", "reopened") else story.team
            for key in keys(by, at, agent, then, story, period.timezone):
                found.setdefault(key, Counter())[name] += 1
    return {
        key: {
            **{name: counts[kind] for kind, name in VOLUME.items()},
            "messages": sum(counts[kind] for kind in ("contact", "agent", "bot", "system")),
        }
        for key, counts in found.items()
    }


def backlogs(stories: Sequence[Story], by: GroupBy | None, now: int) -> dict[str | None, Any]:
    found: dict[str | None, list[Story]] = {}
    for story in stories:
        if story.open:
            for key in keys(by, now, story.agent, story.team, story, "UTC"):
                found.setdefault(key, []).append(story)
    return {
        key: {
            "open": len(each),
            "waiting": sum(story.waits for story in each),
            "age": spread([now - story.created for story in each]),
        }
        for key, each in found.items()
    }


def open_at(stories: Sequence[Story], end: int) -> int:
    """Return how many conversations were open just before a time."""
    number = 0
    for story in stories:
        number += story.created < end
        number += sum(
            {"closed": -1, "reopened": 1}.get(name, 0) for name, at, *_ in story.happened if at < end
        )
    return number


NOTHING: Final[Mapping[str, Any]] = {
    "first-response": {"count": 0, **spread([])},
    "time-to-close": {"count": 0, **spread([])},
    "csat": {"count": 0, "average": None, "csat": None, "scores": [0] * 11},
    "volume": dict.fromkeys([*VOLUME.values(), "messages"], 0),
    "backlog": {"open": 0, "waiting": 0, "age": spread([])},
}


def expected(
    stories: Sequence[Story], metric: Metric, period: Period, by: GroupBy | None, now: int
) -> dict[str | None, Any]:
    makers: Mapping[Metric, Callable[[], dict[str | None, Any]]] = {
        "first-response": lambda: durations(stories, "answered", period, by),
        "time-to-close": lambda: durations(stories, "closed", period, by),
        "csat": lambda: ratings(stories, period, by),
        "volume": lambda: volumes(stories, period, by),
        "backlog": lambda: backlogs(stories, by, now),
    }
    return makers[metric]()


def asked(
    tx: Any,
    metric: Metric,
    period: Period,
    by: GroupBy | None,
    now: int,
    project: Project = PROJECT,
    **limits: Any,
) -> Report:
    return compute(tx, metric, ReportScope(project.rowid, period, **limits), by, now)


def told(report: Report) -> dict[str | None, Any]:
    return {row.key: row.figures for row in report.rows}


def periods(zone: str) -> list[Period]:
    found = [
        period_of({"from": first, "to": last, "timezone": zone}, None)[0]
        for first, last in (
            ("2026-10-20", "2026-11-20"),
            ("2026-10-25", "2026-10-26"),
            ("2026-10-25T01:00:00+02:00", "2026-10-25T03:00:00+01:00"),
            ("2026-10-24", "2026-10-24"),
        )
    ]
    assert None not in found
    return [each for each in found if each is not None]


@budget(40)
@given(st.lists(steps, max_size=60), st.sampled_from(ZONES), st.sampled_from((1, 7, 512)))
def test_each_report_equals_a_count_by_hand(
    tx: Any, monkeypatch: pytest.MonkeyPatch, what: list[tuple[int, int, int]], zone: str, at_once: int
) -> None:
    """On SQLite the table that reports read has all messages, most of them, or none (ADR 74)."""
    monkeypatch.setattr(log, "MESSAGE_TIMES_BATCH_SIZE", at_once)
    tx.conn.execute("SAVEPOINT one")
    try:
        stories = play(tx, what, PROJECT)
        play(tx, what[::2], OTHER_PROJECT)
        now = START + 40 * 24 * HOUR
        for period in periods(zone):
            for metric in METRICS:
                total = expected(stories, metric, period, None, now).get("", NOTHING[metric])
                for by in GROUPS:
                    if metric == "backlog" and by == "day":
                        continue
                    report = asked(tx, metric, period, by, now)
                    assert report.total == total, (metric, by)
                    groups = {} if by is None else expected(stories, metric, period, by, now)
                    found = told(report)
                    if by == "day":
                        assert [*found] == [row.name for row in report.rows] == sorted(found, key=str)
                        found = {key: each for key, each in found.items() if each != NOTHING[metric]}
                    assert found == groups, (metric, by)
                    assert_same_as_csv(report, by)
            days = told(asked(tx, "backlog", period, "day", now))
            for day, figures in days.items():
                end = min(first_moment_behind(day, zone), period.end)
                assert figures == {"open": open_at(stories, end), "waiting": None, "age": None}, day
    finally:
        tx.conn.execute("ROLLBACK TO one")
        tx.clear_claims()
        if tx.dialect is SQLITE:
            tx.start_message_times()


LIMITS: Final[Sequence[Mapping[str, Any]]] = (
    {"channels": ("chn_1",)},
    {"channels": (None,)},
    {"channels": ("chn_2", None)},
    {"channels": ("chn_1", "chn_2"), "tags": ("late", "nothing")},
    {"tags": ("=cmd", "late", "vip")},
    {"channels": ("chn_9",), "tags": ("vip",)},
)


def counts_in(story: Story, limits: Mapping[str, Any]) -> bool:
    channels, tags = limits.get("channels"), limits.get("tags")
    return (channels is None or story.channel in channels) and (
        tags is None or not set(tags).isdisjoint(story.tags)
    )


@budget(15)
@given(st.lists(steps, max_size=60), st.sampled_from((1, 512)), st.sampled_from(LIMITS))
def test_limited_report_equals_a_count_of_its_conversations(
    tx: Any,
    monkeypatch: pytest.MonkeyPatch,
    what: list[tuple[int, int, int]],
    at_once: int,
    limits: Mapping[str, Any],
) -> None:
    monkeypatch.setattr(log, "MESSAGE_TIMES_BATCH_SIZE", at_once)
    tx.conn.execute("SAVEPOINT one")
    try:
        stories = [each for each in play(tx, what, PROJECT) if counts_in(each, limits)]
        play(tx, what[::2], OTHER_PROJECT)
        now, period = START + 40 * 24 * HOUR, periods("Europe/Berlin")[0]
        for metric in METRICS:
            total = expected(stories, metric, period, None, now).get("", NOTHING[metric])
            for by in GROUPS:
                report = asked(tx, metric, period, by, now, **limits)
                assert report.total == total, (metric, by)
                if metric == "backlog" and by == "day":
                    ends = {
                        day: min(first_moment_behind(day, period.timezone), period.end)
                        for day in told(report)
                    }
                    assert {day: figures["open"] for day, figures in told(report).items()} == {
                        day: open_at(stories, end) for day, end in ends.items()
                    }
                    continue
                found = {key: each for key, each in told(report).items() if each != NOTHING[metric]}
                assert found == ({} if by is None else expected(stories, metric, period, by, now)), (
                    metric,
                    by,
                )
                assert_same_as_csv(report, by)
    finally:
        tx.conn.execute("ROLLBACK TO one")
        tx.clear_claims()
        if tx.dialect is SQLITE:
            tx.start_message_times()


def first_moment_behind(day: str | None, zone: str) -> int:
    """Return the end of a day (ms), found by a check of each quarter of an hour."""
    assert day is not None
    at = round(datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC).timestamp() * 1000)
    moments = range(at, at + 48 * HOUR, HOUR // 4)
    return next(each for each in moments if local_date(each, zone) > day)


def assert_same_as_csv(report: Report, by: GroupBy | None) -> None:
    """Check that the lines have the report's figures, and no text that a spreadsheet takes for a formula."""
    text = csv_of(report, by)
    assert text.startswith("\ufeff")
    head, *lines = csv.reader(StringIO(text[1:]))
    rows = [report.total] if by is None else [row.figures for row in report.rows]
    names = [name for name, _ in columns_of(report.total)]
    assert head[len(head) - len(names) :] == names
    assert [line[len(head) - len(names) :] for line in lines] == [
        ["" if value is None else str(value) for _, value in columns_of(figures)] for figures in rows
    ]
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in lines for cell in line)


def test_reports_show_current_names_of_agents_and_teams(tx: Any) -> None:
    reply, team, close = 2, 13, DEEDS.index(closes)
    play(tx, [(0, 0, 0), (0, team, 1), (0, reply, 1), (0, close, 1)], PROJECT)
    (period, *_) = periods("UTC")

    def names(by: GroupBy) -> list[tuple[str | None, str | None]]:
        return [(row.key, row.name) for row in asked(tx, "time-to-close", period, by, START).rows]

    assert names("agent") == [("usr_1", "Ada")]
    assert names("team") == [("team_1", "Returns")]
    tx.conn.execute("UPDATE users SET name = 'Ada King' WHERE id = 'usr_1'")
    tx.conn.execute("UPDATE teams SET deleted_at = 1 WHERE id = 'team_1'")
    assert names("agent") == [("usr_1", "Ada King")]
    assert names("team") == [("team_1", None)]
    tx.conn.execute("UPDATE users SET name = '', deleted_at = 1 WHERE id = 'usr_1'")
    assert names("agent") == [("usr_1", None)]


def test_largest_groups_are_shown_and_the_others_counted(tx: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskwire.engine.reports.report.ROWS_MAX", 2)
    vip, late = 20, 21
    play(tx, [(0, 0, 0), (0, vip, 0), (1, 0, 0), (1, late, 0), (2, 0, 0), (2, vip, 0)], PROJECT)
    report = asked(tx, "volume", periods("UTC")[0], "tag", START)
    assert ([row.key for row in report.rows], report.omitted) == (["vip", "=cmd"], 1)
