"""A survey and responses for tests of the API."""

from __future__ import annotations

from typing import Any

import trio

from deskwire.engine.surveys.validation.rules import VALID
from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S

DEFINITION: dict[str, Any] = dict(VALID)


async def survey(service: Service, **definition: Any) -> dict[str, Any]:
    """Create a survey; return it."""
    body = {"name": "After the chat", "definition": {**DEFINITION, **definition}}
    made = await service.dashboard.post("/engagement/surveys", json=body)
    assert made.status_code == 200, made.text
    found: dict[str, Any] = made.json()
    return found


async def respond(
    service: Service, survey: dict[str, Any], user: str | None = None, **parts: Any
) -> dict[str, Any]:
    """Answer a survey; return the response."""
    contact = {} if user is None else {"contact": {"userId": user}}
    answer = await service.http.post(f"/s2s/surveys/{survey['id']}/responses", json={**contact, **parts})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def refreshed(service: Service, survey: dict[str, Any]) -> dict[str, Any]:
    """Refresh the insights, wait for the end, and return the outcome."""
    path = f"/engagement/surveys/{survey['id']}/insights/refresh"
    begun = await service.dashboard.post(path)
    assert begun.status_code == 200, begun.text
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            now: dict[str, Any] = (await service.dashboard.get(path)).json()
            if now["status"] != "running":
                return now
            await trio.sleep(0.01)  # poll: there is no notification
