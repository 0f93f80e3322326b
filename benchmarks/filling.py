"""Conversations and messages stored through the engine, many commands in one commit, with the same rows as by the API."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Self

import trio

from benchmarks import processes
from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.accounts.people import Project, User
from deskwire.engine.conversations.commands import Command, ContactRef, Create, PostMessage
from deskwire.engine.conversations.commit import carry_out
from deskwire.engine.conversations.commit_plan import CommitPlan
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.conversations.conversation import Author, Conversation, Message
from deskwire.engine.conversations.decide import decide, fold
from deskwire.engine.conversations.events import conversation_view, message_view
from deskwire.engine.core.clock import iso, wall_clock
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import Store
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.uploads.links import no_links
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.signature import new_secret
from deskwire.program.demo_password import new_password
from deskwire.program.first_start import plan_demo, provision_demo
from deskwire.program.secret_file import installation_secrets
from deskwire.storage.sqlite.store import SqliteStore, open_store

SECRET: Final = "a benchmark's secret of a good length"
"""The secret under which the endpoints' secrets are sealed."""
_TURNS: Final = 1_000
"""Commands in one commit."""
_IN_A_ROW: Final = 5
"""Messages that `grow` adds to a conversation at once, so that its rows are nearly as scattered as in production."""
_TEXT: Final = "The parcel has not arrived yet, could you please look into it? " * 4
_DEMO_URL: Final = "http://127.0.0.1"
_ARGON2_KIB: Final = 8 * 1024


def post() -> PostMessage:
    """Return a contact's message, as long as those over HTTP."""
    return PostMessage(new_id("msg", wall_clock()), Author("contact"), _TEXT)


def create(project: Project, number: int, who: str = "user-") -> Create:
    """Return the command for a conversation of a contact of its own."""
    contact = ContactRef(f"{who}{number:08}", {"name": "Ada Lovelace"})
    return Create(new_id("cnv", wall_clock()), project.rowid, contact, None, None, True, post())


async def found(store: Store[Reader, Transaction], directory: Path) -> Project:
    """Create the demo project like the program's first start."""
    now = wall_clock()
    secrets = installation_secrets(directory, None)
    plan = plan_demo(Tokens(secrets), new_password(_ARGON2_KIB), Encryption(secrets).seal, now)
    plan.demo.write(directory, _DEMO_URL)
    await store.write(lambda tx: provision_demo(tx, plan, now))
    project = await store.read(lambda reader: reader.project(plan.project_id))
    assert project is not None
    return project


async def fill_numbered(
    folder: str,
    count: int,
    time_of: Callable[[int], int],
    put: Callable[[Transaction, Project, User, int, int], None],
) -> None:
    """Store numbered objects of a demo project in a fresh directory, many in one commit.

    Args:
        time_of: the time (ms) of a number.
        put: stores the object of a number and time, for the project and the demo's user.
    """
    directory = Path(folder)
    async with open_store(directory, batch=256, readers=1, on_commit=lambda _: None) as store:
        project = await found(store, directory)
        (user, *_) = await store.read(lambda reader: reader.users())
        for first in range(0, count, _TURNS):
            times = {number: time_of(number) for number in range(first, min(first + _TURNS, count))}
            await store.write(partial(_put_all, project=project, user=user, times=times, put=put))
    print("{}")


def _put_all(
    tx: Transaction,
    *,
    project: Project,
    user: User,
    times: dict[int, int],
    put: Callable[[Transaction, Project, User, int, int], None],
) -> None:
    for number, at in times.items():
        put(tx, project, user, number, at)


def put_with_messages(
    tx: Transaction, project: Project, number: int, state: Conversation, at: int, interval_ms: int = 0
) -> Conversation:
    """Store a conversation with as many messages as it counts, the last one at a time (ms); return it as stored.

    Four conversations in a row have the same contact.
    """
    contact = put_contact(tx, project, ContactRef(f"user {number // 4}", {}), at)
    stored = tx.insert_conversation(state, contact.rowid, {})
    tx.put_conversation_tags(stored)
    for index in range(state.messages):
        author = Author("agent" if index % 2 else "contact")
        written = at - (state.messages - 1 - index) * interval_ms
        message = Message(new_id("msg", at), author, "Where is my order? " * 5, written, index=index)
        tx.insert_message(stored.rowid, message, index + 2)
    return stored


class Filling:
    """A project whose conversations are filled in bulk."""

    def __init__(self, store: SqliteStore, project: Project) -> None:
        self._store = store
        self._states: list[Conversation] = []
        self._posted = self._grown = 0
        self.project: Final = project

    @classmethod
    async def begin(cls, store: SqliteStore, directory: Path) -> Self:
        """Start with the demo project in a fresh directory."""
        return cls(store, await found(store, directory))

    async def create(self, count: int) -> list[str]:
        """Start conversations, each with a message; return their ids."""
        for first in range(0, count, _TURNS):
            numbers = range(first, min(first + _TURNS, count))
            self._states += await self._store.write(partial(_create_all, self.project, numbers))
        return [state.id for state in self._states]

    async def grow(self, count: int) -> None:
        """Post about `count` messages, several to each conversation in turn; faster than `post`, and not delivered."""
        wanted = self._grown + count
        while self._grown < wanted:
            first = self._grown // _IN_A_ROW
            chosen = [number % len(self._states) for number in range(first, first + _TURNS // _IN_A_ROW)]
            chosen = chosen[: max(1, (wanted - self._grown) // _IN_A_ROW)]
            await self._store.write(partial(_grow_all, self.project, self._states, chosen))
            self._grown += len(chosen) * _IN_A_ROW

    async def post(self, count: int) -> None:
        """Post messages to all conversations in turn."""
        for first in range(0, count, _TURNS):
            turns = range(self._posted, self._posted + min(_TURNS, count - first))
            await self._store.write(partial(_post_all, self.project, self._states, turns))
            self._posted = turns.stop


async def fill(directory: Path, conversations: int, messages: int) -> list[str]:
    """Store about this many of both in a fresh directory; return the conversations' ids."""
    async with open_store(directory, batch=256, readers=1, on_commit=lambda _: None) as store:
        filling = await Filling.begin(store, directory)
        ids = await filling.create(conversations)
        await filling.grow(messages - conversations)
        return ids


def hook(project: Project, sealing: Encryption, url: str, tx: Transaction) -> Endpoint:
    """Register a webhook for everything but typing, as the API would."""
    at = wall_clock()
    sealed = sealing.seal(new_secret())
    new = Endpoint(0, new_id("whk", at), project.rowid, url, frozenset(), sealed, "tail", at, at)
    return tx.insert_endpoint(new)


def _create_all(project: Project, numbers: range, tx: Transaction) -> list[Conversation]:
    commands = [create(project, number) for number in numbers]
    return [_turn(tx, project, None, command, command.contact) for command in commands]


def _post_all(project: Project, states: list[Conversation], turns: range, tx: Transaction) -> None:
    """Post to the conversations in turn, and replace their states with the new ones."""
    for turn in turns:
        chosen = turn % len(states)
        states[chosen] = _turn(tx, project, states[chosen], post(), None)


def _grow_all(project: Project, states: list[Conversation], chosen: Sequence[int], tx: Transaction) -> None:
    for number in chosen:
        states[number] = _grow(tx, project, states[number])


def _grow(tx: Transaction, project: Project, before: Conversation) -> Conversation:
    """Write the messages of several commands, with their common work done once."""
    claimed, at = tx.claim(before), wall_clock()
    assert not claimed.routed, "webhooks would have to be told"
    author = Author("contact", claimed.contact.id, claimed.contact.name)
    times = {"lastMessageAt": iso(at), "updatedAt": iso(at)}
    about = conversation_view(before, claimed.contact, project.id) | times
    for number in range(_IN_A_ROW):
        message = Message(new_id("msg", at), author, _TEXT, at, index=before.messages + number)
        sequence = before.sequence + number + 1
        shown = message_view(message, before.id, partial(no_links().shown, now=at))
        data = {"message": shown, "conversation": {**about, "sequence": sequence}}
        tx.append_event(project, EventDraft("message.created", sequence, data), before.rowid, at)
        tx.insert_message(before.rowid, message, sequence)
    after = replace(
        before,
        revision=before.revision + 1,
        last_message_at=at,
        updated_at=at,
        sequence=before.sequence + _IN_A_ROW,
        messages=before.messages + _IN_A_ROW,
        contact_messages=before.contact_messages + _IN_A_ROW,
    )
    tx.save_conversation(before, after, claimed.routed)
    return after


def _turn(
    tx: Transaction,
    project: Project,
    state: Conversation | None,
    command: Command,
    contact: ContactRef | None,
) -> Conversation:
    at = wall_clock()
    steps = fold(state, decide(state, command, at), at)
    receipt = carry_out(CommitPlan(project, state, steps, at, contact), tx)
    assert receipt.state is not None
    return receipt.state


def fill_directory(directory: Path, conversations: int, messages: int) -> list[str]:
    """Run `fill` in a separate process, which can be killed at any time."""
    wanted = json.dumps([str(directory), conversations, messages])
    ids: list[str] = json.loads(processes.answer("benchmarks.filling", wanted, core=processes.SERVER))
    return ids


async def _main(directory: str, conversations: int, messages: int) -> None:
    print(json.dumps(await fill(Path(directory), conversations, messages)))


if __name__ == "__main__":
    trio.run(_main, *json.loads(sys.stdin.read()))
