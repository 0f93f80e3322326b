"""The inbox that the demo leaves, on real services."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import Server, environment

pytestmark = pytest.mark.long

STOP = "Stop it with Ctrl-C."


@asynccontextmanager
async def desk(*options: str) -> AsyncIterator[Sequence[str]]:
    """Run the command; yield the lines that it has printed once the inbox is there, and interrupt it at the end."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-u", "-m", "deskwire", "demo", "--desk", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    assert process.stdout is not None
    printed = b""
    with trio.fail_after(240):
        while STOP.encode() not in printed:
            more = await process.stdout.receive_some()
            assert more, printed.decode()
            printed += more
        yield printed.decode().splitlines()
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0


@asynccontextmanager
async def signed_in(base_url: str, email: str, password: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of that user in the only project there is."""
    async with httpx.AsyncClient(
        base_url=f"{base_url}/v3", trust_env=False, timeout=HANG_TIMEOUT_S
    ) as client:
        answer = await client.post("/auth/token", json={"email": email, "password": password})
        assert answer.status_code == 200, answer.text
        client.headers["Authorization"] = f"Bearer {answer.json()['token']}"
        client.headers["project"] = (await client.get("/projects")).json()["items"][0]["id"]
        yield client


async def every(client: httpx.AsyncClient, path: str, **params: str) -> list[dict[str, Any]]:
    """All items of a list."""
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = await client.get(path, params={**params, "cursor": cursor, "limit": "200"})
        assert answer.status_code == 200, answer.text
        found += answer.json()["items"]
        cursor = answer.json()["nextCursor"]
    return found


def credentials(printed: Sequence[str]) -> dict[str, str]:
    """The passwords that were printed, by e-mail address."""
    rows = [line.split() for line in printed if "@demo.example" in line]
    return {row[0]: row[1] for row in rows}


async def check_inbox(client: httpx.AsyncClient) -> None:
    """Assert that the inbox has something of everything, with the two chats of the checks."""
    conversations = await every(client, "/conversations", view="agent")
    assert len(conversations) == 154
    assert {each["status"] for each in conversations} == {"OPEN", "PENDING", "CLOSED"}
    for what in ("waitingSince", "snoozedUntil", "assignee", "tags", "ticketId", "networkLogsAt"):
        assert any(each[what] for each in conversations), what
    assert len(await every(client, "/contacts", q="desk-")) == 40
    assert len(await every(client, "/snippets")) == 8
    teams = await every(client, "/teams")
    assert sorted(len(each["members"]) for each in teams) == [1, 2]
    long = next(each for each in conversations if each["messages"] >= 50)
    outcomes = await every(client, f"/conversations/{long['id']}/deliveries")
    assert {each["endpoint"] for each in outcomes} == {"The CRM", "Search index"}
    assert any(each["status"] == "delivered" for each in outcomes)


async def test_the_demo_passes_and_then_leaves_an_inbox_to_look_at() -> None:
    async with desk("--limit", "2") as printed:
        assert any(line.startswith("PASSED: ") for line in printed)
        shown = next(line for line in printed if line.startswith("The desk is at ")).split()[-1]
        base_url = shown.removesuffix("/desk")
        passwords = credentials(printed)
        assert len(passwords) == 4
        for email, password in passwords.items():
            async with signed_in(base_url, email, password) as client:
                assert (await client.get("/users/me")).json()["email"] == email
        async with signed_in(base_url, *next(iter(passwords.items()))) as owner:
            await check_inbox(owner)


async def test_inbox_of_a_running_service_is_filled_once_and_its_endpoints_disabled(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path, "--allow-private-webhooks")
    await server.start()
    try:
        data = tmp_path / "data"
        headers = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
        async with httpx.AsyncClient(base_url=f"{server.url}/v3", headers=headers, trust_env=False) as client:
            async with desk("--data", str(data)) as printed:
                assert "Filling the inbox …" in printed
                states = [each["status"] for each in (await client.get("/s2s/webhooks")).json()["items"]]
                assert states == ["enabled", "enabled"]
            events = len((await client.get("/s2s/events", params={"limit": "200"})).json()["items"])
            endpoints = (await client.get("/s2s/webhooks")).json()["items"]
            assert [each["status"] for each in endpoints] == ["disabled", "disabled"]
            async with desk("--data", str(data)) as printed:
                assert "The inbox was filled before." in printed
            after = (await client.get("/s2s/webhooks")).json()["items"]
            assert [each["id"] for each in after] == [each["id"] for each in endpoints]
            assert len((await client.get("/s2s/events", params={"limit": "200"})).json()["items"]) == events
    finally:
        await server.stop()


@pytest.mark.parametrize(
    "options", [("--data", "."), ("--desk", "--json"), ("--desk", "--url", "http://x", "--key", "sk_1")]
)
async def test_options_that_do_not_fit_a_desk_are_refused(options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "deskwire", "demo", *options]
    done = await trio.run_process(command, capture_stderr=True, check=False, env=environment())
    assert done.returncode == 2
    assert b"--desk" in done.stderr


async def test_a_directory_without_a_demo_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "deskwire", "demo", "--desk", "--data", str(tmp_path)]
    done = await trio.run_process(command, capture_stderr=True, check=False, env=environment())
    assert done.returncode == 1
    assert b"demo.json does not exist" in done.stderr
