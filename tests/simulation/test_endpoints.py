"""Deliveries follow the stored endpoints, regardless of who changes them and whether the caller waits for the answer."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson
import pytest
import trio
from trio.testing import MockClock

from tests.simulation.server import Asked
from tests.simulation.world import World
from tests.support.streaming import SERVER_KEY

pytestmark = pytest.mark.long

_HEADERS = {"Authorization": f"Bearer {SERVER_KEY}", "Content-Type": "application/json"}


def _with_an_endpoint(
    directory: Path, script: Callable[[World, str], Awaitable[None]], rounds: int = 1
) -> list[str]:
    """Return endpoints served differently than stored after a round of the script, which gets the endpoint's path."""
    found: list[str] = []

    async def life() -> None:
        async with trio.open_nursery() as nursery:
            world = World(directory, random.Random(1), nursery)
            world.flaky = False
            await world.start()
            await world.client.register(world.internet.receivers[1].url, [])
            for _ in range(rounds):
                await script(world, f"/s2s/webhooks/{world.client.endpoints[0]}")
                await trio.sleep(5)  # virtual time: the mock clock jumps
                found.extend(world.disagreements())
            nursery.cancel_scope.cancel()

    trio.run(life, clock=MockClock(autojump_threshold=0))
    return found


def _ask(world: World, method: str, path: str, body: dict[str, str]) -> Asked:
    assert world.server is not None
    return world.server.ask(method, f"/v3{path}", _HEADERS, orjson.dumps(body))


async def _leave(world: World, method: str, path: str, body: dict[str, str]) -> None:
    """Request a change, and disconnect while it waits for the disk."""
    assert world.server is not None
    world.server.disk.asked = trio.Event()
    asked = _ask(world, method, path, body)
    await world.server.disk.asked.wait()
    asked.gone.set()


def test_a_change_takes_effect_after_its_caller_disconnected(tmp_path: Path) -> None:
    async def script(world: World, path: str) -> None:
        await _leave(world, "PATCH", path, {"status": "disabled"})

    assert _with_an_endpoint(tmp_path, script) == []


def test_a_removal_takes_effect_after_its_caller_disconnected(tmp_path: Path) -> None:
    async def script(world: World, path: str) -> None:
        await _leave(world, "DELETE", path, {})

    assert _with_an_endpoint(tmp_path, script) == []


def test_the_last_stored_of_concurrent_changes_takes_effect(tmp_path: Path) -> None:
    async def script(world: World, path: str) -> None:
        for number in (1, 2, 3, 4):
            _ask(world, "PATCH", path, {"url": world.internet.receivers[number].url})

    assert _with_an_endpoint(tmp_path, script, rounds=20) == []
