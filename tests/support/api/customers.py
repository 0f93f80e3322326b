"""Customers of a running service: channels, signed identities, and a browser's calls."""

from __future__ import annotations

import time
from typing import Any, Self

import httpx
import jwt

from tests.support.api.openapi_check import caller
from tests.support.api.service import Service
from tests.support.log_leaks import plant

SITE = "https://shop.example"
"""The website on which the tests' channels are."""


async def make_channel(service: Service, **fields: Any) -> dict[str, Any]:
    """Create a channel for SITE; return it with its secret."""
    answer = await service.http.post("/channels", json={"name": "Shop", "origins": [SITE], **fields})
    assert answer.status_code == 200, answer.text
    channel: dict[str, Any] = answer.json()
    plant(channel["identity"]["secret"])
    return channel


def signed(channel: dict[str, Any], user_id: str, **claims: Any) -> str:
    """Return an identity as a backend with the channel's secret signs it; a claim of None is left out."""
    known = {"sub": user_id, "aud": channel["id"], "exp": int(time.time()) + 600, **claims}
    given = {name: value for name, value in known.items() if value is not None}
    identity = jwt.encode(given, channel["identity"]["secret"], algorithm="HS256")
    plant(identity)
    return identity


class Browser:
    """A customer's browser on a page of SITE."""

    def __init__(self, service: Service, channel: dict[str, Any], origin: str | None = SITE) -> None:
        headers = {} if origin is None else {"Origin": origin}
        self.http = caller(f"{service.url}/v3/customer", headers)
        self.channel = channel
        self.token: str | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def start(self, identity: str | None = None, **fields: Any) -> httpx.Response:
        """Start or continue the session; keep its token."""
        body = {"channelId": self.channel["id"], "identity": identity, "session": self.token, **fields}
        answer = await self.http.post("/session", json={k: v for k, v in body.items() if v is not None})
        if answer.status_code == 200:
            self.token = answer.json()["token"]
            plant(str(self.token))
        return answer

    async def call(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Make a call with the session's token."""
        return await self.http.request(
            method, path, headers={"Authorization": f"Bearer {self.token}"}, **given
        )
