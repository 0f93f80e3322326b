"""Actors of one conversation on several nodes: each answer is based on the stored state (ADR 60)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from deskwire.engine.cluster.cluster import NoBus
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import (
    Close,
    Command,
    Delete,
    LinkTicket,
    Patch,
    Reopen,
    Reply,
)
from deskwire.engine.core.errors import Conflict, DomainError, NotFound
from tests.engine.conversations.acting import open_directory, sequences
from tests.support.builders import PROJECT, InlineStore, create, post

Nodes = tuple[ActorRegistry, ActorRegistry, str]


@asynccontextmanager
async def nodes(store: InlineStore) -> AsyncIterator[Nodes]:
    """Two nodes, each with an actor that has the present state in memory, and the id of the conversation."""
    async with open_directory(store, bus=NoBus()) as one, open_directory(store, bus=NoBus()) as other:
        command = create()
        await one.create(PROJECT, command)
        await other.ask(PROJECT, command.conversation_id, Patch({}))
        yield one, other, command.conversation_id


CLOSED_HERE = (Close("agent"), Reopen(), Patch({"status": "PENDING"}))
LINKED_HERE = (LinkTicket("tkt_1", True), LinkTicket("tkt_1", False), LinkTicket("tkt_2", True))
SEEN_THERE = (Patch({"title": "Known"}), post(), Reply(post("agent"), 3))


@pytest.mark.parametrize(("before", "meanwhile", "command"), [CLOSED_HERE, LINKED_HERE, SEEN_THERE])
async def test_a_command_that_another_node_has_made_valid_is_not_refused(
    inline_store: InlineStore, before: Command, meanwhile: Command, command: Command
) -> None:
    """This node's actor would refuse the command by its state in memory; another node has committed a change since."""
    async with nodes(inline_store) as (one, other, conversation):
        await one.ask(PROJECT, conversation, before)
        await other.ask(PROJECT, conversation, meanwhile)
        receipt = await one.ask(PROJECT, conversation, command)
        assert sequences(inline_store, conversation) == list(range(1, receipt.after.sequence + 1))


@pytest.mark.parametrize(
    ("meanwhile", "command", "code"),
    [
        (Close("agent"), Patch({"status": "PENDING"}), "conversation_closed"),
        (LinkTicket("tkt_1", True), LinkTicket("tkt_2", True), "conversation_linked"),
        (post(), Reply(post("agent"), 1), "conversation_moved_on"),
    ],
)
async def test_a_command_that_another_node_has_made_invalid_writes_nothing(
    inline_store: InlineStore, meanwhile: Command, command: Command, code: str
) -> None:
    async with nodes(inline_store) as (one, other, conversation):
        receipt = await other.ask(PROJECT, conversation, meanwhile)
        with pytest.raises(Conflict) as refused:
            await one.ask(PROJECT, conversation, command)
        assert refused.value.reason == code
        assert len(sequences(inline_store, conversation)) == receipt.after.sequence


async def test_a_refusal_becomes_not_found_if_another_node_has_deleted(
    inline_store: InlineStore,
) -> None:
    async with nodes(inline_store) as (one, other, conversation):
        await one.ask(PROJECT, conversation, Close("agent"))
        await other.ask(PROJECT, conversation, Delete("manual"))
        for command in (Patch({"status": "PENDING"}), post()):
            with pytest.raises(NotFound):
                await one.ask(PROJECT, conversation, command)


async def test_commands_of_two_nodes_at_once_are_numbered_without_a_hole(inline_store: InlineStore) -> None:
    async with nodes(inline_store) as (one, other, conversation):
        start = (await one.ask(PROJECT, conversation, Patch({}))).after.sequence

        async def talk(node: ActorRegistry) -> None:
            for _ in range(20):
                try:
                    await node.ask(PROJECT, conversation, post())
                except DomainError as refused:
                    raise AssertionError("nothing is refused") from refused

        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk, one)
            nursery.start_soon(talk, other)
        assert sequences(inline_store, conversation) == list(range(1, start + 41))


async def test_a_single_node_refuses_by_the_state_in_memory(inline_store: InlineStore) -> None:
    """No other node changes the conversation, so nothing is read."""
    async with open_directory(inline_store) as alone:
        command = create()
        await alone.create(PROJECT, command)
        await alone.ask(PROJECT, command.conversation_id, Close("agent"))
        inline_store.read_failure = RuntimeError("Nothing is to be read.")
        with pytest.raises(Conflict):
            await alone.ask(PROJECT, command.conversation_id, Patch({"status": "PENDING"}))
