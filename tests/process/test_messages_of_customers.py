"""A server that is killed while customers write: each message, however often it is sent, is stored once, in order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from deskwire.storage.sqlite.check import check
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import Server

pytestmark = pytest.mark.long

_ROUNDS: Final = 5
_CUSTOMERS: Final = 4
_MESSAGES: Final = 24  # of each customer, below the limit of a session
_ORIGIN: Final = "https://shop.example"
_RETRY_DELAY_S: Final = 0.05
_PAUSE_S: Final = 0.03


class Outbox:
    """A customer's browser: messages in order, each repeated until it is answered.

    Every third answer is treated as lost although it has come, so that the message is sent again.
    """

    def __init__(self, server: Server, token: str, name: str) -> None:
        self.name = name
        self.sent = 0
        self._server = server
        self._headers = {"Origin": _ORIGIN, "Authorization": f"Bearer {token}"}

    async def run(self) -> None:
        """Send all messages."""
        while self.sent < _MESSAGES:
            await self._deliver(f"/conversations/client:{self.name}/messages", self._message(self.sent))
            if self.sent % 3 == 0:
                await self._deliver(f"/conversations/client:{self.name}/messages", self._message(self.sent))
            self.sent += 1
            await trio.sleep(_PAUSE_S)

    async def begin(self) -> None:
        """Start the conversation, and repeat the call as after a lost answer."""
        body = {"clientId": self.name, "message": self._message(0)}
        for _ in range(2):
            await self._deliver("/conversations", body)
        self.sent = 1

    async def texts(self) -> list[str]:
        """Return the texts of the stored messages, in order."""
        async with self._client() as http:
            answer = await http.get(f"/conversations/client:{self.name}/messages", params={"limit": "200"})
        assert answer.status_code == 200, answer.text
        return [each["text"] for each in answer.json()["items"]]

    def _message(self, number: int) -> dict[str, Any]:
        return {"text": f"{self.name} {number}", "clientId": f"{self.name}-{number}"}

    def _client(self) -> httpx.AsyncClient:
        url = f"{self._server.url}/v3/customer"
        return httpx.AsyncClient(base_url=url, headers=self._headers, timeout=HANG_TIMEOUT_S, trust_env=False)

    async def _deliver(self, path: str, body: dict[str, Any]) -> None:
        """Repeat a call until the server has answered it."""
        while True:
            try:
                async with self._client() as http:
                    answer = await http.post(path, json=body)
            except httpx.TransportError:
                await trio.sleep(_RETRY_DELAY_S)
                continue
            if answer.status_code == 503:
                await trio.sleep(_RETRY_DELAY_S)
                continue
            assert answer.status_code == 200, answer.text
            return


async def session(server: Server, channel: str) -> str:
    """Return the token of a visitor."""
    async with httpx.AsyncClient(trust_env=False, timeout=HANG_TIMEOUT_S) as http:
        answer = await http.post(
            f"{server.url}/v3/customer/session", json={"channelId": channel}, headers={"Origin": _ORIGIN}
        )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["token"])


async def test_kills_double_and_lose_no_message_of_a_customer(tmp_path: Path) -> None:
    server = Server(tmp_path, environ={"DESKWIRE_RATE_LIMIT_PER_MINUTE": "0"})
    await server.start()
    headers = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=HANG_TIMEOUT_S) as http:
        body = {"name": "Shop", "origins": [_ORIGIN]}
        channel = (await http.post(f"{server.url}/v3/channels", json=body)).json()["id"]
    outboxes = [Outbox(server, await session(server, channel), f"c{each}") for each in range(_CUSTOMERS)]
    for each in outboxes:
        await each.begin()
    async with trio.open_nursery() as nursery:
        for each in outboxes:
            nursery.start_soon(each.run)
        for round_ in range(_ROUNDS):
            await trio.sleep(random.Random(round_).uniform(0.1, 0.6))
            await server.kill()
            await server.start()
    for each in outboxes:
        assert await each.texts() == [f"{each.name} {number}" for number in range(_MESSAGES)]
    await server.stop()
    report = await trio.to_thread.run_sync(lambda: check(tmp_path / "data", None, contents=False))
    assert [each for each in report.problems if each.code != "secret_missing"] == []
