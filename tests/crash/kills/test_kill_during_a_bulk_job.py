"""SIGKILL during a bulk job and during its undo: after a restart the job goes on, and changes each conversation once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import Server

pytestmark = pytest.mark.long

CONVERSATIONS = 60


async def test_job_and_its_undo_go_on_after_kills_and_change_each_conversation_once(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        await server.start()
        demo = server.demo()
        key = {"Authorization": f"Bearer {demo['serverKey']}"}
        user = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
        async with httpx.AsyncClient(base_url=f"{server.url}/v3", headers=key, timeout=20) as http:
            made = [await _created(http, number) for number in range(CONVERSATIONS)]
            body = {"filter": {"status": "OPEN"}, "action": {"type": "close"}}
            job = (await http.post("/bulk-jobs", json=body, headers=user)).json()
            for _ in range(2):  # at once, and after the first batch of the next start
                await server.kill()
                await server.start()
                job = await _once(http, user, job, lambda found: found["done"] > 0)
            job = await _once(http, user, job, _has_ended)
            assert (job["status"], job["changed"], job["skipped"]) == ("completed", job["total"], [])
            assert job["total"] >= CONVERSATIONS
            await http.post(f"/bulk-jobs/{job['id']}/undo", headers=user)
            await server.kill()
            await server.start()
            job = await _once(http, user, job, _has_ended)
            assert (job["status"], job["undone"], job["kept"]) == ("undone", job["total"], [])
            for conversation in made:
                events = (await http.get(f"/s2s/conversations/{conversation}/events")).json()["items"]
                types = [event["type"] for event in events]
                assert types.count("conversation.closed") == types.count("conversation.reopened") == 1
                assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    finally:
        assert await server.stop() == 0, server.log()


def _has_ended(job: dict[str, Any]) -> bool:
    return job["endedAt"] is not None


async def _created(http: httpx.AsyncClient, number: int) -> str:
    answer = await http.post("/s2s/conversations", json={"contact": {"userId": f"u{number}"}})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def _once(
    http: httpx.AsyncClient, user: dict[str, str], job: dict[str, Any], reached: Any
) -> dict[str, Any]:
    """Return the job once it has reached a state, or its end."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            answer = await http.get(f"/bulk-jobs/{job['id']}", headers=user)
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            if reached(found) or _has_ended(found):
                return found
            await trio.lowlevel.checkpoint()
