"""Builders for the tests of the engine and the store, independent of any single test."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar

import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.automation.decide import decide_with_workflow, workflow_needed
from deskwire.engine.conversations.commands import Command, ContactRef, Create, PostMessage, WorkflowCommand
from deskwire.engine.conversations.conversation import Author, AuthorType, Conversation, Message
from deskwire.engine.conversations.decide import fold
from deskwire.engine.conversations.events import public_events
from deskwire.engine.conversations.facts import Deleted, Fact, MessagePosted
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Commit, Reader, Transaction
from deskwire.engine.uploads.links import Links
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.workflows.workflow import Published
from tests.support.seeing import seen
from tests.support.stores import Transactions, opened

T = TypeVar("T")

NOON: Final = 1_790_000_000_000
"""The start time of the tests, in milliseconds since the epoch."""

PROJECT: Final = Project(1, "prj_01M3250V000000000000000SHP", 1, "Shop", "shop-stream", created_at=NOON)
OTHER_PROJECT: Final = Project(2, "prj_01M3250V000000000000000BNK", 1, "Bank", "bank-stream", created_at=NOON)
LINKS: Final = Links(lambda: (b"key",), "https://files.test/v3/uploads")
CONTACT: Final = Contact(1, new_id("con", NOON), "user-1", NOON, NOON, "Ada", "ada@example.org")


class HandClock:
    """A wall clock that advances by a second with each reading."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        self.now += 1_000
        return self.now


def post(author: AuthorType = "contact", text: str = "Hello", *, internal: bool = False) -> PostMessage:
    """Return a message or a note with an id of its own."""
    return PostMessage(new_id("msg", NOON), Author(author), text, internal)


def create(
    user_id: str = "user-1",
    identity: Mapping[str, str | None] | None = None,
    *,
    title: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    visible: bool = True,
    message: PostMessage | None = None,
    project: Project = PROJECT,
) -> Create:
    """Return a new conversation with an id of its own."""
    contact = ContactRef(user_id, identity or {})
    return Create(new_id("cnv", NOON), project.rowid, contact, title, attributes, visible, message)


def endpoint(
    project: Project = PROJECT, events: frozenset[str] = frozenset(), *, enabled: bool = True
) -> Endpoint:
    """Return a webhook endpoint that is not stored yet."""
    status: Any = "enabled" if enabled else "disabled"
    url = "https://example.org/hook"
    return Endpoint(0, new_id("whk", NOON), project.rowid, url, events, b"sealed", "tail", NOON, NOON, status)


@dataclass
class Play:
    """One conversation played through the pure functions only, from the view of an event consumer.

    `workflow` is the one that new conversations start, and that may run.
    """

    contact: Contact = CONTACT
    now: int = NOON
    state: Conversation | None = None
    facts: list[Fact] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    workflow: Published | None = None

    def __call__(self, command: Command | WorkflowCommand) -> list[EventDraft]:
        """Carry out a command; return its events."""
        self.now += 1_000
        wanted = None if workflow_needed(self.state, command) is None else self.workflow
        ids = (new_id("msg", self.now) for _ in count())
        facts = decide_with_workflow(self.state, command, self.now, wanted, ids)
        self.facts = [self._signed(fact) for fact in facts]
        drafts: list[EventDraft] = []
        for _, fact, after in fold(self.state, tuple(self.facts), self.now):
            earlier = [message for message in self.messages if not message.internal]
            drafts += public_events(
                fact, after, self.contact, PROJECT.id, earlier, partial(LINKS.shown, now=self.now)
            )
            if isinstance(fact, MessagePosted):
                self.messages.append(fact.message)
            self.state = None if isinstance(fact, Deleted) else after
        return drafts

    @property
    def now_is(self) -> Conversation:
        """The state of a conversation that exists."""
        assert self.state is not None
        return self.state

    def _signed(self, fact: Fact) -> Fact:
        if isinstance(fact, MessagePosted) and fact.message.author.type == "contact":
            author = Author("contact", self.contact.id, self.contact.name)
            return MessagePosted(replace(fact.message, author=author))
        return fact


def played(*commands: Command) -> Play:
    """Return a conversation after these commands."""
    play = Play()
    for command in commands:
        play(command)
    return play


def found_projects(tx: Transaction) -> None:
    """Store PROJECT and OTHER_PROJECT."""
    organisation = tx.insert_organisation(new_id("org", NOON), "Acme", NOON)
    for project in (PROJECT, OTHER_PROJECT):
        stored = tx.insert_project(project.id, organisation, project.name, project.stream_key, NOON)
        assert stored == project


class InlineStore:
    """A store without a thread, for tests with virtual time; it can fail and wait on request.

    `write_failure` and `read_failure` are raised once, before any work; `before_write` is awaited.
    """

    def __init__(self, directory: Path) -> None:
        self._transactions = Transactions(directory)
        self.write_failure: Exception | None = None
        self.read_failure: Exception | None = None
        self.before_write: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
        self.writes = 0
        self.reads = 0
        self._submitted: deque[Callable[[], Awaitable[None]]] = deque()
        if self._here.project(PROJECT.id) is None:
            self.at_once(found_projects)

    @property
    def connection(self) -> Any:
        return self._transactions.conn

    async def write(self, job: Callable[[Transaction], T]) -> T:
        self.writes += 1
        await self.before_write()
        if self.write_failure is not None:
            failure, self.write_failure = self.write_failure, None
            raise failure
        return self.at_once(job)

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        async def carry_out() -> None:
            try:
                answer: T | Exception = await self.write(job)
            except Exception as error:  # noqa: BLE001  # as in the writer: the caller receives it
                answer = error
            ended(answer)

        self._submitted.append(carry_out)
        if len(self._submitted) == 1:
            trio.lowlevel.spawn_system_task(self._carry_out)

    async def read(self, query: Callable[[Reader], T]) -> T:
        self.reads += not isinstance(query, InlineQuery)  # reads for which a real store uses a thread
        await trio.lowlevel.checkpoint()
        if self.read_failure is not None:
            failure, self.read_failure = self.read_failure, None
            raise failure
        return query(self._here)

    @property
    def _here(self) -> Any:
        return self._transactions.reader

    def close(self) -> None:
        self._transactions.close()

    async def _carry_out(self) -> None:
        """Run the submitted jobs, in order."""
        while self._submitted:
            await self._submitted[0]()
            self._submitted.popleft()

    def at_once(self, job: Callable[[Transaction], T]) -> T:
        return self._transactions.at_once(job)


@dataclass(frozen=True, slots=True)
class Running:
    """An open store with its log and actors, and the commits it has published."""

    store: Any  # of either kind
    log: EventLog
    directory: ActorRegistry
    commits: list[Commit]


@asynccontextmanager
async def running(
    directory: Path, *, live: int = 100, ring_events: int = 1_000, clock: HandClock | None = None
) -> AsyncIterator[Running]:
    """Yield the real store in `directory`, with PROJECT and OTHER_PROJECT, and its actors."""
    commits: list[Commit] = []
    logs: list[EventLog] = []

    def on_commit(commit: Commit) -> None:
        commits.append(commit)
        for log in logs:
            log.publish(commit.events, commit.erased)

    async with (
        opened(directory, on_commit) as store,
        trio.open_nursery() as actors,
    ):
        if seen(store, lambda reader: reader.project(PROJECT.id)) is None:
            await store.write(found_projects)
        start = seen(store, lambda reader: reader.last_event_position())
        logs.append(EventLog(store, start, ring_events=ring_events, ring_bytes=1 << 24))
        commits.clear()
        actors_directory = ActorRegistry(
            actors, store, clock or HandClock(), mailbox=256, idle_s=60, live=live
        )
        yield Running(store, logs[0], actors_directory, commits)
        actors.cancel_scope.cancel()
