"""Nodes on one PostgreSQL within a test: stores with actors, and a connection to the database that can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import psycopg
import trio

from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.ports import Commit
from deskwire.storage.postgres.store import PostgresStore, open_postgres
from tests.support.builders import PROJECT, HandClock, create, found_projects, post
from tests.support.deadlines import HANG_TIMEOUT_S

_READ: Final = 65_536


@dataclass(frozen=True, slots=True)
class NodeHere:
    """A store, its actors, and the commits that it has published."""

    store: PostgresStore
    actors: ActorRegistry
    commits: list[Commit]

    async def new_conversation(self, user_id: str = "user-1") -> str:
        """Create a conversation; return its id."""
        return (await self.actors.create(PROJECT, create(user_id))).after.id

    async def post(self, conversation: str, text: str = "Hello") -> str:
        """Post a message; return its id once it is stored."""
        command = post(text=text)
        await self.actors.ask(PROJECT, conversation, command)
        return command.message_id


@asynccontextmanager
async def node(
    url: str, name: str = "a", *, batch: int = 64, patience_s: float = 10.0
) -> AsyncIterator[NodeHere]:
    """Run a node of the database, which has PROJECT and OTHER_PROJECT."""
    commits: list[Commit] = []
    async with (
        open_postgres(
            url,
            node=name,
            batch=batch,
            readers=2,
            on_commit=commits.append,
            timeout_s=patience_s,
        ) as store,
        trio.open_nursery() as actors,
    ):
        if await store.read(lambda reader: reader.project(PROJECT.id)) is None:
            await store.write(found_projects)
        commits.clear()
        registry = ActorRegistry(actors, store, HandClock(), mailbox=256, idle_s=60, live=1_000)
        yield NodeHere(store, registry, commits)
        actors.cancel_scope.cancel()


def rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows that a query finds on a separate connection."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(sql.encode()).fetchall()


@contextmanager
def without_ownership(url: str) -> Iterator[str]:
    """Yield the URL for an account that may use all tables of the database but owns none, so that it can't drop them."""
    role = f"node_{url.rpartition('_')[2]}"
    with psycopg.connect(url) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN".encode())
        owner.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}".encode())
        owner.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}".encode())
    try:
        yield url.replace("deskwire@", f"{role}@")
    finally:
        with psycopg.connect(url) as owner:
            owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


async def until_found(url: str, sql: str) -> None:
    """Return once the query finds a row in the database."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while not await trio.to_thread.run_sync(rows, url, sql):  # noqa: ASYNC110  # it is another process
            await trio.sleep(0.01)  # poll: there is no notification


async def until_one_waits(url: str, count: int = 1) -> None:
    """Return once this number of transactions wait for locks of others."""
    where = "wait_event_type = 'Lock' AND datname = current_database()"
    await until_found(url, f"SELECT 1 FROM pg_stat_activity WHERE {where} HAVING count(*) >= {count}")


def check_whole(url: str) -> None:
    """Check invariants of the stored data: sequences and positions have no gaps, ids are unique and in order."""
    sequences = rows(
        url,
        "SELECT conversation, count(*), count(DISTINCT sequence), min(sequence), max(sequence) FROM events "
        "WHERE sequence IS NOT NULL GROUP BY conversation",
    )
    assert [row for row in sequences if (row[1], row[1], 1, row[1]) != row[1:]] == []
    states = rows(
        url,
        "SELECT c.id FROM conversations c WHERE c.sequence <> (SELECT count(*) FROM events e "
        "WHERE e.conversation = c.rowid AND e.sequence IS NOT NULL) OR c.messages <> "
        "(SELECT count(*) FROM messages m WHERE m.conversation = c.rowid AND m.internal = 0)",
    )
    assert states == []
    for table, head in (("events", "position"), ("deliveries", "delivery")):
        logs = rows(
            url,
            f"SELECT h.project, h.{head} - (h.project << 40), count(e.position), max(e.position) - (h.project << 40) "
            f"FROM project_heads h JOIN {table} e ON e.position >> 40 = h.project GROUP BY h.project, h.{head}",
        )
        assert [row for row in logs if not row[1] == row[2] == row[3]] == []
        ids = [row[0] for row in rows(url, f"SELECT id FROM {table} ORDER BY position")]
        assert ids == sorted(set(ids))


@dataclass
class Line:
    """A connection to a local database through a relay in threads, which can be cut after a number of bytes.

    Args:
        to_server: bytes to the server after which it is cut, None for never; counted from when it is set.
        to_client: the same for bytes to the client.
        silent: whether the relay goes silent after those bytes until `deliver` is set, instead of a cut.
        refuse: whether connections are closed as soon as they are made.
        refuse_after_cut: whether that begins with the next cut.
        altered: bytes to the server, and their replacement of the same length.
        late: pieces to the server after which one is late: its client is cut off, and it arrives when `deliver` is set.
    """

    url: str
    to_server: int | None = None
    to_client: int | None = None
    sent: int = 0
    received: int = 0
    cuts: int = 0
    silent: bool = False
    refuse: bool = False
    refuse_after_cut: bool = False
    altered: tuple[bytes, bytes] | None = None
    late: int | None = None
    deliver: threading.Event = field(default_factory=threading.Event)
    _pairs: set[tuple[socket.socket, socket.socket]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start_counting(self, to_server: int | None = None, to_client: int | None = None) -> None:
        """Reset the counters, and cut once after these numbers of bytes."""
        with self._lock:
            self.sent = self.received = 0
            self.to_server, self.to_client = to_server, to_client

    def cut(self) -> None:
        """Cut all connections now."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
            self.refuse = self.refuse or self.refuse_after_cut
        self.cuts += bool(pairs)
        for pair in pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def relay(self, source: socket.socket, sink: socket.socket, *, up: bool) -> None:
        """Pass bytes on, up to the byte at which to cut."""
        with suppress(OSError):
            while data := source.recv(_READ):
                if up and self.altered is not None:
                    data = data.replace(*self.altered)
                if up and self._is_late():
                    source.shutdown(socket.SHUT_RDWR)
                    self.deliver.wait(30)
                    sink.sendall(data)
                    break
                allowed = self._allowed(len(data), up=up)
                sink.sendall(data[:allowed])
                if allowed < len(data) and self.silent:
                    self.deliver.wait(30)
                    sink.sendall(data[allowed:])
                elif allowed < len(data):
                    self.cut()
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def add(self, client: socket.socket, server: socket.socket) -> None:
        """Register a connection."""
        with self._lock:
            self._pairs.add((client, server))

    def _is_late(self) -> bool:
        with self._lock:
            if self.late is None:
                return False
            self.late = self.late - 1 if self.late else None
            return self.late is None

    def _allowed(self, count: int, *, up: bool) -> int:
        with self._lock:
            limit, before = (self.to_server, self.sent) if up else (self.to_client, self.received)
            allowed = count if limit is None else max(0, min(count, limit - before))
            if up:
                self.sent += allowed
            else:
                self.received += allowed
            if allowed < count:
                self.to_server = self.to_client = None
            return allowed


@contextmanager
def line_to(url: str) -> Iterator[Line]:
    """Yield a line to the database, whose `url` is that of its near end."""
    parts = urlsplit(url)
    listener = socket.create_server(("127.0.0.1", 0))
    near = parts._replace(netloc=f"{parts.username}@127.0.0.1:{listener.getsockname()[1]}")
    line = Line(urlunsplit(near))
    threads: list[threading.Thread] = []

    def start(work: Callable[..., None], *given: Any, **named: Any) -> None:
        thread = threading.Thread(target=work, args=given, kwargs=named, daemon=True)
        threads.append(thread)
        thread.start()

    def pair(client: socket.socket, server: socket.socket) -> None:
        with client, server:
            line.add(client, server)
            down = threading.Thread(target=line.relay, args=(server, client), kwargs={"up": False})
            down.start()
            line.relay(client, server, up=True)
            down.join()

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # closed: the test is over
                return
            if line.refuse:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", parts.port or 5432))
            except OSError:
                client.close()
                continue
            with suppress(OSError):
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            start(pair, client, server)

    start(serve)
    try:
        yield line
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        line.cut()
        for thread in threads:
            thread.join(5)
