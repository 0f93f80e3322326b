"""Two deciders on one store, as two nodes are while the leader changes."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.push import sending
from deskwire.engine.push.planning import PushPlanner
from tests.support.api.pushing import SUBSCRIPTION, signed_in
from tests.support.api.service import running, tapping
from tests.support.sockets.push_service import PushBrowser
from tests.support.stores import beside


async def test_event_is_decided_once_by_two_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_POLL_INTERVAL_S", 1_000_000)
    stores = tapping(monkeypatch)
    async with running(tmp_path) as service, signed_in(service) as (_, http):
        await http.put(SUBSCRIPTION, json=PushBrowser("https://127.0.0.1:8443/push/1").subscription)
        made = [await service.create(f"u{number}", message={"text": "Hi"}) for number in range(12)]
        counts = []

        async def decide() -> None:
            counts.append(await PushPlanner(stores[0], wall_clock).plan_all())

        for _ in range(3):
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(decide)
        assert sum(counts) == len(made)
        with beside(tmp_path) as connection:
            stored = connection.execute("SELECT conversation FROM pushes ORDER BY rowid").fetchall()
        assert sorted(each for (each,) in stored) == sorted(each["id"] for each in made)


async def test_position_of_a_project_without_subscribers_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_POLL_INTERVAL_S", 1_000_000)
    stores = tapping(monkeypatch)
    async with running(tmp_path) as service, signed_in(service) as (_, http):
        planner, its = PushPlanner(stores[0], wall_clock), PushBrowser("https://127.0.0.1:8443/push/1")
        await http.put(SUBSCRIPTION, json=its.subscription)
        assert await planner.plan_all() == 0
        await http.delete(SUBSCRIPTION)
        await service.create(message={"text": "For no one"})
        await planner.forget_idle()
        await http.put(SUBSCRIPTION, json=its.subscription)
        await service.create("u2", message={"text": "For the agent"})
        assert await planner.plan_all() == 1
