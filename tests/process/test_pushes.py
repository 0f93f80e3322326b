"""Pushes of a process that is killed again and again: none comes twice, and none ends without a reason."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import trio

from tests.support.api.browsers import PAGE
from tests.support.api.pushing import ALL, SETTINGS, SUBSCRIPTION
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.certificates import AUTHORITY
from tests.support.sockets.push_service import PushService, push_service
from tests.support.sockets.server_process import Server
from tests.support.stores import beside

_ROUNDS = 4
_EACH = 5


async def subscribe(server: Server, push: PushService) -> Any:
    """Subscribe a browser of the demo's owner with notifications of everything; return the browser."""
    user, its = server.demo()["user"], push.browser()
    async with httpx.AsyncClient(base_url=f"{server.url}/v3", headers=PAGE) as http:
        proof = {"email": user["email"], "password": user["password"]}
        (await http.post("/auth/session", json=proof)).raise_for_status()
        (await http.put(SETTINGS, json=ALL)).raise_for_status()
        (await http.put(SUBSCRIPTION, json=its.subscription)).raise_for_status()
    return its


async def write(server: Server, name: str) -> list[str]:
    """Start conversations of contacts; return their ids."""
    headers, made = {"Authorization": f"Bearer {server.demo()['serverKey']}"}, []
    async with httpx.AsyncClient(base_url=f"{server.url}/v3", headers=headers) as http:
        for number in range(_EACH):
            body = {"contact": {"userId": f"{name}-{number}"}, "message": {"text": "Hello"}}
            made.append((await http.post("/s2s/conversations", json=body)).raise_for_status().json()["id"])
    return made


def stored(directory: Path) -> dict[str, str | None]:
    """Return the reason of each stored push by its conversation."""
    with beside(directory) as connection:
        return dict(connection.execute("SELECT conversation, reason FROM pushes").fetchall())


async def test_kills_repeat_no_push_and_lose_none_silently(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_bytes(AUTHORITY.cert_pem.bytes())
    environ = {"DESKWIRE_ALLOW_PRIVATE_WEBHOOKS": "true", "SSL_CERT_FILE": str(authority)}
    server, chance, made = Server(tmp_path, environ=environ), random.Random(44), []
    async with push_service() as push:
        await server.start()
        browser = await subscribe(server, push)
        for number in range(_ROUNDS):
            made += await write(server, str(number))
            await trio.sleep(chance.uniform(0, 4))  # real time: a moment before, in or after the attempts
            await server.kill()
            with beside(tmp_path / "data") as connection:
                connection.execute("UPDATE pushes SET due_at = 0 WHERE ended_at IS NULL")  # claims lapse
            await server.start()
        try:
            with trio.fail_after(HANG_TIMEOUT_S):
                while len(found := stored(tmp_path / "data")) < len(made) or None in found.values():  # noqa: ASYNC110
                    await trio.sleep(0.2)
        finally:
            await server.kill()
        received = Counter(browser.read(each)["conversationId"] for each in push.receiver.requests)
    assert found.keys() == {*made}, "each event was decided"
    assert set(received.values()) == {1}
    accepted = {each for each, reason in found.items() if reason == "accepted"}
    assert accepted <= received.keys()
    assert {found[each] for each in found.keys() - accepted} <= {"interrupted"}
