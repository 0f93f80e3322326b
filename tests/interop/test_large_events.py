"""Events of a megabyte, eight times the API's limit, in published clients: complete, once, in order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Transaction
from tests.interop.client import Client, Launch
from tests.interop.stage import Stage, staged
from tests.support.api.service import tapping
from tests.support.stores import AnyStore

pytestmark = pytest.mark.long

SIZE: Final = 1_000_000


@pytest.fixture
async def tapped(
    tmp_path: Path, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Stage, AnyStore]]:
    """Yield a stage and the store of its service."""
    stores = tapping(monkeypatch)
    async with staged(tmp_path, launch) as stage:
        yield stage, stores[0]


@pytest.fixture(params=["pusher_js", "laravel_echo", "pysher"])
def name(request: pytest.FixtureRequest) -> str:
    """Return the name of each client that can be run here."""
    name: str = request.param
    request.getfixturevalue("pysher" if name == "pysher" else "node")
    return name


async def start(stage: Stage, name: str) -> Client:
    if name == "laravel_echo":
        return await stage.laravel_echo("one", "echoHeaders")
    return await (stage.pysher("one") if name == "pysher" else stage.pusher_js("one"))


async def append(stage: Stage, store: AnyStore, *sizes: int) -> list[str]:
    """Commit events with texts of these sizes, all at once; return their envelopes from the feed."""
    before = len(await stage.feed())
    project_id, at = stage.service.demo["projectId"], wall_clock()

    def job(tx: Transaction) -> None:
        project = tx.project(project_id)
        assert project is not None
        for size in sizes:
            tx.append_event(project, EventDraft("message.created", None, {"text": "x" * size}), None, at)

    await store.write(job)
    return (await stage.feed())[before:]


async def test_a_megabyte_arrives_whole_once_and_in_order_also_after_a_cut(
    tapped: tuple[Stage, AnyStore], name: str
) -> None:
    """Decisions 5: every event, in order; confirmed events are not repeated."""
    stage, store = tapped
    client = await start(stage, name)
    sent = await append(stage, store, 10, SIZE, 10, SIZE, SIZE, 10)
    await client.have(sent)
    last = await stage.confirmed()
    stage.proxy.cut()
    sent += await append(stage, store, SIZE, 10, SIZE)
    await client.subscribed(2)
    await client.have(sent)
    assert [len(each) for each in client.events] == [len(each) for each in sent]
    assert client.events == sent
    assert f'"{last}"' in sent[5]
