"""Ids of clients: a repeated message or conversation is stored once, and answered with the stored one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire.engine.cluster.cluster import NoBus
from deskwire.engine.conversations.client_ids import ConversationAlreadyStored
from deskwire.engine.conversations.commands import (
    Close,
    ContactRef,
    Create,
    Delete,
    DeleteMessage,
    Move,
    PostMessage,
    RedactMessage,
)
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.conversations.conversation import Author
from deskwire.engine.core.errors import AnswerErased, IdempotencyMismatch
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.upload import Attachment
from tests.engine.conversations.acting import ask_into, open_directory, sequences
from tests.support.builders import NOON, PROJECT, InlineStore, Running, create, post, running

CLIENT_ID = "0b9df5a2-6d1c-4f0e-9a55-0f0b6a2f4a10"


def from_client(text: str = "Hello", client_id: str = CLIENT_ID) -> PostMessage:
    """Return a message of the contact with a client id, and with a new id of its own."""
    return PostMessage(new_id("msg", NOON), Author("contact"), text, client_id=client_id)


def by_client(client_id: str = "thread-1", user_id: str = "user-1", text: str = "Hello") -> Create:
    """Return a conversation with a client id, whose first message has one, too."""
    return replace(create(user_id, message=from_client(text)), client_id=client_id)


async def texts(service: Running, conversation_id: str) -> list[str]:
    """Return the texts of the customer-visible messages, in order."""

    def read(reader: Any) -> list[str]:
        state, _ = reader.conversation(PROJECT.rowid, conversation_id)
        return [message.text for message in reader.messages(state.rowid, internal=False)]

    found: list[str] = await service.store.read(read)
    return found


async def test_repeated_message_is_answered_with_the_stored_one(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        command = create()
        await service.directory.create(PROJECT, command)
        first = await service.directory.ask(PROJECT, command.conversation_id, from_client())
        again = await service.directory.ask(PROJECT, command.conversation_id, from_client())
        assert (first.replayed, again.replayed) == (False, True)
        assert again.message == first.message
        assert again.message is not None
        assert again.message["clientId"] == CLIENT_ID
        assert again.after.sequence == first.after.sequence
        assert await texts(service, command.conversation_id) == ["Hello"]


async def test_messages_that_arrive_together_under_one_client_id_are_stored_once(tmp_path: Path) -> None:
    """The others among them are stored, in order, although they were decided on a state that never was."""
    async with running(tmp_path) as service:
        command = create()
        await service.directory.create(PROJECT, command)
        answers: list[Any] = []
        async with trio.open_nursery() as nursery:
            for number in range(12):
                each = from_client() if number % 3 == 0 else post("agent", f"no {number}")
                nursery.start_soon(
                    ask_into,
                    answers,
                    lambda each=each: service.directory.ask(PROJECT, command.conversation_id, each),
                )
        assert sorted(answer.replayed for answer in answers) == [False] * 9 + [True] * 3
        stored = await texts(service, command.conversation_id)
        assert stored.count("Hello") == 1
        assert len(stored) == 9
        after = await service.directory.ask(PROJECT, command.conversation_id, post())
        assert (after.after.messages, after.after.sequence) == (10, 11)


async def test_client_id_with_another_text_is_refused(tmp_path: Path) -> None:
    file = Attachment("upl_01KZ00000000000000000000VP", "a.png", "image/png", 3)
    async with running(tmp_path) as service:
        command = create()
        await service.directory.create(PROJECT, command)
        await service.directory.ask(PROJECT, command.conversation_id, from_client())
        for other in (from_client("Hello!"), replace(from_client(), attachments=(file,))):
            with pytest.raises(IdempotencyMismatch):
                await service.directory.ask(PROJECT, command.conversation_id, other)
        assert await texts(service, command.conversation_id) == ["Hello"]


async def test_client_id_survives_redaction_deletion_closing_and_a_move(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        command = create()
        await service.directory.create(PROJECT, command)
        ask = service.directory.ask
        first = await ask(PROJECT, command.conversation_id, from_client())
        assert first.message is not None
        message = first.message["id"]
        await ask(PROJECT, command.conversation_id, Close("agent"))
        again = await ask(PROJECT, command.conversation_id, from_client())
        assert again.after.status == "CLOSED", "a repeated message reopens nothing"

        other = await service.store.write(lambda tx: put_contact(tx, PROJECT, ContactRef("other", {}), NOON))
        await ask(PROJECT, command.conversation_id, Move(first.contact.rowid, other.rowid))
        again = await ask(PROJECT, command.conversation_id, from_client())
        assert again.message is not None
        assert again.message["id"] == message

        await ask(PROJECT, command.conversation_id, RedactMessage(message, internal=False, text=True))
        again = await ask(PROJECT, command.conversation_id, from_client())
        assert again.message is not None
        assert (again.message["id"], again.message["text"]) == (message, "")

        await ask(PROJECT, command.conversation_id, DeleteMessage(message, internal=False))
        with pytest.raises(AnswerErased):
            await ask(PROJECT, command.conversation_id, from_client())
        assert await texts(service, command.conversation_id) == []


async def test_client_id_is_unique_in_its_conversation_only(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        one, other = create(), create()
        for command in (one, other):
            await service.directory.create(PROJECT, command)
            receipt = await service.directory.ask(PROJECT, command.conversation_id, from_client())
            assert not receipt.replayed


async def test_another_node_stores_a_message_once(inline_store: InlineStore) -> None:
    """Each node has the state in memory, and the first node's is out of date."""
    async with (
        open_directory(inline_store, bus=NoBus()) as one,
        open_directory(inline_store, bus=NoBus()) as other,
    ):
        command = create()
        await one.create(PROJECT, command)
        await other.ask(PROJECT, command.conversation_id, post())
        first = await other.ask(PROJECT, command.conversation_id, from_client())
        again = await one.ask(PROJECT, command.conversation_id, from_client())
        assert again.replayed
        assert again.message == first.message
        assert sequences(inline_store, command.conversation_id) == [1, 2, 3]


async def test_repeated_conversation_is_refused_with_the_stored_one(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        command = by_client()
        receipt = await service.directory.create(PROJECT, command)
        assert receipt.conversation["clientId"] == "thread-1"
        with pytest.raises(ConversationAlreadyStored) as refused:
            await service.directory.create(PROJECT, by_client())
        assert refused.value.conversation_id == command.conversation_id
        await service.directory.create(PROJECT, by_client(user_id="user-2"))
        await service.directory.create(PROJECT, by_client("thread-2"))


async def test_conversations_that_arrive_together_under_one_client_id_are_one(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        answers: list[Any] = []
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(ask_into, answers, lambda: service.directory.create(PROJECT, by_client()))
        refused = [answer for answer in answers if isinstance(answer, ConversationAlreadyStored)]
        made = [answer for answer in answers if not isinstance(answer, Exception)]
        assert len(made) == 1
        assert {answer.conversation_id for answer in refused} == {made[0].after.id}
        assert len(refused) == 7


async def test_client_id_of_a_conversation_moves_with_it(tmp_path: Path) -> None:
    """If the other contact has a conversation with the same client id, that one keeps it."""
    async with running(tmp_path) as service:
        moved, taken, kept = by_client(), by_client("thread-2"), by_client("thread-2", "other")
        for command in (moved, taken, kept):
            receipt = await service.directory.create(PROJECT, command)
        target = receipt.contact
        for command in (moved, taken):
            source = (await service.directory.ask(PROJECT, command.conversation_id, post())).contact
            await service.directory.ask(PROJECT, command.conversation_id, Move(source.rowid, target.rowid))
        for client_id, command in (("thread-1", moved), ("thread-2", kept)):
            with pytest.raises(ConversationAlreadyStored) as refused:
                await service.directory.create(PROJECT, by_client(client_id, "other"))
            assert refused.value.conversation_id == command.conversation_id
        await service.directory.create(PROJECT, by_client())


async def test_client_id_of_a_deleted_conversation_is_free(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        command = by_client()
        await service.directory.create(PROJECT, command)
        await service.directory.ask(PROJECT, command.conversation_id, Delete("manual"))
        receipt = await service.directory.create(PROJECT, by_client())
        assert receipt.after.id != command.conversation_id
