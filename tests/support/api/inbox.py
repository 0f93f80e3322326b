"""Agents' writes to the inbox, and their view of it, by the API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson
import trio

from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.stores import beside

NOT_MENTIONED: Final[Mapping[str, Any]] = {"mentioned": False, "unseenMentions": 0}
"""An agent's own part of a conversation that has no mention of the agent."""


def later(seconds: float) -> str:
    """Return a time from now, in the API's format."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def told(service: Service) -> list[dict[str, Any]]:
    """Return the stored events for agents only, in order, without the notices that are for other nodes."""
    sql = "SELECT body FROM events WHERE internal = 1 AND project > 0 ORDER BY position"
    with beside(service.directory) as connection:
        rows = connection.execute(sql).fetchall()
    return [orjson.loads(row[0]) for row in rows]


async def until_awake(service: Service, conversation: dict[str, Any]) -> None:
    """Return once the conversation is no longer snoozed."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            if (await view(service, conversation))["snoozedUntil"] is None:
                return
            await trio.sleep(0.05)  # poll: there is no notification


async def view(service: Service, conversation: dict[str, Any]) -> dict[str, Any]:
    """Return the conversation in an agent's view."""
    answer = await service.dashboard.get(f"/conversations/{conversation['id']}", params={"view": "agent"})
    assert answer.status_code == 200, answer.text
    seen: dict[str, Any] = answer.json()
    return seen


async def patch(service: Service, conversation: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Change a conversation as an agent, and return it."""
    path = f"/conversations/{conversation['id']}"
    answer = await service.dashboard.patch(path, json=fields, params={"view": "agent"})
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


async def reply(service: Service, conversation: dict[str, Any], key: str | None = None, **body: Any) -> Any:
    """Post an agent's message, and return the answer."""
    headers = {} if key is None else {"Idempotency-Key": key}
    return await service.dashboard.post(
        f"/conversations/{conversation['id']}/messages", json={"text": "Hi", **body}, headers=headers
    )


async def activity(service: Service, conversation: dict[str, Any], **params: str) -> dict[str, Any]:
    """Return a page of the conversation's activity."""
    answer = await service.dashboard.get(f"/conversations/{conversation['id']}/activity", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def tags(service: Service, **params: str) -> dict[str, Any]:
    """Return a page of the project's tags."""
    answer = await service.dashboard.get("/tags", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def pointers(answer: Any) -> dict[str, str]:
    """Return the problems of a refusal: code by pointer."""
    assert answer.status_code == 422, answer.text
    return {each["pointer"]: each["code"] for each in answer.json()["errors"]}
