"""The clients' API calls in crash tests, and their reads of the final state."""

from __future__ import annotations

import random
from typing import Any, Final

import httpx
import orjson

from tests.crash.ledger import Ask
from tests.support.replay.api import Api

_AUTHORS: Final = ("contact", "agent", "bot")


def request_of(ask: Ask, chance: random.Random) -> tuple[str, str, Any]:
    """Return the method, the path below that of the conversations, and the body."""
    match ask.kind:
        case "create":
            return "POST", "", {"contact": {"userId": ask.mark, "name": "Ada"}}
        case "message":
            author = {"type": chance.choice(_AUTHORS)}
            return "POST", f"/{ask.conversation}/messages", {"text": ask.mark, "author": author}
        case "patch":
            return "PATCH", f"/{ask.conversation}", {"title": ask.mark}
        case _:
            return "POST", f"/{ask.conversation}/{ask.kind}", None


def note(ask: Ask, answer: httpx.Response | None) -> None:
    """Record the outcome in the ledger; with None it is unknown."""
    if answer is None:
        ask.outcome = "unknown"
    elif answer.status_code == httpx.codes.OK:
        ask.outcome, ask.answer = "acknowledged", answer.content
    else:
        ask.outcome, ask.detail = "refused", f"{answer.status_code} {answer.text}"


async def all_of(api: Api, path: str) -> list[dict[str, Any]]:
    """Return every item of a list, page by page."""
    items: list[dict[str, Any]] = []
    query = "?limit=200"
    while True:
        page = await get(api, path + query)
        items += page["items"]
        if page["nextCursor"] is None:
            return items
        query = f"?limit=200&cursor={page['nextCursor']}"


async def get(api: Api, path: str) -> dict[str, Any]:
    """Return the current answer of a path."""
    reply = await api.call("GET", path, repeatable=True)
    assert reply.outcome == "acknowledged", reply.detail
    answer: dict[str, Any] = reply.body
    return answer


def id_of(envelope: bytes) -> str:
    """Return the event's id."""
    return str(orjson.loads(envelope)["id"])
