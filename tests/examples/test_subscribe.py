"""The subscribers: nothing is missed or taken twice over a crash of theirs and over broken connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.examples.languages import Language
from tests.examples.running import Example, running
from tests.interop.proxy import proxying
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import LOOK_S, Server

pytestmark = pytest.mark.long

EXAMPLE = "subscribe"


class Talk:
    """A conversation, and the events that it has caused so far."""

    def __init__(self, api: httpx.AsyncClient, conversation: dict[str, Any]) -> None:
        self._api = api
        self._id = conversation["id"]

    async def say(self, text: str) -> None:
        """Add a message."""
        answer = await self._api.post(f"/s2s/conversations/{self._id}/messages", json={"text": text})
        assert answer.status_code == 200, answer.text

    async def events(self, example: Example, after: int = 0) -> list[str]:
        """Wait until an example has printed all events after the first `after`, in order; return the ids of all."""
        feed = (await self._api.get("/s2s/events", params={"limit": 200})).json()["items"]
        wanted = [f"{each['type']} {each['sequence']} {each['id']}" for each in feed]
        await example.until(1, wanted[-1])
        printed = [line for line in example.lines if line.split(" ")[0] in {each["type"] for each in feed}]
        assert printed == wanted[after:]
        return [str(each["id"]) for each in feed]


async def test_a_subscriber_goes_on_where_it_was_after_a_crash_and_a_broken_connection(
    at_hand: Language, server: Server, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    command = [*at_hand.command("subscribe"), str(place)]
    async with proxying(server.port) as proxy:
        environ = {"BASE": f"http://127.0.0.1:{proxy.port}", "KEY": server.demo()["serverKey"]}
        async with running(command, tmp_path, environ) as example:
            await example.until(1, "subscribed")
            made = await api.post(
                "/s2s/conversations", json={"contact": {"userId": "u1"}, "message": {"text": "Hello"}}
            )
            talk = Talk(api, made.json())
            ids = await talk.events(example)
            await kept(place, ids[-1])
            await example.end()
        known = len(ids)
        await talk.say("while it is away")
        async with running(command, tmp_path, environ) as example:
            await example.until(1, "subscribed")
            await talk.events(example, known)
            for link in list(proxy.links):
                link.cut()
            await talk.say("while the connection is broken")
            ids = await talk.events(example, known)
            await kept(place, ids[-1])
            if at_hand.name != "php":  # it reads the feed, which knows no consumers
                await confirmed(api, ids[-1])
        assert [(await trio.Path(place).read_text()).strip()] == ids[-1:]


async def test_a_subscriber_notices_that_its_connection_breaks_while_it_works_on_a_message(
    at_hand: Language, server: Server, tmp_path: Path
) -> None:
    if at_hand.name == "php":
        pytest.skip("it reads the feed, and has no connection of its own")
    async with proxying(server.port) as proxy:
        proxy.hold = b"/v3/s2s/stream/auth"
        environ = {"BASE": f"http://127.0.0.1:{proxy.port}", "KEY": server.demo()["serverKey"]}
        async with running(
            [*at_hand.command("subscribe"), str(tmp_path / "place")], tmp_path, environ
        ) as example:
            with trio.fail_after(HANG_TIMEOUT_S):
                held = await proxy.held()  # it asks for its subscription, which the first message made it do
            for link in list(proxy.links):
                if link is not held:
                    link.cut()
            held.thaw()
            await example.until(1, "subscribed")


async def kept(place: Path, event: str) -> None:
    """Wait until an example has written this place down."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            if await trio.Path(place).exists() and await trio.Path(place).read_text() == event:
                return
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def confirmed(api: httpx.AsyncClient, event: str) -> None:
    """Wait until the service knows that this event has arrived."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            consumers = (await api.get("/s2s/stream/consumers")).json()["items"]
            if [each["confirmedEventId"] for each in consumers] == [event]:
                return
            await trio.sleep(LOOK_S)  # poll: there is no notification of a confirmation
