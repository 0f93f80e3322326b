"""A service, a proxy in front of its stream, and published clients that use both."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trio

from tests.interop.client import Client, Launch
from tests.interop.proxy import Proxy, proxying
from tests.support.api.openapi_check import UNCHECKED
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S

LONG: Final = os.environ.get("INTEROP_LONG") == "1"
QUIET_S: Final = 60.0 if LONG else 4.0
"""How long a client that must not reconnect is watched."""
TYPES: Final = ("conversation.created", "message.created", "conversation.closed", "conversation.reopened")
"""The event types that Pysher binds to, because it cannot bind to all events."""


@dataclass(eq=False)
class Stage:
    """The service, proxy and clients of a test.

    Args:
        service: the current service; a restart replaces it.
        direct: whether clients bypass the proxy.
    """

    service: Service
    proxy: Proxy
    launch: Launch
    direct: bool = False

    @property
    def channel(self) -> str:
        """The project's channel."""
        return f"private-project-{self.service.demo['projectId']}"

    def options(self, consumer_id: str, authorization: str = "form", **options: Any) -> dict[str, Any]:
        """Return the arguments of `connect`; `options` are passed to the client."""
        return {
            "key": self.service.demo["streamKey"],
            "port": port_of(self.service) if self.direct else self.proxy.port,
            "endpoint": f"{self.service.url}/v3/s2s/stream/auth",
            "serverKey": self.service.demo["serverKey"],
            "fields": {"consumerId": consumer_id},
            "authorization": authorization,
            "options": options,
        }

    async def pusher_js(self, consumer_id: str, authorization: str = "form", **options: Any) -> Client:
        """Start pusher-js and subscribe it to the project's channel."""
        client = await self.pusher_js_that(consumer_id, authorization, **options)
        await client.subscribed()
        return client

    async def pusher_js_that(self, consumer_id: str, authorization: str = "form", **changed: Any) -> Client:
        """Start pusher-js and begin its subscription to the project's channel, which may be refused."""
        client = await self.launch("client.mjs")
        details = self.options(consumer_id, authorization)
        connect = {name: changed.pop(name, value) for name, value in details.items()}
        channel = changed.pop("channel", self.channel)
        await client.do("connect", **{**connect, "options": changed})
        await client.do("subscribe", channel=channel)
        return client

    async def laravel_echo(self, consumer_id: str, authorization: str) -> Client:
        """Start laravel-echo, listening for messages in the project's channel."""
        client = await self.launch("client.mjs")
        await client.do("connect", **self.options(consumer_id, authorization))
        await client.do("listen", name=self.channel.removeprefix("private-"), type="message.created")
        await client.subscribed()
        return client

    async def pysher(self, consumer_id: str) -> Client:
        """Start Pysher and subscribe it to the project's channel; it reconnects after 1 s instead of 10."""
        client = await self.launch("pysher_client.py")
        options = self.options(consumer_id, "query", reconnect_interval=1)
        await client.do("connect", channel=self.channel, types=TYPES, **options)
        await client.subscribed()
        return client

    async def talk(self, count: int, text: str = "") -> list[str]:
        """Post messages to a new conversation; return the envelopes of the resulting events from the feed."""
        before = len(await self.feed())
        conversation = await self.service.create()
        for number in range(count - 1):
            await self.service.say(conversation, f"{number} {text}")
        return (await self.feed())[before:]

    async def feed(self) -> list[str]:
        """Return the project's envelopes, byte for byte."""
        # Some events are synthetic.
        answer = await self.service.http.get("/s2s/events", params={"limit": "200"}, extensions=UNCHECKED)
        assert answer.status_code == 200, answer.text
        assert answer.json()["nextCursor"] is None, "more than one page of events"
        rest, found = answer.text.removeprefix('{"items":['), list[str]()
        while rest.startswith("{"):
            _, end = json.JSONDecoder().raw_decode(rest)
            found.append(rest[:end])
            rest = rest[end:].removeprefix(",")
        return found

    async def consumers(self) -> list[dict[str, Any]]:
        """Return the consumer of each channel."""
        answer = await self.service.http.get("/s2s/stream/consumers")
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    async def holders(self) -> list[tuple[str, bool]]:
        """Return the consumer of each channel, and whether it is connected."""
        return [(each["consumerId"], each["connected"]) for each in await self.consumers()]

    async def confirmed(self) -> str:
        """Wait until the only consumer has confirmed everything; return the id of the last event."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while (held := (await self.consumers())[0])["lag"]:  # noqa: ASYNC110  # there is no notification
                await trio.sleep(0.05)  # poll interval
        return str(held["confirmedEventId"])


def event_id(envelope: str) -> str:
    """Return the id of an event."""
    return str(json.loads(envelope)["id"])


def port_of(service: Service) -> int:
    """Return the port of a service."""
    return int(service.url.rpartition(":")[2])


@asynccontextmanager
async def staged(directory: Path, launch: Launch, **settings: Any) -> AsyncIterator[Stage]:
    """Yield a stage whose service runs in this process."""
    async with running(directory, **settings) as service, proxying(port_of(service)) as proxy:
        yield Stage(service, proxy, launch)
