"""Receivers on real sockets, and an installation with a real store."""

from __future__ import annotations

import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EventDraft, StoredEvent
from deskwire.engine.ports import Commit, Store, Transaction
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.http.address import AddressPolicy, IPAddress, Resolver
from deskwire.engine.webhooks.http.client import Client
from deskwire.engine.webhooks.http.connectors import DirectConnector
from deskwire.engine.webhooks.signature import new_secret
from deskwire.storage.sqlite.store import SqliteStore, open_store

EPOCH_MS = 1_790_000_000_000
SECRET = "an installation's secret of a good length"


def wall() -> int:
    """Return wall-clock milliseconds that follow Trio's time."""
    return EPOCH_MS + round(trio.current_time() * 1000)


@dataclass(frozen=True)
class Request:
    """A request that a receiver got, with Trio's time."""

    at: float
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


Behaviour = Callable[[trio.abc.Stream, Request], Awaitable[None]]


def answering(status: str, body: bytes = b"", extra: bytes = b"") -> Behaviour:
    """Return a behaviour that answers each request with `status`, such as "200 OK"."""
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n".encode() + extra + b"\r\n"

    async def answer(stream: trio.abc.Stream, _: Request) -> None:
        await stream.send_all(head + body)

    return answer


@dataclass
class Receiver:
    """A webhook receiver on loopback; its `behaviour` may be changed at any time."""

    behaviour: Behaviour
    port: int = 0
    tls: bool = False
    requests: list[Request] = field(default_factory=list)
    open: int = 0
    connections: int = 0
    now: int = 0
    most: int = 0
    arrived: trio.Event = field(default_factory=trio.Event)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://localhost:{self.port}/hook?from=deskwire"

    @property
    def sequences(self) -> list[int]:
        """The received numbers, which the events of these tests have as their body."""
        return [int(request.body) for request in self.requests]

    async def wait(self, count: int) -> None:
        """Return once this number of requests has arrived. Raises TooSlowError if they do not."""
        with trio.fail_after(120):
            while len(self.requests) < count:
                self.arrived = trio.Event()
                await self.arrived.wait()

    async def serve(self, stream: trio.abc.Stream) -> None:
        self.connections += 1
        self.open += 1
        number, rest = self.connections, b""
        try:
            while True:
                request, rest = await read_request(stream, rest, number)
                self.requests.append(request)
                self.arrived.set()
                self.now += 1
                self.most = max(self.most, self.now)
                try:
                    await self.behaviour(stream, request)
                finally:
                    self.now -= 1
        except (EOFError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.open -= 1
            with trio.move_on_after(0.1), suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await stream.aclose()


async def read_request(stream: trio.abc.Stream, data: bytes, connection: int) -> tuple[Request, bytes]:
    async def more() -> bytes:
        chunk = await stream.receive_some(65536)
        if not chunk:
            raise EOFError
        return bytes(chunk)

    while b"\r\n\r\n" not in data:
        data += await more()
    head, _, data = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    length = int(headers.get("Content-Length", 0))
    while len(data) < length:
        data += await more()
    method, path, _ = first.split()
    return Request(trio.current_time(), method, path, headers, data[:length], connection), data[length:]


Receivers = Callable[..., Awaitable[Receiver]]


def resolving(*addresses: str) -> Resolver:
    """Return a resolver that has one answer, by default loopback."""
    known: Sequence[IPAddress] = [ip_address(address) for address in addresses or ("127.0.0.1",)]

    async def resolve(_host: str, _port: int) -> Sequence[IPAddress]:
        await trio.lowlevel.checkpoint()
        return known

    return resolve


def event(number: int, conversation: int | None = 7, position: int = 1) -> StoredEvent:
    body = str(number).encode()
    return StoredEvent(position, f"evt_{number}", "message.created", 1, conversation, number, body)


def delivery(number: int = 1, conversation: int | None = 7, attempts: int = 0, due_at: int = 0) -> Delivery:
    made = event(number, conversation, number)
    return Delivery(number, f"dlv_{number}", 1, made, conversation, number - 1, attempts, due_at, EPOCH_MS)


def client_for(
    receiver: Receiver,
    *,
    policy: AddressPolicy | None = None,
    resolver: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
    timeout_s: float = 5.0,
) -> Client:
    """Return a client that resolves all host names to loopback."""
    return Client(
        receiver.url,
        DirectConnector(policy or AddressPolicy(allow_private=True), resolver or resolving()),
        ssl_context=ssl_context or ssl.create_default_context(),
        timeout_s=timeout_s,
        clock=wall,
    )


class Installation:
    """A store with a project, and a dispatcher on it."""

    def __init__(self, store: SqliteStore, between: Any, dispatcher: Dispatcher, project: Project) -> None:
        self.between = between
        self.store = store
        self.dispatcher = dispatcher
        self.project = project
        self.sealing = Encryption(Secrets(SECRET))

    async def endpoint(self, receiver: Receiver, **fields: Any) -> Endpoint:
        """Register the receiver as the API would; `fields` are of the endpoint."""
        secret = new_secret()
        sealed = self.sealing.seal(secret)
        at = wall()
        new = Endpoint(
            0, f"whk_{receiver.port}", self.project.rowid, receiver.url, frozenset(), sealed, "tail", at, at
        )
        stored = await self.store.write(lambda tx: tx.insert_endpoint(replace(new, **fields)))
        self.dispatcher.add(stored)
        return stored

    async def send(
        self, *numbers: int, conversation: int | None = 7, endpoint: Endpoint | None = None
    ) -> None:
        """Commit events with these sequence numbers, with their deliveries."""
        at = wall()

        def job(tx: Transaction) -> None:
            for number in numbers:
                draft = EventDraft("message.created", None if conversation is None else number, {})
                stored = tx.append_event(self.project, draft, conversation, at)
                tx.conn.execute(  # type: ignore[attr-defined]  # the tests' bodies are bare numbers
                    "UPDATE events SET body = ? WHERE position = ?", (str(number).encode(), stored.position)
                )
                for target in tx.routed_endpoints(self.project.rowid):
                    if endpoint is None or target.rowid == endpoint.rowid:
                        numbered = StoredEvent(
                            stored.position,
                            stored.id,
                            stored.type,
                            1,
                            conversation,
                            number,
                            str(number).encode(),
                        )
                        tx.insert_delivery(
                            target.rowid,
                            numbered,
                            conversation,
                            None if conversation is None else number - 1,
                            at,
                        )

        await self.store.write(job)

    async def erase(self, conversation: int) -> None:
        state = Conversation("cnv_x", self.project.rowid, 0, 0, rowid=conversation)
        await self.store.write(lambda tx: tx.erase_conversation(state))

    async def delete(self, conversation: int, number: int) -> None:
        """Commit a deletion: the conversation is erased, and an event with this number announces it."""
        state = Conversation("cnv_x", self.project.rowid, 0, 0, rowid=conversation)
        at, body = wall(), str(number).encode()

        def job(tx: Transaction) -> None:
            tx.erase_conversation(state)
            stored = tx.append_event(self.project, EventDraft("conversation.deleted", number, {}), None, at)
            tx.conn.execute("UPDATE events SET body = ? WHERE position = ?", (body, stored.position))  # type: ignore[attr-defined]
            numbered = StoredEvent(stored.position, stored.id, stored.type, 1, None, number, body)
            for target in tx.routed_endpoints(self.project.rowid):
                tx.insert_delivery(target.rowid, numbered, conversation, number - 1, at)

        await self.store.write(job)

    async def stored(self) -> Endpoint:
        """Return the first endpoint as stored."""
        return (await self.store.read(lambda reader: reader.endpoints()))[0]

    async def pending(self, endpoint: Endpoint) -> Sequence[Delivery]:
        """Return the pending deliveries of an endpoint."""
        return await self.store.read(lambda reader: reader.pending_deliveries(endpoint.rowid, 0, 1000))

    async def rows(self) -> list[tuple[int, str, int]]:
        """Return number, status and attempts of all deliveries."""
        sql = (
            "SELECT CAST(e.body AS TEXT), d.status, d.attempts FROM deliveries d "
            "JOIN events e ON e.position = d.event ORDER BY d.position"
        )
        found = await self._select(sql)
        return [(int(number), status, attempts) for number, status, attempts in found]

    async def log(self) -> list[tuple[int, int | None, str | None]]:
        """Return number, status and error of all attempts."""
        sql = "SELECT number, status, error FROM attempts ORDER BY delivery, number"
        return [(number, status, error) for number, status, error in await self._select(sql)]

    async def reasons(self) -> list[str]:
        return [row[0] for row in await self._select("SELECT reason FROM deliveries ORDER BY position")]

    async def _select(self, sql: str) -> list[tuple]:  # type: ignore[type-arg]
        return await self.store.read(lambda reader: reader.conn.execute(sql).fetchall())  # type: ignore[attr-defined]


def _as_it_is(store: SqliteStore) -> Store:
    return store


@asynccontextmanager
async def opened(
    directory: Path, *, between: Callable[[SqliteStore], Store] = _as_it_is, **options: object
) -> AsyncIterator[Installation]:
    """Yield an installation on `directory` that runs while the context is open.

    `between` makes the store that the dispatcher gets; `options` go to `Dispatcher`, too.
    """
    inbox: list[Dispatcher] = []

    def on_commit(commit: Commit) -> None:
        for dispatcher in inbox:
            dispatcher.commit_nowait(commit.deliveries, commit.erased)

    settings: dict[str, object] = {"resolver": resolving(), "rng": random.Random(1)} | options
    async with open_store(directory, batch=64, readers=2, on_commit=on_commit) as store:
        project = await store.write(_project)
        given, encryption = between(store), Encryption(Secrets(SECRET))
        dispatcher = Dispatcher(given, wall, encryption, AddressPolicy(allow_private=True), **settings)  # type: ignore[arg-type]
        inbox.append(dispatcher)
        async with trio.open_nursery() as nursery:
            await nursery.start(dispatcher.run)
            yield Installation(store, given, dispatcher, project)
            nursery.cancel_scope.cancel()


def _project(tx: Transaction) -> Project:
    known = tx.project("prj_1")
    if known is not None:
        return known
    organisation = tx.insert_organisation("org_1", "Organisation", 0)
    return tx.insert_project("prj_1", organisation, "Project", "stream-key", 0)
