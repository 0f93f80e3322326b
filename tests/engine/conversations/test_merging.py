"""Merges of two conversations, and writes to them in the meantime."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from random import Random
from typing import Any

import pytest
import trio

from deskwire.engine.audit.trail import UNKNOWN_ORIGIN
from deskwire.engine.cluster.cluster import NoBus
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import Close, Delete, Patch, PostMessage, Reopen
from deskwire.engine.conversations.conversation import Author, Conversation, ConversationMerged
from deskwire.engine.conversations.threads import ThreadQuery, read_thread
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import Conflict, DomainError, IdempotencyMismatch, Invalid, NotFound
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.merging.conversations import ConversationMerges
from deskwire.storage.check.rules import broken_rules
from tests.engine.conversations.acting import open_directory, sequences
from tests.support.builders import PROJECT, HandClock, InlineStore, create
from tests.support.seeing import seen

_AGENT = Actor("user", "usr_1", "Grace")
_NOW = 1_700_000_000_000
_numbers = count(1)


class Scene:
    """Two conversations of a contact, and one or two registries of actors over their store."""

    def __init__(self, store: InlineStore, *registries: ActorRegistry) -> None:
        self.store = store
        self.registries = registries
        self.clock = HandClock()
        self.one = ""
        self.other = ""

    def merges(self, registry: int = 0) -> ConversationMerges:
        """Return the merges by way of a registry."""
        return ConversationMerges(
            self.store, self.registries[registry], self.clock, PROJECT, _AGENT, UNKNOWN_ORIGIN
        )

    async def say(self, conversation: str, text: str, client_id: str | None = None, registry: int = 0) -> Any:
        """Post a message of the customer."""
        command = PostMessage(new_id("msg", _NOW), Author("contact"), text, client_id=client_id)
        return await self.registries[registry].ask_where_shown(PROJECT, conversation, command)

    def state(self, conversation: str) -> Conversation:
        """Return the stored state."""
        found = seen(self.store, lambda reader: reader.conversation(PROJECT.rowid, conversation))
        assert found is not None
        return found[0]

    def thread(self, conversation: str) -> list[tuple[str, str]]:
        """Return the conversation and the text of each message of a thread."""
        state, wanted = self.state(conversation), ThreadQuery(True, None, None, False, 1_000)
        found = seen(self.store, lambda reader: read_thread(reader, state, wanted))
        return [(own.id, each.message.text) for own, each in found]


@asynccontextmanager
async def scene(store: InlineStore, nodes: int = 1) -> AsyncIterator[Scene]:
    """Open two conversations of a contact, `one` with the message "one", `other` with "other"."""
    bus: dict[str, Any] = {} if nodes == 1 else {"bus": NoBus()}
    async with open_directory(store, **bus) as first, open_directory(store, **bus) as second:
        found = Scene(store, first, second) if nodes == 2 else Scene(store, first)
        found.one, found.other = [
            (await first.create(PROJECT, create())).after.id,
            (await first.create(PROJECT, create())).after.id,
        ]
        yield found


def broken(store: InlineStore) -> list[str]:
    """Return the violations that `deskwire check` would report."""
    found = seen(store, lambda reader: [*broken_rules(reader.conn, reader.dialect)])  # type: ignore[attr-defined]
    return [each.message for each in found]


async def test_a_merge_shows_both_threads_in_one_and_moves_nothing(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        await at.say(at.one, "first")
        await at.say(at.other, "second")
        await at.say(at.one, "third")
        before = at.state(at.one)
        await at.merges().merge(at.one, at.other)
        assert at.thread(at.other)[-3:] == [(at.one, "first"), (at.other, "second"), (at.one, "third")]
        source, target = at.state(at.one), at.state(at.other)
        assert (source.merged_into, source.status, source.messages) == (
            at.other,
            "CLOSED",
            before.messages,
        )
        assert target.merged == (at.one,)
        for each in (at.one, at.other):
            assert sequences(inline_store, each) == list(range(1, at.state(each).sequence + 1))


async def test_a_merge_is_repeated_and_undone_without_effect_twice(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        await at.merges().merge(at.one, at.other)
        states = at.state(at.one), at.state(at.other)
        await at.merges().merge(at.one, at.other)
        assert (at.state(at.one), at.state(at.other)) == states
        await at.merges().unmerge(at.one)
        states = at.state(at.one), at.state(at.other)
        assert states[0].merged_into is None
        assert states[1].merged == ()
        await at.merges().unmerge(at.one)
        assert (at.state(at.one), at.state(at.other)) == states


async def test_an_undo_gives_back_what_the_target_took_over(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        ask = at.registries[0].ask
        await at.say(at.one, "Where is it?")
        await ask(PROJECT, at.one, Patch({"tags": ("late", "vip"), "status": "PENDING"}))
        await ask(PROJECT, at.other, Patch({"tags": ("vip",)}))
        await ask(PROJECT, at.other, Close("agent"))
        before = at.state(at.one), at.state(at.other)
        await at.merges().merge(at.one, at.other)
        merged = at.state(at.other)
        assert (merged.status, merged.waiting_since) == ("OPEN", before[0].waiting_since)
        assert merged.tags == ("late", "vip") or merged.tags == ("vip", "late")
        await at.merges().unmerge(at.one)
        source, target = at.state(at.one), at.state(at.other)
        assert (source.status, source.waiting_since, source.tags) == (
            "PENDING",
            before[0].waiting_since,
            before[0].tags,
        )
        assert (target.status, target.waiting_since, target.tags) == ("CLOSED", None, ("vip",))


async def test_an_undo_keeps_what_was_written_since(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        ask = at.registries[0].ask
        await ask(PROJECT, at.other, Close("agent"))
        await at.say(at.one, "Where is it?")
        await at.merges().merge(at.one, at.other)
        await at.say(at.other, "And one more thing")
        own = at.state(at.other).last_message_at
        await at.merges().unmerge(at.one)
        target = at.state(at.other)
        assert (target.status, target.waiting_since) == ("OPEN", own)
        assert (at.other, "And one more thing") in at.thread(at.other)


async def test_an_answer_in_the_target_ends_the_wait_in_both(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        await at.say(at.one, "Where is it?")
        await at.merges().merge(at.one, at.other)
        reply = PostMessage(new_id("msg", _NOW), Author("agent", "usr_1", "Grace"), "On its way")
        await at.registries[0].ask(PROJECT, at.other, reply)
        await at.merges().unmerge(at.one)
        assert (at.state(at.one).waiting_since, at.state(at.other).waiting_since) == (None, None)
        assert at.state(at.one).status == "OPEN"


async def test_a_merge_is_final_after_thirty_days(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        await at.merges().merge(at.one, at.other)
        at.clock.now += 30 * 86_400_000 + 1
        with pytest.raises(Conflict) as refused:
            await at.merges().unmerge(at.one)
        assert refused.value.reason == "merge_is_final"
        assert at.state(at.one).merged_into == at.other


async def test_the_states_that_do_not_allow_a_merge_are_refused(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        directory, merges = at.registries[0], at.merges()
        third = (await directory.create(PROJECT, create())).after.id
        command = create()
        stranger = replace(command, contact=replace(command.contact, user_id="another"))
        foreign = (await directory.create(PROJECT, stranger)).after.id
        hidden = (await directory.create(PROJECT, replace(create(), visible=False))).after.id
        await merges.merge(at.one, at.other)
        refusals = {
            (at.other, third): "conversation_has_merged",
            (third, at.one): "conversation_merged",
            (at.one, third): "conversation_merged",
            (third, foreign): "different_contacts",
            (third, hidden): "conversation_hidden",
            (hidden, third): "conversation_hidden",
        }
        for (source, target), reason in refusals.items():
            with pytest.raises(Conflict) as refused:
                await merges.merge(source, target)
            assert refused.value.reason == reason
        for unknown in (third, new_id("cnv", _NOW)):
            with pytest.raises(Invalid):
                await merges.merge(third, unknown)
        with pytest.raises(NotFound):
            await merges.merge(new_id("cnv", _NOW), third)


async def test_a_merged_conversation_takes_no_change_of_an_agent(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        await at.merges().merge(at.one, at.other)
        before = at.state(at.one)
        note = PostMessage(new_id("msg", _NOW), Author("agent", "usr_1"), "A note", internal=True)
        for command in (Reopen(), Patch({"title": "New"}), note):
            with pytest.raises(ConversationMerged) as refused:
                await at.registries[0].ask(PROJECT, at.one, command)
            assert refused.value.shown == {"mergedInto": at.other}
        assert at.state(at.one) == before


async def test_a_message_to_a_merged_conversation_is_stored_once_in_the_target(
    inline_store: InlineStore,
) -> None:
    async with scene(inline_store) as at:
        await at.say(at.one, "before", "c1")
        await at.merges().merge(at.one, at.other)
        again = await at.say(at.one, "before", "c1")
        assert (again.replayed, again.message["conversationId"]) == (True, at.one)
        sent = await at.say(at.one, "later", "c2")
        assert (sent.replayed, sent.message["conversationId"]) == (False, at.other)
        again = await at.say(at.one, "later", "c2")
        assert (again.replayed, again.message["id"]) == (True, sent.message["id"])
        await at.merges().unmerge(at.one)
        again = await at.say(at.one, "later", "c2")
        assert (again.replayed, again.message["id"]) == (True, sent.message["id"])
        assert again.message["conversationId"] == at.other
        with pytest.raises(IdempotencyMismatch):
            await at.say(at.one, "another text", "c2")
        assert [text for _, text in (*at.thread(at.one), *at.thread(at.other))].count("later") == 1


async def test_the_deletion_of_the_target_deletes_the_source(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        await at.merges().merge(at.one, at.other)
        await at.registries[0].ask(PROJECT, at.other, Delete("manual"))
        for each in (at.one, at.other):
            with pytest.raises(NotFound):
                await at.registries[0].ask(PROJECT, each, Patch({"title": "x"}))


async def test_the_deletion_of_the_source_leaves_the_target(inline_store: InlineStore) -> None:
    async with scene(inline_store) as at:
        await at.merges().merge(at.one, at.other)
        await at.registries[0].ask(PROJECT, at.one, Delete("gdpr"))
        assert at.state(at.other).merged == ()
        state = at.state(at.other)
        assert sequences(inline_store, at.other) == list(range(1, state.sequence + 1))
        await at.registries[0].ask(PROJECT, at.other, Patch({"title": "still there"}))


async def test_two_nodes_that_merge_in_both_directions_agree(inline_store: InlineStore) -> None:
    async with scene(inline_store, nodes=2) as at:
        outcomes: list[Any] = []

        async def merge(registry: int, source: str, target: str) -> None:
            try:
                outcomes.append(await at.merges(registry).merge(source, target))
            except DomainError as refusal:
                outcomes.append(refusal)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(merge, 0, at.one, at.other)
            nursery.start_soon(merge, 1, at.other, at.one)
        assert sorted(isinstance(each, Conflict) for each in outcomes) == [False, True]
        merged = [each for each in (at.one, at.other) if at.state(each).merged_into is not None]
        assert len(merged) == 1


@pytest.mark.parametrize("seed", range(6))
async def test_each_message_is_in_one_thread_whatever_is_merged_in_the_meantime(
    inline_store: InlineStore, seed: int
) -> None:
    """Customers write to two nodes, and repeat some messages, while the conversations are merged and separated."""
    dice = Random(seed)  # a repeatable test
    async with scene(inline_store, nodes=2) as at:
        pair, sent = (at.one, at.other), list[str]()

        async def write(registry: int) -> None:
            for _ in range(12):
                text, conversation = f"message {next(_numbers)}", dice.choice(pair)
                sent.append(text)
                for _ in range(dice.choice((1, 1, 2))):
                    await at.say(conversation, text, text.replace(" ", "-"), registry)
                    await trio.lowlevel.checkpoint()

        async def merge(registry: int) -> None:
            for _ in range(8):
                source, target = dice.sample(pair, 2)
                try:
                    await at.merges(registry).merge(source, target)
                    await trio.lowlevel.checkpoint()
                    await at.merges(registry).unmerge(source)
                except Conflict:
                    await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            for registry in (0, 1):
                nursery.start_soon(write, registry)
                nursery.start_soon(merge, registry)
        assert broken(inline_store) == []
        for each in pair:
            await at.merges().unmerge(each)
        assert broken(inline_store) == []
        texts = [text for each in pair for _, text in at.thread(each)]
        assert sorted(each for each in texts if each.startswith("message ")) == sorted(sent)
        for each in pair:
            assert sequences(inline_store, each) == list(range(1, at.state(each).sequence + 1))
