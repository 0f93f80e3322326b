"""A real service whose database file is deleted, replaced or cut under it, and what the operator does (issue 39, finding 6)."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import httpx
import pytest

from deskwire.storage.sqlite.directory import FILE_NAME, RESCUED
from tests.support.sockets.server_process import EndedError, Server, seen


class Desk:
    """A server with one conversation, and the messages that it has acknowledged."""

    def __init__(self, server: Server, http: httpx.AsyncClient, conversation: str) -> None:
        self.server = server
        self.http = http
        self.conversation = conversation
        self.acknowledged: list[str] = []

    async def send(self, text: str) -> httpx.Response:
        """Send a message, and note it if it is acknowledged."""
        answer = await self.http.post(
            f"/v3/s2s/conversations/{self.conversation}/messages", json={"text": text}
        )
        if answer.is_success:
            self.acknowledged.append(text)
        return answer


@asynccontextmanager
async def desk(directory: Path) -> AsyncIterator[Desk]:
    server = Server(directory)
    await server.start()
    try:
        demo = server.demo()
        async with httpx.AsyncClient(
            base_url=server.url, headers={"Authorization": f"Bearer {demo['serverKey']}"}, trust_env=False
        ) as http:
            made = await http.post("/v3/s2s/conversations", json={"contact": {"userId": "ada"}})
            assert made.is_success, made.text
            here = Desk(server, http, made.json()["id"])
            for number in range(20):
                assert (await here.send(f"before {number}")).is_success
            yield here
    finally:
        await server.stop()


def texts(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {text for (text,) in connection.execute("SELECT text FROM messages")}


def deleted(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copyfile(path, copy)
    copy.replace(path)


def cut(path: Path) -> None:
    os.truncate(path, 200_000)


@pytest.mark.parametrize(
    ("change", "reason"), [(deleted, "file_gone"), (replaced, "file_replaced"), (cut, "file_truncated")]
)
async def test_service_stores_nothing_in_a_lost_database_and_reports_it_everywhere(
    tmp_path: Path, change: Callable[[Path], None], reason: str
) -> None:
    async with desk(tmp_path) as here:
        change(tmp_path / "data" / FILE_NAME)
        before = len(here.acknowledged)
        for number in range(20):
            answer = await here.send(f"after {number}")
            assert answer.status_code == 503
            assert answer.json()["code"] == "wrong_database"
            assert answer.headers["Retry-After"]
        assert len(here.acknowledged) == before
        ready = await seen(here.http, here.server.url, 503)
        assert ready.json()["code"] == "wrong_database"
        assert "top the service" in ready.json()["detail"] or "being saved" in ready.json()["detail"]
        metrics = (await here.http.get("/metrics")).text
        assert f'deskwire_database_identity_refused{{reason="{reason}"}} 1' in metrics
        assert "deskwire_ready 0" in metrics
        assert "database.identity_refused" in here.server.log()
        assert (await here.http.get("/healthz")).is_success
    assert "Traceback" not in here.server.log()


async def test_operator_moves_the_saved_database_back_and_nothing_is_missing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with desk(tmp_path) as here:
        (data / FILE_NAME).unlink()
        await here.send("refused")
        await here.server.wait_for_log("database.rescued")
        assert await here.server.stop() == 0
        with pytest.raises(EndedError, match="move it to"):
            await here.server.start()
        (data / RESCUED).rename(data / FILE_NAME)
        await here.server.start()
        assert (await here.send("after the return")).is_success
    assert texts(data / FILE_NAME) >= set(here.acknowledged)
    assert "refused" not in texts(data / FILE_NAME)


async def test_idle_service_notices_the_loss_and_is_ready_when_the_file_returns(
    tmp_path: Path,
) -> None:
    path, away = tmp_path / "data" / FILE_NAME, tmp_path / "away"
    async with desk(tmp_path) as here:
        path.rename(away)
        await seen(here.http, here.server.url, 503)
        away.rename(path)
        await seen(here.http, here.server.url, 200)
        assert (await here.send("after the return")).is_success
        assert not (tmp_path / "data" / RESCUED).exists()
    assert texts(path) >= set(here.acknowledged)


async def test_second_service_on_the_emptied_directory_keeps_the_first_from_writing(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    async with desk(tmp_path) as here:
        for each in list(data.iterdir()):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        other = Server(tmp_path, "--no-demo")
        await other.start()
        try:
            answer = await here.send("to nowhere")
            assert answer.json()["code"] == "wrong_database"
            await here.server.wait_for_log("database.rescued")
        finally:
            await other.stop()
    assert texts(data / RESCUED) >= set(here.acknowledged)
