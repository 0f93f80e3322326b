"""A slot: one answer for one task."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from deskwire.engine.core.tasks.oneshot import OneShot


@pytest.mark.parametrize("early", [True, False])
async def test_answer_reaches_the_waiting_task(early: bool) -> None:
    slot = OneShot[int | None]()
    taken: list[int | None] = []

    async def take() -> None:
        taken.append(await slot.take())

    async with trio.open_nursery() as nursery:
        if early:
            slot.put(None)
        nursery.start_soon(take)
        await wait_all_tasks_blocked()
        assert taken == ([None] if early else [])
        slot.put(None)
        slot.put(2)  # too late
    assert taken == [None]


async def test_a_refusal_is_raised() -> None:
    slot = OneShot[int]()
    slot.put(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await slot.take()


async def test_answer_after_the_waiter_has_given_up_wakes_no_task() -> None:
    slot = OneShot[int]()
    with trio.CancelScope() as gives_up:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(slot.take)
            await wait_all_tasks_blocked()
            gives_up.cancel()
    slot.put(1)
    assert await slot.take() == 1
