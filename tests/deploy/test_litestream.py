"""Litestream beside a service: a restore from its replica, and an erasure that waits for it (docs/guide/backup.md)."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import trio

from tests.deploy.tools import program
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT
from tests.support.sockets.server_process import LOOK_S, Server, environment

CONFIG: Final = ROOT / "docs/deploy/litestream.yml"
DATABASE: Final = "deskwire.sqlite3"
STARTED: Final = "replicating to"
PENDING: Final = "deskwire_storage_scrub_pending"


def configured(folder: Path) -> Path:
    """Write our configuration file, with this test's database and a folder in place of the bucket; return its path."""
    text = CONFIG.read_text().replace("/var/lib/deskwire", str(folder / "data"))
    path = folder / "litestream.yml"
    text = text.replace("s3://bucket.example/deskwire", f"file://{folder}/replica")
    path.write_text(f"{text}\nsocket:\n  enabled: true\n  path: {folder}/litestream.sock\n")
    return path


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            if holds():
                return
            await trio.sleep(LOOK_S)  # poll: there is no notification


def litestream() -> str:
    """Return the path of the program."""
    found = program("litestream")
    assert found is not None
    return found


@asynccontextmanager
async def replicating(config: Path) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Run Litestream within the block; yield a function that waits until the replica has everything."""
    log, socket = config.with_suffix(".log"), config.with_suffix(".sock")
    with log.open("a") as output:
        before = log.read_text().count(STARTED)
        process = await trio.lowlevel.open_process(
            [litestream(), "replicate", "-config", str(config)], stdout=output, stderr=output
        )

        async def replicated() -> None:
            command = [litestream(), "sync", "-wait", "-socket", str(socket)]
            await trio.run_process([*command, str(config.parent / "data" / DATABASE)], capture_stdout=True)

        try:
            await until(lambda: log.read_text().count(STARTED) > before and socket.exists())
            yield replicated
        finally:
            process.send_signal(signal.SIGTERM)
            with trio.CancelScope(shield=True, deadline=trio.current_time() + HANG_TIMEOUT_S):
                await process.wait()


async def run(*command: str) -> str:
    """Run a command of the program; return its output. Raises CalledProcessError if it fails."""
    words = [sys.executable, "-m", "deskwire", *command]
    done = await trio.run_process(words, env={**environment()}, capture_stdout=True)
    return done.stdout.decode()


def pending(url: str) -> bool:
    """Return whether traces of erased data may still be in the database's files."""
    lines = httpx.get(f"{url}/metrics", trust_env=False).text.splitlines()
    return [line for line in lines if line.startswith(f"{PENDING} ")] == [f"{PENDING} 1.0"]


async def test_replica_restores_everything_and_erasure_waits_for_litestream(
    tmp_path: Path,
) -> None:
    config = configured(tmp_path)
    server = Server(tmp_path, environ={"DESKWIRE_ARGON2_MEMORY_KIB": "8192"})
    await server.start()
    key = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
    async with httpx.AsyncClient(
        base_url=server.url, headers=key, trust_env=False, timeout=HANG_TIMEOUT_S
    ) as http:

        async def says(user: str, text: str) -> None:
            body = {"contact": {"userId": user}, "message": {"text": text}}
            (await http.post("/v3/s2s/conversations", json=body)).raise_for_status()

        async with replicating(config) as replicated:
            for number in range(100):
                await says(f"u{number % 10}", f"before {number}")
            (await http.delete("/v3/s2s/contacts/u3")).raise_for_status()
            assert pending(server.url)
            await replicated()
        await until(lambda: not pending(server.url))
        async with replicating(config) as replicated:
            await says("u1", "the last words")
            await replicated()
            await server.kill()

    found = tmp_path / "found"
    found.mkdir()
    command = [litestream(), "restore", "-config", str(config), "-o", str(found / DATABASE)]
    await trio.run_process([*command, str(tmp_path / "data" / DATABASE)], capture_stderr=True)
    shutil.copy(tmp_path / "data/secret", found / "secret")
    assert "no problems" in await run("check", "--data", str(found))
    await run("backup", str(tmp_path / "found.tar"), "--data", str(found), "--with-secret")
    await run("restore", str(tmp_path / "found.tar"), "--data", str(tmp_path / "again/data"))

    again = Server(tmp_path / "again")
    await again.start()
    async with httpx.AsyncClient(
        base_url=again.url, headers=key, trust_env=False, timeout=HANG_TIMEOUT_S
    ) as http:
        found_again = (await http.get("/v3/s2s/conversations?limit=100")).json()["items"]
        assert len(found_again) == 91
        assert not [each for each in found_again if each["contact"]["userId"] == "u3"]
        newest = (await http.get("/v3/s2s/contacts/u1/conversations")).json()["items"]
        assert len(newest) == 11
    assert await again.stop() == 0
