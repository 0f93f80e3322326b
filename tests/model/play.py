"""Plays an example on the real service and compares every answer and event with the model."""

from __future__ import annotations

import copy
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import httpx
import orjson
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, open_websocket_url

from tests.model.commands import Answer, Command, Fetch, Messages, OnConversation, Request, refused
from tests.model.customers import ListOf, Merge
from tests.model.held import LONG_S, Hold, ListHeld, OnHeld, TakeBack, send
from tests.model.machines import LookAtMachine, OnMachine
from tests.model.reports import BYS, KINDS, LookAtReport
from tests.model.rewriting import OnMessage
from tests.model.surveys import LookAtSurvey, OnSurvey
from tests.model.things import EXTENSIONS, JSON, Endpoint, Survey, about, exactly, now, shown
from tests.model.tickets import Bulk, ChangeTicket, ListTickets, LookAtTicket
from tests.model.webhooks import NOTES, AddEndpoint, Deliveries, ListEndpoints, LookAtEndpoint, OnEndpoint
from tests.model.world import FLOWS, World, seen
from tests.support.api.service import Service
from tests.support.api.staff import organisation_of
from tests.support.api.surveys import DEFINITION
from tests.support.sockets.receivers import Receiver
from tests.support.sockets.receivers import Request as Delivered

HELD_FOR: Final = timedelta(seconds=LONG_S / 2)
"""A message held for longer is withdrawn before the service sends it."""
KEPT_S: Final = 60.0
"""Far longer than a delivery or a frame takes on a busy machine."""


@dataclass(frozen=True)
class AtOnce:
    """Two calls at the same time; one order of the two must explain their results."""

    first: Command
    second: Command


@dataclass(frozen=True)
class Again:
    """A call with an `Idempotency-Key`, its repetition, then a different call with the same key."""

    command: Command
    at_once: bool


@dataclass(frozen=True)
class Doze:
    """Snooze the ticket at this index for a moment, and wait until its time wakes it."""

    at: int


@dataclass(frozen=True)
class Elapse:
    """Hold several messages for a second, and wait until the service sends them in order."""

    at: int
    texts: tuple[str, ...]


Step = Command | AtOnce | Again | Doze | Elapse


def bound(command: Command, world: World) -> Command:
    """Return the command, with an unused index replaced by an unknown one: the concurrent call might fill it."""
    sizes = {"about": len(world.conversations), "at": len(_among(command, world))}
    places = {name: getattr(command, name, None) for name in sizes}
    unfilled = {name: -1 for name, at in places.items() if at is not None and at >= sizes[name]}
    if isinstance(command, OnMessage) and command.said(world) is None:
        unfilled["message"] = -1
    return replace(command, **unfilled) if unfilled else command  # type: ignore[type-var]


def _among(command: Command, world: World) -> Sequence[object]:
    """Return the list that the command's index refers to."""
    match command:
        case ChangeTicket():
            return world.tickets
        case OnSurvey():
            return world.surveys
        case OnEndpoint():
            return world.endpoints
        case OnMachine():
            return world.machines
        case OnHeld():
            return world.held
    return world.conversations


def looks(*commands: Command) -> list[Command]:
    """Return calls that show the state after these commands, which events show only in part."""
    found: list[Command] = []
    for command in commands:
        match command:
            case ChangeTicket(at=at):
                found.append(LookAtTicket(at))
            case OnSurvey(at=at):
                found.append(LookAtSurvey(at))
            case OnEndpoint(at=at):
                found.append(LookAtEndpoint(at))
            case OnMachine(at=at):
                found.append(LookAtMachine(at))
            case OnHeld():
                found.append(ListHeld())
            case Merge(user=user, source=source):
                found += [ListOf(user), ListOf(source)]
            case OnConversation(at=at):
                found.append(Fetch(at))
    return found


@dataclass
class Play:
    """One project of a running service, its model, and the results so far."""

    service: Service
    receiver: Receiver
    world: World
    key: str
    stream_key: str
    newest: dict[bool, str] = field(default_factory=dict)
    raw: list[bytes] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    more: trio.Event = field(default_factory=trio.Event)
    keys: Iterator[int] = field(default_factory=itertools.count)
    calls: int = 0
    told: int = 0

    # --- calls

    async def call(self, request: Request, key: str | None = None) -> Answer:
        """Make one call."""
        demo = self.service.demo
        token = demo["token"] if request.agent else request.secret or self.key
        headers = {"Authorization": f"Bearer {token}"}
        headers |= {"project": self.world.project} if request.agent else {}
        headers |= {} if key is None else {"Idempotency-Key": key}
        body = {"json": request.body} if request.body is not None else {}
        self.calls += 1
        asked = now()
        answer = await self.service.http.request(request.method, request.path, headers=headers, **body)  # type: ignore[arg-type]
        said = answer.json() if answer.content else {}
        return Answer(answer.status_code, said, "Idempotent-Replayed" in answer.headers, asked, now())

    async def settle(self, *, mixed: bool = False) -> None:
        """Compare new events of the feed with the due ones; see `World.settle`."""
        events, beyond = await self.events(), await self.events(extensions=True)
        self.told += len(events) + len(beyond)
        self.world.settle(events, beyond, mixed=mixed)

    async def events(self, *, extensions: bool = False) -> list[JSON]:
        """Return the feed's new events: those of the contract, or with `extensions` those beyond it."""
        found: list[JSON] = []
        while True:
            params = {"limit": "200"} | ({"types": ",".join(sorted(EXTENSIONS))} if extensions else {})
            params |= {"after": self.newest[extensions]} if extensions in self.newest else {}
            headers = {"Authorization": f"Bearer {self.key}"}
            answer = await self.service.http.get("/s2s/events", params=params, headers=headers)
            items: list[JSON] = answer.json()["items"]
            if not items:
                return found
            self.raw.append(answer.content)
            self.newest[extensions] = items[-1]["id"]
            found += items

    # --- steps

    async def step(self, step: Step) -> None:
        """Do one step. Raises AssertionError if its results can't be explained."""
        for number, each in enumerate(self.world.held):
            if each.state == "held" and not each.conversation.gone and now() - each.since > HELD_FOR:
                await self.do(TakeBack(number))  # a busy machine might reach its send time
        await self.do(step)

    async def do(self, step: Step) -> None:
        """Do a step without withdrawing messages that were held for long."""
        match step:
            case AtOnce(first, second):
                await self.at_once(first, second)
            case Again(command, at_once):
                await self.again(command, at_once)
            case Doze(at):
                await self.doze(at)
            case Elapse(at, texts):
                await self.elapse(at, texts)
            case _:
                answer = await self.call(step.request(self.world))
                step.judge(self.world, answer)
                await self.settle()

    async def at_once(self, first: Command, second: Command) -> None:
        commands = (bound(first, self.world), bound(second, self.world))
        answers = await self.both(*(command.request(self.world) for command in commands))
        events, beyond = await self.events(), await self.events(extensions=True)
        mixed = any(isinstance(command, Merge) for command in commands)  # a merge takes several commits
        looked = [(look, await self.call(look.request(self.world))) for look in looks(*commands)]
        wrong: list[AssertionError] = []
        for order in itertools.permutations(zip(commands, answers, strict=True)):
            world = copy.deepcopy(self.world)
            try:
                for command, answer in order:
                    command.judge(world, answer)
                world.settle(events, beyond, mixed=mixed)
                for look, answer in looked:
                    look.judge(world, answer)
            except AssertionError as error:
                wrong.append(error)
            else:
                self.world = world
                return
        raise AssertionError(f"no order explains {answers} and {events}: {wrong}")

    async def both(self, *requests: Request, key: str | None = None) -> list[Answer]:
        """Make calls at the same time and return their answers."""
        answers: dict[int, Answer] = {}

        async def one(number: int, request: Request) -> None:
            answers[number] = await self.call(request, key)

        async with trio.open_nursery() as nursery:
            for number, request in enumerate(requests):
                nursery.start_soon(one, number, request)
        return [answers[number] for number in range(len(requests))]

    async def again(self, command: Command, at_once: bool) -> None:
        key = f"key-{next(self.keys)}"
        request = command.request(self.world)
        if at_once:
            answers = await self.both(request, request, key=key)
            early = "idempotency_in_progress"
            answers.sort(key=lambda answer: (answer.body.get("code") == early, answer.replayed))
        else:
            answers = [await self.call(request, key)]
        done = answers[0]
        command.judge(self.world, done)
        await self.settle()
        if done.status != 200:
            return
        for other in answers[1:]:
            if other.status == 200:
                assert other == Answer(200, done.body, replayed=True)
            else:
                refused(other, 409, "idempotency_in_progress")
        assert await self.call(request, key) == Answer(200, done.body, replayed=True)
        changed = Request(request.method, request.path, {**(request.body or {}), "x": 1}, request.agent)
        assert (await self.call(changed, key)).status == 422
        await self.settle()

    async def doze(self, at: int) -> None:
        await self.step(Bulk((at,), None, None, False, duration_s=0.001))
        look = LookAtTicket(at)
        ticket = look.target(self.world)
        with trio.fail_after(KEPT_S):
            while ticket is not None and ticket.snooze is not None:
                await self.step(look)  # poll: there is no notification

    async def elapse(self, at: int, texts: tuple[str, ...]) -> None:
        before, held = len(self.world.held), [Hold(at, text, seconds=1) for text in texts]
        for each in held:
            answer = await self.call(each.request(self.world))
            each.judge(self.world, answer)
        mine = self.world.held[before:]
        with trio.fail_after(KEPT_S):
            ids = {each.id for each in mine}
            while ids & {each["id"] for each in await self.waiting()}:  # noqa: ASYNC110
                await trio.sleep(0.05)  # poll: there is no notification
        for message in mine:
            send(self.world, message)
        await self.settle()
        await self.step(ListHeld())

    async def waiting(self) -> Sequence[JSON]:
        """Return the messages that are held."""
        found: Sequence[JSON] = (await self.call(ListHeld().request(self.world))).body["items"]
        return found

    # --- the end

    async def conclude(self) -> None:
        """Assert that all objects, the whole feed, the deliveries and the frames match the model."""
        for at in range(len(self.world.conversations)):
            await self.step(Fetch(at))
            await self.step(Messages(at))
        for at in range(len(self.world.surveys)):
            await self.step(LookAtSurvey(at))
        await self.step(ListTickets(None))
        await self.step(ListEndpoints())
        for at in range(len(self.world.machines)):
            await self.step(LookAtMachine(at))
        await self.step(ListHeld())
        for kind, by in itertools.product(KINDS, BYS):
            await self.step(LookAtReport(kind, by))
        assert not any(each.woken for each in self.world.tickets if each is not None), "woken and not told"
        self.newest = {}
        feed, beyond = await self.events(), await self.events(extensions=True)
        self.check_feed(feed, beyond=False)
        self.check_feed(beyond, beyond=True)
        with trio.fail_after(KEPT_S):
            await self.heard({event["id"] for event in feed})
        self.check_channel([event.encode() for event in self.frames], feed, ordered=True)
        for number, endpoint in enumerate(self.world.endpoints):
            await self.step(Deliveries(number))
            self.check_endpoint(endpoint, [*feed, *beyond])

    def check_feed(self, feed: list[JSON], *, beyond: bool) -> None:
        """Assert that the whole feed is the log; events beyond the contract are only ordered within each subject."""
        feed = [event for event in feed if not self.world.fades(event)]
        log = [event for event in self.world.log if (event.type in EXTENSIONS) is beyond]
        if beyond:
            log, feed = (
                sorted(log, key=lambda each: each.subject),
                sorted(feed, key=lambda each: about(each["data"])),
            )
        told = [
            [event["type"], event["sequence"], seen(event["type"], shown(event["data"]))] for event in feed
        ]
        wanted = [[event.type, event.sequence, seen(event.type, shown(event.data))] for event in log]
        assert exactly(wanted, told), (wanted, told)

    def deliveries(self, endpoint: Endpoint) -> list[Delivered]:
        """Return the deliveries that an endpoint got."""
        urls = set(endpoint.urls)
        return [each for each in self.receiver.requests if self.origin + each.path in urls]

    def notes(self, endpoint: Endpoint) -> list[JSON]:
        """Return the notes that an endpoint got."""
        envelopes = [orjson.loads(each.body) for each in self.deliveries(endpoint)]
        return [each["data"]["message"] for each in envelopes if each["type"] == NOTES]

    @property
    def origin(self) -> str:
        """The part that the receiver's URLs have in common."""
        return self.receiver.url.partition("/hook")[0]

    async def heard(self, ids: set[str]) -> None:
        """Wait until all of these events have arrived on the stream, and at each endpoint the ones it is owed."""
        while not ids <= {orjson.loads(frame)["id"] for frame in self.frames}:
            self.more = trio.Event()
            await self.more.wait()
        for endpoint in self.world.endpoints:
            while not endpoint.owed <= {orjson.loads(each.body)["id"] for each in self.deliveries(endpoint)}:
                self.receiver.arrived = trio.Event()
                await self.receiver.arrived.wait()

    def check_channel(self, bodies: Sequence[bytes], feed: list[JSON], *, ordered: bool = False) -> None:
        """Assert that each envelope is, byte for byte, one that the feed has or had; with `ordered`, in the feed's order.

        If a message was redacted later, its earlier envelopes may differ from the feed in their text.
        """
        known, wordless = b"".join(self.raw), {event["id"]: without_words(event) for event in feed}
        for body in bodies:
            envelope = orjson.loads(body)
            rewritten = (envelope["data"].get("message") or {}).get("id") in self.world.rewritten
            same = rewritten and without_words(envelope) == wordless.get(envelope["id"])
            assert body in known or same or self.erased(envelope), body
        if ordered:
            ids = {event["id"] for event in feed}
            order = [orjson.loads(body)["id"] for body in bodies]
            assert [each for each in order if each in ids] == [event["id"] for event in feed]

    def erased(self, envelope: JSON) -> bool:
        """Return whether an event is about an erased object."""
        subjects = {about(envelope["data"]), envelope["data"].get("ticket", {}).get("contactId")}
        return envelope["id"] in self.world.forgotten or bool(subjects & self.world.lost)

    def check_endpoint(self, endpoint: Endpoint, feed: list[JSON]) -> None:
        """Assert that an endpoint got its events at the URL of that time, each conversation in order (decisions 6)."""
        noted, sent = self.notes(endpoint), self.deliveries(endpoint)
        assert {each["conversationId"] for each in noted} <= endpoint.noted
        sent = [each for each in sent if orjson.loads(each.body)["type"] != NOTES]
        self.check_channel([each.body for each in sent], feed)
        last: dict[str, int] = {}
        for each in sent:
            envelope = orjson.loads(each.body)
            previous = each.headers.get("Service-Previous-Sequence")
            taken = endpoint.has_taken(envelope["id"], each.path, previous)
            assert taken or self.erased(envelope), ("not for this endpoint", each, endpoint)
            if envelope["sequence"] is not None:
                about = envelope["data"]["conversation"]["id"]
                assert envelope["sequence"] > last.get(about, 0), "out of order"
                last[about] = envelope["sequence"]

    # --- the stream

    async def listen(self, websocket: WebSocketConnection) -> None:
        """Keep every event that arrives."""
        try:
            while True:
                message = orjson.loads(await websocket.get_message())
                if not message["event"].startswith("pusher"):
                    self.frames.append(message["data"])
                    self.more.set()
        except ConnectionClosed:
            pass

    async def subscribe(self, websocket: WebSocketConnection) -> None:
        """Subscribe to all of the project's events."""
        hello = orjson.loads(orjson.loads(await websocket.get_message())["data"])
        channel = f"private-project-{self.world.project}"
        asked = {"socket_id": hello["socket_id"], "channel_name": channel, "consumerId": "model"}
        auth = (await self.call(Request("POST", "/s2s/stream/auth", asked))).body["auth"]
        data = {"channel": channel, "auth": auth}
        await websocket.send_message(orjson.dumps({"event": "pusher:subscribe", "data": data}).decode())
        answer = orjson.loads(await websocket.get_message())
        assert answer["event"] == "pusher_internal:subscription_succeeded", answer


def without_words(envelope: JSON) -> JSON:
    """Return an event's envelope without the parts of a message that a redaction removes."""
    data = dict(envelope["data"])
    if "message" in data:
        kept = {name: value for name, value in data["message"].items() if name not in ("text", "redactedAt")}
        data["message"] = kept
    return {**envelope, "data": data}


@asynccontextmanager
async def playing(service: Service, receiver: Receiver) -> AsyncIterator[Play]:
    """Create a project with a workflow, an endpoint for all events, and a subscriber."""
    play = await _prepared(service, receiver)
    url = f"{service.url.replace('http', 'ws', 1)}/app/{play.stream_key}?protocol=7"
    async with open_websocket_url(url) as websocket:
        await play.subscribe(websocket)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(play.listen, websocket)
            yield play
            nursery.cancel_scope.cancel()


async def _prepared(service: Service, receiver: Receiver) -> Play:
    async def made(path: str, body: JSON, **headers: str) -> JSON:
        answer: httpx.Response = await service.dashboard.post(path, json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        said: JSON = answer.json()
        return said

    organisation = await organisation_of(service)
    new = {"name": "Model", "settings": {"languages": ["en", "de"], "primaryLanguage": "en"}}
    project = (await made(f"/organisations/{organisation}/projects", new))["id"]
    key = await made(f"/projects/{project}/keys", {"label": "model"})
    asking = {"name": "Ask", "trigger": {"type": "manual"}, "flows": FLOWS}
    workflow = (await made("/workflows", asking, project=project))["id"]
    asked: JSON = {"name": "After the chat", "definition": DEFINITION}
    survey = (await made("/engagement/surveys", asked, project=project))["id"]
    me = (await service.dashboard.get("/users/me")).json()
    backend = {"type": "key", "id": key["id"], "name": "model"}
    world = World(project, {"id": me["id"], "name": me["name"]}, workflow, receiver.url, backend)
    world.surveys.append(Survey(survey, asked["name"], [asked["definition"]]))
    play = Play(service, receiver, world, key["key"], "")
    receiver.requests.clear()
    await play.step(AddEndpoint())
    play.stream_key = (await play.call(Request("GET", "/s2s/project"))).body["streamKey"]
    return play
