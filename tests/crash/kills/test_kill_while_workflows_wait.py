"""SIGKILL while workflows wait: for a time, and for the contact. Starts a process twice, as only a real one can be killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.engine.workflows.building import buttons, send, wait, workflow
from tests.support.sockets.server_process import Server

pytestmark = pytest.mark.long


async def test_waits_and_pending_steps_outlast_a_kill(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        await server.start()
        demo = server.demo()
        key = {"Authorization": f"Bearer {demo['serverKey']}"}
        user = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
        async with httpx.AsyncClient(base_url=f"{server.url}/v3", headers=key, timeout=20) as http:
            waiting, asking = [
                await _started(http, user, document)
                for document in (
                    workflow([wait(1, 1), send(2, "Late")]),
                    workflow([buttons(1, None), send(2, "Done")]),
                )
            ]
            await server.kill()
            await server.start()
            query = {"types": "workflow.completed", "wait": "15"}
            (ended,) = (await http.get("/s2s/events", params=query)).json()["items"]
            assert ended["data"]["conversation"]["id"] == waiting
            step = (await http.get(f"/s2s/conversations/{asking}/workflow")).json()["step"]
            assert (step["stepType"], step["actionId"]) == ("buttons", 1)
            body = {"actionId": 1, "value": "b0"}
            answer = await http.post(f"/s2s/conversations/{asking}/workflow/reply", json=body)
            assert answer.status_code == 200, answer.text
            for conversation in (waiting, asking):
                events = (await http.get(f"/s2s/conversations/{conversation}/events")).json()["items"]
                assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
                assert events[-1]["type"] == "workflow.completed"
    finally:
        assert await server.stop() == 0, server.log()


async def _started(http: httpx.AsyncClient, user: dict[str, str], document: Any) -> str:
    """Return the id of a conversation in which this workflow has started."""
    made = await http.post("/workflows", json=document, headers=user)
    conversation = (await http.post("/s2s/conversations", json={"contact": {"userId": "u1"}})).json()["id"]
    path = f"/s2s/conversations/{conversation}/workflow/start"
    answer = await http.post(path, json={"workflowId": made.json()["id"]})
    assert answer.status_code == 200, answer.text
    return str(conversation)
