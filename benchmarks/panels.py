"""Customers' streams: the memory of an idle one, and how fast the panels of a website come back after a restart."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import httpx
import jwt

from benchmarks import processes
from benchmarks.report import Section
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire

_SITE: Final = "https://shop.example"
_FIRST: Final = 100  # streams that load what only the first ones load
_BACK: Final = 1_000
_ALLOWED_KB: Final = 15
_ALLOWED_S: Final = 5


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Hold visitors' streams; then have customers return after a restart, each with a missed event."""
    processes.allow_files()
    with deskwire(directory) as server:
        channel = _channel(server)
        each_kb, all_mb = _held(server, channel, scale.idle_connections)
        tokens = [_session(server, channel, f"u{number}") for number in range(_BACK)]
        cursor = _cursor(server, tokens)
    with deskwire(directory) as server:
        before, began = processes.cpu_s(server.process) or 0.0, time.perf_counter()
        with ExitStack() as stack:
            wires = [stack.enter_context(_open(server, token, cursor)) for token in tokens]
            for wire in wires:
                _until(wire, b"\nid: evt_")
            seconds, used = time.perf_counter() - began, (processes.cpu_s(server.process) or 0.0) - before
    held = (scale.idle_connections, each_kb, all_mb)
    back = (_BACK, seconds, used * 1_000_000 / _BACK)
    return [
        Section(
            "panels",
            "Idle streams of visitors",
            ("streams", "KB each", "MB in all"),
            [held],
            f"Allowed: {_ALLOWED_KB} KB each.",
        ),
        Section(
            "panels-return",
            "Panels that come back after a restart",
            ("panels", "s until all have what they missed", "server's µs each"),
            [back],
            f"Allowed: {_ALLOWED_S} s. All connect at once, without the delay that `bye` spreads over two seconds.",
        ),
    ]


def _channel(server: Server) -> dict[str, Any]:
    with server.api() as api:
        made = api.post("/channels", json={"name": "Shop", "origins": [_SITE]})
        found: dict[str, Any] = made.raise_for_status().json()
        return found


def _session(server: Server, channel: dict[str, Any], user: str | None = None) -> str:
    """Start a session and return its token; a visitor's without `user`."""
    body = {"channelId": channel["id"]}
    if user is not None:
        claims = {"sub": user, "aud": channel["id"], "exp": int(time.time()) + 3_600}
        body["identity"] = jwt.encode(claims, channel["identity"]["secret"], algorithm="HS256")
    url = f"http://127.0.0.1:{server.port}/v3/customer/session"
    started = httpx.post(url, json=body, headers={"Origin": _SITE}, timeout=60)
    return str(started.raise_for_status().json()["token"])


def _held(server: Server, channel: dict[str, Any], count: int) -> tuple[float, float]:
    """Hold idle streams; return the KB of each, and the MB of the server."""
    tokens = [_session(server, channel) for _ in range(count + _FIRST)]
    with ExitStack() as stack:

        def hold(some: list[str]) -> Iterator[socket.socket]:
            for token in some:
                wire = stack.enter_context(_open(server, token))
                _until(wire, b"event: hello")
                yield wire

        kept = [*hold(tokens[:_FIRST])]
        before = processes.resident_mb(server.process)
        kept += hold(tokens[_FIRST:])
        after = processes.resident_mb(server.process)
        return (after - before) * 1_000 / count, after


def _cursor(server: Server, tokens: list[str]) -> str:
    """Return an event after which each customer has a new message."""
    with server.api() as api:
        api.put("/s2s/contacts/another", json={}).raise_for_status()
        api.put("/s2s/contacts/another", json={"name": "Ada"}).raise_for_status()
        newest = str(api.get("/s2s/events").raise_for_status().json()["items"][-1]["id"])
        for number in range(len(tokens)):
            body = {"contact": {"userId": f"u{number}"}, "message": {"text": "Your parcel is on its way."}}
            api.post("/s2s/conversations", json=body).raise_for_status()
    return newest


def _open(server: Server, token: str, after: str = "") -> socket.socket:
    wire = socket.create_connection(("127.0.0.1", server.port))
    query = f"?after={after}" if after else ""
    head = f"GET /v3/customer/stream{query} HTTP/1.1\r\nHost: x\r\nOrigin: {_SITE}\r\nAuthorization: Bearer {token}\r\n\r\n"
    wire.sendall(head.encode())
    return wire


def _until(wire: socket.socket, mark: bytes) -> None:
    seen = b""
    while mark not in seen:
        data = wire.recv(1 << 16)
        assert data, f"the stream has ended: {seen[:200]!r}"
        seen += data
