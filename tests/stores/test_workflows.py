"""Workflows in the database: their stored state, and the erasure of answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskwire.engine.conversations.automation.lookup import published_workflow
from deskwire.engine.conversations.commands import AnswerStep, Delete, StartWorkflow
from deskwire.engine.core.ids import new_id
from deskwire.engine.ports import Transaction
from deskwire.engine.workflows.workflow import Published, Workflow
from tests.engine.workflows.building import FORM, buttons, workflow
from tests.storage.test_erasure import left_in, mark, scrubbed
from tests.support.builders import NOON, PROJECT, create, running
from tests.support.seeing import seen

ASKING = workflow([FORM, buttons(1, None)])["flows"]


def stored(tx: Transaction) -> Published:
    """Store a workflow that asks twice."""
    made = Workflow(0, new_id("wfl", NOON), PROJECT.rowid, "Asking", "manual", 1, NOON, NOON)
    return published_workflow(tx, PROJECT, tx.insert_workflow(made, ASKING))


@pytest.mark.sqlite
async def test_nothing_of_the_answers_is_left_of_a_deleted_conversation(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        asking = await engine.store.write(stored)
        command = create()
        await engine.directory.create(PROJECT, command)
        for step in (StartWorkflow(asking), AnswerStep(10, {"number": mark("ANSWERED")})):
            receipt = await engine.directory.ask(PROJECT, command.conversation_id, step)
        assert receipt.state is not None
        assert receipt.state.run is not None
        assert receipt.state.run.answers == {"10": {"number": mark("ANSWERED")}}
        assert left_in(tmp_path, ("ANSWERED",)) != []
        await engine.directory.ask(PROJECT, command.conversation_id, Delete("gdpr"))
        await scrubbed(engine)
        assert left_in(tmp_path, ("ANSWERED",)) == []


async def test_where_it_rests_is_read_as_it_was_written(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        asking = await engine.store.write(stored)
        command = create()
        await engine.directory.create(PROJECT, command)
        state = (await engine.directory.ask(PROJECT, command.conversation_id, StartWorkflow(asking))).state
    async with running(tmp_path) as engine:
        found = seen(engine.store, lambda reader: reader.conversation(PROJECT.rowid, command.conversation_id))
        assert found is not None
        assert state is not None
        assert found[0] == state
