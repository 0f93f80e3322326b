"""Lists by activity if very many conversations were active last in one hour, beside a store whose activity is spread over a year."""

from __future__ import annotations

import json
import random
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import trio

from benchmarks import processes
from benchmarks.filling import fill_numbered, put_with_messages
from benchmarks.generator import load
from benchmarks.job import Job
from benchmarks.report import TIMES, Cell, Section, median, median_times
from benchmarks.scale import Scale
from benchmarks.searching import complete
from benchmarks.service import Server, deskwire
from deskwire.engine.accounts.people import Assignee, Project, User
from deskwire.engine.conversations.conversation import Conversation, Status
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import new_id
from deskwire.engine.ports import Transaction

_MESSAGES: Final = 4
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000
_STATUSES: Final[tuple[Status, ...]] = (*("OPEN",) * 6, "PENDING", *("CLOSED",) * 3)
_YEAR_MS: Final = 365 * 24 * _HOUR_MS
_AGENTS: Final = 20
_READERS: Final = 16
_INBOX: Final = "/v3/conversations?view=agent"
_OPEN: Final = f"{_INBOX}&status=OPEN,PENDING"
_BACKEND: Final = "/v3/s2s/conversations"
_LISTS: Final = (
    ("all", _INBOX),
    ("open", _OPEN),
    ("newest for a backend", f"{_BACKEND}?limit=50"),
    ("mine", f"{_OPEN}&assignee=me"),
    ("unassigned", f"{_OPEN}&assignee=none"),
    ("of a busy team", f"{_OPEN}&assignee=team_1"),
    ("closed, oldest first", f"{_INBOX}&status=CLOSED&order=asc"),
    ("waiting for an answer", f"{_INBOX}&waiting=true"),
    ("longest waiting", f"{_INBOX}&sort=waiting"),
    ("snoozed", f"{_INBOX}&snoozed=true"),
    ("a tag of 1 in 50", f"{_INBOX}&tag=vip"),
    ("a tag of 1 in 3", f"{_INBOX}&tag=shop"),
    ("oldest for a backend", f"{_BACKEND}?limit=50&order=asc"),
    ("by change for a backend", f"{_BACKEND}?limit=50&sort=updated"),
    ("by creation", f"{_INBOX}&sort=created"),
    ("counters", "/v3/inbox/counters"),
)


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Request each list of both stores in turn: by one reader, and by many."""
    folders = [directory / f"busy-hour-{name}" for name in ("busy", "spread")]
    for folder, span_ms in zip(folders, (_HOUR_MS, _YEAR_MS), strict=True):
        folder.mkdir()
        wanted = json.dumps([str(folder), scale.active, span_ms])
        processes.answer("benchmarks.busy_hour", wanted, core=processes.SERVER)
    with ExitStack() as stack:
        busy, spread = (stack.enter_context(deskwire(folder)) for folder in folders)
        for server in (busy, spread):
            complete(server)  # the indexer of searches would take the first lists' time
        rows = [_row(scale, busy, spread, name, path) for name, path in _LISTS[: scale.lists]]
    columns = (
        "list",
        *TIMES,
        *(f"spread: {each}" for each in TIMES),
        "ratio",
        f"{_READERS} readers: answers/s",
        *(f"{_READERS} readers: {each}" for each in TIMES),
    )
    title = f"Lists with {scale.active:,} conversations active in one hour, 50 a page"
    note = "One request under way, and 16. Ratio: of the medians, to a store with the same conversations active over a year."
    return [Section("busy-hour", title, columns, rows, note)]


def _row(scale: Scale, busy: Server, spread: Server, name: str, path: str) -> tuple[Cell, ...]:
    taken: dict[str, list[list[float]]] = {"busy": [], "spread": []}
    for _ in range(scale.rounds):
        for which, server in (("busy", busy), ("spread", spread)):
            taken[which].append(load(_job(scale, server, path, 1)).latencies)
    together = [load(_job(scale, busy, path, _READERS)) for _ in range(scale.rounds)]
    ours, theirs = (median_times(taken[which]) for which in ("busy", "spread"))
    many = median(each.rate for each in together), *median_times(each.latencies for each in together)
    return name, *ours, *theirs, ours[0] / theirs[0], *many


def _job(scale: Scale, server: Server, path: str, connections: int) -> Job:
    return Job(
        server.port,
        [path],
        method="GET",
        key=server.key if path.startswith(_BACKEND) else server.token,
        project="" if path.startswith(_BACKEND) else server.project,
        connections=connections,
        warm_s=scale.warm_s,
        for_s=scale.list_s,
    )


async def _fill(folder: str, count: int, span_ms: int) -> None:
    """Store conversations whose last activity is spread over a time that ends with the last full hour."""
    begin = wall_clock() // _HOUR_MS * _HOUR_MS - span_ms
    await fill_numbered(folder, count, lambda number: begin + span_ms * number // count, _put)


def _put(tx: Transaction, project: Project, user: User, number: int, at: int) -> None:
    put_with_messages(tx, project, number, _state(number, project, user, at), at, _MINUTE_MS)


def _state(number: int, project: Project, user: User, at: int) -> Conversation:
    chance = random.Random(number)
    agent = chance.randrange(_AGENTS)
    agents = Assignee("user", user.id if agent == 0 else f"usr_{agent}", "Agent")
    teams = Assignee("team", "team_1", "Orders")
    (assignee,) = chance.choices((None, agents, teams), (3, 5, 2))
    status = chance.choice(_STATUSES)
    closed = status == "CLOSED"
    return Conversation(
        id=new_id("cnv", at),
        project=project.rowid,
        created_at=at - (_MESSAGES + chance.randrange(60)) * _MINUTE_MS,
        updated_at=at if chance.random() < 0.8 else at + chance.randrange(_MINUTE_MS),
        title="Where is my order?",
        status=status,
        assignee=assignee,
        visible=chance.random() > 0.01,
        human=True,
        messages=_MESSAGES,
        contact_messages=_MESSAGES // 2,
        last_message_at=at,
        waiting_since=None if closed or chance.random() < 0.5 else at,
        snoozed_until=wall_clock() + _YEAR_MS if not closed and chance.random() < 0.05 else None,
        tags=tuple(tag for tag, share in (("shop", 0.33), ("vip", 0.02)) if chance.random() < share),
    )


if __name__ == "__main__":
    trio.run(_fill, *json.loads(sys.stdin.read()))
