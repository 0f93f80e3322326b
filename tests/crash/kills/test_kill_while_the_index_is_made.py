"""SIGKILL while the search index adds an import, and while it erases: all stored texts are found, and no erased byte is left."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from deskwire.storage.sqlite.search.file import FILE_NAME
from tests.support.api.import_lines import ndjson, threads
from tests.support.api.planted_texts import holding
from tests.support.sockets.server_process import LOOK_S, Server

pytestmark = pytest.mark.long

CONVERSATIONS, KILLS = 200, 2


def agent(server: Server) -> httpx.AsyncClient:
    """Yield a client of the demo's owner."""
    demo = server.demo()
    headers = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
    return httpx.AsyncClient(base_url=f"{server.url}/v3", headers=headers, trust_env=False, timeout=30)


async def bring(server: Server, marks: list[str]) -> None:
    """Import a conversation for each mark, with the mark in its first message."""
    records: list[dict[str, Any]] = list(threads(CONVERSATIONS, 1))
    texts = iter(marks)
    for record in records:
        if record["type"] == "message":
            record["text"] = f"about {next(texts)}"
    headers = {
        "Authorization": f"Bearer {server.demo()['serverKey']}",
        "Content-Type": "application/x-ndjson",
    }
    async with httpx.AsyncClient(
        base_url=f"{server.url}/v3", headers=headers, trust_env=False, timeout=60
    ) as http:
        answer = await http.post("/s2s/import", content=ndjson(records))
        assert answer.status_code == 200, answer.text


async def complete(http: httpx.AsyncClient, q: str) -> list[dict[str, Any]]:
    """Return the conversations that are found once the index is complete."""
    with trio.fail_after(120):
        while True:
            answer = (await http.get("/search", params={"q": q, "limit": "50"})).json()
            if answer["behind"] is None:
                found: list[dict[str, Any]] = answer["conversations"]
                return found
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def forgotten(directory: Path, marks: list[str]) -> None:
    """Return once no file of the data directory has any of the marks."""
    with trio.fail_after(120):
        while holding(directory, *(mark.encode() for mark in marks)):  # noqa: ASYNC110  # files do not notify
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def test_index_is_correct_after_kills_during_indexing_and_erasure(tmp_path: Path) -> None:
    dice = random.Random(1)
    marks = [f"mk{dice.randrange(10**12):012}km" for _ in range(CONVERSATIONS)]
    server = Server(tmp_path)
    try:
        await server.start()
        await bring(server, marks)
        for _ in range(KILLS):
            await server.kill()
            (tmp_path / "data" / FILE_NAME).unlink()
            await server.start()
            await trio.sleep(dice.random() / 10)  # kill at a random moment of the indexing
            await server.kill()
            await server.start()
        async with agent(server) as http:
            for mark in dice.sample(marks, 5):
                (found,) = await complete(http, mark)
                assert mark in found["hits"][0]["text"]
            assert len(await complete(http, "about")) == 50
        for round_ in range(KILLS):
            doomed, marks = marks[:5], marks[5:]
            async with agent(server) as http:
                for mark in doomed:
                    (found,) = await complete(http, mark)
                    path = f"/conversations/{found['conversation']['id']}"
                    assert (await http.delete(path)).status_code == 200
            await trio.sleep(round_ * 0.05)  # kill at various moments of the erasure
            await server.kill()
            await server.start()
            await forgotten(tmp_path / "data", doomed)
        async with agent(server) as http:
            assert (await complete(http, marks[0]))[0]["hits"]
    finally:
        status = await server.stop()
    assert status == 0, server.log()
