"""Internal events reach agents' streams only, after any action: no webhook, consumer, feed or export (ADR 51)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx
import orjson
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.engine.events.types import AGENTS, CATALOG, EXTENSIONS, LISTABLE
from tests.api.events.test_channels_agree import Consumer, consuming, receiving, register
from tests.engine.workflows.building import send, workflow
from tests.support.api.agent_stream import Page, page
from tests.support.api.customers import signed
from tests.support.api.service import Service, running
from tests.support.api.staff import organisation_of
from tests.support.api.surveys import DEFINITION
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.log_leaks import plant
from tests.support.sockets.receivers import Receiver

LOOK_S: Final = 0.02
WORKFLOW: Final = workflow(main=[send(1, "Hello!"), {"id": 3, "type": "hand_off"}])


@dataclass
class World:
    """A project with a listener on every channel, and actions in it."""

    service: Service
    members: str
    made: dict[str, list[str]] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)
    number: int = 0
    token: str = ""

    async def call(
        self, client: httpx.AsyncClient, method: str, path: str, body: Any = None, **headers: str
    ) -> Any:
        """Call the API; refusals are allowed."""
        sent = {} if body is None and method != "GET" else body
        answer = await client.request(method, path, json=sent, headers=headers)
        self.asked.append((f"{method} {path}", answer.status_code))
        assert answer.status_code < 500, answer.text
        return answer.json() if answer.content and answer.status_code == 200 else {}

    async def agent(self, method: str, path: str, body: Any = None) -> Any:
        return await self.call(self.service.dashboard, method, path, body)

    async def backend(self, method: str, path: str, body: Any = None) -> Any:
        return await self.call(self.service.http, method, f"/s2s{path}", body)

    async def customer(self, method: str, path: str, body: Any = None) -> Any:
        page = {"Origin": "http://localhost", "Authorization": f"Bearer {self.token}" if self.token else ""}
        return await self.call(self.service.http, method, f"/customer{path}", body, **page)

    def one(self, what: str) -> str:
        """The id of the newest object of this kind, or one that does not exist."""
        return self.made.get(what, ["none"])[-1]

    def note(self, what: str, made: Any) -> None:
        if "id" in made:
            self.made.setdefault(what, []).append(made["id"])

    def name(self) -> str:
        self.number += 1
        return f"name-{self.number}"


Action = Callable[[World], Awaitable[Any]]


async def begin(world: World) -> None:
    world.note("cnv", await world.backend("POST", "/conversations", {"contact": {"userId": "ada"}}))


async def begin_hidden(world: World) -> None:
    body = {"contact": {"userId": "bob"}, "visible": False}
    world.note("cnv", await world.backend("POST", "/conversations", body))


async def begin_as_agent(world: World) -> None:
    body = {"contact": {"userId": "ada"}, "title": "Your order", "message": {"text": "Hello"}}
    world.note("cnv", await world.agent("POST", "/conversations", body))


async def make_ticket(world: World) -> None:
    linked = {"conversationId": world.one("cnv")} if world.number % 2 and world.one("cnv") != "none" else {}
    world.number += 1
    world.note("tkt", await world.agent("POST", "/tickets", {"title": "Parcel lost", **linked}))


async def make_lone_ticket(world: World) -> None:
    world.note("tkt", await world.agent("POST", "/tickets", {"title": "Parcel lost"}))


async def make_team(world: World) -> None:
    world.note("team", await world.agent("POST", "/teams", {"name": world.name()}))


async def make_workflow(world: World) -> None:
    world.note("wfl", await world.agent("POST", "/workflows", WORKFLOW))


async def make_survey(world: World) -> None:
    world.note(
        "srv", await world.agent("POST", "/engagement/surveys", {"name": "S", "definition": DEFINITION})
    )


async def make_snippet(world: World) -> None:
    body = {"shortcut": world.name(), "title": "T", "text": "Hello"}
    world.note("snp", await world.agent("POST", "/snippets", body))


async def hire(world: World) -> None:
    body = {"email": f"{world.name()}@example.com", "role": "agent", "name": "Ken"}
    world.note("usr", await world.agent("POST", world.members, body))


async def promote(world: World) -> None:
    await world.agent("PATCH", f"{world.members}/{world.one('usr')}", {"role": "admin"})


async def listen_more(world: World) -> None:
    body = {"url": "http://localhost:9000/hook", "events": ["message.created"]}
    world.note("whk", await world.backend("POST", "/webhooks", body))


async def say_in(world: World) -> None:
    path = f"/conversations/{world.one('cnv')}/messages"
    await world.backend("POST", path, {"text": "Where is it?"})


async def answer(world: World, **fields: Any) -> None:
    path = f"/conversations/{world.one('cnv')}/messages"
    await world.agent("POST", path, {"text": "On its way.", **fields})


async def sign_in_as_customer(world: World) -> None:
    demo = world.service.demo
    channel = {"id": demo["channelId"], "identity": {"secret": demo["channelSecret"]}}
    body = {"channelId": channel["id"], "identity": signed(channel, "ada")}
    started = await world.customer("POST", "/session", body)
    world.token = plant(started["token"])


def receipt(kind: str) -> Action:
    """A receipt of the customer's browser for the newest message of the newest conversation."""

    async def do(world: World) -> None:
        path = f"/conversations/{world.one('cnv')}"
        messages = (await world.customer("GET", f"{path}/messages?order=desc&limit=1")).get("items", [])
        await world.customer("POST", f"{path}/read", {kind: messages[0]["id"] if messages else "msg_none"})

    return do


def on(kind: str, method: str, path: str, body: Any = None, *, by: str = "agent") -> Action:
    """An action on the newest object of a kind."""

    async def do(world: World) -> None:
        await getattr(world, by)(method, path.format(world.one(kind)), body)

    return do


ACTIONS: Final[dict[str, Action]] = {
    "begin": begin,
    "begin hidden": begin_hidden,
    "begin as agent": begin_as_agent,
    "message": say_in,
    "answer": answer,
    "customer signs in": sign_in_as_customer,
    "customer receives": receipt("reached"),
    "customer sees": receipt("seen"),
    "note": lambda world: answer(world, internal=True),
    "answer and close": lambda world: answer(world, then={"close": True}),
    "tag": on("cnv", "PATCH", "/conversations/{}", {"tags": ["vip"]}),
    "snooze": on("cnv", "PATCH", "/conversations/{}", {"snoozedUntil": "2030-01-01T00:00:00.000Z"}),
    "no answer needed": on("cnv", "PUT", "/conversations/{}/no-answer-needed", {"index": 0}),
    "wait again": on("cnv", "DELETE", "/conversations/{}/no-answer-needed"),
    "title": on("cnv", "PATCH", "/conversations/{}", {"title": "Order"}),
    "reveal": on("cnv", "PATCH", "/conversations/{}", {"visible": True}, by="backend"),
    "assign": on("cnv", "POST", "/conversations/{}/assign", {"assignee": None}),
    "close": on("cnv", "POST", "/conversations/{}/close"),
    "reopen": on("cnv", "POST", "/conversations/{}/reopen"),
    "read": on("cnv", "POST", "/conversations/{}/read"),
    "seen": on("cnv", "PUT", "/conversations/{}/seen", {"index": 0}),
    "type": on("cnv", "POST", "/conversations/{}/typing", {"typing": True}),
    "type a note": on("cnv", "POST", "/conversations/{}/typing", {"typing": True, "internal": True}),
    "contact types": on("cnv", "POST", "/conversations/{}/typing", {"typing": True}, by="backend"),
    "network logs": on("cnv", "PUT", "/conversations/{}/network-logs", {"requests": [1]}, by="backend"),
    "rate": on("cnv", "POST", "/conversations/{}/rating", {"rating": 3}, by="backend"),
    "delete": on("cnv", "DELETE", "/conversations/{}"),
    "rename contact": on("", "PUT", "/contacts/ada", {"name": "Ada Lovelace"}, by="backend"),
    "erase contact": on("", "DELETE", "/contacts/bob", by="backend"),
    "ticket": make_ticket,
    "change ticket": on("tkt", "PATCH", "/tickets/{}", {"status": "DONE"}),
    "delete ticket": on("tkt", "DELETE", "/tickets/{}"),
    "a ticket that stays": make_lone_ticket,
    "change what stays": on("tkt", "PATCH", "/tickets/{}", {"status": "DONE"}),
    "team": make_team,
    "change team": on("team", "PATCH", "/teams/{}", {"members": []}),
    "delete team": on("team", "DELETE", "/teams/{}"),
    "workflow": make_workflow,
    "change workflow": on("wfl", "PATCH", "/workflows/{}", {"enabled": True}),
    "delete workflow": on("wfl", "DELETE", "/workflows/{}"),
    "survey": make_survey,
    "respond": on("srv", "POST", "/surveys/{}/responses", {"answers": {"score": 2}}, by="backend"),
    "change survey": on("srv", "PATCH", "/engagement/surveys/{}", {"name": "T"}),
    "delete survey": on("srv", "DELETE", "/engagement/surveys/{}"),
    "snippet": make_snippet,
    "delete snippet": on("snp", "DELETE", "/snippets/{}"),
    "translate": on("", "PUT", "/translations/entries/text%3Aa", {"language": "en", "fields": {"text": "A"}}),
    "translate no more": on("", "DELETE", "/translations/entries/text%3Aa"),
    "remember": on("con", "POST", "/sessions/{}/memory", {"name": "plan", "content": "Gold"}),
    "remember otherwise": on("con", "PATCH", "/sessions/{}/memory/plan", {"content": "Silver"}),
    "forget": on("con", "DELETE", "/sessions/{}/memory/plan"),
    "forget all": on("con", "DELETE", "/sessions/{}/memory"),
    "hire": hire,
    "promote": promote,
    "webhook": listen_more,
    "change webhook": on("whk", "PATCH", "/webhooks/{}", {"description": "x"}, by="backend"),
    "disable webhook": on("whk", "PATCH", "/webhooks/{}", {"status": "disabled"}, by="backend"),
    "delete webhook": on("whk", "DELETE", "/webhooks/{}", by="backend"),
}
ALL: Final = sorted(ACTIONS)
UNMADE: Final = {"message.redacted", "message.deleted", "contact.changed", "contact.merged"}
"""Types that no action here causes."""
LASTING: Final = {"ticket.deleted", "survey.deleted", "webhook.disabled"}
"""Extensions whose deliveries no later action removes."""


@dataclass
class Listeners:
    """All listeners and their received events; the endpoint `asks` requests all types."""

    receivers: list[Receiver]
    asks: Receiver
    desk: Page
    heard: list[Any] = field(default_factory=list)

    async def consume(self, consumer: Consumer) -> None:
        """Receive the events of one consumer's connection."""
        while True:
            message = orjson.loads(await consumer.socket.get_message())
            if not message["event"].startswith("pusher"):
                document = orjson.loads(message["data"])
                assert document["type"] == message["event"]
                self.heard.append(document)


@asynccontextmanager
async def listened(service: Service) -> AsyncIterator[tuple[World, Listeners]]:
    """A project with a listener on each channel."""
    async with AsyncExitStack() as stack:
        first = await service.create("ada")
        receivers = []
        contract = [name for name in LISTABLE if name in CATALOG]
        for events, internal in (([], True), (contract, False), ([*LISTABLE], True)):
            receivers.append(await stack.enter_async_context(receiving()))
            await register(service, receivers[-1].url, events=events, internal=internal)
        *receivers, asks = receivers
        listeners = Listeners(receivers, asks, await stack.enter_async_context(page(service.dashboard)))
        members = f"/organisations/{await organisation_of(service)}/members"
        world = World(service, members, {"cnv": [first["id"]], "con": [first["contact"]["id"]]})
        nursery = await stack.enter_async_context(trio.open_nursery())
        for channel in (None, f"private-conversation-{first['id']}", "private-contact-ada"):
            consumer = await stack.enter_async_context(consuming(service))
            notified = await consumer.subscribe("c", channel, typingEvents=True)
            assert notified["event"] == "pusher_internal:subscription_succeeded", notified
            nursery.start_soon(listeners.consume, consumer)
        yield world, listeners
        nursery.cancel_scope.cancel()


async def play(actions: list[str]) -> tuple[set[str], set[str]]:
    """Run all actions and check every channel; return the types of internal events on agents' streams and at `asks`."""
    with TemporaryDirectory() as directory:
        async with (
            running(Path(directory), stream_ping_s=0.1) as service,
            listened(service) as (world, listeners),
        ):
            for action in actions:
                await ACTIONS[action](world)
            last = await service.say(await service.create("eve"), "the end")
            notified = [await listeners.desk.event()]
            while notified[-1]["data"].get("message", {}).get("id") != last["id"]:
                notified.append(await listeners.desk.event())
            await settle(service, listeners, last["id"])
            await look(world, listeners, notified)
            sent = {request.headers["Service-Event"] for request in listeners.asks.requests}
            return {event["type"] for event in notified if event["type"] in AGENTS}, sent


async def settle(service: Service, listeners: Listeners, last: str) -> None:
    """Wait until each channel has all its events, and the consumers have confirmed them."""

    async def delivered() -> bool:
        return all(
            any(last.encode() in request.body for request in receiver.requests)
            for receiver in (*listeners.receivers, listeners.asks)
        )

    async def heard() -> bool:
        return any(last == each["data"].get("message", {}).get("id") for each in listeners.heard)

    async def confirmed() -> bool:
        return not any(each["lag"] for each in await consumers(service))

    with trio.fail_after(HANG_TIMEOUT_S):
        for reached in (delivered, heard, confirmed):
            while not await reached():  # noqa: ASYNC110  # poll: there is no notification
                await trio.sleep(LOOK_S)  # poll: there is no notification


async def consumers(service: Service) -> list[Any]:
    """Return the listed consumers of the stream."""
    found: list[Any] = (await service.http.get("/s2s/stream/consumers")).json()["items"]
    return found


async def look(world: World, listeners: Listeners, notified: list[Any]) -> None:
    """Check every channel and export."""
    service = world.service
    feed = await service.events()
    assert all(event["type"] in CATALOG for event in feed)
    shown = [event for event in notified if event["type"] in CATALOG]
    stored = [event for event in shown if event["id"] in {each["id"] for each in feed}]
    assert stored == feed[len(feed) - len(stored) :], "agents get the feed's events in its order"
    internal = {event["id"] for event in notified if event["type"] in AGENTS}
    for receiver in listeners.receivers:
        for request in receiver.requests:
            assert request.headers["Service-Event"] in CATALOG
            assert orjson.loads(request.body)["id"] not in internal
    for request in listeners.asks.requests:
        kind, event = request.headers["Service-Event"], orjson.loads(request.body)
        assert (event["type"], kind in {*CATALOG, *EXTENSIONS}) == (kind, True)
        assert event["projectId"] == service.demo["projectId"]
    numbers: dict[str, list[int]] = {}
    for event in feed:
        if event["sequence"] is not None:
            numbers.setdefault(event["data"]["conversation"]["id"], []).append(event["sequence"])
    for found in numbers.values():
        assert found == list(range(found[0], found[0] + len(found))), "no holes"
    assert {each["type"] for each in listeners.heard} <= CATALOG.keys()
    confirmed = [(each["lag"], each["confirmedEventId"] in internal) for each in await consumers(service)]
    assert confirmed == [(0, False)] * 3
    for conversation in world.made["cnv"]:
        listed = await service.http.get(f"/s2s/conversations/{conversation}/events")
        if listed.status_code == 200:
            assert all(event["type"] in CATALOG for event in listed.json()["items"])
    exports = [await service.http.get("/s2s/contacts/ada/export")]
    exports += [await service.http.get("/s2s/events", params={"wait": "0", "limit": "200"})]
    for answer_ in exports:
        for name in AGENTS:
            assert f'"{name}"' not in answer_.text
    for items in (await service.http.get("/s2s/webhooks")).json()["items"]:
        if "note.created" in items["events"]:
            continue
        log = await service.http.get(f"/s2s/webhooks/{items['id']}/deliveries", params={"limit": "200"})
        assert all(each["eventType"] in CATALOG for each in log.json()["items"])


@pytest.mark.thorough
@given(st.lists(st.sampled_from(ALL), min_size=5, max_size=30))
@settings(max_examples=8)
def test_internal_events_reach_agents_only(actions: list[str]) -> None:
    trio.run(play, actions)


def test_all_actions_cause_every_internal_event_for_agents() -> None:
    order = list(ACTIONS)
    notified, sent = trio.run(play, order)
    assert notified == set(AGENTS) - UNMADE
    assert sent >= LASTING


async def test_endpoints_and_feeds_can_not_select_internal_events(service: Service) -> None:
    for name in AGENTS.keys() - EXTENSIONS.keys():
        answered = await service.http.post(
            "/s2s/webhooks", json={"url": "http://localhost:9/", "events": [name]}
        )
        assert (answered.status_code, answered.json()["errors"][0]["code"]) == (422, "unknown_event_type")
        asked = await service.http.get("/s2s/events", params={"types": name})
        assert asked.status_code == 400
