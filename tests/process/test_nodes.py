"""Several nodes of one installation as processes of their own: the start, the operator's orders, and a rolling upgrade (ADR 61)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import trio

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres import fresh_database
from tests.support.sockets.server_process import LOOK_S, Server, environment

NEWER = str(Path(__file__).parent / "newer_program.py")
SECRET = "the secret that all nodes of it have"


@pytest.fixture
def url() -> Iterator[str]:
    """Make an empty database."""
    with fresh_database(migrated=False) as made:
        yield made


def settings(url: str, **others: str) -> dict[str, str]:
    return {
        "DESKWIRE_DATABASE_URL": url,
        "DESKWIRE_SECRET": SECRET,
        "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0",
        **others,
    }


def deskwire(environ: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [sys.executable, "-m", "deskwire", *arguments]
    return subprocess.run(
        command, env={**environment(), **environ}, capture_output=True, text=True, check=False
    )


def node(directory: Path, name: str, url: str, *wrapped: str) -> Server:
    (directory / name).mkdir()
    return Server(directory / name, environ=settings(url, DESKWIRE_NODE=name), wrapped=wrapped)


@asynccontextmanager
async def two_nodes(directory: Path, url: str) -> AsyncIterator[tuple[Server, Server]]:
    """Start two at the same moment on an empty database."""
    first, second = (node(directory, name, url) for name in ("a", "b"))
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.start)
            nursery.start_soon(second.start)
        yield first, second
    finally:
        for each in (first, second):
            await each.stop()


def demo_of(*servers: Server) -> dict[str, Any]:
    """Return the one demo that one of them has made."""
    [made] = [each for each in servers if (each.directory / "data" / "demo.json").exists()]
    return made.demo()


async def test_nodes_that_start_together_make_one_demo_and_see_each_others_changes(
    tmp_path: Path, url: str
) -> None:
    async with two_nodes(tmp_path, url) as (first, second), httpx.AsyncClient(trust_env=False) as http:
        key = {"Authorization": f"Bearer {demo_of(first, second)['serverKey']}"}
        body = {"contact": {"userId": "u1"}, "message": {"text": "Hello"}}
        made = await http.post(f"{first.url}/v3/s2s/conversations", json=body, headers=key)
        assert made.status_code == 200, made.text
        feed = (await http.get(f"{second.url}/v3/s2s/events", headers=key)).json()["items"]
        assert [event["type"] for event in feed] == ["conversation.created", "message.created"]
        rows = await trio.to_thread.run_sync(_rows, url, "SELECT node FROM nodes ORDER BY node")
        assert rows == [("a",), ("b",)]
    assert await trio.to_thread.run_sync(_rows, url, "SELECT node FROM nodes") == []  # released at the stop


def _rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


async def test_revoked_key_is_refused_by_all_nodes_when_the_command_ends(tmp_path: Path, url: str) -> None:
    async with two_nodes(tmp_path, url) as (first, second), httpx.AsyncClient(trust_env=False) as http:
        made = await trio.to_thread.run_sync(deskwire, settings(url), "key", "create", "--label", "x")
        assert made.returncode == 0, made.stderr
        key = {"Authorization": f"Bearer {made.stdout.strip()}"}
        for each in (first, second):
            assert (await http.get(f"{each.url}/v3/s2s/events", headers=key)).status_code == 200
        name = next(word for word in made.stderr.split() if word.startswith("key_"))
        gone = await trio.to_thread.run_sync(deskwire, settings(url), "key", "revoke", name)
        assert gone.returncode == 0, gone.stderr
        for each in (first, second):
            assert (await http.get(f"{each.url}/v3/s2s/events", headers=key)).status_code == 401


async def test_rolling_upgrade_under_load_loses_nothing_and_always_answers(tmp_path: Path, url: str) -> None:
    """The old program is one that knows one migration less; the newer one applies it beside the old."""
    async with two_nodes(tmp_path, url) as (first, second), httpx.AsyncClient(trust_env=False) as http:
        key = {"Authorization": f"Bearer {demo_of(first, second)['serverKey']}"}
        up = [first.url, second.url]
        sent: list[str] = []
        stop = trio.Event()

        async def write(number: int) -> None:
            count = 0
            while not stop.is_set():
                text, count = f"{number}-{count}", count + 1
                body = {"contact": {"userId": text}, "message": {"text": text}}
                with trio.fail_after(HANG_TIMEOUT_S):
                    while not await _took(http, up[count % len(up)], body, {**key, "Idempotency-Key": text}):
                        await trio.sleep(LOOK_S)  # as a balancer does: another node, the same request
                        count += 1
                sent.append(text)

        async with AsyncExitStack() as successors, trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(write, number)
            for old in (first, second):
                up.remove(old.url)
                await old.stop()
                successor = node(tmp_path, f"new-{old.port}", url, sys.executable, NEWER)
                await successor.start()
                up.append(successor.url)
                successors.push_async_callback(successor.stop)  # after the last answer
            await trio.sleep(0.5)  # both new ones take part of the load
            stop.set()
        stored = await trio.to_thread.run_sync(_rows, url, "SELECT text FROM messages")
        assert sorted(text for (text,) in stored) == sorted(sent)
        assert len(sent) > 20
        await first.start()  # the way back is open: the old program runs beside the newer schema
        await first.stop()
    assert ("m9999_newer",) in await trio.to_thread.run_sync(_rows, url, "SELECT name FROM schema_migrations")


async def _took(
    http: httpx.AsyncClient, url: str, body: Mapping[str, Any], headers: Mapping[str, str]
) -> bool:
    try:
        answer = await http.post(f"{url}/v3/s2s/conversations", json=body, headers=headers)
    except httpx.TransportError:
        return False
    assert answer.status_code in {200, 409, 503}, answer.text
    return answer.status_code == 200


def test_another_secret_is_refused_with_a_remedy(tmp_path: Path, url: str) -> None:
    assert deskwire(settings(url), "org", "create", "Acme").returncode == 0
    other = settings(url, DESKWIRE_SECRET="another secret, which is as long as it must")
    for arguments in (("org", "list"), ("serve", "--port", "0", "--data", str(tmp_path))):
        refused = deskwire(other, *arguments)
        assert refused.returncode == 1
        assert "another secret" in refused.stderr
        assert "DESKWIRE_SECRET_PREVIOUS" in refused.stderr
        assert "postgresql://" not in refused.stderr


def test_missing_server_ends_the_start_with_a_sentence_and_no_traceback(tmp_path: Path) -> None:
    environ = settings("postgresql://somebody:hidden@127.0.0.1:9/deskwire")
    refused = deskwire(environ, "serve", "--port", "0", "--data", str(tmp_path))
    assert refused.returncode == 1
    assert "can't be reached" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert "hidden" not in refused.stderr
