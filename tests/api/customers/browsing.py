"""Calls of a customer's browser that most tests of conversations make."""

from __future__ import annotations

from typing import Any, Protocol
from uuid import uuid4

import httpx

from tests.support.api.customers import Browser


class Visit(Protocol):
    """Opens the browser of a visitor."""

    async def __call__(self, known: dict[str, Any] | None = None, **channel: Any) -> Browser:
        """Return it with a session in a new channel with these fields, or in a known one."""


def first(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    """Return the body of a new conversation."""
    message = {"text": text, "clientId": str(uuid4())}
    return {"clientId": str(uuid4()), "message": message, **fields}


async def begin(browser: Browser, text: str = "Hello", **fields: Any) -> dict[str, Any]:
    """Start a conversation; return it."""
    answer = await browser.call("POST", "/conversations", json=first(text, **fields))
    assert answer.status_code == 200, answer.text
    started: dict[str, Any] = answer.json()
    return started


async def say(
    browser: Browser, conversation_id: str, text: str, client_id: str | None = None, **fields: Any
) -> httpx.Response:
    """Send a message; return the response."""
    body = {"text": text, "clientId": client_id or str(uuid4()), **fields}
    return await browser.call("POST", f"/conversations/{conversation_id}/messages", json=body)


async def get(browser: Browser, path: str, **params: Any) -> Any:
    """Return what a path gives."""
    answer = await browser.call("GET", path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()
