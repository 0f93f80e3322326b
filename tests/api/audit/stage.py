"""The service that the recorded calls are made to, and what they need in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from tests.api.events.test_channels_agree import register
from tests.support.api.service import Service
from tests.support.api.staff import organisation_of
from tests.support.log_leaks import plant
from tests.support.sockets.issuer import Issuer

CLIENT: Final = "203.0.113.7"
"""Where all of them come from."""
NEW_PASSWORD: Final = plant("another long password")


@dataclass
class Stage:
    """A service with a webhook receiver.

    Args:
        by_user: whether a user calls what server keys can call, too.
        issuer: the OpenID provider of the service.
    """

    service: Service
    receiver: str
    by_user: bool = False
    issuer: Issuer = field(default_factory=Issuer)

    @property
    def backend(self) -> httpx.AsyncClient:
        return self.service.http

    @property
    def owner(self) -> httpx.AsyncClient:
        return self.service.dashboard

    @property
    def caller(self) -> httpx.AsyncClient:
        """The client for calls that a user and a server key can make."""
        return self.owner if self.by_user else self.backend

    @property
    def actor(self) -> str:
        return "user" if self.by_user else "server_key"

    @property
    def base(self) -> str:
        return "" if self.by_user else "/s2s"

    async def endpoint(self) -> str:
        return f"{self.base}/webhooks/{(await register(self.service, self.receiver))['id']}"

    async def project(self) -> str:
        path = f"/organisations/{await organisation_of(self.service)}/projects"
        return f"/projects/{(await self.owner.post(path, json={'name': 'P'})).json()['id']}"

    async def key(self) -> str:
        path = f"/projects/{self.service.demo['projectId']}/keys"
        made = (await self.owner.post(path, json={"label": "L"})).json()
        plant(made["key"])
        return f"{path}/{made['id']}"

    async def credential(self) -> str:
        path = f"/projects/{self.service.demo['projectId']}/credentials"
        made = (await self.owner.post(path, json={"name": "N", "permissions": []})).json()
        plant(made["secret"])
        return f"{path}/{made['id']}"

    async def members(self) -> str:
        return f"/organisations/{await organisation_of(self.service)}/members"

    async def contact(self) -> dict[str, Any]:
        answer: dict[str, Any] = (await self.backend.put("/s2s/contacts/u1", json={"name": "Ada"})).json()
        return answer

    async def message(self) -> tuple[str, dict[str, Any]]:
        """The path of a message, and the details that a record about it has."""
        conversation = await self.service.create("u1")
        message = await self.service.say(conversation, "Hello")
        path = f"/conversations/{conversation['id']}/messages/{message['id']}"
        return path, {"conversation": conversation["id"]}

    async def delivery(self) -> tuple[str, str]:
        path = await self.endpoint()
        return path, (await self.caller.post(f"{path}/test")).json()["id"]


Call = Callable[[], Awaitable[httpx.Response]]
Prepare = Callable[[Stage], Awaitable[tuple[Call, str, dict[str, Any]]]]
"""Makes what a call needs; the call, the actor it is made by, and what its record must have."""


def done(call: Call, actor: str, **expected: Any) -> tuple[Call, str, dict[str, Any]]:
    return call, actor, expected
