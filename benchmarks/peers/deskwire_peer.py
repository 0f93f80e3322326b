"""Deskwire itself as one of the systems that are compared: its backend's API, and the API of agents for searches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.support.postgres import PostgresServer

from benchmarks.delivering import watch
from benchmarks.job import NUMBER, Call, Job
from benchmarks.load import run
from benchmarks.observer import Watch
from benchmarks.peers import subscribers
from benchmarks.peers.peer import (
    APPEND,
    APPENDED_CONVERSATIONS,
    LIST,
    LONG,
    PAGE_SIZE,
    PHRASE,
    READ,
    READ_CONVERSATIONS,
    SEARCH,
    START,
    TEXT,
    WORD,
    Asked,
    Facts,
    Running,
    Subscriber,
    bodies_of,
)
from benchmarks.searching import complete
from benchmarks.service import Server, deskwire

_SECRET: Final = "the secret of a benchmark's installation"
_BACKEND: Final = "/v3/s2s/conversations"
_FILLED_BY: Final = 16
"""Connections."""


class Deskwire:
    """Deskwire on SQLite, or as one node on a PostgreSQL of its own."""

    slow: Final = False

    def __init__(self, directory: Path, database: PostgresServer | None = None) -> None:
        self._directory = directory
        self._database = database
        self._appended, self._read = list[str](), list[str]()
        self.name = "Deskwire" if database is None else "Deskwire, PostgreSQL"

    @property
    def facts(self) -> Facts:
        """See `Peer`."""
        on = "SQLite" if self._database is None else "one node, PostgreSQL"
        synced = "yes, and its event and audit record in the same commit"
        return Facts(
            f"Deskwire {version('deskwire')}, {on}",
            synced,
            "-",
            "against it: the request log is on, peers' is off",
        )

    def prepare(self, conversations: int) -> None:
        """See `Peer`. It is filled by its API."""
        if self._database is not None:
            self._database.run("CREATE DATABASE deskwire")
        with self._served() as server:
            short = _started(server, bodies_of(conversations, word=True))
            self._read = _started(server, bodies_of(READ_CONVERSATIONS, word=False))
            self._appended = short[-APPENDED_CONVERSATIONS:]
            _append(server, short, len(short))
            _append(server, self._read, len(self._read) * (LONG - 1))
            complete(server)

    @contextmanager
    def running(self, *, notify: bool = False) -> Iterator[Running]:
        """See `Peer`. The webhook is subscribed to by the API, and the stream of agents by the owner's token."""
        with self._served(allow_private_webhooks="true" if notify else "false") as server:
            database = () if self._database is None else (self._database.pid,)
            ways = self._subscribers(server) if notify else {}
            yield Running(server.port, (server.process.pid,), database, self._operations(server), ways)

    @contextmanager
    def _served(self, **settings: str) -> Iterator[Server]:
        shared = dict[str, str]()
        if self._database is not None:
            shared = {"database_url": self._database.url("deskwire"), "secret": _SECRET, "node": "alone"}
        with deskwire(self._directory, **shared, **settings) as server:
            yield server

    def _subscribers(self, server: Server) -> Mapping[str, Subscriber]:
        source = watch(server, self._directory, None if self._database is None else _SECRET)
        return {
            "webhook": partial(_webhook, server),
            "Pusher stream": partial(subscribers.stream, source),
            "agents' stream": partial(
                subscribers.stream, Watch(server.port, project=server.project, agent_token=server.token)
            ),
        }

    def _operations(self, server: Server) -> Mapping[str, Asked]:
        backend = partial(Asked, key=server.key)
        message = json.dumps({"text": TEXT})
        appends = [Call("POST", f"{_BACKEND}/{each}/messages", message) for each in self._appended]
        reads = [Call("GET", f"{_BACKEND}/{each}/messages?limit={LONG}") for each in self._read]
        search = Call("GET", f"/v3/search?q={WORD}&limit={PAGE_SIZE}")
        return {
            APPEND: backend(appends, PHRASE),
            START: backend([Call("POST", _BACKEND, _creation(TEXT))], '"status":"OPEN"'),
            READ: backend(reads, PHRASE, LONG),
            LIST: backend([Call("GET", f"{_BACKEND}?limit={PAGE_SIZE}")], '"lastMessageAt"', PAGE_SIZE),
            SEARCH: Asked([search], '"hits":[', PAGE_SIZE, key=server.token, project=server.project),
        }


def _creation(text: str) -> str:
    return json.dumps(
        {"contact": {"userId": f"user-{NUMBER}", "name": "Ada Lovelace"}, "message": {"text": text}}
    )


def _started(server: Server, texts: list[str]) -> list[str]:
    """Start a conversation with each of these messages; return their ids."""
    calls = [Call("POST", _BACKEND, _creation(text)) for text in texts]
    job = Job(server.port, calls=calls, key=server.key, connections=_FILLED_BY, count=len(calls), keep=True)
    return [json.loads(body)["id"] for body in _done(job)]


def _append(server: Server, conversations: list[str], count: int) -> None:
    """Append this many messages to the conversations in turn."""
    message = json.dumps({"text": TEXT})
    calls = [Call("POST", f"{_BACKEND}/{each}/messages", message) for each in conversations]
    _done(Job(server.port, calls=calls, key=server.key, connections=_FILLED_BY, count=count))


def _done(job: Job) -> list[str]:
    """Carry out a job in this process; return its answers. Raises RuntimeError if one is refused."""
    outcome = run(job)
    if outcome.failures:
        raise RuntimeError(f"filling was refused: {outcome.failures[0]}")
    return outcome.bodies


@contextmanager
def _webhook(server: Server) -> Iterator[subscribers.Ages]:
    with subscribers.webhook() as (url, ages), server.api() as api:
        hook = api.post("/s2s/webhooks", json={"url": url}).raise_for_status().json()
        yield ages
        api.delete(f"/s2s/webhooks/{hook['id']}").raise_for_status()
