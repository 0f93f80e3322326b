"""The guide's mirror, built from nothing and after its events were pruned, during writes."""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import trio

from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S

EXAMPLE = Path(__file__).parents[3] / "docs/examples/mirror.py"


def _example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mirror_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Mirrored:
    """The example on a file of its own, each step in a thread."""

    def __init__(self, service: Service, path: Path) -> None:
        self._args = (service.url, service.demo["serverKey"], str(path))

    async def catch_up(self) -> None:
        """Apply all available events."""
        await trio.to_thread.run_sync(self._catch_up)

    def _catch_up(self) -> None:
        mirror = _example().Mirror(*self._args)
        while mirror.catch_up() != 0:
            pass
        mirror.db.close()

    def content(self) -> dict[str, Any]:
        """The objects of the mirror by their ids."""
        mirror = _example().Mirror(*self._args)
        rows = mirror.db.execute("SELECT id, body FROM conversations UNION ALL SELECT id, body FROM messages")
        found = {key: json.loads(body) for key, body in rows}
        mirror.db.close()
        return found


async def everything(service: Service, living: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the GET responses for all conversations and their messages."""
    found = {}
    for each in living:
        found[each["id"]] = await service.fetch(each)
        page = await service.http.get(f"/s2s/conversations/{each['id']}/messages", params={"limit": 200})
        found.update({message["id"]: message for message in page.json()["items"]})
    return found


REWRITING = ("redact", "unsay", "merge")


class Writers:
    """Writers that change a project in every way that a mirror sees."""

    def __init__(self, service: Service, seed: int) -> None:
        self.service, self.rng = service, random.Random(seed)
        self.living: list[dict[str, Any]] = []

    async def write(self, times: int) -> None:
        """Make this number of changes."""
        for _ in range(times):
            await self._one()

    async def _one(self) -> None:
        service, rng = self.service, self.rng
        user = f"u{rng.randrange(3)}"
        what = rng.choice(
            ("create", "say", "say", "say", "close", "rate", "reveal", "rename", "delete", *REWRITING)
        )
        if what == "create" or not self.living:
            self.living.append(await service.create(user, message={"text": str(rng.random())}))
        elif what == "say":
            await service.say(rng.choice(self.living), str(rng.random()))
        elif what == "close":
            await service.do(rng.choice(self.living), "close")
        elif what == "rate":
            await service.do(rng.choice(self.living), "rating", rating=rng.randint(0, 10))
        elif what == "reveal":
            hidden = await service.create(user, visible=False, message={"text": "first"})
            await service.http.patch(f"/s2s/conversations/{hidden['id']}", json={"visible": True})
            self.living.append(hidden)
        elif what == "rename":
            await service.http.put(f"/s2s/contacts/{user}", json={"name": str(rng.random())})
        elif what in REWRITING:
            await self._rewrite(rng.choice(self.living), what)
        else:
            gone = self.living.pop(rng.randrange(len(self.living)))
            await service.http.delete(f"/s2s/conversations/{gone['id']}")

    async def _rewrite(self, conversation: dict[str, Any], what: str) -> None:
        """Redact or delete a message, or merge the contact into another one."""
        http, path = self.service.http, f"/s2s/conversations/{conversation['id']}/messages"
        if what == "merge":
            user = (await self.service.fetch(conversation))["contact"]["userId"]
            await http.post("/s2s/contacts/merged/merge", json={"from": user})
        elif messages := (await http.get(path)).json()["items"]:
            message = f"{path}/{self.rng.choice(messages)['id']}"
            if what == "redact":
                answer = await http.post(f"{message}/redact", json={"text": True})
            else:
                answer = await http.delete(message)
            assert answer.status_code == 200, answer.text


@asynccontextmanager
async def written_meanwhile(times: int, *writers: Writers) -> AsyncIterator[None]:
    """Write during the block, until its end."""
    async with trio.open_nursery() as nursery:
        for each in writers:
            nursery.start_soon(each.write, times)
        yield


@pytest.mark.parametrize("seed", range(3))
async def test_mirror_built_during_writes_is_complete(service: Service, tmp_path: Path, seed: int) -> None:
    writers, others = Writers(service, seed), Writers(service, 100 + seed)
    await service.http.put("/s2s/contacts/merged", json={"name": "Ada"})
    await writers.write(30)
    mirror = Mirrored(service, tmp_path / "mirror.db")
    async with written_meanwhile(40, writers, others):
        for _ in range(3):
            await mirror.catch_up()
    await mirror.catch_up()
    assert mirror.content() == await everything(service, [*writers.living, *others.living])


async def test_mirror_with_pruned_events_is_rebuilt(tmp_path: Path) -> None:
    async with running(tmp_path / "data", event_window_s=0.0, retention_interval_s=0.05) as service:
        writers = Writers(service, 9)
        await writers.write(20)
        mirror = Mirrored(service, tmp_path / "mirror.db")
        for _ in range(3):
            await mirror.catch_up()
            await writers.write(15)
            await _pruned(service)
        async with written_meanwhile(20, writers):
            await mirror.catch_up()
        await mirror.catch_up()
        assert mirror.content() == await everything(service, writers.living)


async def _pruned(service: Service) -> None:
    """Wait until all present events are pruned."""
    known = {"after": (await service.events())[-1]["id"]}
    for _ in range(3):
        await service.http.put("/s2s/contacts/another", json={"name": str(random.random())})
    with trio.fail_after(HANG_TIMEOUT_S):
        answer = await service.http.get("/s2s/events", params=known)
        while answer.status_code != 410:
            await trio.sleep(0.02)  # poll: there is no notification of retention
            answer = await service.http.get("/s2s/events", params=known)


async def test_stopped_mirror_continues_at_its_position(service: Service, tmp_path: Path) -> None:
    conversation = await service.create(message={"text": "1"})
    mirror = Mirrored(service, tmp_path / "mirror.db")
    await mirror.catch_up()
    await service.say(conversation, "2")
    again = Mirrored(service, tmp_path / "mirror.db")
    await again.catch_up()
    assert again.content() == await everything(service, [conversation])
