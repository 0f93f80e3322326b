"""A customer's browser without a panel: it calls the customer API, as a page of the shop would."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

import httpx
import jwt

from tests.web.harness.stage import Stage

SHOP: Final = "https://shop.example"
"""The website that shows the channels of `channel_of`."""
BROWSER: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def channel_of(stage: Stage, name: str = "Shop", **fields: Any) -> dict[str, Any]:
    """Create a channel that the shop may show, and return it with its secret."""
    body = {"type": "widget", "name": name, "origins": [SHOP], **fields}
    made: dict[str, Any] = stage.owner.post("/channels", json=body).raise_for_status().json()
    return made


class Customer:
    """A customer with a session of a channel.

    Args:
        claims: of the identity that the shop's backend signs, such as `sub`; without, the customer is a visitor.
    """

    def __init__(self, stage: Stage, channel: Mapping[str, Any], **claims: Any) -> None:
        headers = {"Origin": SHOP, "User-Agent": BROWSER}
        base = f"{stage.server.url}/v3/customer"
        client = httpx.Client(base_url=base, headers=headers, trust_env=False, timeout=30)
        self._http = stage.stack.enter_context(client)
        body: dict[str, Any] = {"channelId": channel["id"]}
        if claims:
            body["identity"] = _signed(channel, claims)
        token = self._http.post("/session", json=body).raise_for_status().json()["token"]
        self._http.headers["Authorization"] = f"Bearer {token}"

    def start(self, text: str, **fields: Any) -> dict[str, Any]:
        """Start a conversation with a message, and return it."""
        message = {"text": text, "clientId": uuid4().hex}
        body = {"clientId": uuid4().hex, "message": message, **fields}
        return self._post("/conversations", body)

    def say(self, conversation: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Post a message, and return it."""
        body = {"text": text, "clientId": uuid4().hex}
        return self._post(f"/conversations/{conversation['id']}/messages", body)

    def newest(self, conversation: Mapping[str, Any]) -> dict[str, Any]:
        """Return the newest message."""
        path = f"/conversations/{conversation['id']}/messages"
        page = self._http.get(path, params={"order": "desc", "limit": "1"}).raise_for_status().json()
        found: dict[str, Any] = page["items"][0]
        return found

    def confirm(self, conversation: Mapping[str, Any], **upto: str) -> None:
        """Confirm that messages have `reached` the browser, or were `seen`, up to the message of this id."""
        self._post(f"/conversations/{conversation['id']}/read", upto)

    def shows(self, **page: Any) -> None:
        """Report the page that the browser shows."""
        self._http.patch("/me", json={"context": page}).raise_for_status()

    def status(self) -> int:
        """Return the status of a call with the session's token."""
        return self._http.get("/me").status_code

    @contextmanager
    def online(self) -> Iterator[None]:
        """Keep the panel open, which reads the stream."""
        with self._http.stream("GET", "/stream", headers={"Accept": "text/event-stream"}) as stream:
            stream.raise_for_status()
            yield

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = self._http.post(path, json=body).raise_for_status()
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found


def _signed(channel: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    body = {"aud": channel["id"], "exp": int(time.time()) + 600, **claims}
    return jwt.encode(body, channel["identity"]["secret"], algorithm="HS256")
