"""Lines of an import, and the data that they create."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import httpx
import orjson

NDJSON: Final = {"Content-Type": "application/x-ndjson"}
PAST: Final = "2024-03-01T09:{:02}:{:02}Z"


def conversation(name: str, user: str = "u1", **fields: Any) -> dict[str, Any]:
    """Return the record of a conversation."""
    given = {"contact": {"userId": user, "name": "Ada"}, "createdAt": PAST.format(0, 0)}
    return {"type": "conversation", "externalId": name, **given, **fields}


def message(thread: str, number: int, **fields: Any) -> dict[str, Any]:
    """Return the record of a message of that conversation, in turn from the contact and from an agent."""
    author = {"type": "agent", "name": "Grace"} if number % 2 else {"type": "contact"}
    at = PAST.format(number // 60 % 60, number % 60)
    given = {"author": author, "text": f"{thread} {number}", "createdAt": at}
    return {
        "type": "message",
        "externalId": f"{thread}-{number}",
        "conversation": thread,
        **given,
        **fields,
    }


def threads(count: int, messages: int) -> list[dict[str, Any]]:
    """Return the records of conversations with this number of messages each."""
    return [
        record
        for name in (f"old-{number}" for number in range(count))
        for record in (
            conversation(name, f"user of {name}"),
            *(message(name, each) for each in range(messages)),
        )
    ]


def ndjson(records: Iterable[Any]) -> bytes:
    """Return the records as a request body."""
    return b"".join(orjson.dumps(record) + b"\n" for record in records)


async def bring(http: httpx.AsyncClient, *records: Any, **params: str) -> dict[str, Any]:
    """Import records and return the report."""
    answer = await http.post("/s2s/import", content=ndjson(records), headers=NDJSON, params=params)
    assert answer.status_code == 200, answer.text
    report: dict[str, Any] = answer.json()
    return report


async def found(http: httpx.AsyncClient, external_id: str) -> dict[str, Any]:
    """Return the conversation that was imported under this id."""
    answer = await http.get("/s2s/import/conversation", params={"externalId": external_id})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def messages_of(http: httpx.AsyncClient, conversation_id: str) -> list[dict[str, Any]]:
    """Return all messages of a conversation, in order."""
    items: list[dict[str, Any]] = []
    params = {"limit": "200"}
    while True:
        answer = await http.get(f"/s2s/conversations/{conversation_id}/messages", params=params)
        assert answer.status_code == 200, answer.text
        items += answer.json()["items"]
        cursor = answer.json()["nextCursor"]
        if cursor is None:
            return items
        params["cursor"] = cursor


def counts(conversations: int, messages: int) -> dict[str, int]:
    """Return the counts in the form that a report has."""
    return {"conversations": conversations, "messages": messages}
