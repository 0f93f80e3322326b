"""Requests that are sent again after `kill -9`: each is carried out once, and answered as before (ADR 24)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import httpx
import trio

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import Server

LANES: Final = 8
ACKNOWLEDGED: Final = 40
"""Answers after which the process is killed, in the middle of those to come."""


class Sender:
    """Sends numbered messages to one conversation, each under its own key, and notes the answers."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tried: list[int] = []
        self.answers: dict[int, bytes] = {}
        self.enough = trio.Event()
        self._http = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
        self._next = 0
        self.path = ""

    def client(self) -> httpx.AsyncClient:
        """A client for one lane."""
        url = f"{self.server.url}/v3"
        return httpx.AsyncClient(base_url=url, headers=self._http, timeout=HANG_TIMEOUT_S, trust_env=False)

    async def begin(self) -> None:
        """Make the conversation."""
        async with self.client() as http:
            made = await http.post("/s2s/conversations", json={"contact": {"userId": "u"}})
            self.path = f"/s2s/conversations/{made.json()['id']}/messages"

    async def lane(self) -> None:
        """Send one after the other until the connection breaks."""
        async with self.client() as http:
            while True:
                number, self._next = self._next, self._next + 1
                self.tried.append(number)
                try:
                    answer = await self.send(http, number)
                except httpx.TransportError:
                    return
                self.answers[number] = answer.content
                if len(self.answers) >= ACKNOWLEDGED:
                    self.enough.set()

    async def send(self, http: httpx.AsyncClient, number: int) -> httpx.Response:
        """Send a message under its key."""
        key = {"Idempotency-Key": f"message-{number}"}
        answer = await http.post(self.path, json={"text": f"message {number}"}, headers=key)
        assert answer.status_code == 200, answer.text
        return answer

    async def texts(self) -> list[str]:
        """The texts of all messages."""
        found: list[str] = []
        async with self.client() as http:
            cursor: str | None = ""
            while cursor is not None:
                params = {"limit": "200", **({"cursor": cursor} if cursor else {})}
                page = (await http.get(self.path, params=params)).json()
                found += [message["text"] for message in page["items"]]
                cursor = page["nextCursor"]
        return found


async def test_request_repeated_after_a_crash_takes_effect_once(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        await server.start()
        sender = Sender(server)
        await sender.begin()
        async with trio.open_nursery() as nursery:
            for _ in range(LANES):
                nursery.start_soon(sender.lane)
            await sender.enough.wait()
            await server.kill()
        await server.start()
        replayed = 0
        async with sender.client() as http:
            for number in sender.tried:
                again = await sender.send(http, number)
                replayed += "Idempotent-Replayed" in again.headers
                assert again.content == sender.answers.get(number, again.content)
        assert sorted(await sender.texts()) == sorted(f"message {number}" for number in sender.tried)
        assert replayed >= len(sender.answers)
    finally:
        await server.stop()
