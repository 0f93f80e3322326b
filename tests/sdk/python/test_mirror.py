"""Mirrors are complete after snapshots during writes, stops, losses of events, and restores."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire_sdk import AsyncDeskwire, ConnectionFailed, Deskwire, types
from deskwire_sdk.mirror import AsyncMirror, AsyncSQLiteStore, Mirror, SQLiteStore
from tests.api.events.test_mirror import Writers, _pruned, everything, written_meanwhile
from tests.support.api.service import Service, running

from .conftest import in_thread, under_asyncio


async def content(store: AsyncSQLiteStore) -> dict[str, Any]:
    """Return the objects of a store by their ids."""
    conversations = await store.conversations()
    messages = [each for made in conversations for each in await store.messages(made["id"])]
    stray = store.connection.execute("SELECT count(*) FROM messages").fetchone()[0] - len(messages)
    assert stray == 0
    return {each["id"]: each for each in (*conversations, *messages)}


async def catch_up(client: AsyncDeskwire, path: Path) -> dict[str, Any]:
    """Apply everything with a new mirror on a file, and return its content."""
    with closing(AsyncSQLiteStore(path)) as store:
        await AsyncMirror(client, store).catch_up()
        return await content(store)


async def test_a_mirror_built_during_writes_is_complete(
    service: Service, client: AsyncDeskwire, tmp_path: Path
) -> None:
    writers, others = Writers(service, 1), Writers(service, 101)
    await service.http.put("/s2s/contacts/merged", json={"name": "Ada"})
    await writers.write(30)
    path = tmp_path / "mirror.db"
    async with written_meanwhile(40, writers, others):
        for _ in range(3):
            await catch_up(client, path)
    assert await catch_up(client, path) == await everything(service, [*writers.living, *others.living])


async def test_a_mirror_whose_events_are_no_longer_stored_is_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "mirror.db"
    async with (
        running(tmp_path / "data", event_window_s=0.0, retention_interval_s=0.05) as service,
        AsyncDeskwire(service.demo["serverKey"], base_url=service.url) as client,
    ):
        writers = Writers(service, 9)
        await writers.write(20)
        await catch_up(client, path)
        await writers.write(15)
        await _pruned(service)
        assert await catch_up(client, path) == await everything(service, writers.living)


async def test_a_mirror_follows_a_service_that_was_restored_from_an_older_copy(tmp_path: Path) -> None:
    data, path = tmp_path / "data", tmp_path / "mirror.db"
    async with running(data) as service:
        kept = await service.create("kept", message={"text": "1"})
    shutil.copytree(data, tmp_path / "copy")
    async with (
        running(data) as service,
        AsyncDeskwire(service.demo["serverKey"], base_url=service.url) as client,
    ):
        await service.say(kept, "lost")
        await service.do(kept, "close")
        await service.create("lost", message={"text": "lost"})
        assert len(await catch_up(client, path)) == 5
    async with (
        running(tmp_path / "copy") as service,
        AsyncDeskwire(service.demo["serverKey"], base_url=service.url) as client,
    ):
        assert await catch_up(client, path) == await everything(service, [kept])


class Failing(AsyncSQLiteStore):
    """A store whose process dies at the change of this number."""

    def __init__(self, path: Path, at: int) -> None:
        super().__init__(path)
        self.left = at

    async def put_message(self, message: types.Message) -> None:
        self.left -= 1
        if self.left < 0:
            raise ConnectionFailed("killed")
        await super().put_message(message)


@pytest.mark.parametrize("at", range(6))
async def test_a_mirror_that_was_stopped_anywhere_continues(
    service: Service, client: AsyncDeskwire, tmp_path: Path, at: int
) -> None:
    path, made = tmp_path / "mirror.db", await service.create(message={"text": "0"})
    if at >= 3:  # stopped among events instead of within the snapshot
        await catch_up(client, path)
    for number in range(1, 6):
        await service.say(made, str(number))
    with closing(Failing(path, at % 3)) as store, pytest.raises(ConnectionFailed):
        await AsyncMirror(client, store).catch_up()
    assert await catch_up(client, path) == await everything(service, [made])


async def test_a_running_mirror_has_an_event_within_its_wait(
    service: Service, client: AsyncDeskwire, tmp_path: Path
) -> None:
    with closing(AsyncSQLiteStore(tmp_path / "mirror.db")) as store:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(AsyncMirror(client, store).run)
            made = await service.create(message={"text": "Hello"})
            await eventually(lambda: content(store), await everything(service, [made]))
            nursery.cancel_scope.cancel()


async def eventually(found: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    """Return once something is as wanted."""
    with trio.fail_after(60):
        while True:
            if await found() == wanted:
                return
            await trio.sleep(0.02)  # poll: a store has no notifications


async def test_a_mirror_works_in_threads_and_under_asyncio(
    service: Service, sync_client: Deskwire, tmp_path: Path
) -> None:
    made = await service.create(message={"text": "Hello"})
    wanted = await everything(service, [made])

    def main() -> dict[str, Any]:
        with closing(SQLiteStore(tmp_path / "sync.db")) as store:
            Mirror(sync_client, store).catch_up()
            found = [*store.conversations(), *store.messages(made["id"])]
            return {each["id"]: each for each in found}

    async def asynchronous() -> dict[str, Any]:
        async with AsyncDeskwire(service.demo["serverKey"], base_url=service.url) as client:
            return await catch_up(client, tmp_path / "async.db")

    assert await in_thread(main) == wanted
    assert await under_asyncio(asynchronous) == wanted
