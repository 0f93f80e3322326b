"""Years of conversations, written directly into the tables: the same rows as an import without events, in a tenth of the time.

Most are closed, and many of the closed ones are archived; nearly all open ones are new. A contact has four conversations, and an
agent has one in forty of the assigned ones. The messages of a thousand conversations are interleaved by time.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import trio

from benchmarks import processes
from benchmarks.filling import found
from benchmarks.searching import texts
from deskwire.engine.accounts.people import Assignee
from deskwire.engine.contacts.search_terms import search_words
from deskwire.engine.conversations.conversation import Conversation, Status
from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import fresh_ids
from deskwire.storage.files import sync
from deskwire.storage.sqlite.database import connect_writer
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.log import add_untimed
from deskwire.storage.sqlite.store import open_store
from deskwire.storage.tables.conversations.columns import INSERT, insertion
from deskwire.storage.tables.conversations.conversations import INSERT_MESSAGE

EACH: Final = 10
"""Messages of a conversation; one less if the contact is waiting for an answer."""
OF_A_CONTACT: Final = 4
PLANS: Final = ("free", "basic", "team", "enterprise")
_NOTE: Final = "filled.json"
_CHOSEN: Final = 2_000
_BLOCK: Final = 1_000
"""Conversations stored in one commit."""
_DAY_MS: Final = 86_400_000
_DAYS: Final = 730
_AGENTS: Final = 40
"""The owner is the first one; the others are names."""
_TEAMS: Final = 8
_TEXTS: Final = 1_000_000
"""Distinct messages, which later ones repeat; word frequencies remain those of a language."""
_MINUTE_MS: Final = 60_000
_INSERTS: Final = {
    "contacts": "INSERT INTO contacts (rowid, id, project, user_id, name, email, created_at, updated_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "words": "INSERT INTO contact_words VALUES (?, ?, ?)",
    "conversations": INSERT,
    "messages": INSERT_MESSAGE,
    "tags": "INSERT INTO conversation_tags (project, folded, conversation, tag) VALUES (?, ?, ?, ?)",
    "seen": "INSERT INTO agent_seen VALUES (?, ?, ?, ?, ?)",
    "milestones": "INSERT INTO milestones (project, conversation, kind, at, since, score, agent_id, team_id, imported) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)",
}
"""The lists of a `_Block` that are stored, with their statements."""


@dataclass(frozen=True, slots=True)
class Histories:
    """A directory with that many conversations.

    Args:
        ids: some 2,000 of them, evenly spread.
        contact: the backend's id of a contact in the middle.
        teams: their ids.
        filled_at: when it was filled, in milliseconds; the newest conversation is from that time.
        took_s: how long filling took.
    """

    directory: Path
    conversations: int
    ids: list[str]
    contact: str
    teams: list[str]
    filled_at: int
    took_s: float

    @property
    def middle(self) -> int:
        """The time (ms) before which half of the conversations were created."""
        return self.filled_at - _DAYS * _DAY_MS // 2

    @property
    def order(self) -> int:
        """The `order` among the attributes of a conversation in the middle."""
        return self.conversations // 4 * 2 + 1

    @property
    def size_mb(self) -> float:
        """The size of the database, in MB (10^6 bytes)."""
        return (self.directory / FILE_NAME).stat().st_size / 1e6


def histories(directory: Path, conversations: int) -> Histories:
    """Return such a database, which is filled in `directory` unless it is there already."""
    where = directory / f"histories-{conversations}"
    note = where / _NOTE
    if not note.exists():
        shutil.rmtree(where, ignore_errors=True)  # left over from an interrupted filling
        where.mkdir(parents=True)
        wanted = json.dumps([str(where), conversations])
        processes.answer("benchmarks.histories", wanted, core=processes.SERVER)
    known = json.loads(note.read_text())
    return Histories(**{**known, "directory": where})


@dataclass(frozen=True, slots=True)
class _Home:
    """Values shared by all conversations of a filling: `now` is its time, `who` has the assignees."""

    project: int
    user: int
    who: Sequence[Assignee]
    now: int
    count: int


class _Block:
    """The rows of conversations that are stored together."""

    def __init__(self, home: _Home, first: int, size: int, written: Iterator[str]) -> None:
        self.contacts: list[tuple[Any, ...]] = []
        self.words: list[tuple[Any, ...]] = []
        self.conversations: list[tuple[Any, ...]] = []
        self.messages: list[tuple[Any, ...]] = []
        self.tags: list[tuple[Any, ...]] = []
        self.seen: list[tuple[Any, ...]] = []
        self.milestones: list[tuple[Any, ...]] = []
        self._home = home
        self._written = written
        at = wall_clock()
        self._contact_ids = iter(fresh_ids("con", at, size))
        self.ids: Final = fresh_ids("cnv", at, size)
        for number, conversation_id in enumerate(self.ids, first):
            self._add(number, conversation_id)
        self.messages.sort(key=lambda row: row[8])
        for row, message_id in zip(self.messages, fresh_ids("msg", at, len(self.messages)), strict=True):
            row[0] = message_id  # type: ignore[index]

    def _add(self, number: int, conversation_id: str) -> None:
        home, rowid, contact = self._home, number + 1, number // OF_A_CONTACT + 1
        began = home.now - _DAYS * _DAY_MS * (home.count - number) // home.count
        if number % OF_A_CONTACT == 0:
            self._add_contact(contact, began)
        state = _state(home, number, conversation_id, began)
        self.conversations.append(insertion(state, contact, {}))
        self._add_messages(state, rowid)
        self.tags += [(home.project, tag_key(tag), rowid, tag) for tag in state.tags]
        if number % 20:
            self.seen.append((home.user, rowid, state.messages - 1, state.contact_messages, state.updated_at))
        agent = (
            state.assignee.id if state.assignee is not None and state.assignee.type == "user" else "usr_agent"
        )
        self._add_milestone(rowid, "answered", state.answered_at, state.asked_at, None, agent, state.team_id)
        if state.status == "CLOSED":
            self._add_milestone(
                rowid, "closed", state.closed_at, state.created_at, None, agent, state.team_id
            )
        if state.rating is not None:
            self._add_milestone(rowid, "rated", state.rated_at, None, state.rating, agent, state.team_id)

    def _add_contact(self, rowid: int, at: int) -> None:
        user_id, name, email = (
            f"user-{rowid}",
            f"Ada {_NAMES[rowid % len(_NAMES)]}",
            f"user-{rowid}@example.com",
        )
        project = self._home.project
        self.contacts.append((rowid, next(self._contact_ids), project, user_id, name, email, at, at))
        self.words += [(project, word, rowid) for word in search_words(user_id, name, email)]

    def _add_messages(self, state: Conversation, rowid: int) -> None:
        for index in range(state.messages):
            by_contact = index % 2 == 0
            at = state.created_at + index * 7 * _MINUTE_MS
            author = (
                ("contact", self.contacts[-1][1], "Ada") if by_contact else ("agent", "usr_agent", "Agent")
            )
            text = next(self._written)
            self.messages.append(["", rowid, index, *author, text, False, at, None, None])  # type: ignore[arg-type]

    def _add_milestone(self, rowid: int, kind: str, *rest: Any) -> None:
        at, since, score, agent, team = rest
        self.milestones.append((self._home.project, rowid, kind, at, since, score, agent, team))


_NAMES: Final = ("Lovelace", "Hopper", "Noether", "Curie", "Meitner", "Franklin", "Hamilton", "Turing")


def _state(home: _Home, number: int, conversation_id: str, began: int) -> Conversation:
    dice = random.Random(number)
    age = home.count - number
    is_open = dice.random() < (0.6 if age < max(200, home.count // 500) else 0.000_5)
    waits = is_open and dice.random() < 0.5
    messages = EACH - waits
    last = began + (messages - 1) * 7 * _MINUTE_MS
    status: Status = dice.choice(("OPEN", "OPEN", "PENDING")) if is_open else "CLOSED"
    archived = not is_open and dice.random() < 0.6
    assignee = None if dice.random() < 0.15 else dice.choice(home.who)
    rated = not is_open and dice.random() < 0.2
    attributes = {"plan": dice.choice(PLANS), "order": number} if number % 2 else {}
    return Conversation(
        id=conversation_id,
        project=home.project,
        created_at=began,
        updated_at=last,
        title="Where is my order?" if dice.random() < 0.5 else None,
        status=status,
        closed_by=None if is_open else "agent",
        closed_at=None if is_open else last,
        archived=archived,
        archived_at=home.now if archived else None,
        unread=dice.random() < 0.05,
        assignee=assignee,
        attributes=attributes,
        rating=dice.randrange(11) if rated else None,
        rated_at=last if rated else None,
        visible=dice.random() > 0.01,
        human=True,
        imported_at=home.now,
        messages=messages,
        contact_messages=(messages + 1) // 2,
        last_message_at=last,
        waiting_since=last if waits else None,
        snoozed_until=home.now + 365 * _DAY_MS if is_open and dice.random() < 0.05 else None,
        tags=tuple(tag for tag, share in TAGS.items() if dice.random() < share),
        asked_at=began,
        answered_at=began + 7 * _MINUTE_MS,
        replier_id="usr_agent",
        team_id=assignee.id if assignee is not None and assignee.type == "team" else None,
    )


TAGS: Final = {"rare": 0.000_1, "shop": 0.33, "vip": 0.02}
"""The share of conversations that have a tag."""


def _fill(directory: Path, home: _Home) -> list[str]:
    """Store the conversations in the order of their creation; return some of their ids."""
    ids: list[str] = []
    step = max(1, home.count // _CHOSEN)
    written = cycle(islice(texts(min(_TEXTS, home.count * EACH)), None))
    with closing(connect_writer(directory / FILE_NAME)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(f"PRAGMA cache_size = -{256 * 1024}")
        for first in range(0, home.count, _BLOCK):
            block = _Block(home, first, min(_BLOCK, home.count - first), written)
            connection.execute("BEGIN IMMEDIATE")
            for name, statement in _INSERTS.items():
                connection.executemany(statement, getattr(block, name))
            add_untimed(connection)
            connection.execute("COMMIT")
            ids += block.ids[-first % step :: step]
    sync(directory / FILE_NAME)  # later measurements do not wait for the disk
    return ids[:_CHOSEN]


async def _main(folder: str, count: int) -> None:
    """Fill a fresh directory, and write a note that describes it."""
    directory, began, now = Path(folder), time.perf_counter(), wall_clock()
    async with open_store(directory, batch=256, readers=1, on_commit=lambda _: None) as store:
        project = await found(store, directory)
        (user, *_) = await store.read(lambda reader: reader.users())
    teams = _with_teams(directory, project.rowid, now)
    agents = [Assignee("user", user.id, "Agent")] + [
        Assignee("user", f"usr_{number}", "Agent") for number in range(1, _AGENTS)
    ]
    who = agents * 4 + [Assignee("team", team, "Team") for team in teams] * 5
    ids = _fill(directory, _Home(project.rowid, user.rowid, who, now, count))
    contact = f"user-{count // OF_A_CONTACT // 2}"
    made = Histories(directory, count, ids, contact, teams, now, time.perf_counter() - began)
    (directory / _NOTE).write_text(json.dumps({**asdict(made), "directory": str(directory)}))
    print("{}")


def _with_teams(directory: Path, project: int, now: int) -> list[str]:
    """Store the teams, each with the owner as a member; return their ids."""
    teams = fresh_ids("team", now, _TEAMS)
    with closing(sqlite3.connect(directory / FILE_NAME)) as connection, connection:
        for number, team in enumerate(teams):
            connection.execute(
                "INSERT INTO teams (id, project, name, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
                (team, project, f"Team {number}", now, now),
            )
        connection.execute("INSERT INTO team_members SELECT t.rowid, u.rowid FROM teams t, users u")
    return teams


if __name__ == "__main__":
    trio.run(_main, *json.loads(sys.stdin.read()))
