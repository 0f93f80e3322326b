"""Plays an example on the real service, and holds every answer and every event against the model."""

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
"""After this a message that is still held is taken back, before it is sent by itself."""
KEPT_S: Final = 60.0
"""Far longer than a delivery or a frame takes on a machine that does much else."""


@dataclass(frozen=True)
class AtOnce:
    """Two calls at the same time: what comes of them must be explained by one order of the two."""

    first: Command
    second: Command


@dataclass(frozen=True)
class Again:
    """A call under an `Idempotency-Key`, then once more, then another one under the same key."""

    command: Command
    at_once: bool


@dataclass(frozen=True)
class Doze:
    """Put the ticket at this place aside for a moment, and wait for it to wake by itself."""

    at: int


@dataclass(frozen=True)
class Elapse:
    """Hold messages for a second, one after the other, and wait until they are sent by themselves, in their order."""

    at: int
    texts: tuple[str, ...]


Step = Command | AtOnce | Again | Doze | Elapse


def bound(command: Command, world: World) -> Command:
    """The command, meant for nothing if it names a place where nothing is yet: the other one may fill it."""
    sizes = {"about": len(world.conversations), "at": len(_among(command, world))}
    places = {name: getattr(command, name, None) for name in sizes}
    unfilled = {name: -1 for name, at in places.items() if at is not None and at >= sizes[name]}
    if isinstance(command, OnMessage) and command.said(world) is None:
        unfilled["message"] = -1
    return replace(command, **unfilled) if unfilled else command  # type: ignore[type-var]


def _among(command: Command, world: World) -> Sequence[object]:
    """What the command names one of by its place."""
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
    """What shows how the commands have left things: of most no event tells, nor of a hidden conversation."""
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
    """One project of a running service, what it must be like, and what has come out of it."""

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
        """Hold what has come to the feed against what is due; see `World.settle`."""
        events, beyond = await self.events(), await self.events(extensions=True)
        self.told += len(events) + len(beyond)
        self.world.settle(events, beyond, mixed=mixed)

    async def events(self, *, extensions: bool = False) -> list[JSON]:
        """What the feed has behind what was read before: the contract's events, or those of the types beyond it."""
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
        """Do one step. Raises AssertionError if what comes of it can't be explained."""
        for number, each in enumerate(self.world.held):
            if each.state == "held" and not each.conversation.gone and now() - each.since > HELD_FOR:
                await self.do(TakeBack(number))  # on a busy machine its time would come
        await self.do(step)

    async def do(self, step: Step) -> None:
        """Do as `step`, without a look at the held messages."""
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
        mixed = any(isinstance(command, Merge) for command in commands)  # it takes several commits
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
        """The answers to calls that are made at the same time."""
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
                await self.step(look)  # looks again: nothing announces it

    async def elapse(self, at: int, texts: tuple[str, ...]) -> None:
        before, held = len(self.world.held), [Hold(at, text, seconds=1) for text in texts]
        for each in held:
            answer = await self.call(each.request(self.world))
            each.judge(self.world, answer)
        mine = self.world.held[before:]
        with trio.fail_after(KEPT_S):
            ids = {each.id for each in mine}
            while ids & {each["id"] for each in await self.waiting()}:  # noqa: ASYNC110
                await trio.sleep(0.05)  # looks again: nothing announces it
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
        """All there is, the whole feed, the deliveries and the frames are what the model says."""
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
        """The feed from its start is the log; what is beyond the contract in the order of each thing that it is about."""
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
        """What an endpoint was sent."""
        urls = set(endpoint.urls)
        return [each for each in self.receiver.requests if self.origin + each.path in urls]

    def notes(self, endpoint: Endpoint) -> list[JSON]:
        """The notes that an endpoint was sent."""
        envelopes = [orjson.loads(each.body) for each in self.deliveries(endpoint)]
        return [each["data"]["message"] for each in envelopes if each["type"] == NOTES]

    @property
    def origin(self) -> str:
        """What the receiver's URLs begin with."""
        return self.receiver.url.partition("/hook")[0]

    async def heard(self, ids: set[str]) -> None:
        """Wait until all of these have come on the stream, and at each endpoint what is for it."""
        while not ids <= {orjson.loads(frame)["id"] for frame in self.frames}:
            self.more = trio.Event()
            await self.more.wait()
        for endpoint in self.world.endpoints:
            while not endpoint.owed <= {orjson.loads(each.body)["id"] for each in self.deliveries(endpoint)}:
                self.receiver.arrived = trio.Event()
                await self.receiver.arrived.wait()

    def check_channel(self, bodies: Sequence[bytes], feed: list[JSON], *, ordered: bool = False) -> None:
        """Each envelope is, byte for byte, one that the feed has or had; with `ordered` in the feed's order.

        One that shows a message of which something was redacted since is so but for the text.
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
        """Whether an event is about what is gone."""
        subjects = {about(envelope["data"]), envelope["data"].get("ticket", {}).get("contactId")}
        return envelope["id"] in self.world.forgotten or bool(subjects & self.world.lost)

    def check_endpoint(self, endpoint: Endpoint, feed: list[JSON]) -> None:
        """It was sent what it is for, while it was, where it was; each conversation in order (decisions 6)."""
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
        """Keep every event that comes."""
        try:
            while True:
                message = orjson.loads(await websocket.get_message())
                if not message["event"].startswith("pusher"):
                    self.frames.append(message["data"])
                    self.more.set()
        except ConnectionClosed:
            pass

    async def subscribe(self, websocket: WebSocketConnection) -> None:
        """Subscribe to everything of the project."""
        hello = orjson.loads(orjson.loads(await websocket.get_message())["data"])
        channel = f"private-project-{self.world.project}"
        asked = {"socket_id": hello["socket_id"], "channel_name": channel, "consumerId": "model"}
        auth = (await self.call(Request("POST", "/s2s/stream/auth", asked))).body["auth"]
        data = {"channel": channel, "auth": auth}
        await websocket.send_message(orjson.dumps({"event": "pusher:subscribe", "data": data}).decode())
        answer = orjson.loads(await websocket.get_message())
        assert answer["event"] == "pusher_internal:subscription_succeeded", answer


def without_words(envelope: JSON) -> JSON:
    """An event's envelope without what of a message a redaction takes away."""
    data = dict(envelope["data"])
    if "message" in data:
        kept = {name: value for name, value in data["message"].items() if name not in ("text", "redactedAt")}
        data["message"] = kept
    return {**envelope, "data": data}


@asynccontextmanager
async def playing(service: Service, receiver: Receiver) -> AsyncIterator[Play]:
    """A new project with a workflow, an endpoint that gets everything, and a subscriber."""
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
