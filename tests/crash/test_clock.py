"""The time of day jumps, in both directions, under a running service: nothing is lost, refused or held up by it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from deskwire.demo.history import WEBHOOK, Delivery
from deskwire.demo.journal import Journal
from deskwire.demo.receiver import Receiver
from tests.crash.shim import Shim, missing
from tests.serving import Server

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "there is a shim")

DAY_S = 86_400
SETTINGS = {"DESKWIRE_RETENTION_INTERVAL_S": "3", "DESKWIRE_ARGON2_MEMORY_KIB": "8192"}
PATIENCE_S = 60.0


@asynccontextmanager
async def service(tmp_path: Path) -> AsyncIterator[tuple[Shim, Server, httpx.AsyncClient]]:
    """A service whose clock can be set, and a client with its server key."""
    shim = Shim(tmp_path, tmp_path / "disk")
    server = Server(shim.root, "--allow-private-webhooks", environ={**SETTINGS, **shim.environ})
    await server.start()
    try:
        headers = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
        url = f"{server.url}/v3"
        async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=30) as http:
            yield shim, server, http
    finally:
        assert await server.stop() == 0, server.log()
        assert "Traceback" not in server.log()


async def made(http: httpx.AsyncClient, **headers: str) -> dict[str, Any]:
    """A conversation with a message."""
    body = {"contact": {"userId": "u"}, "message": {"text": "Hello"}}
    answer = await http.post("/s2s/conversations", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_numbers_ids_keys_and_tokens_outlast_jumps(tmp_path: Path) -> None:
    async with service(tmp_path) as (shim, server, http):
        demo = server.demo()
        user = {"Authorization": "", "project": demo["projectId"]}
        first = await made(http, **{"Idempotency-Key": "one"})
        path = f"/s2s/conversations/{first['id']}"
        for ahead_s in (3_600, -3_600, -DAY_S, 0):
            shim.set_clock(ahead_s)
            assert (await http.post(f"{path}/messages", json={"text": "x"})).status_code == 200
            assert (await made(http, **{"Idempotency-Key": "one"}))["id"] == first["id"]
            login = await http.post("/auth/token", json=demo["user"])
            shim.set_clock(ahead_s - 30)  # as a correction of the clock does
            user["Authorization"] = f"Bearer {login.json()['token']}"
            seen = await http.get("/conversations", headers=user)
            assert seen.status_code == 200, (ahead_s, seen.text)
        events = (await http.get("/s2s/events", params={"limit": 200})).json()["items"]
        ids = [event["id"] for event in events]
        assert ids == sorted(ids)
        assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
        for event in (ids[0], ids[-2]):
            after = await http.get("/s2s/events", params={"after": event, "limit": 200})
            assert [each["id"] for each in after.json()["items"]] == ids[ids.index(event) + 1 :]


async def test_a_retry_comes_although_the_clock_was_set_back_by_a_day(tmp_path: Path) -> None:
    journal, failed = Journal(), trio.Event()

    def status(delivery: Delivery) -> int:
        failed.set()
        return 500 if delivery.attempt == 1 else 200

    async with service(tmp_path) as (shim, _, http), trio.open_nursery() as nursery:
        receiver = Receiver(journal, status)
        await nursery.start(receiver.run)
        await http.post("/s2s/webhooks", json={"url": receiver.url})
        await made(http)
        await failed.wait()
        shim.set_clock(-DAY_S)
        with trio.fail_after(PATIENCE_S):
            while len([each for each in journal.arrivals if _attempt(each) == 2]) < 2:
                await journal.wait_for([f"{WEBHOOK} news"], 0.5)
        nursery.cancel_scope.cancel()


def _attempt(arrival: object) -> int:
    assert isinstance(arrival, Delivery)
    return arrival.attempt


async def test_a_clock_that_is_far_ahead_for_a_moment_deletes_nothing(tmp_path: Path) -> None:
    async with service(tmp_path) as (shim, server, http):
        first = await made(http)
        upload = await http.post("/uploads", files={"file": ("a.txt", b"some text")})
        shim.set_clock(400 * DAY_S)
        await server.wait_for_log("clock.set_forward", 2)  # the retention's and the uploads'
        shim.set_clock(0)
        assert (await http.get(f"/s2s/conversations/{first['id']}/messages")).json()["items"]
        assert (await http.get("/s2s/events")).json()["items"]
        body = {"text": "", "attachments": [upload.json()["id"]]}
        sent = await http.post(f"/s2s/conversations/{first['id']}/messages", json=body)
        assert sent.status_code == 200, sent.text
