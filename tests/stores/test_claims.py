"""Claims of conversations: the cached state never differs from the stored one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.errors import Invalid, Problem, StaleState
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from tests.support.builders import PROJECT, Running, create, post, running
from tests.support.seeing import seen


def stored(engine: Running, conversation_id: str) -> tuple[Conversation, Contact]:
    found = seen(engine.store, lambda reader: reader.conversation(PROJECT.rowid, conversation_id))
    assert found is not None
    return found


async def test_message_has_the_contacts_name_at_its_time(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        first, second = create(identity={"name": "Ada"}), create(identity={"name": "Lady Lovelace"})
        names = []
        await engine.directory.create(PROJECT, first)
        for other in (None, second):
            if other is not None:
                await engine.directory.create(PROJECT, other)
            receipt = await engine.directory.ask(PROJECT, first.conversation_id, post("contact"))
            assert receipt.message is not None
            names.append((receipt.message["author"]["name"], receipt.conversation["contact"]["name"]))
    assert names == [("Ada", "Ada"), ("Lady Lovelace", "Lady Lovelace")]


async def test_rolled_back_state_is_not_cached(tmp_path: Path) -> None:
    def taken_back(tx: Transaction) -> None:
        claimed = tx.claim(state)
        tx.save_conversation(state, later, claimed.routed)
        raise Invalid(Problem("/", "no", "No."))

    def claims(tx: Transaction) -> Any:
        with pytest.raises(StaleState):
            tx.claim(later)
        return tx.claim(state).contact

    async with running(tmp_path) as engine:
        command = create()
        await engine.directory.create(PROJECT, command)
        state, contact = stored(engine, command.conversation_id)
        later = replace(state, revision=state.revision + 1, messages=1)
        with pytest.raises(Invalid):
            await engine.store.write(taken_back)
        assert await engine.store.write(claims) == contact


async def test_erased_conversation_is_not_found(tmp_path: Path) -> None:
    def erased(tx: Transaction) -> None:
        tx.claim(state)
        tx.erase_conversation(state)
        with pytest.raises(StaleState, match="found nothing"):
            tx.claim(state)

    async with running(tmp_path) as engine:
        command = create()
        await engine.directory.create(PROJECT, command)
        state, _ = stored(engine, command.conversation_id)
        await engine.store.write(erased)
