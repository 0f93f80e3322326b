"""The pipeline: the state on which a command is decided if a commit ends during its reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import trio
from trio.testing import wait_all_tasks_blocked

from deskwire.engine.conversations.commands import AnswerStep, StartWorkflow
from deskwire.engine.conversations.pipeline import _AFTER, Phase
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Reader
from tests.engine.workflows.building import buttons, workflow
from tests.engine.workflows.test_timers import stored
from tests.support.builders import PROJECT, InlineStore, create

from .acting import Gate, ask_into, open_directory

T = TypeVar("T")


class Looking(InlineStore):
    """A store whose inline reads wait for a gate once it is set, like a store on a network."""

    gate: Gate | None = None

    async def read(self, query: Callable[[Reader], T]) -> T:
        if self.gate is not None and isinstance(query, InlineQuery):
            await self.gate()
        return await super().read(query)


def test_every_phase_has_transitions_and_gone_is_final() -> None:
    assert set(_AFTER) == set(Phase)
    assert set(_AFTER[Phase.GONE]) == {Phase.GONE}


async def test_refusal_is_not_based_on_a_commit_that_failed_during_a_read(
    tmp_path: Path,
) -> None:
    """The first answer advances the workflow, so the second one is for no pending step; then the first one fails."""
    store = Looking(tmp_path)
    async with open_directory(store) as directory:
        _, asking = await stored(store, workflow([buttons(1, None), buttons(2, None)]))
        command = create()
        await directory.create(PROJECT, command)
        await directory.ask(PROJECT, command.conversation_id, StartWorkflow(asking))
        answers: list[Any] = []

        async def answer_the_first_step() -> None:
            step = AnswerStep(1, "b0")
            await ask_into(answers, lambda: directory.ask(PROJECT, command.conversation_id, step))

        async with trio.open_nursery() as askers:
            store.before_write = disk = Gate()
            store.write_failure = Unavailable("disk", code="storage_failed")
            askers.start_soon(answer_the_first_step)
            await wait_all_tasks_blocked()
            store.gate = network = Gate()
            askers.start_soon(answer_the_first_step)
            await wait_all_tasks_blocked()
            assert (disk.waiting, network.waiting) == (1, 1)
            disk.open()
            await wait_all_tasks_blocked()
            network.open()
        refused, moved = answers
        assert refused.reason == "storage_failed"
        assert moved.state.run.step["actionId"] == 2
    store.close()
