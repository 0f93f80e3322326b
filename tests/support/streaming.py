"""Builders for the tests of the realtime stream: a store, a log, a hub, and a front to dial."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
import pytest
import trio
from hypercorn.typing import ASGIFramework
from trio_websocket import ConnectionClosed, WebSocketConnection, connect_websocket

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.server_keys import hash_server_key
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.types import EphemeralEvent, EventDraft, StoredEvent
from deskwire.engine.ports import Commit, Reader, Store, Transaction
from deskwire.engine.stream.channel import StreamChannel, open_channel
from deskwire.engine.stream.hub import Hub
from deskwire.engine.stream.subscription import Loss, Subscription, SubscriptionBatch
from deskwire.engine.stream.token import Grant, issue
from deskwire.http.server.adapters.hypercorn import HypercornServer
from deskwire.http.server.listener import FrontLimits, serve_front
from deskwire.http.stream.server import RealtimeStream
from deskwire.http.transport.connection import FrontStream
from deskwire.http.transport.connection_slots import Connections
from deskwire.http.transport.fair_scheduling import FairScheduler
from deskwire.storage.sqlite.database import connect_writer, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.store import open_store
from deskwire.storage.sqlite.transaction import SqliteTransaction
from tests.support.seeing import seen

T = TypeVar("T")
NOON: Final = 1_790_000_000_000
"""The start time of the tests, in milliseconds since the epoch."""
KEY: Final = b"k" * 32
STREAM_KEY: Final = "shop-stream"
SERVER_KEY: Final = "sk_" + "s" * 43
PROJECT_ID: Final = "prj_01M3250V00PPPPPPPPPPPPPPPP"  # the same in every process that runs tests
KEY_ID: Final = "key_01M3250V00KKKKKKKKKKKKKKKK"
CHANNEL: Final = f"private-project-{PROJECT_ID}"


def trio_ms() -> int:
    """Return wall-clock time that follows Trio's, even if that is virtual."""
    return NOON + int(trio.current_time() * 1000)


class JumpStore:
    """A store without a thread, for tests with virtual time; `publish` is called with each commit's events.

    Args:
        write_takes_s, read_takes_s: virtual duration of each; a read shows the state at its start.
        write_failure, read_failure: an exception that each write or read raises.
    """

    def __init__(self, directory: Path) -> None:
        migrate(directory / FILE_NAME)
        self._tx = self._here = SqliteTransaction(connect_writer(directory / FILE_NAME))
        self.is_live: Callable[[int], bool] = lambda _: False
        self._tx.is_live = lambda incarnation: self.is_live(incarnation)  # type: ignore[method-assign]
        self.publish: Callable[[list[StoredEvent]], None] = lambda _: None
        self.write_takes_s = 0.0
        self.read_takes_s = 0.0
        self.write_failure: Exception | None = None
        self.read_failure: Exception | None = None

    async def write(self, job: Callable[[Transaction], T]) -> T:
        await trio.sleep(self.write_takes_s)  # virtual time: the mock clock jumps
        if self.write_failure is not None:
            raise self.write_failure
        result = job(self._tx)
        events, self._tx.published = list(self._tx.published), []
        self.publish(events)
        return result

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        async def carry_out() -> None:
            try:
                outcome: T | Exception = await self.write(job)
            except Unavailable as error:
                outcome = error
            ended(outcome)

        trio.lowlevel.spawn_system_task(carry_out)

    async def read(self, query: Callable[[Reader], T]) -> T:
        await trio.lowlevel.checkpoint()
        if self.read_failure is not None:
            raise self.read_failure
        result = query(self._tx)
        await trio.sleep(self.read_takes_s)  # virtual time: the mock clock jumps
        return result

    def revoke(self, key_id: str) -> None:
        """Revoke a server key, concurrently with a slow write."""
        key = self._tx.key(key_id)
        assert key is not None
        self._tx.revoke_key(key.rowid, NOON)

    def remove_project(self) -> None:
        """Remove the project of these tests, concurrently with a slow read."""
        project = self._tx.project(PROJECT_ID)
        assert project is not None
        self._tx.remove_project(project.rowid, NOON)

    @property
    def tx(self) -> SqliteTransaction:
        """The transaction itself, for operations that no port has."""
        return self._tx

    def close(self) -> None:
        self._tx.conn.close()


def found_project(tx: Transaction) -> Project:
    """Return the one project of these tests, created if it is missing."""
    known = tx.project(PROJECT_ID)
    if known is not None:
        return known
    organisation = tx.insert_organisation(new_id("org", NOON), "Shop", NOON)
    project = tx.insert_project(PROJECT_ID, organisation, "Shop", STREAM_KEY, NOON)
    tx.insert_key(KEY_ID, project.rowid, hash_server_key(SERVER_KEY), SERVER_KEY[-4:], "backend", NOON)
    return project


@dataclass(eq=False)
class Stage:
    """A store with one project, its log, and the hub over them."""

    store: Store
    log: EventLog
    hub: Hub
    project: Project
    clock: Callable[[], int]
    numbers: int = 0

    @property
    def channel(self) -> StreamChannel:
        return StreamChannel(self.project.rowid, CHANNEL, "project", PROJECT_ID)

    async def emit(self, count: int = 1, *, padding: int = 0) -> list[StoredEvent]:
        """Commit events with growing numbers."""
        first, self.numbers = self.numbers, self.numbers + count
        project, at = self.project, self.clock()

        def job(tx: Transaction) -> list[StoredEvent]:
            return [
                tx.append_event(
                    project, EventDraft("contact.updated", None, {"n": n, "x": "x" * padding}), None, at
                )
                for n in range(first, first + count)
            ]

        return await self.store.write(job)

    async def hold(
        self,
        consumer_id: str,
        resume: str = "auto",
        lost: Callable[[Loss], None] = lambda _: None,
        *,
        typing: bool = False,
        channel: str = CHANNEL,
    ) -> Subscription:
        """Subscribe without a socket."""
        grant = Grant(self.project.id, KEY_ID, "1.1", channel, consumer_id, typing, resume)
        opened = open_channel(self.project, channel)
        return await self.hub.subscribe(self.project, opened, grant, lost)

    async def announce(self, kind: str, data: Mapping[str, Any]) -> StoredEvent:
        """Commit one event with this data."""
        project, at = self.project, self.clock()
        return await self.store.write(
            lambda tx: tx.append_event(project, EventDraft(kind, None, data), None, at)
        )


def typing(conversation_id: str = "cnv_x", user_id: str = "u1", number: int = 0) -> EphemeralEvent:
    """Return a typing event of this conversation and contact."""
    return EphemeralEvent(f"evt_{number}", "agent.typing.started", 1, 1, conversation_id, user_id, b"{}")


def authorization(
    socket_id: str,
    now_ms: int,
    channel: str = CHANNEL,
    consumer_id: str = "c1",
    *,
    resume: str = "auto",
    typing: bool = False,
) -> str:
    """Return the `auth` of a subscription, as the service issues it."""
    grant = Grant(PROJECT_ID, KEY_ID, socket_id, channel, consumer_id, typing, resume)
    return f"{STREAM_KEY}:{issue(KEY, grant, now_ms=now_ms)}"


def number(event: StoredEvent) -> int:
    """Return the number that an event of `Stage.emit` carries."""
    return int(orjson.loads(event.body)["data"]["n"])


async def jump_stage(store: JumpStore, clock: Callable[[], int] = trio_ms, **settings: Any) -> Stage:
    """Return a stage on a store without threads."""
    project = await store.write(found_project)
    log = EventLog(store, seen(store, lambda r: r.last_event_position()), ring_events=100, ring_bytes=10**6)
    store.publish = log.publish
    return Stage(store, log, Hub(store, log, clock, **settings), project, clock)


@asynccontextmanager
async def real_stage(directory: Path, clock: Callable[[], int], **settings: Any) -> AsyncIterator[Stage]:
    """Yield a stage on a real store, whose positions are saved."""
    log: EventLog | None = None

    def publish(commit: Commit) -> None:
        if log is not None:
            log.publish(commit.events, commit.erased)

    async with open_store(directory, batch=64, readers=2, on_commit=publish) as store:
        project = await store.write(found_project)
        log = EventLog(
            store, seen(store, lambda r: r.last_event_position()), ring_events=100, ring_bytes=10**6
        )
        async with trio.open_nursery() as nursery:
            hub = Hub(store, log, clock, save_s=0.01, **settings)
            await nursery.start(hub.run)
            yield Stage(store, log, hub, project, clock)
            nursery.cancel_scope.cancel()


@dataclass(eq=False)
class Front:
    """A running front: its address, and a way to stop it."""

    port: int
    stream: RealtimeStream
    stop: trio.Event = field(default_factory=trio.Event)
    stopped: trio.Event = field(default_factory=trio.Event)
    tls: ssl.SSLContext | None = None
    clients: list[Client] = field(default_factory=list)
    streams: list[trio.SocketStream] = field(default_factory=list)

    async def dial(self, query: str = "?protocol=7&client=test", key: str = STREAM_KEY) -> Client:
        """Return a websocket client that has not read anything yet."""
        async_nursery = _nursery.get()
        ws = await connect_websocket(
            async_nursery, "127.0.0.1", self.port, f"/app/{key}{query}", use_ssl=False
        )
        self.clients.append(Client(ws))
        return self.clients[-1]

    async def connect(self) -> Client:
        """Return a websocket client that knows its socket id."""
        client = await self.dial()
        await client.expect("pusher:connection_established")
        return client

    async def raw(self) -> trio.SocketStream:
        """Return a TCP connection."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        self.streams.append(stream)
        return stream

    async def close_clients(self) -> None:
        """End all connections of this test's clients."""
        for client in self.clients:
            await client.cut()
        for stream in self.streams:
            await trio.aclose_forcefully(stream)


_nursery: trio.lowlevel.RunVar[trio.Nursery] = trio.lowlevel.RunVar("clients")


@dataclass(eq=False)
class Client:
    """A minimal Pusher client on trio-websocket."""

    ws: WebSocketConnection
    socket_id: str = ""

    async def receive(self) -> dict[str, Any]:
        """Return the next message, with its `data` parsed if it is a text."""
        message: dict[str, Any] = orjson.loads(await self.ws.get_message())
        if isinstance(message["data"], str):
            message["data"] = orjson.loads(message["data"])
        return message

    async def expect(self, name: str) -> Any:
        """Return the data of the next message, which must have this name."""
        message = await self.receive()
        assert message["event"] == name, message
        if name == "pusher:connection_established":
            self.socket_id = message["data"]["socket_id"]
        return message["data"]

    async def say(self, name: str, data: object) -> None:
        await self.ws.send_message(orjson.dumps({"event": name, "data": data}).decode())

    def auth(self, consumer_id: str, *, resume: str = "auto", typing: bool = False, now_ms: int) -> str:
        return authorization(self.socket_id, now_ms, consumer_id=consumer_id, resume=resume, typing=typing)

    async def subscribe(self, consumer_id: str, *, resume: str = "auto", now_ms: int = NOON) -> Any:
        """Subscribe to the project's channel; return the data of the answer."""
        auth = self.auth(consumer_id, resume=resume, now_ms=now_ms)
        await self.say("pusher:subscribe", {"channel": CHANNEL, "auth": auth})
        return await self.expect("pusher_internal:subscription_succeeded")

    async def numbers(self, count: int) -> list[int]:
        """Return the numbers in the next events."""
        return [(await self.expect("contact.updated"))["data"]["n"] for _ in range(count)]

    async def closed(self) -> int:
        """Return the close code, once the server has closed."""
        with pytest.raises(ConnectionClosed) as closed:
            await self.hear_out()
        assert closed.value.reason is not None
        return int(closed.value.reason.code)

    async def hear_out(self) -> None:
        """Read until an exception is raised."""
        while True:
            await self.ws.get_message()

    async def cut(self) -> None:
        """End the TCP connection without a close frame."""
        await trio.aclose_forcefully(self.ws._stream)  # trio-websocket has no public method for this


@asynccontextmanager
async def real_front(
    stage: Stage,
    app: ASGIFramework,
    limits: FrontLimits | None = None,
    tls: ssl.SSLContext | None = None,
    connections: Connections | None = None,
    head_s: float = 10.0,
    **settings: Any,
) -> AsyncIterator[Front]:
    """Run a front on a port of its own, with clients' tasks in a nursery that ends with it."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stream = RealtimeStream(stage.store, stage.hub, stage.clock, keys=lambda: (KEY,), **settings)
    front = Front(listeners[0].socket.getsockname()[1], stream, tls=tls)

    def context() -> ssl.SSLContext:
        assert front.tls is not None, "asked for only with one"
        return front.tls

    async def run(task_status: trio.TaskStatus[None]) -> None:
        await serve_front(
            listeners,
            HypercornServer(app, idle_s=5.0, head_s=head_s),
            stream_handler=stream.handle,
            close_streams=stream.close_all,
            stop=front.stop,
            limits=limits or FrontLimits(requests_s=1, shutdown_s=3),
            tls=None if tls is None else context,
            connections=connections,
            task_status=task_status,
        )
        front.stopped.set()

    async with trio.open_nursery() as serving:
        serving.start_soon(stream.run)
        await serving.start(run)
        async with trio.open_nursery() as clients:
            _nursery.set(clients)
            yield front
            await front.close_clients()
            clients.cancel_scope.cancel()
        front.stop.set()
        await front.stopped.wait()
        serving.cancel_scope.cancel()


Send = Callable[[Any], Awaitable[None]]


async def small_app(scope: Any, receive: Callable[[], Awaitable[Any]], send: Send) -> None:
    """Serve `/big` with 64 MiB, never answer `/never`, and answer all other paths with the path."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    if scope["path"] == "/never":
        await trio.sleep_forever()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/big":
        for _ in range(64):
            await send({"type": "http.response.body", "body": bytes(2**20), "more_body": True})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


async def next_batch(held: Subscription) -> SubscriptionBatch:
    """Return a subscription's next batch, once it has events, its position has moved, or it has ended."""
    while True:
        before = held._cursor
        batch = held.recent() or await held.stored()
        if batch.events or batch.upto > before or not held.current:
            return batch
        await held._log.wait(held.channel.source, before)


async def serve_one(stream: RealtimeStream, transport: trio.abc.Stream) -> None:
    """Serve one connection, and write to it, until it ends."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.run)
        await stream.handle(transport)
        nursery.cancel_scope.cancel()


def delay_turns(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let each connection wait longer for its turn."""
    acquire = FairScheduler.acquire

    async def late(self: FairScheduler, holder: Hashable, network: str) -> None:
        if isinstance(holder, FrontStream):
            await trio.sleep(seconds)  # real time: the clients are sockets
        await acquire(self, holder, network)

    monkeypatch.setattr(FairScheduler, "acquire", late)
