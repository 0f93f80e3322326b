"""Synapse, the reference server of Matrix (from the package index), on a PostgreSQL of its own: a conversation is a room, a message an event."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
from tests.support.postgres import USER, PostgresServer
from tests.support.sockets.server_process import free_port

from benchmarks import processes
from benchmarks.job import NUMBER, SENT, Call, Job
from benchmarks.load import run
from benchmarks.peers import environment, subscribers
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
    bodies_of,
)
from benchmarks.references import accepts

_SECRET: Final = "the registration secret of a benchmark"
_CLIENT: Final = "/_matrix/client/v3"
_LISTS: Final = "/_matrix/client/unstable/org.matrix.simplified_msc3575/sync"
_ROOMS_MAX: Final = 200
"""One takes a fifth of a second to make, and can't be stored in bulk, because its events are signed and refer to each other."""
_FILLED_BY: Final = 4
"""Connections."""
_START_S: Final = 120.0
"""A first start makes the tables."""
_LIMITS: Final = ("rc_message", "rc_room_creation", "rc_joins_per_room", "rc_registration")


class Synapse:
    """Synapse as one process, which is how its packages run it."""

    name = "Synapse, PostgreSQL"
    slow: Final = True

    def __init__(self, directory: Path, packages: Path, database: PostgresServer) -> None:
        self._directory = directory
        self._packages = packages
        self._database = database
        self._python = Path()
        self._token = ""
        self._rooms, self._long = list[str](), list[str]()

    @property
    def facts(self) -> Facts:
        """See `Peer`."""
        synapse, twisted = (environment.version(self._python, each) for each in ("matrix-synapse", "Twisted"))
        return Facts(
            f"Synapse {synapse} (Twisted {twisted}), one process, PostgreSQL",
            "yes (PostgreSQL's own settings)",
            "tickets (status, assignee, tags), webhooks except to application services; it has transaction ids, order and "
            "a long poll",
            f"no rate limits, presence, other servers or request log; {len(self._rooms)} rooms whatever the others store, "
            "with one member; a room starts without its first message; its list is a sliding sync from the beginning",
        )

    def prepare(self, conversations: int) -> None:
        """See `Peer`. It is filled by its API."""
        self._python = environment.python(self._packages, "synapse.txt")
        self._directory.mkdir()
        seed = base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        (self._directory / "signing.key").write_text(f"ed25519 a_1 {seed}\n")
        (self._directory / "log.json").write_text(json.dumps(_LOG))
        self._database.run(
            "CREATE DATABASE synapse TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING 'UTF8'"
        )
        with self._served() as (port, _):
            self._token = _registered(port)
            texts = bodies_of(min(conversations, _ROOMS_MAX), word=True)
            self._rooms = self._started(port, len(texts))
            self._long = self._started(port, READ_CONVERSATIONS)
            self._send(port, [_message(room, text) for room, text in zip(self._rooms, texts, strict=True)])
            self._send(port, [_message(room) for room in self._rooms])
            self._send(port, [_message(room) for _ in range(LONG) for room in self._long])
        self._database.run("ANALYZE", "synapse")  # as autovacuum does a minute later

    @contextmanager
    def running(self, *, notify: bool = False) -> Iterator[Running]:
        """See `Peer`."""
        with self._served() as (port, process):
            polls = partial(subscribers.long_poll, port, self._token)
            ways = {"long poll (/sync)": polls} if notify else {}
            yield Running(port, (process,), (self._database.pid,), self._operations(), ways)

    @contextmanager
    def _served(self) -> Iterator[tuple[int, int]]:
        """Run it; yield its port and the id of its process."""
        port, config = free_port(), self._directory / "homeserver.json"
        config.write_text(json.dumps(self._config(port)))
        command = [str(self._python), "-m", "synapse.app.homeserver", "-c", str(config)]
        settings = {"PYTHONPATH": ""}  # the project's packages are not its own
        process = processes.run(command, core=processes.SERVER, settings=settings, quiet=True)
        try:
            accepts(process, port, _START_S)
            yield port, process.pid
        finally:
            processes.stop(process)

    def _config(self, port: int) -> dict[str, Any]:
        """Return its configuration: JSON is YAML, too."""
        place = self._directory
        database = {"dbname": "synapse", "user": USER, "host": "127.0.0.1", "port": self._database.port}
        unlimited = {"per_second": 1e6, "burst_count": 1_000_000}
        listener = {"type": "http", "port": port, "bind_addresses": ["127.0.0.1"]}
        return {
            "server_name": "localhost",
            "listeners": [{**listener, "resources": [{"names": ["client"]}]}],
            "database": {"name": "psycopg2", "args": {**database, "cp_min": 5, "cp_max": 10}},
            "registration_shared_secret": _SECRET,
            "macaroon_secret_key": _SECRET,
            "form_secret": _SECRET,
            "signing_key_path": str(place / "signing.key"),
            "media_store_path": str(place / "media"),
            "log_config": str(place / "log.json"),
            "presence": {"enabled": False},
            "report_stats": False,
            "trusted_key_servers": [],
            "rc_joins": {"local": unlimited, "remote": unlimited},
            **dict.fromkeys(_LIMITS, unlimited),
        }

    def _started(self, port: int, count: int) -> list[str]:
        """Make this many rooms; return their ids."""
        job = Job(port, calls=[_creation()], key=self._token, connections=_FILLED_BY, count=count, keep=True)
        return [json.loads(body)["room_id"] for body in _done(job)]

    def _send(self, port: int, calls: Sequence[Call]) -> None:
        _done(Job(port, calls=list(calls), key=self._token, connections=_FILLED_BY, count=len(calls)))

    def _operations(self) -> Mapping[str, Asked]:
        asked = partial(Asked, key=self._token)
        reads = [Call("GET", f"{_room(each)}/messages?dir=b&limit={LONG}") for each in self._long]
        return {
            APPEND: asked([_message(each) for each in self._rooms[-APPENDED_CONVERSATIONS:]], '"event_id"'),
            START: asked([_creation()], '"room_id"'),
            READ: asked(reads, PHRASE, LONG),
            LIST: asked([_list()], '"initial":true', PAGE_SIZE),
            SEARCH: asked([_search()], '"rank":', PAGE_SIZE),
        }


_LOG: Final = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"none": {"class": "logging.NullHandler"}},
    "root": {"level": "ERROR", "handlers": ["none"]},
}


def _registered(port: int) -> str:
    """Register an administrator with the shared secret; return the access token."""
    url, name, password = (
        f"http://127.0.0.1:{port}/_synapse/admin/v1/register",
        "agent",
        "a long enough password",
    )
    with httpx.Client(timeout=60) as client:
        nonce = client.get(url).raise_for_status().json()["nonce"]
        signed = f"{nonce}\0{name}\0{password}\0admin".encode()
        mac = hmac.new(_SECRET.encode(), signed, hashlib.sha1).hexdigest()
        asked = {"nonce": nonce, "username": name, "password": password, "admin": True, "mac": mac}
        return str(client.post(url, json=asked).raise_for_status().json()["access_token"])


def _done(job: Job) -> list[str]:
    """Carry out a job in this process; return its answers. Raises RuntimeError if one is refused."""
    outcome = run(job)
    if outcome.failures:
        raise RuntimeError(f"filling Synapse was refused: {outcome.failures[0]}")
    return outcome.bodies


def _room(room: str) -> str:
    return f"{_CLIENT}/rooms/{quote(room, safe='')}"


def _message(room: str, text: str = TEXT) -> Call:
    """Return the request that sends an event; its transaction id is the time of sending, because a known one is not stored again."""
    content = json.dumps({"msgtype": "m.text", "body": text})
    return Call("PUT", f"{_room(room)}/send/m.room.message/{SENT}", content)


def _creation() -> Call:
    return Call(
        "POST", f"{_CLIENT}/createRoom", json.dumps({"preset": "private_chat", "name": "Where is my parcel?"})
    )


def _list() -> Call:
    """Return the request for the rooms with the newest messages, with each one's name and last message.

    Each is a client of its own: two at once that claim to be the same one are refused.
    """
    newest = {"ranges": [[0, PAGE_SIZE - 1]], "timeline_limit": 1, "required_state": [["m.room.name", ""]]}
    return Call("POST", f"{_LISTS}?timeout=0", json.dumps({"conn_id": NUMBER, "lists": {"newest": newest}}))


def _search() -> Call:
    wanted = {"search_term": WORD, "order_by": "recent", "filter": {"limit": PAGE_SIZE}}
    return Call("POST", f"{_CLIENT}/search", json.dumps({"search_categories": {"room_events": wanted}}))
