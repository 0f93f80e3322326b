"""Splits: new conversations with messages of another one, which stay where they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from random import Random
from typing import Any

import pytest
import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.audit.trail import UNKNOWN_ORIGIN
from deskwire.engine.cluster.cluster import NoBus
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import (
    Assign,
    Close,
    Delete,
    DeleteMessage,
    MarkNoAnswerNeeded,
    Patch,
    PostMessage,
    RedactMessage,
    WaitAgain,
)
from deskwire.engine.conversations.conversation import Author, AuthorType, Conversation
from deskwire.engine.conversations.split_decisions import SPLITS_MAX, MessageSplit
from deskwire.engine.conversations.threads import ThreadQuery, marks_in_thread, read_thread
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import Conflict, DomainError, Invalid, NotFound
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.merging.conversations import ConversationMerges
from deskwire.engine.merging.splits import ConversationSplits, SplitRequest
from tests.engine.conversations.acting import sequences
from tests.engine.conversations.test_merging import broken
from tests.support.builders import NOON, PROJECT, HandClock, InlineStore, create
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.seeing import seen

_AGENT = Actor("user", "usr_1", "Grace")
_numbers = count(1)


class Said(Struct, frozen=True):
    """A message that was written: its id, conversation and time (ms)."""

    id: str
    conversation: str
    at: int


class Scene:
    """A conversation of a contact, and one or two registries of actors over its store, with one clock."""

    def __init__(self, store: InlineStore, clock: HandClock, *registries: ActorRegistry) -> None:
        self.store = store
        self.clock = clock
        self.registries = registries
        self.one = ""

    async def say(
        self, conversation: str, author: AuthorType = "contact", *, internal: bool = False, registry: int = 0
    ) -> Said:
        """Post a message or note with a text of its own."""
        by = Author(author, None if author == "contact" else "usr_1", "Grace")
        command = PostMessage(new_id("msg", self.clock()), by, f"message {next(_numbers)}", internal)
        await self.registries[registry].ask(PROJECT, conversation, command)
        found = seen(self.store, lambda reader: reader.owned_messages(PROJECT.rowid, [command.message_id]))
        return Said(command.message_id, conversation, found[0].message.created_at)

    async def split(
        self, conversation: str, messages: Sequence[Said | str], registry: int = 0, title: str | None = None
    ) -> str:
        """Split messages off; return the id of the new conversation."""
        splits = ConversationSplits(
            self.store, self.registries[registry], self.clock, PROJECT, _AGENT, UNKNOWN_ORIGIN
        )
        ids = tuple(each if isinstance(each, str) else each.id for each in messages)
        receipt = await splits.split(conversation, SplitRequest(new_id("cnv", self.clock()), ids, title))
        return receipt.after.id

    def merges(self, registry: int = 0) -> ConversationMerges:
        """Return the merges by way of a registry."""
        return ConversationMerges(
            self.store, self.registries[registry], self.clock, PROJECT, _AGENT, UNKNOWN_ORIGIN
        )

    async def ask(self, conversation: str, command: Any) -> Any:
        """Have a conversation carry out a command."""
        return await self.registries[0].ask(PROJECT, conversation, command, None, _AGENT)

    def state(self, conversation: str) -> Conversation:
        """Return the stored state."""
        found = seen(self.store, lambda reader: reader.conversation(PROJECT.rowid, conversation))
        assert found is not None
        return found[0]

    def thread(self, conversation: str, *, internal: bool = True) -> list[str]:
        """Return the ids of the messages of a thread, read two at a time and checked against the reverse order."""
        state = self.state(conversation)
        found = self._pages(state, internal=internal, newest_first=False)
        assert found == self._pages(state, internal=internal, newest_first=True)[::-1]
        return found

    def _pages(self, state: Conversation, *, internal: bool, newest_first: bool) -> list[str]:
        found = list[str]()
        while True:
            last = found[-1] if found else None
            after, before = (None, last) if newest_first else (last, None)
            wanted = ThreadQuery(internal, after, before, newest_first, 2)
            page = seen(self.store, partial(read_thread, state=state, wanted=wanted))
            found += [each.message.id for _, each in page]
            if len(page) < 2:
                return found


@asynccontextmanager
async def scene(store: InlineStore, nodes: int = 1) -> AsyncIterator[Scene]:
    """Open a conversation without a message."""
    clock = HandClock()
    with trio.fail_after(HANG_TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            bus = NoBus() if nodes == 2 else None
            registries = [
                ActorRegistry(nursery, store, clock, mailbox=256, idle_s=60, live=100, bus=bus)
                for _ in range(nodes)
            ]
            found = Scene(store, clock, *registries)
            found.one = (await registries[0].create(PROJECT, create())).after.id
            yield found
            nursery.cancel_scope.cancel()


async def test_split_shows_messages_in_both_and_moves_none(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        first, second, note = (
            await at.say(at.one),
            await at.say(at.one),
            await at.say(at.one, "agent", internal=True),
        )
        before = at.state(at.one)
        new = await at.split(at.one, [second, note], title="My address")
        own = await at.say(new, "agent")
        later = await at.say(at.one)
        assert at.thread(new) == [second.id, note.id, own.id]
        assert at.thread(new, internal=False) == [second.id, own.id]
        assert at.thread(at.one) == [first.id, second.id, note.id, later.id]
        source, started = at.state(at.one), at.state(new)
        assert (source.split_into, started.split_from, started.title) == ((new,), at.one, "My address")
        assert (source.messages, started.messages) == (before.messages + 1, 1)
        assert broken(inline_store) == []
        for each in (at.one, new):
            assert sequences(inline_store, each) == list(range(1, at.state(each).sequence + 1))


async def test_split_conversation_no_longer_expires_as_one_with_a_bot_alone(
    inline_store: InlineStore,
) -> None:
    async with scene(inline_store) as at:
        asked = await at.say(at.one)
        assert not at.state(at.one).human
        new = await at.split(at.one, [asked])
        assert (at.state(at.one).human, at.state(new).human) == (True, True)


async def test_new_conversation_takes_over_assignee_tags_and_channel(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        asked = await at.say(at.one)
        await at.ask(at.one, Assign(Assignee("team", "team_1", "Billing")))
        await at.ask(at.one, Patch({"tags": ("late", "vip"), "title": "Where is it?"}))
        await at.ask(at.one, Close("agent"))
        new = at.state(await at.split(at.one, [asked]))
        source = at.state(at.one)
        assert (new.assignee, new.team_id, new.tags) == (source.assignee, "team_1", source.tags)
        assert (new.status, new.visible, new.human, new.run, new.title) == ("OPEN", True, True, None, None)
        assert (source.status, source.waiting_since) == ("CLOSED", None)
        assert broken(inline_store) == []


async def test_each_conversation_waits_for_its_own_questions(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        first, second, third = [await at.say(at.one) for _ in range(3)]
        new = await at.split(at.one, [first, third])
        assert (at.state(at.one).waiting_since, at.state(new).waiting_since) == (second.at, first.at)
        rest = await at.split(at.one, [second])
        assert (at.state(at.one).waiting_since, at.state(rest).waiting_since) == (None, second.at)
        assert broken(inline_store) == []


async def test_answer_among_the_messages_ends_the_wait_of_those_before(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        asked, answer = await at.say(at.one), await at.say(at.one, "agent")
        again, note = await at.say(at.one), await at.say(at.one, "agent", internal=True)
        assert at.state(await at.split(at.one, [asked, answer])).waiting_since is None
        assert at.state(at.one).waiting_since == again.at
        assert at.state(await at.split(at.one, [again, note])).waiting_since == again.at
        assert at.state(at.one).waiting_since is None


async def test_mark_of_no_answer_follows_the_messages_that_stay(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        first, second = await at.say(at.one), await at.say(at.one)
        await at.ask(at.one, MarkNoAnswerNeeded(1))
        new = await at.split(at.one, [first])
        assert at.state(new).waiting_since == first.at
        assert at.state(at.one).no_answer_needed_since == second.at
        await at.ask(at.one, WaitAgain())
        assert at.state(at.one).waiting_since == second.at
        assert broken(inline_store) == []


async def test_states_that_allow_no_split_are_refused(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        asked, note = await at.say(at.one), await at.say(at.one, "agent", internal=True)
        other = (await at.registries[0].create(PROJECT, create())).after.id
        foreign = await at.say(other)
        hidden = (await at.registries[0].create(PROJECT, replace(create(), visible=False))).after.id
        unseen = await at.say(hidden, "agent")
        with pytest.raises(Invalid) as refused:
            await at.split(at.one, ["msg_0", asked, foreign])
        pointers = [(each.pointer, each.code) for each in refused.value.problems]
        assert pointers == [("/messageIds/0", "unknown"), ("/messageIds/2", "unknown")]
        with pytest.raises(Invalid) as refused:
            await at.split(at.one, [note])
        assert [each.code for each in refused.value.problems] == ["no_public_message"]
        with pytest.raises(Conflict) as conflict:
            await at.split(hidden, [unseen])
        assert conflict.value.reason == "conversation_hidden"
        new = await at.split(at.one, [asked])
        with pytest.raises(MessageSplit) as split:
            await at.split(at.one, [asked])
        assert split.value.shown == {"splitInto": new}
        with pytest.raises(Invalid):
            await at.split(new, [asked])
        await at.merges().merge(other, at.one)
        with pytest.raises(Conflict) as conflict:
            await at.split(other, [foreign])
        assert conflict.value.reason == "conversation_merged"
        with pytest.raises(NotFound):
            await at.split(new_id("cnv", NOON), [asked])
        assert at.state(at.one).split_into == (new,)
        assert broken(inline_store) == []


async def test_number_of_splits_is_bounded(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        messages = [await at.say(at.one) for _ in range(SPLITS_MAX + 1)]
        for each in messages[:-1]:
            await at.split(at.one, [each])
        with pytest.raises(Conflict) as refused:
            await at.split(at.one, messages[-1:])
        assert refused.value.reason == "split_limit_reached"
        assert len(at.state(at.one).split_into) == SPLITS_MAX


async def test_merging_the_new_one_undoes_the_split(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        first, second = await at.say(at.one), await at.say(at.one)
        new = await at.split(at.one, [second])
        own = await at.say(new)
        await at.merges().merge(new, at.one)
        assert at.thread(at.one) == [first.id, second.id, own.id]
        assert at.state(at.one).waiting_since == first.at
        again = await at.split(at.one, [second])  # the first split was undone
        assert at.thread(again) == [second.id]
        await at.merges().unmerge(new)
        assert (at.thread(new), at.thread(at.one)) == ([own.id], [first.id, second.id])
        assert broken(inline_store) == []


async def test_merging_the_old_one_into_the_new_one_shows_each_message_once(
    inline_store: InlineStore,
) -> None:
    async with scene(inline_store) as at:
        first, second = await at.say(at.one), await at.say(at.one)
        new = await at.split(at.one, [second])
        own = await at.say(new)
        await at.merges().merge(at.one, new)
        assert at.thread(new) == [first.id, second.id, own.id]
        assert broken(inline_store) == []
        await at.merges().unmerge(at.one)
        assert (at.thread(new), at.thread(at.one)) == ([second.id, own.id], [first.id, second.id])
        assert broken(inline_store) == []


async def test_merge_of_the_old_one_elsewhere_leaves_the_new_one_its_messages(
    inline_store: InlineStore,
) -> None:
    async with scene(inline_store) as at:
        first, second = await at.say(at.one), await at.say(at.one)
        new = await at.split(at.one, [second])
        other = (await at.registries[0].create(PROJECT, create())).after.id
        await at.merges().merge(at.one, other)
        assert (at.thread(new), at.thread(other)) == ([second.id], [first.id, second.id])
        await at.merges().merge(new, other)
        assert at.thread(other) == [first.id, second.id]
        await at.ask(other, Delete("manual"))
        for each in (at.one, new, other):
            with pytest.raises(NotFound):
                await at.ask(each, Patch({"title": "x"}))
        assert broken(inline_store) == []


async def test_deletion_of_the_old_one_leaves_the_new_one_its_own_messages(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        first = await at.say(at.one)
        new, other = await at.split(at.one, [first]), await at.registries[0].create(PROJECT, create())
        own = await at.say(new)
        assert at.state(new).waiting_since == first.at
        await at.merges().merge(new, other.after.id)
        await at.ask(at.one, Delete("manual"))
        assert (at.state(new).split_from, at.thread(new)) == (None, [own.id])
        assert at.state(other.after.id).waiting_since == own.at
        assert broken(inline_store) == []


async def test_deletion_of_the_new_one_leaves_the_messages_where_they_are(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        first = await at.say(at.one)
        new = await at.split(at.one, [first])
        await at.ask(new, Delete("gdpr"))
        assert (at.state(at.one).split_into, at.thread(at.one)) == ((), [first.id])
        again = await at.split(at.one, [first])
        assert at.thread(again) == [first.id]
        assert broken(inline_store) == []


async def test_redacted_and_deleted_messages_are_so_in_both(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        first, second, third = [await at.say(at.one) for _ in range(3)]
        await at.ask(at.one, DeleteMessage(first.id, internal=True))
        new = await at.split(at.one, [first, second, third])
        await at.ask(at.one, RedactMessage(second.id, internal=True, text=True))
        await at.ask(at.one, DeleteMessage(third.id, internal=True))
        state, wanted = at.state(new), ThreadQuery(True, None, None, False, 10)
        shown = seen(inline_store, lambda reader: read_thread(reader, state, wanted))
        assert [(each.message.id, each.message.text) for _, each in shown] == [(second.id, "")]
        alone = await at.say(at.one)
        await at.ask(at.one, DeleteMessage(alone.id, internal=True))
        with pytest.raises(Invalid):
            await at.split(at.one, [alone])


async def test_mark_in_the_new_one_is_one_in_the_old_one_at_a_message_that_it_shows(
    inline_store: InlineStore,
) -> None:
    async with scene(inline_store) as at:
        first = await at.say(at.one)
        await at.say(at.one, "agent")
        new = await at.split(at.one, [first])
        own = await at.say(new, "agent")

        def marks(message: Said | None) -> dict[str, int | None]:
            named = {"reached": None, "seen": None if message is None else message.id}
            found = seen(inline_store, lambda reader: marks_in_thread(reader, at.state(new), named))
            return {each.state.id: each.seen for each in found}

        assert marks(first) == {new: None, at.one: 0}
        assert marks(own) == {new: 0, at.one: 0}
        assert marks(None) == {new: None}


async def test_two_nodes_split_a_message_once(inline_store: InlineStore) -> None:
    async with scene(inline_store, nodes=2) as at:
        asked = await at.say(at.one)
        outcomes = list[Any]()

        async def split(registry: int) -> None:
            try:
                outcomes.append(await at.split(at.one, [asked], registry))
            except DomainError as refusal:
                outcomes.append(refusal)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(split, 0)
            nursery.start_soon(split, 1)
        (won,) = [each for each in outcomes if isinstance(each, str)]
        (lost,) = [each for each in outcomes if isinstance(each, MessageSplit)]
        assert lost.shown == {"splitInto": won}
        assert at.state(at.one).split_into == (won,)
        assert broken(inline_store) == []


class Model:
    """The messages that each thread should show."""

    def __init__(self) -> None:
        self.messages = dict[str, str]()  # the conversation of each, in the order in which they were written
        self.shown = dict[str, str]()  # the other conversation that shows it
        self.public = set[str]()
        self.into = dict[str, str]()  # of each merged conversation
        self.live = list[str]()

    def members(self, conversation: str) -> set[str]:
        """Return the conversation and those merged into it."""
        return {conversation, *(each for each, into in self.into.items() if into == conversation)}

    def thread(self, conversation: str) -> list[str]:
        """Return the messages of a thread."""
        members = self.members(conversation)
        return [each for each, own in self.messages.items() if members & {own, self.shown.get(each)}]

    def may_split(self, conversation: str, messages: Sequence[str]) -> bool:
        """Return whether the messages can be split off."""
        members = self.members(conversation)
        free = all(self.shown.get(each) in (None, *members) for each in messages)
        return conversation not in self.into and free and bool(self.public & {*messages})

    def delete(self, conversation: str) -> None:
        """Delete a conversation, and those merged into it."""
        gone = self.members(conversation)
        self.live = [each for each in self.live if each not in gone]
        self.messages = {each: own for each, own in self.messages.items() if own not in gone}
        self.shown = {each: into for each, into in self.shown.items() if into not in gone}
        self.into = {each: into for each, into in self.into.items() if each not in gone}


@pytest.mark.parametrize("seed", range(12))
async def test_threads_are_those_of_the_model_whatever_is_split_merged_and_deleted(
    inline_store: InlineStore, seed: int
) -> None:
    dice, model = Random(seed), Model()  # a repeatable test
    async with scene(inline_store) as at:
        model.live = [at.one, (await at.registries[0].create(PROJECT, create())).after.id]
        for _ in range(60):
            await _step(at, model, dice)
            assert broken(inline_store) == []
            for each in model.live:
                assert at.thread(each) == model.thread(each)
                assert at.state(each).merged_into == model.into.get(each)
        for each in model.live:
            assert sequences(inline_store, each) == list(range(1, at.state(each).sequence + 1))


async def _step(at: Scene, model: Model, dice: Random) -> None:
    """Carry out a random change in the store and in the model."""
    one = dice.choice(model.live)
    what = dice.choice(["say"] * 5 + ["split"] * 4 + ["merge"] * 2 + ["unmerge", "delete"])
    if what == "say" and one not in model.into:
        author: AuthorType = dice.choice(("contact", "agent"))
        internal = author == "agent" and dice.random() < 0.5
        said = await at.say(one, author, internal=internal)
        model.messages[said.id] = one
        model.public |= set() if internal else {said.id}
    elif what == "split":
        own = [each for each, conversation in model.messages.items() if conversation == one]
        chosen = dice.sample(own, min(len(own), dice.randint(1, 4)))
        try:
            new = await at.split(one, chosen)
        except (Conflict, Invalid) as refused:
            full = getattr(refused, "reason", "") == "split_limit_reached"
            assert full or not model.may_split(one, chosen)
        else:
            assert model.may_split(one, chosen)
            model.live.append(new)
            model.shown.update(dict.fromkeys(chosen, new))
    elif what == "merge" and len(model.live) > 1:
        other = dice.choice([each for each in model.live if each != one])
        try:
            await at.merges().merge(one, other)
        except Conflict:
            assert one in model.into or other in model.into or len(model.members(one)) > 1
        else:
            model.into[one] = other
    elif what == "unmerge":
        await at.merges().unmerge(one)
        model.into.pop(one, None)
    elif what == "delete" and len(model.live) > 3:
        await at.ask(one, Delete("manual"))
        model.delete(one)
