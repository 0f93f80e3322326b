"""A running service, a proxy in front of it that tests can cut, and API clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import trio

from tests.interop.proxy import Proxy, proxying
from tests.support.sockets.server_process import Server
from tests.web.harness.background import Background
from tests.web.harness.endpoint import Endpoint, receiving
from tests.web.harness.prepared_data import prepare

QUICK: Final = {
    "DESKWIRE_ARGON2_MEMORY_KIB": "8192",
    "DESKWIRE_ALLOW_PRIVATE_WEBHOOKS": "true",
    "DESKWIRE_RATE_LIMIT_PER_MINUTE": "1000000",
    "DESKWIRE_RATE_LIMIT_BURST": "100000",
}
PASSWORD: Final = "a password of an agent, long enough"
"""The password of all users added by `Stage.person`."""
_POSTERS: Final = 8


@dataclass
class Stage:
    """A service with its demo project.

    Args:
        url: the address for browsers, which is the proxy.
        s2s: a client with the demo's server key.
        owner: a client with the demo owner's token, for the demo project.
    """

    background: Background
    server: Server
    proxy: Proxy
    url: str
    demo: dict[str, Any]
    s2s: httpx.Client
    owner: httpx.Client
    stack: ExitStack

    def converse(self, user: str = "u1", *texts: str, **contact: Any) -> dict[str, Any]:
        """Start a conversation of a contact with these messages, and return it."""
        first, *more = texts or ("Hello!",)
        body = {"contact": {"userId": user, **contact}, "message": {"text": first}}
        conversation = self.s2s.post("/s2s/conversations", json=body).raise_for_status().json()
        for text in more:
            self.say(conversation, text)
        found: dict[str, Any] = conversation
        return found

    def say(self, conversation: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Post a message of the contact, and return it."""
        path = f"/s2s/conversations/{conversation['id']}/messages"
        said: dict[str, Any] = self.s2s.post(path, json={"text": text}).raise_for_status().json()
        return said

    def messages(self, conversation: Mapping[str, Any]) -> list[str]:
        """Return the texts of all messages and notes of a conversation by the API, oldest first."""
        texts: list[str] = []
        params = {"limit": "200"}
        while True:
            path = f"/conversations/{conversation['id']}/messages"
            page = self.owner.get(path, params=params).raise_for_status().json()
            texts += [message["text"] for message in page["items"]]
            if page["nextCursor"] is None:
                return texts
            params["cursor"] = page["nextCursor"]

    def person(self, name: str, role: str) -> str:
        """Add a person to the demo's organisation, who signs in with PASSWORD; return the email address."""
        email = f"{name.lower()}@demo.example"
        (organisation,) = self.owner.get("/organisations").raise_for_status().json()["items"]
        body = {"email": email, "name": name, "role": role}
        path = f"/organisations/{organisation['id']}/members"
        first = self.owner.post(path, json=body).raise_for_status().json()["password"]
        proof = {"email": email, "password": first, "newPassword": PASSWORD}
        self.owner.post("/auth/token", json=proof).raise_for_status()
        return email

    def endpoint(self, description: str, status: int = 200) -> Endpoint:
        """Register a webhook receiver of this description for all events, and return it."""
        endpoint = self.stack.enter_context(receiving(status))
        body = {"url": endpoint.url, "description": description}
        self.s2s.post("/s2s/webhooks", json=body).raise_for_status()
        return endpoint

    def client(self, email: str, password: str = PASSWORD) -> httpx.Client:
        """Return a client of the API that is signed in as this person, for the demo's project."""
        proof = {"email": email, "password": password}
        token = self.owner.post("/auth/token", json=proof).raise_for_status().json()["token"]
        headers = {"Authorization": f"Bearer {token}", "project": self.demo["projectId"]}
        return self.stack.enter_context(_client(self.server, headers))

    def kill(self) -> None:
        """Kill the service, like a crash."""
        self.background.call(self.server.kill)

    def start(self) -> None:
        """Start the service again."""
        self.background.call(self.server.start)

    def cut(self) -> None:
        """End all connections of browsers, once."""
        self.background.soon(self.proxy.cut)

    def close_road(self) -> None:
        """End all connections of browsers, and let no new one through."""
        self.proxy.closed = True
        self.cut()

    def open_road(self) -> None:
        """Admit connections of browsers again."""
        self.proxy.closed = False

    def freeze_road(self) -> None:
        """Hold all traffic of browsers; connections stay open, and new ones get no response."""
        self.background.soon(self._freeze, True)

    def thaw_road(self) -> None:
        """Pass the traffic of browsers again."""
        self.background.soon(self._freeze, False)

    def _freeze(self, frozen: bool) -> None:
        self.proxy.frozen = frozen
        for link in self.proxy.links:
            (link.freeze if frozen else link.thaw)()

    def flood(self, conversations: Sequence[Mapping[str, Any]], count: int) -> None:
        """Post this many messages of contacts to these conversations, in turns."""
        self.background.call(self._flood, conversations, count)

    async def _flood(self, conversations: Sequence[Mapping[str, Any]], count: int) -> None:
        ahead = iter(range(count))
        async with httpx.AsyncClient(
            base_url=self.s2s.base_url, headers=self.s2s.headers, trust_env=False, timeout=60
        ) as client:

            async def post() -> None:
                for number in ahead:
                    path = f"s2s/conversations/{conversations[number % len(conversations)]['id']}/messages"
                    (await client.post(path, json={"text": f"Message {number}"})).raise_for_status()

            async with trio.open_nursery() as nursery:
                for _ in range(_POSTERS):
                    nursery.start_soon(post)


@contextmanager
def staged(directory: Path, **environ: str) -> Iterator[Stage]:
    """Start a service in this directory; it is stopped at the end."""
    with staged_at(None, directory, **environ) as stage:
        yield stage


@contextmanager
def staged_at(port: int | None, directory: Path, /, **environ: str) -> Iterator[Stage]:
    """Start a service at this port, or at a free one; it is stopped at the end."""
    prepare(directory, QUICK)
    server = Server(directory, environ={**QUICK, **environ}, port=port)
    with Background() as background:
        background.call(server.start)
        try:
            proxy = background.enter(proxying(server.port))
            demo = server.demo()
            key = {"Authorization": f"Bearer {demo['serverKey']}"}
            token = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
            with ExitStack() as stack, _client(server, key) as s2s, _client(server, token) as owner:
                url = f"http://127.0.0.1:{proxy.port}"
                yield Stage(background, server, proxy, url, demo, s2s, owner, stack)
        finally:
            background.call(server.stop)


def _client(server: Server, headers: Mapping[str, str]) -> httpx.Client:
    return httpx.Client(base_url=f"{server.url}/v3", headers=headers, trust_env=False, timeout=30)
