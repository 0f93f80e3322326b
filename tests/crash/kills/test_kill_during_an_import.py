"""SIGKILL of the service and of the command during an import: importing the file again stores everything once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from deskwire.program.secret_file import present_secrets
from deskwire.storage.sqlite.check import check
from deskwire.storage.sqlite.database import connect_reader
from deskwire.storage.sqlite.directory import FILE_NAME
from tests.support.api.import_lines import counts, ndjson, threads
from tests.support.sockets.server_process import LOOK_S, Server, environment

pytestmark = pytest.mark.long

CONVERSATIONS, MESSAGES = 40, 150


class Importing:
    """`deskwire import` on a file, over several starts."""

    def __init__(self, server: Server, file: Path) -> None:
        demo = server.demo()
        access = {"DESKWIRE_URL": server.url, "DESKWIRE_KEY": demo["serverKey"]}
        self._command = [sys.executable, "-m", "deskwire", "import", str(file), "--json", "--patience", "60"]
        self._environ = {**environment(), **access}

    async def start(self) -> trio.Process:
        """Start the import from the beginning of the file."""
        return await trio.lowlevel.open_process(
            self._command, env=self._environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )


async def come_in(server: Server, name: str) -> None:
    """Return once the conversation is stored."""
    headers = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
    async with httpx.AsyncClient(base_url=f"{server.url}/v3", headers=headers, trust_env=False) as http:
        with trio.fail_after(60):
            while True:
                answer = await http.get("/s2s/import/conversation", params={"externalId": name})
                if answer.status_code == 200:
                    return
                await trio.sleep(LOOK_S)  # poll: there is no notification


def stored(directory: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the messages of each conversation in order, by their external ids."""
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    with closing(connect_reader(directory / FILE_NAME)) as connection:
        rows = connection.execute(
            "SELECT i.external_id, m.number, m.text, m.author_type, m.created_at FROM messages m "
            "JOIN imported_conversations i ON i.conversation = m.conversation ORDER BY m.rowid"
        )
        for name, *message in rows:
            found[name].append(tuple(message))
    return found


def wanted(records: Sequence[dict[str, Any]]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows that have to be stored for these records."""
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for record in records:
        if record["type"] == "message":
            earlier = found[record["conversation"]]
            number = len(earlier)
            at = 1_709_283_600_000 + number * 1_000
            earlier.append((number, record["text"], record["author"]["type"], at))
    return found


async def test_killed_service_and_command_import_everything_once(
    tmp_path: Path,
) -> None:
    records = threads(CONVERSATIONS, MESSAGES)
    file = tmp_path / "history.ndjson"
    file.write_bytes(ndjson(records))
    server = Server(tmp_path)
    try:
        await server.start()
        importing = Importing(server, file)
        process = await importing.start()
        await come_in(server, "old-5")
        await server.kill()
        await server.start()
        await come_in(server, "old-15")  # the same command has gone on
        process.kill()
        await process.wait()
        process = await importing.start()
        assert process.stdout is not None
        with trio.fail_after(120):
            printed = b"".join([piece async for piece in process.stdout])
            assert await process.wait() == 0
    finally:
        status = await server.stop()
    assert status == 0, server.log()
    totals = json.loads(printed)
    together = {kind: totals["imported"][kind] + totals["existing"][kind] for kind in totals["imported"]}
    assert (together, totals["refused"]) == (counts(CONVERSATIONS, CONVERSATIONS * MESSAGES), 0)
    assert stored(server.directory / "data") == wanted(records)
    data = server.directory / "data"
    assert check(data, present_secrets(data, None), contents=False).problems == []
