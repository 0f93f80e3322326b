"""Jumps of the wall clock, in both directions, under a running service: nothing is lost, refused or delayed."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.crash.shim import missing
from tests.crash.shimmed import made, service
from tests.support.replay.history import WEBHOOK, Delivery
from tests.support.replay.journal import Journal
from tests.support.replay.receiver import Receiver

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing() or "there is a shim")]

DAY_S = 86_400
PATIENCE_S = 60.0


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
            shim.set_clock(ahead_s - 30)  # like a correction of the clock
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
