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
FIELDS = ("status", "waitingSince", "noAnswerNeededSince", "followers", "mine")
"""The fields that the actions change, and that undo restores."""


@pytest.mark.parametrize("action", ["close", "noAnswerNeeded", "unread", "follow", "unfollow"])
async def test_job_and_its_undo_go_on_after_kills_and_change_each_conversation_once(
    tmp_path: Path, action: str
) -> None:
    server = Server(tmp_path)
    try:
        await server.start()
        demo = server.demo()
        key = {"Authorization": f"Bearer {demo['serverKey']}"}
        user = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
        async with httpx.AsyncClient(base_url=f"{server.url}/v3", headers=key, timeout=20) as http:
            made = [await _created(http, number) for number in range(CONVERSATIONS)]
            wanted = {"status": "OPEN", "createdSince": made[0]["createdAt"]}
            await _prepare(http, user, action, wanted)
            before = [await _view(http, user, each) for each in made]
            job = await _started(http, user, action, wanted)
            for _ in range(2):  # at once, and after the first batch of the next start
                await server.kill()
                await server.start()
                job = await _once(http, user, job, lambda found: found["done"] > 0)
            job = await _once(http, user, job, _has_ended)
            # A conversation that was changed twice would be skipped, because it needs no second change.
            assert (job["status"], job["changed"], job["skipped"]) == ("completed", job["total"], [])
            assert job["total"] == CONVERSATIONS
            changed = [await _view(http, user, each) for each in made]
            assert all(one != other for one, other in zip(before, changed, strict=True))
            await http.post(f"/bulk-jobs/{job['id']}/undo", headers=user)
            await server.kill()
            await server.start()
            job = await _once(http, user, job, _has_ended)
            assert (job["status"], job["undone"], job["kept"]) == ("undone", job["total"], [])
            assert [await _view(http, user, each) for each in made] == before
            for each in made:
                events = (await http.get(f"/s2s/conversations/{each['id']}/events")).json()["items"]
                types = [event["type"] for event in events]
                times = 1 if action == "close" else 0
                assert types.count("conversation.closed") == types.count("conversation.reopened") == times
                assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    finally:
        assert await server.stop() == 0, server.log()


async def _prepare(
    http: httpx.AsyncClient, user: dict[str, str], action: str, wanted: dict[str, str]
) -> None:
    """Let the user have seen or followed all conversations, if the action needs that."""
    if action == "unread":
        answer = await http.put("/inbox/seen", json={}, headers=user)
        assert answer.status_code == 200, answer.text
    if action == "unfollow":
        job = await _once(http, user, await _started(http, user, "follow", wanted), _has_ended)
        assert job["changed"] == CONVERSATIONS


async def _started(
    http: httpx.AsyncClient, user: dict[str, str], action: str, wanted: dict[str, str]
) -> dict[str, Any]:
    """Start a job for the conversations of this test."""
    body = {"filter": wanted, "action": {"type": action}}
    answer = await http.post("/bulk-jobs", json=body, headers=user)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _view(http: httpx.AsyncClient, user: dict[str, str], conversation: dict[str, Any]) -> list[Any]:
    """Return the fields of a conversation that the actions change."""
    answer = await http.get(f"/conversations/{conversation['id']}?view=agent", headers=user)
    assert answer.status_code == 200, answer.text
    return [answer.json()[name] for name in FIELDS]


def _has_ended(job: dict[str, Any]) -> bool:
    return job["endedAt"] is not None


async def _created(http: httpx.AsyncClient, number: int) -> dict[str, Any]:
    body = {"contact": {"userId": f"u{number}"}, "message": {"text": "Hello"}}
    answer = await http.post("/s2s/conversations", json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


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
