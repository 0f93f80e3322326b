"""A client that does all it can to a running server without a credential, in a process of its own: others are served."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import httpx
import pytest
import trio

from deskwire.http.stream.limits import FRAME_RATE
from tests.support.sockets.server_process import Server

pytestmark = pytest.mark.long

CALLS: Final = 30

_ATTACKER: Final = """
import json, socket, sys, threading

port, key = int(sys.argv[1]), sys.argv[2]
peer = socket.create_connection(("127.0.0.1", port))
peer.sendall(
    f"GET /app/{key}?protocol=7 HTTP/1.1\\r\\nHost: x\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n"
    "Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n".encode()
)

def until_told():
    sys.stdin.read()
    try:
        peer.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass

def flood():
    try:
        while True:
            peer.sendall(bytes((0x89, 0x80, 0, 0, 0, 0)) * 10_000)
    except OSError:
        pass

threads = [threading.Thread(target=each, daemon=True) for each in (until_told, flood)]
for thread in threads:
    thread.start()
heard = b""
try:
    while data := peer.recv(65536):
        heard += data
except OSError:
    pass
peer.close()
threads[1].join()
print(json.dumps({"pongs": heard.count(bytes((0x8A, 0))), "established": b"connection_established" in heard}))
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(tmp_path)
    await server.start()
    yield server
    await server.stop()


async def post(server: Server) -> None:
    """Make calls of another client, and expect an answer to each."""
    headers = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
    async with httpx.AsyncClient(base_url=f"{server.url}/v3", headers=headers, trust_env=False) as http:
        made = await http.post("/s2s/conversations", json={"contact": {"userId": "u1"}})
        path = f"/s2s/conversations/{made.json()['id']}/messages"
        for number in range(CALLS):
            assert (await http.post(path, json={"text": str(number)})).status_code == 200


async def test_a_flood_of_pings_gets_the_turns_of_one_connection(server: Server) -> None:
    command = [sys.executable, "-c", _ATTACKER, str(server.port), server.demo()["streamKey"]]
    attacker = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert attacker.stdin is not None
        assert attacker.stdout is not None
        await post(server)
        await attacker.stdin.aclose()
        told = json.loads(b"".join([data async for data in attacker.stdout]))
    finally:
        attacker.kill()
        await attacker.wait()
    assert told["established"]
    assert (
        told["pongs"] <= FRAME_RATE.burst + FRAME_RATE.per_minute
    )  # the rate of a whole minute, in case the test takes that long
