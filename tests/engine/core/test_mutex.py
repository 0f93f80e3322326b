"""The lock of connections and seats."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from deskwire.engine.core.tasks.mutex import Mutex


async def test_waiting_tasks_acquire_it_one_by_one_in_order() -> None:
    mutex, came, inside = Mutex(), list[int](), 0

    async def take(number: int) -> None:
        nonlocal inside
        async with mutex:
            inside += 1
            assert inside == 1
            came.append(number)
            await trio.lowlevel.checkpoint()
            inside -= 1

    async with trio.open_nursery() as nursery, mutex:
        for number in range(5):
            nursery.start_soon(take, number)
            await wait_all_tasks_blocked()
        assert came == []
    assert came == [0, 1, 2, 3, 4]
    assert not mutex.held


async def test_cancelled_waiter_does_not_keep_it_from_the_next() -> None:
    mutex, had = Mutex(), list[str]()

    async def take(name: str, scope: trio.CancelScope) -> None:
        with scope:
            async with mutex:
                had.append(name)

    impatient, patient = trio.CancelScope(), trio.CancelScope()
    async with trio.open_nursery() as nursery, mutex:
        nursery.start_soon(take, "impatient", impatient)
        await wait_all_tasks_blocked()
        nursery.start_soon(take, "patient", patient)
        await wait_all_tasks_blocked()
        impatient.cancel()
        await wait_all_tasks_blocked()
        assert mutex.held
    assert had == ["patient"]
    assert not mutex.held


async def test_error_inside_releases_it() -> None:
    mutex = Mutex()
    try:
        async with mutex:
            raise ValueError
    except ValueError:
        pass
    assert not mutex.held
