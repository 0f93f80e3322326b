"""A large installation compared with small ones: operations with a constant cost, and those that grow with their data."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

import httpx

from benchmarks import processes
from benchmarks.generator import load
from benchmarks.histories import EACH, Histories, histories
from benchmarks.job import Job
from benchmarks.report import Cell, Section, percentile, times
from benchmarks.scale import Scale
from benchmarks.searching import complete, dashboard, leave_out, vocabulary
from benchmarks.service import Server, deskwire
from benchmarks.surveying import insights
from benchmarks.taking import in_turn, middle, ratio, take
from deskwire.storage.sqlite.directory import FILE_NAME

_AGENT: Final = "/v3/conversations?view=agent"
_BACKEND: Final = "/v3/s2s/conversations?limit=50"
_DASHBOARD: Final = "/v3/conversations?limit=50"
_SEARCH: Final = "search:"
_DUE: Final = 500
"""Conversations whose retention is over."""
_LOOK_S: Final = 0.02
_PATIENCE_S: Final = 3_600.0
_LONG_AGO: Final = 1
"""When the conversations to be removed were archived: in 1970."""


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Measure each size alone, and posts to all of them in turn."""
    where = directory if scale.kept is None else Path(scale.kept)
    databases = [histories(where, count) for count in scale.histories]
    making = [_made(each, indexed=each.conversations <= scale.indexed) for each in databases]
    posts = _posts(scale, databases)
    lists, jobs = [], []
    for each, made_s in zip(databases, making, strict=True):
        found, more = _by_itself(scale, each, made_s)
        lists.append(found)
        jobs.append(more)
    costs = [{name: figure.ms for name, figure in found.items()} for found in lists]
    return [
        posts,
        *_of_lists(databases, lists),
        _table("large-costs", "The same, the server's processor time in ms", databases, costs, _LISTED),
        _table("large-jobs", "What grows with what it touches", databases, jobs, _WORKED),
    ]


@dataclass(frozen=True, slots=True)
class _Figure:
    """p50, p99 and the slowest of answers in ms, and the server's processor time for one in ms."""

    p50: float | None = None
    p99: float | None = None
    worst: float | None = None
    ms: float | None = None


_LISTED: Final = (
    "One request under way. A text that nobody has is looked for in all conversations, and is not in here."
)
_WORKED: Final = (
    "Seconds where nothing else is said. The search index is made at the first start behind an import; where it has no figure, it was "
    "left empty. Beside something: posts at a fixed rate, to as many conversations as above."
)


def _table(
    name: str,
    title: str,
    databases: Sequence[Histories],
    figures: Sequence[dict[str, float | None]],
    note: str,
) -> Section:
    """Return a table with a column for each size."""
    columns = ("what", *(f"{each.conversations:,} conversations" for each in databases))
    rows: list[tuple[Cell, ...]] = [(what, *(found[what] for found in figures)) for what in figures[0]]
    return Section(name, title, columns, rows, note)


def _of_lists(databases: Sequence[Histories], lists: Sequence[dict[str, _Figure]]) -> Iterator[Section]:
    """Yield the tables of the lists' response times."""
    for name, of in (("large-lists", "p99"), ("large-lists-p50", "p50"), ("large-lists-worst", "worst")):
        listed = [{what: getattr(figure, of) for what, figure in found.items()} for found in lists]
        yield _table(name, f"Lists and counters, 50 a page, {of} in ms", databases, listed, _LISTED)


def _made(database: Histories, *, indexed: bool) -> float | None:
    """Return the seconds that the search index takes; None if it exists from an earlier run or is left out."""
    if not indexed:
        leave_out(database.directory)
    with deskwire(database.directory) as server, dashboard(server) as api:
        found = api.get("/v3/search", params={"q": "x"}).raise_for_status().json()
        return None if found["behind"] is None else complete(server)


def _posts(scale: Scale, databases: Sequence[Histories]) -> Section:
    """Post to as many conversations of each database, in turn."""
    with ExitStack() as stack:
        targets, servers = [], {}
        for each in databases:
            label = f"{each.conversations:,}"
            server = servers[label] = stack.enter_context(deskwire(each.directory, actor_idle_s="3600"))
            server.wake(each.ids)
            targets.append((label, partial(take, server, server.posts(each.ids, **scale.load(64)))))
        taken = in_turn(2 * scale.rounds, targets)
        memory = {label: processes.resident_mb(server.process) for label, server in servers.items()}

    def rows() -> Iterator[tuple[Cell, ...]]:
        for each in databases:
            label = f"{each.conversations:,}"
            found = middle(taken[label])
            share = ratio(taken, label, f"{databases[0].conversations:,}")
            size = each.size_mb / 1e3
            yield label, found.rate, found.p50, found.p99, found.worst, found.us, share, memory[label], size

    columns = (
        "conversations stored",
        "POST/s",
        "p50 ms",
        "p99 ms",
        "worst ms",
        "server's µs",
        "share",
        "MB",
        "database GB",
    )
    title = f"POST to {len(databases[0].ids):,} conversations, 64 connections"
    note = f"{EACH} messages of each conversation before; MB: resident memory of the server afterwards."
    return Section("large", title, columns, list(rows()), note)


def _by_itself(
    scale: Scale, database: Histories, made_s: float | None
) -> tuple[dict[str, _Figure], dict[str, float | None]]:
    began = time.perf_counter()
    with deskwire(database.directory, read_timeout_s="60") as server:  # slow requests need a figure, too
        ready_s = time.perf_counter() - began
        complete(server)  # the posts above are still being indexed
        indexed = database.conversations <= scale.indexed
        lists = {
            name: _asked(scale, server, paths, key) if indexed or not name.startswith(_SEARCH) else _Figure()
            for name, (paths, key) in [*_lists(database).items()][: scale.lists]
        }
        month, year = (_asked(scale, server, _reports(days), "token") for days in (30, 365))
        jobs: dict[str, float | None] = {
            "ready after a start": ready_s,
            "the search index": made_s,
            "a report of 30 days, processor ms": month.ms,
            "a report of a year, processor ms": year.ms,
        }
        jobs |= insights(scale, database, server)
        jobs |= _backed_up(scale, database, server)
    jobs |= _retained(scale, database)
    return lists, jobs


def _asked(scale: Scale, server: Server, paths: Sequence[str], key: str) -> _Figure:
    """Request these paths in turn, one request at a time."""
    job = Job(
        server.port,
        [*paths],
        method="GET",
        key=server.token if key == "token" else server.key,
        project=server.project if key == "token" else "",
        warm_s=scale.warm_s,
        for_s=scale.rounds * scale.list_s,
    )
    before = processes.cpu_s(server.process)
    outcome = load(job)
    after = processes.cpu_s(server.process)
    ms = None if before is None or after is None else (after - before) * 1e3 / max(1, outcome.answers)
    return _Figure(*times(outcome.latencies), ms)


def _lists(database: Histories) -> dict[str, tuple[list[str], str]]:
    """Return the lists by name: paths that are requested in turn, and the credential."""
    return {
        **{name: ([path], "token") for name, path in _of_agents(database)},
        **{name: (paths, "token") for name, paths in _searches()},
        **{f"backend: {name}": ([path], "key") for name, path in _of_backends(database)},
    }


def _of_agents(database: Histories) -> Iterator[tuple[str, str]]:
    middle_at = _iso(database.middle)
    yield "inbox: all", _AGENT
    yield "inbox: open and pending", f"{_AGENT}&status=OPEN,PENDING"
    yield "inbox: closed, oldest first", f"{_AGENT}&status=CLOSED&order=asc"
    yield "inbox: mine", f"{_AGENT}&assignee=me&status=OPEN,PENDING"
    yield "inbox: all that were ever mine, by creation", f"{_AGENT}&assignee=me&sort=created"
    yield "inbox: nobody's", f"{_AGENT}&assignee=none&status=OPEN,PENDING"
    yield "inbox: a team's", f"{_AGENT}&team={database.teams[0]}"
    yield "inbox: longest waiting", f"{_AGENT}&sort=waiting"
    yield "inbox: mine, longest waiting", f"{_AGENT}&assignee=me&sort=waiting"
    yield "inbox: unread", f"{_AGENT}&unread=true"
    yield "inbox: a tag of 1 in 10,000", f"{_AGENT}&tag=rare"
    yield "inbox: a tag of 1 in 50", f"{_AGENT}&tag=vip"
    yield "inbox: a tag of 1 in 50, open", f"{_AGENT}&tag=vip&status=OPEN"
    yield "inbox: a tag of 1 in 50, mine", f"{_AGENT}&tag=vip&assignee=me"
    yield "inbox: a tag of 1 in 3", f"{_AGENT}&tag=shop"
    yield "inbox: snoozed", f"{_AGENT}&snoozed=true"
    yield "inbox: hidden", f"{_AGENT}&visible=false"
    yield "inbox: hidden, by creation", f"{_AGENT}&visible=false&sort=created"
    yield "inbox: archived", f"{_AGENT}&archived=true"
    yield "inbox: a contact's", f"{_AGENT}&contact={database.contact}"
    yield "inbox: a text that many have", f"{_AGENT}&q=order"
    yield "inbox: until the middle", f"{_AGENT}&until={quote(middle_at)}"
    yield "inbox: page of 200", f"{_AGENT}&limit=200"
    yield "dashboard: all", _DASHBOARD
    yield "dashboard: by creation, oldest first", f"{_DASHBOARD}&sort=created&order=asc"
    yield "counters", "/v3/inbox/counters"


def _of_backends(database: Histories) -> Iterator[tuple[str, str]]:
    middle_at = quote(_iso(database.middle))
    yield "all", _BACKEND
    yield "by creation", f"{_BACKEND}&sort=created"
    yield "by update", f"{_BACKEND}&sort=updated"
    yield "open", f"{_BACKEND}&status=OPEN"
    yield "closed, by update", f"{_BACKEND}&status=CLOSED&sort=updated"
    yield "open, by update", f"{_BACKEND}&status=OPEN&sort=updated"
    yield "open, by creation", f"{_BACKEND}&status=OPEN&sort=created"
    yield "archived", f"{_BACKEND}&archived=true"
    yield "a team's", f"{_BACKEND}&team={database.teams[0]}"
    yield "nobody's, by update", f"{_BACKEND}&assignee=none&sort=updated"
    yield "a contact's", f"{_BACKEND}&contact={database.contact}"
    yield "unread by the contact", f"{_BACKEND}&unread=true"
    yield "unread by the contact, open", f"{_BACKEND}&unread=true&status=OPEN"
    yield "rated", f"{_BACKEND}&rated=true"
    yield "rated 0", f"{_BACKEND}&rating=0"
    yield "rated 0, by update", f"{_BACKEND}&rating=0&sort=updated"
    yield "rated, open", f"{_BACKEND}&rated=true&status=OPEN"
    yield "an attribute of 1 in 8", f"{_BACKEND}&attribute=plan:team"
    yield "an attribute of one", f"{_BACKEND}&attribute=order:{database.order}"
    yield "an attribute of one, by update", f"{_BACKEND}&attribute=order:{database.order}&sort=updated"
    yield "an attribute of nobody", f"{_BACKEND}&attribute=plan:none"
    yield "a tag of 1 in 10,000", f"{_BACKEND}&tag=rare"
    yield "a tag of 1 in 50", f"{_BACKEND}&tag=vip"
    yield "a tag of 1 in 50, by update", f"{_BACKEND}&tag=vip&sort=updated"
    yield "a text that many have", f"{_BACKEND}&q=order"
    yield "since the middle, oldest first", f"{_BACKEND}&since={middle_at}&order=asc"
    yield "until the middle", f"{_BACKEND}&until={middle_at}"
    yield "updated since the middle", f"{_BACKEND}&sort=updated&updatedSince={middle_at}&order=asc"
    yield "updated before the middle", f"{_BACKEND}&sort=activity&updatedBefore={middle_at}"
    yield "updated lately", f"{_BACKEND}&updatedSince={quote(_iso(database.filled_at))}"


def _searches() -> Iterator[tuple[str, list[str]]]:
    long = [word for word in vocabulary() if len(word) > 3]
    yield f"{_SEARCH} a common word", [f"/v3/search?q={word}" for word in long[:40]]
    yield f"{_SEARCH} a rare word", [f"/v3/search?q={word}" for word in long[30_000:30_040]]
    yield f"{_SEARCH} three letters", [f"/v3/search?q={word[:3]}" for word in long[:40]]


def _reports(days: int) -> list[str]:
    now = time.time()
    since = time.strftime("%Y-%m-%d", time.gmtime(now - days * 86_400))
    today = time.strftime("%Y-%m-%d", time.gmtime(now))
    names = ("first-response", "time-to-close", "csat", "volume")
    return [f"/v3/reports/{name}?from={since}&to={today}" for name in names]


def _iso(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / 1000))


def _backed_up(scale: Scale, database: Histories, server: Server) -> dict[str, float | None]:
    """Make a backup while messages are posted."""
    job = server.posts(database.ids, connections=16, rate=scale.rate, for_s=scale.rate_s)
    alone = percentile(load(job).latencies, 0.99)
    target = database.directory / "backup.tar"
    began, beside = time.perf_counter(), list[float]()
    process = processes.start(
        "deskwire", "backup", str(target), "--data", str(database.directory), core=processes.LOAD
    )
    try:
        while process.poll() is None:
            beside += load(job).latencies
        took_s = time.perf_counter() - began
    finally:
        processes.stop(process)
    if process.returncode:
        raise RuntimeError(f"the backup ended with status {process.returncode}")
    size_gb = target.stat().st_size / 1e9
    target.unlink()
    return {
        "a backup": took_s,
        "its file, GB": size_gb,
        f"POST at {scale.rate} a second, p99 ms": alone,
        "beside a backup, p99 ms": percentile(sorted(beside), 0.99),
    }


def _retained(scale: Scale, database: Histories) -> dict[str, float | None]:
    """Let conversations expire, and wait until they are removed and overwritten, while messages are posted."""
    due = min(_DUE, database.conversations // 100)
    with closing(sqlite3.connect(database.directory / FILE_NAME)) as connection, connection:
        connection.execute(
            "UPDATE conversations SET archived_at = ? WHERE rowid IN (SELECT rowid FROM conversations "
            "WHERE archived_at > ? AND id NOT IN (SELECT value FROM json_each(?)) LIMIT ?)",
            (_LONG_AGO, _LONG_AGO, json.dumps(database.ids), due),
        )
    with deskwire(database.directory) as server, dashboard(server) as api:
        began = time.perf_counter()
        _wait(api, _has_passed)
        removed_s = time.perf_counter() - began
        job = server.posts(database.ids, connections=16, rate=scale.rate, for_s=scale.rate_s)
        beside = load(job).latencies
        _wait(api, _is_overwritten)
        overwritten_s = time.perf_counter() - began
    with deskwire(database.directory) as server, dashboard(server) as api:
        began = time.perf_counter()
        _wait(api, _has_passed)
        nothing_s = time.perf_counter() - began
    return {
        "a retention pass without any": nothing_s,
        "a retention pass that removes": removed_s,
        "conversations that it removes": due,
        "until their bytes are overwritten": overwritten_s,
        "beside the overwriting, p99 ms": percentile(beside, 0.99),
    }


def _wait(api: httpx.Client, said: Callable[[str], bool]) -> None:
    """Wait until the metrics meet a condition. Raises TimeoutError."""
    until = time.perf_counter() + _PATIENCE_S
    while not said(api.get("/metrics").raise_for_status().text):
        if time.perf_counter() > until:
            raise TimeoutError("the metrics do not say what they should")
        time.sleep(_LOOK_S)


def _has_passed(metrics: str) -> bool:
    """Return whether retention has run since the start."""
    return any(
        line.startswith("deskwire_retention_done_timestamp_seconds ") and float(line.split()[1]) > 0
        for line in metrics.splitlines()
    )


def _is_overwritten(metrics: str) -> bool:
    return "deskwire_storage_scrub_pending 0" in metrics
