"""The servers that are measured: Deskwire's real process, and the references."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import httpx
import jwt

from benchmarks import processes
from benchmarks.generator import load
from benchmarks.job import NUMBER, SENT, Job
from benchmarks.nats_wire import SUBJECT

TEXT: Final = f"sent {SENT} " + "The parcel has not arrived yet, could you please look into it? " * 4
MESSAGE: Final = json.dumps({"text": TEXT})
_CREATION: Final = json.dumps(
    {
        "contact": {"userId": f"user-{NUMBER}", "name": "Ada Lovelace"},
        "message": {"text": "Hello, is anyone there?"},
    }
)
_DEMO_FILE: Final = "demo.json"


@dataclass(frozen=True, slots=True)
class Server:
    """A server under load; `key`, `project` and its owner's `token` are Deskwire's only.

    `message` is the body that is posted.
    """

    name: str
    process: subprocess.Popen[str]
    port: int
    key: str = ""
    project: str = ""
    token: str = ""
    message: str = MESSAGE
    wire: Literal["http", "nats"] = "http"

    def api(self) -> httpx.Client:
        """Return a client for requests that are not measured."""
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}/v3", headers=headers, timeout=30)

    def stream_key(self) -> str:
        """Deskwire's stream key, which precedes the token in an authorization."""
        return self._authorization().partition(":")[0]

    def key_id(self) -> str:
        """The id of the server key, which is part of that token."""
        token = self._authorization().partition(":")[2]
        return str(jwt.decode(token, options={"verify_signature": False})["key"])

    def _authorization(self) -> str:
        channel = f"private-project-{self.project}"
        wanted = {"socket_id": "1.1", "channel_name": channel, "consumerId": "benchmark"}
        with self.api() as api:
            response = api.post("/s2s/stream/auth", json=wanted)
        return str(response.raise_for_status().json()["auth"])

    def posts(self, conversations: list[str], **how: Any) -> Job:
        """Return the job of posting messages to these conversations in turn; for NATS, of publishing under their subjects."""
        before, behind = (
            ("/v3/s2s/conversations/", "/messages") if self.wire == "http" else (f"{SUBJECT}.", "")
        )
        paths = [f"{before}{each}{behind}" for each in conversations]
        return Job(self.port, paths, key=self.key, body=self.message, wire=self.wire, **how)

    def gets(self, paths: list[str], **how: Any) -> Job:
        """Return the job of reading these paths in turn."""
        return Job(self.port, paths, "GET", key=self.key, **how)

    def agent_gets(self, path: str, **how: Any) -> Job:
        """Return the job of reading a path as the project's owner."""
        return Job(self.port, [path], "GET", key=self.token, project=self.project, **how)

    def wake(self, conversations: list[str]) -> None:
        """Load each conversation by a command that changes nothing."""
        paths = [f"/v3/s2s/conversations/{each}/read" for each in conversations]
        load(Job(self.port, paths, key=self.key, connections=16, count=len(paths)))

    def envelope(self, conversation: str) -> str:
        """Return the envelope of a posted message, with the mark of its time still in it."""
        with self.api() as api:
            api.post(f"/s2s/conversations/{conversation}/messages", json={"text": TEXT}).raise_for_status()
            events = api.get(f"/s2s/conversations/{conversation}/events", params={"limit": 200})
        found: str = json.dumps(events.raise_for_status().json()["items"][-1], separators=(",", ":"))
        return found

    def create(self, count: int) -> list[str]:
        """Start conversations, each with a message; return their ids."""
        job = Job(
            self.port,
            ["/v3/s2s/conversations"],
            key=self.key,
            body=_CREATION,
            connections=16,
            count=count,
            keep=True,
        )
        return [json.loads(body)["id"] for body in load(job).bodies]


@contextmanager
def deskwire(directory: Path, **settings: str) -> Iterator[Server]:
    """Run a real process on `directory`, with its demo project; settings by variable without prefix."""
    process = _start(directory, settings, core=processes.SERVER)
    try:
        yield _ready(process, directory)
    finally:
        processes.stop(process)


@contextmanager
def deskwire_node(directory: Path, first: Server | None, settings: Mapping[str, str]) -> Iterator[Server]:
    """Run one of several nodes, on any core; `first` is the node that has made the demo project, None for that one."""
    process = _start(directory, settings, core=None)
    try:
        if first is None:
            yield _ready(process, directory)
        else:
            yield replace(first, process=process, port=_port(process))
    finally:
        processes.stop(process)


def _ready(process: subprocess.Popen[str], directory: Path) -> Server:
    """Wait until the process accepts requests."""
    port, demo = _port(process), json.loads((directory / _DEMO_FILE).read_text())
    return Server("deskwire", process, port, demo["serverKey"], demo["projectId"], demo["token"])


def _port(process: subprocess.Popen[str]) -> int:
    url = processes.line(process, "running at http").partition("running at ")[2].split()[0]
    return int(url.rpartition(":")[2])


def _start(directory: Path, settings: Mapping[str, str], core: int | None) -> subprocess.Popen[str]:
    settings = {"rate_limit_per_minute": "0", **settings}
    variables = {f"DESKWIRE_{name.upper()}": value for name, value in settings.items()}
    arguments = ("serve", "--data", str(directory), "--port", "0")
    return processes.start("deskwire", *arguments, core=core, settings=variables)
