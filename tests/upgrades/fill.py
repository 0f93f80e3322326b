"""The data of a release, made by its API, and the objects as it shows them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import httpx

LAST: Final = 5
"""The number of the last conversation, which was made under an `Idempotency-Key`."""


def opening(number: int, attachments: Sequence[str] = ()) -> dict[str, Any]:
    """Return the request that starts a conversation."""
    contact = {"userId": f"u{number}", "name": f"Ada {number}", "email": f"ada{number}@example.com"}
    message = {"text": f"Grüße 👋 {number}", "attachments": [*attachments]}
    return {"contact": contact, "title": f"Order {number}", "message": message}


def ok(response: httpx.Response) -> Any:
    assert response.is_success, (response.url, response.status_code, response.text)
    return response.json() if response.content else None


def fill(url: str, demo: dict[str, Any], receiver: str) -> dict[str, Any]:
    """Make conversations, notes, an upload, a rating and deliveries; return the objects as the release shows them."""
    key = {"Authorization": f"Bearer {demo['serverKey']}"}
    user = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
    with (
        httpx.Client(base_url=f"{url}/v3/s2s", headers=key, trust_env=False) as s2s,
        httpx.Client(base_url=f"{url}/v3", headers=user, trust_env=False) as agent,
    ):
        endpoint = ok(s2s.post("webhooks", json={"url": receiver, "description": "CRM"}))
        upload = ok(
            agent.post("uploads", files={"file": ("plan.txt", b"The plan of a release", "text/plain")})
        )
        ids, made = [], None
        for number in range(LAST + 1):
            body = opening(number, [] if number else [upload["id"]])
            headers = {"Idempotency-Key": "once"} if number == LAST else {}
            made = ok(s2s.post("conversations", json=body, headers=headers))
            ids.append(made["id"])
            for note in (False, True):
                reply = {"text": f"Answer {number}", "internal": note}
                ok(agent.post(f"conversations/{made['id']}/messages", json=reply))
        ok(s2s.post(f"conversations/{ids[0]}/rating", json={"rating": 9}))
        ok(s2s.post(f"conversations/{ids[1]}/close", json={}))
        time.sleep(2)  # the results of deliveries are stored
        return {
            "demo": demo,
            "endpoint": endpoint,
            "upload": upload,
            "made": made,
            "conversations": [ok(s2s.get(f"conversations/{each}")) for each in ids],
            "messages": {each: ok(s2s.get(f"conversations/{each}/messages"))["items"] for each in ids},
            "events": ok(s2s.get("events?limit=200"))["items"],
        }
