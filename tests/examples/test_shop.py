"""The shop's backend: its page after crashes, missed events and an erasure, from no other source than its own files."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.examples.languages import EXAMPLES
from tests.examples.running import listening, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import LOOK_S, Server, free_port

pytestmark = pytest.mark.long


@dataclass(eq=False)
class Shop:
    """The shop's backend and its visitors.

    Args:
        port: where it listens, over several starts.
        secret: that of its webhook.
    """

    server: Server
    directory: Path
    port: int
    secret: str = ""

    @property
    def file(self) -> Path:
        """Its database."""
        return self.directory / "shop.db"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[httpx.AsyncClient]:
        """Run it; yield a visitor. At the end it is killed."""
        environ = {
            "BASE": self.server.url,
            "KEY": self.server.demo()["serverKey"],
            "WEBHOOK_SECRET": self.secret,
        }
        command = [sys.executable, str(EXAMPLES / "shop.py"), str(self.file), str(self.port)]
        async with running(command, self.directory, {**environ, "REPAIR_S": "3600"}):
            await listening(self.port)
            base = f"http://127.0.0.1:{self.port}"
            async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=30) as visitor:
                yield visitor

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return what its files say."""
        with closing(sqlite3.connect(self.file, timeout=30)) as db:
            db.execute("ATTACH ? AS mirror", (f"{self.file}-mirror",))
            return db.execute(statement).fetchall()

    def order(self, number: str) -> None:
        """Have u1 order something."""
        with closing(sqlite3.connect(self.file, timeout=30)) as db, db:
            db.execute("INSERT INTO orders VALUES (?, 'u1', 'on its way')", (number,))


async def page(visitor: httpx.AsyncClient) -> str:
    answer = await visitor.get("/customers/u1")
    assert answer.status_code == 200
    return answer.text


async def shows(visitor: httpx.AsyncClient, *texts: str) -> str:
    """Wait until the page shows these texts; return it."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            shown = await page(visitor)
            if all(text in shown for text in texts):
                return shown
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def answers(api: httpx.AsyncClient, path: str, status: int) -> dict[str, Any]:
    """Wait until the service answers with this status; return what it says."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            answer = await api.get(path)
            if answer.status_code == status:
                said: dict[str, Any] = answer.json()
                return said
            await trio.sleep(LOOK_S)  # poll: there is no notification


@dataclass(eq=False)
class Desk:
    """The support side: it writes to the customer, and switches the webhook between them."""

    api: httpx.AsyncClient
    endpoint: str
    conversation: str = ""

    async def begin(self, text: str) -> None:
        """Begin a conversation of u1."""
        body = {"contact": {"userId": "u1"}, "title": "Order A-1001", "message": {"text": text}}
        self.conversation = (await self.api.post("/s2s/conversations", json=body)).json()["id"]

    async def say(self, text: str) -> str:
        """Write a message; return its id."""
        body = {"text": text, "author": {"type": "bot", "name": "Robin"}}
        answer = await self.api.post(f"/s2s/conversations/{self.conversation}/messages", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    async def hook(self, status: str) -> None:
        """Switch the webhook on or off: events while it is off are never delivered."""
        answer = await self.api.patch(f"/s2s/webhooks/{self.endpoint}", json={"status": status})
        assert answer.status_code == 200, answer.text


async def opened(server: Server, api: httpx.AsyncClient, directory: Path) -> tuple[Shop, Desk]:
    """A shop that is registered with the service."""
    shop = Shop(server, directory, free_port())
    made = await api.post("/s2s/webhooks", json={"url": f"http://127.0.0.1:{shop.port}/webhooks"})
    shop.secret = made.json()["secret"]
    return shop, Desk(api, made.json()["id"])


async def test_the_page_shows_everything_over_a_crash_and_missed_events(
    server: Server, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    shop, desk = await opened(server, api, tmp_path)
    async with shop.open() as visitor:
        identity = {"name": "Ada <b>", "email": "ada@example.org"}
        assert (await visitor.put("/customers/u1", json=identity)).status_code == 204
        assert (await answers(api, "/s2s/contacts/u1", 200))["name"] == "Ada <b>"
        shop.order("A-1001")
        await desk.begin("Where is <script>my</script> order?")
        shown = await shows(
            visitor, "Where is &lt;script&gt;", "A-1001: on its way", "<h3>Order A-1001 (open)</h3>"
        )
        assert "<script>" not in shown
        await desk.say("It left us.")
        await shows(visitor, "<b>Robin</b> It left us.")
        assert (await visitor.post("/webhooks", content=b"{}")).status_code == 400
    await desk.hook("disabled")
    await desk.say("Missed while it was down.")
    await desk.hook("enabled")
    async with shop.open() as visitor:
        await shows(visitor, "Missed while it was down.")
        await desk.hook("disabled")
        await desk.say("Lost on its way.")
        await desk.hook("enabled")
        last = await desk.say("Behind the gap.")
        shown = await shows(visitor, "Lost on its way.", "Behind the gap.")
        assert shown.index("Lost on its way.") < shown.index("Behind the gap.")
        redacted = await api.delete(f"/s2s/conversations/{desk.conversation}/messages/{last}")
        assert redacted.status_code == 200, redacted.text
        with trio.fail_after(HANG_TIMEOUT_S):
            while "Behind the gap." in await page(visitor):  # noqa: ASYNC110  # poll: there is no notification
                await trio.sleep(LOOK_S)
        assert shop.rows("SELECT count(*) FROM mirror.messages") == [(4,)]


async def test_an_erasure_is_passed_on_though_the_service_and_the_shop_were_down(
    server: Server, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    shop, desk = await opened(server, api, tmp_path)
    async with shop.open() as visitor:
        await visitor.put("/customers/u1", json={"name": "Ada", "email": "ada@example.org"})
        shop.order("A-1001")
        await answers(api, "/s2s/contacts/u1", 200)
        await desk.begin("Where is my order?")
        await shows(visitor, "Where is my order?")
        assert await server.stop() == 0
        assert (await visitor.delete("/customers/u1")).status_code == 204
        assert (await visitor.get("/customers/u1")).status_code == 404
    assert shop.rows("SELECT method, path FROM tasks") == [("DELETE", "contacts/u1")]
    await server.start()
    async with shop.open():
        await answers(api, "/s2s/contacts/u1", 404)
        await answers(api, f"/s2s/conversations/{desk.conversation}", 404)
        with trio.fail_after(HANG_TIMEOUT_S):
            while shop.rows("SELECT id FROM mirror.conversations UNION ALL SELECT path FROM tasks"):  # noqa: ASYNC110
                await trio.sleep(LOOK_S)  # poll: there is no notification
    assert shop.rows("SELECT count(*) FROM mirror.messages") == [(0,)]
    assert shop.rows("SELECT * FROM customers UNION ALL SELECT * FROM orders") == []
