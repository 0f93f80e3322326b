"""A process without a free file descriptor closes idle connections, serves all others, and loses nothing."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import trio

from tests.crash.shim import missing
from tests.crash.shimmed import made, service
from tests.support.replay.journal import Journal
from tests.support.replay.receiver import Receiver
from tests.support.sockets.admin_socket import operate
from tests.support.sockets.server_process import Server

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing() or "there is a shim")]

LIMIT = 64
LIMITED = ("sh", "-c", f'ulimit -n {LIMIT} && exec "$@"', "sh")
CROWD = 100
FEW = 8
"""Descriptors of the crowd, or of files that the service opens now and then."""
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Beside:
    """The operator's side of the service."""

    directory: Path


def descriptors(server: Server) -> int:
    """How many the process has."""
    return len(os.listdir(f"/proc/{server.pid}/fd"))


async def test_exhausted_descriptors_exclude_no_client_and_lose_no_event(tmp_path: Path) -> None:
    journal = Journal()
    async with service(tmp_path, *LIMITED) as (_, server, http), trio.open_nursery() as nursery:
        receiver = Receiver(journal)
        await nursery.start(receiver.run)
        await http.post("/s2s/webhooks", json={"url": receiver.url})
        conversation = (await made(http))["id"]
        path = f"/s2s/conversations/{conversation}"
        usual = descriptors(server)
        with ExitStack() as crowd:
            for _ in range(CROWD):
                each = crowd.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                each.sendall(b"GET /healthz HTTP/1.1\r\n")
            await server.wait_for_log("front.accept_failed")
            for number in range(20):
                answer = await http.post(f"{path}/messages", json={"text": str(number)})
                assert answer.status_code == 200, answer.text
                async with httpx.AsyncClient(base_url=http.base_url, headers=http.headers) as new:
                    assert (await new.get(path)).status_code == 200
        with trio.fail_after(PATIENCE_S):
            while True:
                if descriptors(server) <= usual + FEW:
                    break
                await trio.sleep(0.02)  # poll: there is no notification when the last peer has closed
        upload = await http.post("/uploads", files={"file": ("a.txt", b"some text")})
        assert upload.status_code == 200, upload.text
        beside = await operate(Beside(tmp_path / "disk" / "data"), "org.create", name="Acme")
        assert beside["name"] == "Acme"
        events = (await http.get(f"{path}/events", params={"limit": 200})).json()["items"]
        assert await journal.wait_for([event["id"] for event in events], PATIENCE_S) == 0
        nursery.cancel_scope.cancel()
    assert server.log().count("front.accept_failed") == 1
