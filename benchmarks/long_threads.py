"""Agents' lists of long conversations that the agent has not opened, beside short ones: a page must not take time for each message."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import trio

from benchmarks import processes
from benchmarks.filling import fill_numbered, put_with_messages
from benchmarks.generator import load
from benchmarks.report import TIMES, Cell, Section, median_times
from benchmarks.scale import Scale
from benchmarks.searching import complete, dashboard
from benchmarks.service import Server, deskwire
from deskwire.engine.accounts.people import Project, User
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import new_id
from deskwire.engine.ports import Transaction

_CONVERSATIONS: Final = 50
_SHORT: Final = 10
"""Messages of a short conversation."""
_MINUTE_MS: Final = 60_000
_YEAR_MS: Final = 365 * 24 * 60 * _MINUTE_MS
_LISTS: Final = (
    ("all", "/v3/conversations?view=agent"),
    ("unread", "/v3/conversations?view=agent&unread=true"),
    ("search for a word of all messages", "/v3/search?q=order&in=conversations&limit=50"),
)


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Request each list of both stores in turn, for an agent who has opened none, and again after all were marked as read."""
    folders = [directory / f"threads-{name}" for name in ("long", "short")]
    for folder, messages in zip(folders, (scale.thread, _SHORT), strict=True):
        folder.mkdir()
        processes.answer(
            "benchmarks.long_threads", json.dumps([str(folder), messages]), core=processes.SERVER
        )
    with ExitStack() as stack:
        servers = [stack.enter_context(deskwire(folder)) for folder in folders]
        for server in servers:
            complete(server)  # the indexer of searches would take the first lists' time
        rows = [*_rows(scale, servers, "joined before them")]
        for server in servers:
            _mark_and_write(server)
        rows += _rows(scale, servers, "marked all as read, then a message in each")
    columns = ("agent", "list", *TIMES, *(f"short: {each}" for each in TIMES), "ratio")
    title = f"Agents' lists of {_CONVERSATIONS} conversations of {scale.thread:,} messages that the agent has not opened"
    note = f"One request under way. Ratio: of the medians, to conversations of {_SHORT} messages."
    return [Section("long-threads", title, columns, rows, note)]


def _rows(scale: Scale, servers: list[Server], agent: str) -> Iterator[tuple[Cell, ...]]:
    for name, path in _LISTS:
        taken: list[list[list[float]]] = [[] for _ in servers]
        for _ in range(scale.rounds):
            for latencies, server in zip(taken, servers, strict=True):
                job = server.agent_gets(path, warm_s=scale.warm_s, for_s=scale.list_s)
                latencies.append(load(job).latencies)
        long, short = map(median_times, taken)
        yield agent, name, *long, *short, long[0] / short[0]


def _mark_and_write(server: Server) -> None:
    """Mark all conversations as read, and write a message of the contact into each."""
    with dashboard(server) as agent, server.api() as backend:
        agent.put("/v3/inbox/seen", json={}).raise_for_status()
        found = backend.get("/s2s/conversations", params={"limit": _CONVERSATIONS}).raise_for_status().json()
        for each in found["items"]:
            body = {"text": "Where is my order now?"}
            backend.post(f"/s2s/conversations/{each['id']}/messages", json=body).raise_for_status()


async def _fill(folder: str, messages: int) -> None:
    """Store the conversations, with a message a minute up to now."""
    now = wall_clock()
    await fill_numbered(folder, _CONVERSATIONS, lambda number: now - number, partial(_put, messages=messages))


def _put(tx: Transaction, project: Project, user: User, number: int, at: int, *, messages: int) -> None:
    state = Conversation(
        id=new_id("cnv", at),
        project=project.rowid,
        created_at=at - messages * _MINUTE_MS,
        updated_at=at,
        title=None,
        status="OPEN",
        messages=messages,
        contact_messages=(messages + 1) // 2,
        last_message_at=at,
    )
    put_with_messages(tx, project, number, state, at, _MINUTE_MS)
    tx.put_seen_mark(user.rowid, project.rowid, at - _YEAR_MS)


if __name__ == "__main__":
    trio.run(_fill, *json.loads(sys.stdin.read()))
