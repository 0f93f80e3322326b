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

from tests.interop.client import WITHIN_S, Client, Launch
from tests.interop.proxy import Proxy, proxying
from tests.support.api.openapi_check import UNCHECKED
from tests.support.api.service import Service, running

LONG: Final = os.environ.get("INTEROP_LONG") == "1"
QUIET_S: Final = 60.0 if LONG else 4.0
"""How long a client that must stay away is watched."""
TYPES: Final = ("conversation.created", "message.created", "conversation.closed", "conversation.reopened")
"""What Pysher binds to: it can't bind to everything."""


@dataclass(eq=False)
class Stage:
    """What a test plays on.

    Args:
        service: another one after a restart.
        direct: whether clients go past the proxy.
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
        """The details of `connect`; `options` are the client's own."""
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
        """pusher-js, subscribed to the project's channel."""
        client = await self.pusher_js_that(consumer_id, authorization, **options)
        await client.subscribed()
        return client

    async def pusher_js_that(self, consumer_id: str, authorization: str = "form", **changed: Any) -> Client:
        """pusher-js on its way to the project's channel; it may be refused."""
        client = await self.launch("client.mjs")
        details = self.options(consumer_id, authorization)
        connect = {name: changed.pop(name, value) for name, value in details.items()}
        channel = changed.pop("channel", self.channel)
        await client.do("connect", **{**connect, "options": changed})
        await client.do("subscribe", channel=channel)
        return client

    async def laravel_echo(self, consumer_id: str, authorization: str) -> Client:
        """laravel-echo, listening for messages in the project's channel."""
        client = await self.launch("client.mjs")
        await client.do("connect", **self.options(consumer_id, authorization))
        await client.do("listen", name=self.channel.removeprefix("private-"), type="message.created")
        await client.subscribed()
        return client

    async def pysher(self, consumer_id: str) -> Client:
        """Pysher, subscribed to the project's channel; it waits 1 s before it connects again, not 10."""
        client = await self.launch("pysher_client.py")
        options = self.options(consumer_id, "query", reconnect_interval=1)
        await client.do("connect", channel=self.channel, types=TYPES, **options)
        await client.subscribed()
        return client

    async def talk(self, count: int, text: str = "") -> list[str]:
        """Post messages to a new conversation; the envelopes that this made, as the feed has them."""
        before = len(await self.feed())
        conversation = await self.service.create()
        for number in range(count - 1):
            await self.service.say(conversation, f"{number} {text}")
        return (await self.feed())[before:]

    async def feed(self) -> list[str]:
        """The project's envelopes, byte for byte."""
        # Some events are made up.
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
        """Who holds which channel."""
        answer = await self.service.http.get("/s2s/stream/consumers")
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    async def holders(self) -> list[tuple[str, bool]]:
        """Consumer and whether it is connected, of each channel."""
        return [(each["consumerId"], each["connected"]) for each in await self.consumers()]

    async def confirmed(self) -> str:
        """Wait until the one consumer has confirmed everything; the id of the last event."""
        with trio.fail_after(WITHIN_S):
            while (held := (await self.consumers())[0])["lag"]:  # noqa: ASYNC110  # it tells only when asked
                await trio.sleep(0.05)  # looks again: nothing announces it
        return str(held["confirmedEventId"])


def event_id(envelope: str) -> str:
    """The id of an event."""
    return str(json.loads(envelope)["id"])


def port_of(service: Service) -> int:
    """Where a service listens."""
    return int(service.url.rpartition(":")[2])


@asynccontextmanager
async def staged(directory: Path, launch: Launch, **settings: Any) -> AsyncIterator[Stage]:
    """A stage whose service runs in this process."""
    async with running(directory, **settings) as service, proxying(port_of(service)) as proxy:
        yield Stage(service, proxy, launch)
