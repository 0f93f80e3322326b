"""Drafts and held messages of an agent, by the API."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.api.inbox import later
from tests.support.api.service import Service

Json = dict[str, Any]


async def drafts(http: httpx.AsyncClient, conversation: Json) -> Json:
    """Return the agent's drafts in a conversation."""
    return found(await http.get(f"/conversations/{conversation['id']}/drafts"))


async def write(
    http: httpx.AsyncClient, conversation: Json, text: str, version: int = 0, mode: str = "reply", **body: Any
) -> Json:
    """Save a draft; return the answer."""
    return found(await try_to_write(http, conversation, text, version, mode, **body))


async def try_to_write(
    http: httpx.AsyncClient, conversation: Json, text: str, version: int = 0, mode: str = "reply", **body: Any
) -> httpx.Response:
    """Save a draft; return the response."""
    path = f"/conversations/{conversation['id']}/drafts/{mode}"
    return await http.put(path, json={"text": text, "version": version, **body})


async def hold(
    http: httpx.AsyncClient, conversation: Json, text: str, seconds: int = 60, **body: Any
) -> Json:
    """Post a message that is held; return the held message."""
    path = f"/conversations/{conversation['id']}/messages"
    return found(await http.post(path, json={"text": text, "holdSeconds": seconds, **body}))


async def schedule(
    http: httpx.AsyncClient, conversation: Json, text: str, at: str | None = None, **body: Any
) -> Json:
    """Post a message that is scheduled for a time, by default in an hour; return the held message."""
    path = f"/conversations/{conversation['id']}/messages"
    return found(await http.post(path, json={"text": text, "sendAt": at or later(3_600), **body}))


async def held(http: httpx.AsyncClient, conversation: Json | None = None) -> list[Json]:
    """Return the agent's held messages, in a conversation if one is given."""
    path = "/held-messages" if conversation is None else f"/conversations/{conversation['id']}/held-messages"
    answer = found(await http.get(path))
    assert answer["nextCursor"] is None
    items: list[Json] = answer["items"]
    return items


async def texts(service: Service, conversation: Json) -> list[str]:
    """Return the texts of a conversation's messages and notes, in order."""
    answer = found(await service.dashboard.get(f"/conversations/{conversation['id']}/messages"))
    return [each["text"] for each in answer["items"]]


def found(answer: httpx.Response) -> Json:
    """Return the body of a response with status 200."""
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    return body
