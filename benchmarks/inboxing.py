"""The time that an agent waits for a page of conversations, and for the counters of the inbox."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Final

import trio

from benchmarks import processes
from benchmarks.filling import fill_numbered, put_with_messages
from benchmarks.generator import load
from benchmarks.report import TIMES, Cell, Section, median, median_times
from benchmarks.scale import Scale
from benchmarks.searching import complete, dashboard
from benchmarks.service import Server, deskwire
from deskwire.engine.accounts.people import Assignee, Project, User
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.listing import SeenMessages
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import new_id
from deskwire.engine.ports import Transaction

_MESSAGES: Final = 6
"""Messages of each conversation, every second one from the contact."""
_DAYS: Final = 365
_DAY_MS: Final = 86_400_000
_AGENTS: Final = 20
"""Number of agents that share the assigned conversations, including the benchmark's user."""
_LISTS: Final = (
    ("all", "/v3/conversations?view=agent"),
    ("open and pending", "/v3/conversations?view=agent&status=OPEN,PENDING"),
    ("pending", "/v3/conversations?view=agent&status=PENDING"),
    ("closed, oldest first", "/v3/conversations?view=agent&status=CLOSED&order=asc"),
    ("mine", "/v3/conversations?view=agent&assignee=me&status=OPEN,PENDING"),
    ("all that were ever mine, by creation", "/v3/conversations?view=agent&assignee=me&sort=created"),
    ("nobody's", "/v3/conversations?view=agent&assignee=none&status=OPEN,PENDING"),
    ("longest waiting", "/v3/conversations?view=agent&sort=waiting"),
    ("mine, longest waiting", "/v3/conversations?view=agent&assignee=me&sort=waiting"),
    ("unread, of which 1 in 20 open ones is", "/v3/conversations?view=agent&unread=true"),
    ("a tag that 1 in 50 has", "/v3/conversations?view=agent&tag=vip"),
    ("a tag that 1 in 3 has", "/v3/conversations?view=agent&tag=shop"),
    ("snoozed", "/v3/conversations?view=agent&snoozed=true"),
    ("hidden", "/v3/conversations?view=agent&visible=false"),
    ("archived", "/v3/conversations?view=agent&archived=true"),
    ("page of 200", "/v3/conversations?view=agent&limit=200"),
    ("without the agent's view", "/v3/conversations"),
    ("counters", "/v3/inbox/counters"),
    ("saved views with their counts", "/v3/views?counts=true"),
)
_CONDITIONS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"assignee": "me"},
    {"assignee": "none"},
    {"tag": "vip"},
    {"tag": "shop"},
    {"withoutTags": "shop"},
    {"unread": "true"},
    {"waiting": "true"},
    {"snoozed": "true"},
    {"visible": "true"},
    {"rated": "false"},
    {"activeWithin": "7d"},
    {"inactiveFor": "4w"},
    {"createdWithin": "4w"},
)
VIEWS: Final = [
    {**condition, **status}
    for condition in _CONDITIONS
    for status in ({}, {"status": "OPEN,PENDING"}, {"status": "CLOSED"})
]
"""The filters of the saved views: each condition alone, and with a status."""


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Request each list, one request at a time."""
    where = directory / "inbox"
    where.mkdir()
    processes.answer("benchmarks.inboxing", json.dumps([str(where), scale.inbox]), core=processes.SERVER)
    with deskwire(where) as server:
        complete(server)  # the indexer of searches would take the first lists' time
        _save_views(server)
        rows = [_row(scale, server, name, path) for name, path in _LISTS[: scale.lists]]
    columns = ("list", "answers/s", *TIMES)
    title = f"The inbox with {scale.inbox:,} conversations, 50 a page"
    note = (
        "One request under way. A tenth of the conversations are open; the agent has seen most of them. "
        f"There are {len(VIEWS)} saved views."
    )
    return [Section("inbox", title, columns, rows, note)]


def _save_views(server: Server) -> None:
    """Save the views of the agent."""
    with dashboard(server) as api:
        for number, view in enumerate(VIEWS):
            body = {"name": f"View {number}", "filter": view}
            api.post("/v3/views", json=body).raise_for_status()


def _row(scale: Scale, server: Server, name: str, path: str) -> tuple[Cell, ...]:
    job = server.agent_gets(path, warm_s=scale.warm_s, for_s=scale.list_s)
    taken = [load(job) for _ in range(scale.rounds)]
    return name, median(each.rate for each in taken), *median_times(each.latencies for each in taken)


async def _fill(folder: str, count: int) -> None:
    """Store this many conversations in a fresh directory, oldest first."""
    now = wall_clock()
    await fill_numbered(folder, count, lambda number: now - _DAYS * _DAY_MS * (count - number) // count, _put)


def _put(tx: Transaction, project: Project, user: User, number: int, at: int) -> None:
    state = put_with_messages(tx, project, number, _state(number, project, user, at), at)
    if number % 20:
        tx.put_seen(user.rowid, state.rowid, SeenMessages(_MESSAGES - 1, _MESSAGES // 2), at)


def _state(number: int, project: Project, user: User, at: int) -> Conversation:
    chance = random.Random(number)
    still_open = number % 10 == 0
    agent = number % _AGENTS
    assignee = Assignee("user", user.id if agent == 0 else f"usr_{agent}", "Agent")
    return Conversation(
        id=new_id("cnv", at),
        project=project.rowid,
        created_at=at,
        updated_at=at,
        title="Where is my order?",
        status=chance.choice(("OPEN", "OPEN", "PENDING")) if still_open else "CLOSED",
        archived=not still_open and chance.random() < 0.5,
        assignee=None if chance.random() < 0.2 else assignee,
        visible=chance.random() > 0.01,
        human=True,
        messages=_MESSAGES,
        contact_messages=_MESSAGES // 2,
        last_message_at=at,
        waiting_since=at if still_open and chance.random() < 0.5 else None,
        snoozed_until=wall_clock() + _DAY_MS if still_open and chance.random() < 0.05 else None,
        tags=tuple(tag for tag, share in (("shop", 0.33), ("vip", 0.02)) if chance.random() < share),
    )


if __name__ == "__main__":
    trio.run(_fill, *json.loads(sys.stdin.read()))
