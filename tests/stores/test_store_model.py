"""Any commands through the real store, log and actors, against a model that is plain lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.contacts.contact import Contact, identify
from deskwire.engine.conversations.commands import (
    Assign,
    Close,
    Command,
    ContactRef,
    Create,
    Delete,
    MarkRead,
    Patch,
    Rate,
    Reopen,
    ReplaceNetworkLogs,
)
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.conversations.events import contact_updated, conversation_view
from deskwire.engine.core.errors import Conflict, DomainError, Invalid, NotFound
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EventDraft, StoredEvent, Topic, matches, topics_of
from deskwire.engine.ports import Reader
from deskwire.engine.webhooks.endpoint import Endpoint
from tests.support.builders import (
    OTHER_PROJECT,
    PROJECT,
    HandClock,
    Play,
    Running,
    create,
    endpoint,
    post,
    running,
)
from tests.support.seeing import seen
from tests.support.stores import forget_directories

SUBSCRIPTIONS = (
    frozenset[str](),
    frozenset({"message.created", "conversation.deleted"}),
    frozenset({"contact.updated"}),
)
"""The `events` of the endpoints; an empty list means everything."""

USERS = st.sampled_from(["ada", "bob"])
IDENTITIES = st.fixed_dictionaries(
    {},
    optional={"name": st.sampled_from([None, "A", "B"]), "email": st.sampled_from([None, "a@example.org"])},
)
MESSAGES = st.builds(
    post,
    st.sampled_from(["contact", "agent", "bot", "system"]),
    st.sampled_from(["Hi", "\x00", "👋"]),
    internal=st.booleans(),
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from([None, "A"]),
        "archived": st.booleans(),
        "status": st.sampled_from(["OPEN", "PENDING"]),
        "attributes": st.dictionaries(st.sampled_from("ab"), st.sampled_from([None, 1, True, "x"])),
        "visible": st.booleans(),
    },
)
CREATIONS = st.builds(
    create,
    USERS,
    IDENTITIES,
    visible=st.booleans(),
    title=st.none() | st.just("T"),
    message=st.none() | MESSAGES,
)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    MESSAGES,
    MESSAGES,
    st.builds(Close, st.sampled_from(["agent", "bot"])),
    st.builds(Reopen),
    st.builds(Assign, st.sampled_from([None, Assignee("user", "u", "U"), Assignee("team", "t", "T")])),
    st.builds(MarkRead),
    st.builds(Rate, st.integers(0, 10)),
    st.builds(Patch, FIELDS),
    st.builds(Patch, FIELDS),
    st.builds(ReplaceNetworkLogs, st.binary(max_size=5)),
    st.builds(Delete, st.sampled_from(["manual", "retention"])),
)


@dataclass(frozen=True)
class Ask:
    """A command for one of the existing conversations."""

    which: int
    command: Command


@dataclass(frozen=True)
class PutContact:
    """A change of a contact without a conversation."""

    user_id: str
    identity: dict[str, Any]


@dataclass(frozen=True)
class Restart:
    """Close everything and open it again."""


STEPS = st.lists(
    st.one_of(
        CREATIONS,
        *[st.builds(Ask, st.integers(0, 9), COMMANDS)] * 6,
        st.builds(PutContact, USERS, IDENTITIES),
        st.builds(Restart),
    ),
    min_size=5,
    max_size=40,
)


@dataclass
class Sent:
    """An event of the model: its conversation (by index) if deleted with it, its draft, and the number
    that each endpoint was sent before it.
    """

    subject: int | None
    draft: EventDraft
    previous: dict[frozenset[str], int | None]


@dataclass
class Model:
    """The content that the store should have."""

    clock: HandClock
    plays: list[Play] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    contacts: dict[str, Contact] = field(default_factory=dict)
    log: list[Sent] = field(default_factory=list)
    snapshots: dict[int, bytes] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    routed: dict[tuple[str, frozenset[str]], int] = field(default_factory=dict)

    def create(self, command: Create, stored: Contact) -> None:
        """Create a conversation. `stored` gives the id of a new contact; everything else is the model's own."""
        self.put(PutContact(command.contact.user_id, dict(command.contact.identity)), stored)
        self.plays.append(Play(now=self.clock.now - 1_000))
        self.users.append(command.contact.user_id)
        self.ids.append(command.conversation_id)
        self.ask(len(self.plays) - 1, command)

    def ask(self, which: int, command: Command) -> None:
        play = self.plays[which]
        play.contact = self.contacts[self.users[which]]
        play.now = self.clock.now - 1_000
        drafts = play(command)
        if isinstance(command, ReplaceNetworkLogs):
            self.snapshots[which] = command.snapshot
        if isinstance(command, Delete):
            self.log = [sent for sent in self.log if sent.subject != which]
        for draft in drafts:
            self.send(None if isinstance(command, Delete) else which, draft)

    def send(self, subject: int | None, draft: EventDraft) -> None:
        previous: dict[frozenset[str], int | None] = {}
        for events in SUBSCRIPTIONS:
            if draft.sequence is None:
                previous[events] = None
            elif matches(events, draft.type):
                lane = (draft.data["conversation"]["id"], events)
                previous[events] = self.routed.get(lane, 0)
                self.routed[lane] = draft.sequence
        self.log.append(Sent(subject, draft, previous))

    def put(self, asked: PutContact, stored: Contact) -> None:
        known = self.contacts.get(asked.user_id)
        blank = replace(stored, name=None, email=None, phone=None, avatar=None)
        contact = identify(known or blank, asked.identity, self.clock.now)
        self.contacts[asked.user_id] = contact
        if known is not None and contact is not known:
            self.send(None, contact_updated(contact))

    def deliveries(self, target: Endpoint) -> list[tuple[str, int | None, int | None]]:
        """Return type, number and previous number of each event that `target` is owed."""
        return [
            (sent.draft.type, sent.draft.sequence, sent.previous[target.events])
            for sent in self.log
            if matches(target.events, sent.draft.type)
        ]


def plain(value: Any) -> Any:
    """Return a value in its wire format."""
    return orjson.loads(orjson.dumps(value))


async def check(engine: Running, model: Model, targets: list[Endpoint], silent: list[Endpoint]) -> None:
    events = seen(engine.store, lambda reader: reader.events(PROJECT.rowid, 0, 10_000, frozenset()))
    bodies = [orjson.loads(event.body) for event in events]
    assert [(b["type"], b["sequence"], b["data"]) for b in bodies] == [
        (sent.draft.type, sent.draft.sequence, plain(sent.draft.data)) for sent in model.log
    ]
    assert [(b["id"], b["type"], b["sequence"]) for b in bodies] == [
        (e.id, e.type, e.sequence) for e in events
    ]
    assert [event.position for event in events] == sorted({event.position for event in events})
    assert [event.id for event in events] == sorted({event.id for event in events})
    chunk = await engine.log.read(PROJECT.rowid, 0, 10_000)
    assert list(chunk.events) == list(events)
    await check_lanes(engine, events)
    for which in range(len(model.plays)):
        check_conversation(engine, model, which)
    for user_id, contact in model.contacts.items():
        stored = seen(engine.store, lambda reader, u=user_id: reader.contact(PROJECT.rowid, u))  # type: ignore[misc]
        assert stored == contact
    for target in targets:
        pending = seen(engine.store, lambda reader, t=target: reader.pending_deliveries(t.rowid, 0, 10_000))  # type: ignore[misc]
        published = {each.id: each for commit in engine.commits for each in commit.deliveries}
        assert all(published.get(each.id, each) == each for each in pending)
        found = [(each.event.type, each.event.sequence, each.previous) for each in pending]
        assert found == model.deliveries(target)
    for target in silent:
        assert seen(engine.store, lambda reader, t=target: reader.pending_deliveries(t.rowid, 0, 10)) == []  # type: ignore[misc]


def lanes_in(event: StoredEvent) -> tuple[Topic, ...]:
    """Return the topics of an event that was read from the table."""
    return topics_of(event.project, orjson.loads(event.body)["data"])


async def check_lanes(engine: Running, events: Sequence[StoredEvent]) -> None:
    """Compare the events of each conversation and contact, found by index, with the log by lane."""
    lanes = {
        lane: [each for each in events if lane in lanes_in(each)]
        for event in events
        for lane in lanes_in(event)
    }
    assert {lane.project for lane in lanes} <= {PROJECT.rowid}
    for lane, expected in lanes.items():
        for after in {0, *(each.position for each in expected)}:
            wanted = [each for each in expected if each.position > after][:3]
            found = seen(engine.store, partial(_lane_events, lane=lane, after=after))
            assert list(found) == wanted
            assert list((await engine.log.read(lane, after, 3)).events) == wanted
        foreign = lane._replace(project=OTHER_PROJECT.rowid)
        assert not seen(engine.store, partial(_lane_events, lane=foreign, after=0))


def _lane_events(reader: Reader, lane: Topic, after: int) -> Sequence[StoredEvent]:
    return reader.topic_events(lane, after, 3, frozenset())


def check_conversation(engine: Running, model: Model, which: int) -> None:
    play, conversation_id = model.plays[which], model.ids[which]
    found = seen(engine.store, lambda reader: reader.conversation(PROJECT.rowid, conversation_id))
    assert (
        seen(engine.store, lambda reader: reader.conversation(OTHER_PROJECT.rowid, conversation_id)) is None
    )
    if play.state is None:
        assert found is None
        return
    assert found is not None
    state, contact = found
    assert replace(state, rowid=0) == play.state
    assert contact == model.contacts[model.users[which]]
    messages = seen(engine.store, lambda reader: reader.messages(state.rowid, internal=True))
    assert list(messages) == play.messages
    visible = seen(engine.store, lambda reader: reader.messages(state.rowid, internal=False))
    assert [message.index for message in visible] == list(range(state.messages))
    numbers = [
        orjson.loads(body)["sequence"]
        for body in seen(engine.store, lambda reader: reader.conversation_events(state.rowid, 0, 10_000))
    ]
    assert numbers == list(range(1, state.sequence + 1))
    assert seen(engine.store, lambda reader: reader.network_logs(state.rowid)) == model.snapshots.get(which)


async def take(engine: Running, model: Model, step: Any) -> None:
    if isinstance(step, Create):
        receipt = await engine.directory.create(PROJECT, step)
        stored = contact_now(engine, step.contact.user_id)
        model.create(step, stored)
        check_answer(receipt, model, len(model.plays) - 1)
    elif isinstance(step, PutContact):
        ref = ContactRef(step.user_id, step.identity)
        at = model.clock()
        stored = await engine.store.write(lambda tx: put_contact(tx, PROJECT, ref, at))
        model.put(step, stored)
    elif model.plays:
        await ask(engine, model, step.which % len(model.plays), step.command)


async def ask(engine: Running, model: Model, which: int, command: Command) -> None:
    gone = model.plays[which].state is None
    refused: type[DomainError] | None = None
    try:
        receipt = await engine.directory.ask(PROJECT, model.ids[which], command)
    except DomainError as error:
        refused = type(error)
    expected: type[DomainError] | None = NotFound if gone else None
    try:
        if not gone:
            model.ask(which, command)
    except (Conflict, Invalid) as error:
        expected = type(error)
    assert refused is expected
    if expected is None:
        check_answer(receipt, model, which)


def check_answer(receipt: Any, model: Model, which: int) -> None:
    """Check that the response shows the resulting conversation."""
    state = model.plays[which].state
    if state is not None:
        view = conversation_view(state, model.contacts[model.users[which]], PROJECT.id)
        assert plain(receipt.conversation) == plain(view)
        assert receipt.state is not None


def contact_now(engine: Running, user_id: str) -> Contact:
    found = seen(engine.store, lambda reader: reader.contact(PROJECT.rowid, user_id))
    assert found is not None
    return found


async def add(engine: Running, target: Endpoint) -> Endpoint:
    stored: Endpoint = await engine.store.write(lambda tx: tx.insert_endpoint(target))
    return stored


async def live(steps: list[Any], directory: Path) -> None:
    model = Model(HandClock())
    targets: list[Endpoint] = []
    silent: list[Endpoint] = []
    left = list(steps)
    while True:
        async with running(directory, live=2, ring_events=7, clock=model.clock) as engine:
            if not targets:
                targets = [await add(engine, endpoint(events=events)) for events in SUBSCRIPTIONS]
                silent = [
                    await add(engine, each) for each in (endpoint(OTHER_PROJECT), endpoint(enabled=False))
                ]
            await check(engine, model, targets, silent)  # the state after a restart
            while left and not isinstance(left[0], Restart):
                await take(engine, model, left.pop(0))
            await check(engine, model, targets, silent)
        if not left:
            return
        left.pop(0)


@pytest.mark.thorough
@given(STEPS)
@settings(max_examples=40)
def test_store_equals_the_model_over_evictions_and_restarts(steps: list[Any]) -> None:
    with TemporaryDirectory() as directory:
        try:
            trio.run(live, steps, Path(directory))
        finally:
            forget_directories()
