"""The mirror of the TypeScript SDK: nothing is missing or left over after crashes, outages and lost positions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.examples.running import Example
from tests.sdk.typescript.jobs_run import Jobs
from tests.support.sockets.server_process import Server


class Desk:
    """The service as the test changes it."""

    def __init__(self, api: httpx.AsyncClient) -> None:
        self._api = api

    async def call(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        """Make a call that succeeds; return the answer."""
        answer = await self._api.request(method, f"/s2s/{path}", json=body or None)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def create(self, user: str, text: str) -> str:
        """Create a conversation with a message; return its id."""
        made = await self.call(
            "POST", "conversations", contact={"userId": user, "name": user}, message={"text": text}
        )
        return str(made["id"])

    async def say(self, conversation: str, text: str) -> str:
        """Add a message; return its id."""
        return str((await self.call("POST", f"conversations/{conversation}/messages", text=text))["id"])


async def shown(example: Example, *messages: str, conversations: list[list[Any]] | None = None) -> None:
    """Wait until the mirror has exactly these messages, and these conversations."""
    wanted = f'"messages":{json.dumps([*messages], separators=(",", ":"))},"started":true'
    found = await example.until(1, '{"conversations"', wanted)
    if conversations is not None:
        assert json.loads(found[-1])["conversations"] == conversations


def change(file: Path, **fields: object) -> None:
    """Replace parts of a mirror's file."""
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


@pytest.fixture
def environ(server: Server) -> dict[str, str]:
    return {"BASE": server.url, "KEY": server.demo()["serverKey"]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mirror.json"


async def test_a_mirror_is_built_and_continues_after_a_crash_and_an_outage(
    jobs: Jobs, server: Server, api: httpx.AsyncClient, environ: dict[str, str], file: Path, tmp_path: Path
) -> None:
    desk = Desk(api)
    first, second = await desk.create("Ada", "a1"), await desk.create("Bob", "b1")
    redacted = await desk.say(first, "secret")
    async with jobs.following("mirror", environ, tmp_path, str(file)) as mirror:
        await shown(mirror, "a1", "b1", "secret", conversations=[["Ada", "OPEN", 3], ["Bob", "OPEN", 2]])
        await desk.say(first, "a2")
        await shown(mirror, "a1", "a2", "b1", "secret")
        await mirror.end()
    await desk.call("DELETE", f"conversations/{first}/messages/{redacted}")
    await desk.call("PATCH", "contacts/Ada", name="Ada Lovelace")
    await desk.call("POST", f"conversations/{first}/close")
    async with jobs.following("mirror", environ, tmp_path, str(file)) as mirror:
        await shown(
            mirror, "a1", "a2", "b1", conversations=[["Ada Lovelace", "CLOSED", 6], ["Bob", "OPEN", 2]]
        )
        await server.kill()
        await server.start()
        await desk.call("DELETE", f"conversations/{second}")
        await shown(mirror, "a1", "a2")
    assert not mirror.with_words("Error")


@pytest.mark.parametrize("position", ["evt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "evt_00000000000000000000000000"])
async def test_an_unknown_position_leads_to_a_new_snapshot(
    jobs: Jobs, api: httpx.AsyncClient, environ: dict[str, str], file: Path, tmp_path: Path, position: str
) -> None:
    desk = Desk(api)
    gone, kept = await desk.create("Ada", "a1"), await desk.create("Bob", "b1")
    async with jobs.following("mirror", environ, tmp_path, str(file)) as mirror:
        await shown(mirror, "a1", "b1")
        await mirror.end()
    change(file, cursor=position)
    await desk.call("DELETE", f"conversations/{gone}")
    await desk.say(kept, "b2")
    async with jobs.following("mirror", environ, tmp_path, str(file)) as mirror:
        await shown(mirror, "b1", "b2", conversations=[["Bob", "OPEN", 3]])
        await desk.say(kept, "b3")
        await shown(mirror, "b1", "b2", "b3")


async def test_a_conversation_with_a_gap_in_its_sequence_is_fetched_whole(
    jobs: Jobs, api: httpx.AsyncClient, environ: dict[str, str], file: Path, tmp_path: Path
) -> None:
    desk = Desk(api)
    conversation = await desk.create("Ada", "a1")
    async with jobs.following("mirror", environ, tmp_path, str(file)) as mirror:
        await shown(mirror, "a1")
        await mirror.end()
    change(file, conversations=[], messages=[])  # lost, but not its position
    await desk.say(conversation, "a2")
    async with jobs.following("mirror", environ, tmp_path, str(file)) as mirror:
        await shown(mirror, "a1", "a2", conversations=[["Ada", "OPEN", 3]])
