"""Customers' panels: the memory of an idle one, how fast those of a website come back after a restart, and the cost of a message."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import jwt

from benchmarks import processes
from benchmarks.generator import load
from benchmarks.job import NUMBER, Call, Job
from benchmarks.report import Section, median
from benchmarks.scale import Scale
from benchmarks.service import TEXT, Server, deskwire
from benchmarks.taking import Taken, in_turn, middle, take

_SITE: Final = "https://shop.example"
_FIRST: Final = 100  # streams that load what only the first ones load
_SHARE: Final = 10  # one of this number of panels has missed a message when it comes back
_SITES: Final = (
    4  # organisations, because one may take only half of the streams that the limit of open files allows
)
_ALLOWED_KB: Final = 15
_ALLOWED_MB: Final = 200
_ALLOWED_S: Final = 10
_ALLOWED_RATIO: Final = 1.15
_EACH: Final = 24  # messages of a session in a round: 30 a minute are allowed
_AT_ONCE: Final = 16


class _Site(NamedTuple):
    """The tokens of a website's customers, and an event after which the first `writing` of them have a new message."""

    tokens: list[str]
    cursor: str
    writing: int


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Hold the streams of visitors and of open panels, have the panels return after a restart, and compare POSTs."""
    processes.allow_files()
    with deskwire(directory) as server:
        channel = _channel(server)
        held = [("visitors", *_held(server, _sessions(server, channel, scale.idle_connections + _FIRST)))]
    with deskwire(directory) as server:
        sites = [_site(server, directory, number, scale.panels // _SITES + 1) for number in range(_SITES)]
        tokens = [each for site in sites for each in site.tokens]
        held.append(("open panels of signed-in customers", *_held(server, tokens)))
    idle = [(each, site.cursor) for site in sites for each in site.tokens]
    missing = [(each, site.cursor) for site in sites for each in site.tokens[: site.writing]]
    back = [
        ("nothing to catch up on", *_returned(directory, idle, b"event: hello")),
        ("a missed message each", *_returned(directory, missing, b"\nid: evt_")),
    ]
    return [
        Section(
            "panels",
            "Idle streams of customers",
            ("of", "streams", "KB each", "MB in all", "MB more"),
            held,
            f"Allowed: {_ALLOWED_KB} KB each, and {_ALLOWED_MB} MB more for 10,000.",
        ),
        Section(
            "panels-return",
            "Panels that come back after a restart",
            ("with", "panels", "s until all are back", "server's s of processor time", "µs each"),
            back,
            f"Allowed: {_ALLOWED_S} s for 10,000. All connect at once, without the delay that `bye` spreads over two seconds.",
        ),
        _posts(scale, directory / "posts"),
    ]


def _site(server: Server, directory: Path, number: int, panels: int) -> _Site:
    """Make a website of an organisation of its own with signed-in customers, a tenth of whom have a new message after the cursor."""
    made = partial(_printed, directory)
    name = f"Shop {number}"
    made("org", "create", name)
    project = made("project", "create", name, "--org", name)
    server = replace(server, project=project, key=made("key", "create", "--project", project))
    users = [f"u{each}" for each in range(panels)]
    tokens = _sessions(server, _channel(server), users=users)
    writing = max(1, panels // _SHARE)
    return _Site(tokens, _cursor(server, users[:writing]), writing)


def _printed(directory: Path, *arguments: str) -> str:
    process = processes.start("deskwire", *arguments, "--data", str(directory), core=None, settings={})
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return output.strip()


def _channel(server: Server) -> dict[str, Any]:
    with server.api() as api:
        made = api.post("/channels", json={"name": "Shop", "origins": [_SITE]})
        found: dict[str, Any] = made.raise_for_status().json()
        return found


def _sessions(
    server: Server, channel: dict[str, Any], visitors: int = 0, users: list[str] | None = None
) -> list[str]:
    """Start sessions of visitors, or of these customers, and return their tokens in this order."""
    bodies = [{"channelId": channel["id"]} for _ in range(visitors)]
    bodies += [{"channelId": channel["id"], "identity": _identity(channel, each)} for each in users or ()]
    calls = [Call("POST", "/v3/customer/session", json.dumps(each)) for each in bodies]
    found = [json.loads(each) for each in _called(server, calls)]
    by_user = {each["contact"]["userId"]: str(each["token"]) for each in found}
    return [by_user[each] for each in users] if users else [*by_user.values()]


def _identity(channel: dict[str, Any], user: str) -> str:
    claims = {"sub": user, "aud": channel["id"], "exp": int(time.time()) + 3_600}
    return jwt.encode(claims, channel["identity"]["secret"], algorithm="HS256")


def _called(server: Server, calls: list[Call]) -> list[str]:
    """Make these calls of a website's pages; return the bodies of the responses, in any order."""
    job = Job(server.port, calls=calls, headers={"Origin": _SITE}, connections=_AT_ONCE, count=len(calls), keep=True)  # fmt: skip
    return load(job).bodies


def _held(server: Server, tokens: list[str]) -> tuple[int, float, float, float]:
    """Hold idle streams; return their number, the KB of each, the MB of the server, and the MB that they have added."""
    with ExitStack() as stack:

        def hold(some: list[str]) -> Iterator[socket.socket]:
            for token in some:
                wire = stack.enter_context(_open(server, token))
                _until(wire, b"event: hello")
                yield wire

        first = min(_FIRST, len(tokens) // 2)
        kept = [*hold(tokens[:first])]
        before = processes.resident_mb(server.process)
        kept += hold(tokens[first:])
        after, count = processes.resident_mb(server.process), len(tokens) - first
        return count, (after - before) * 1_000 / count, after, after - before


def _cursor(server: Server, users: list[str]) -> str:
    """Return an event after which each of these customers has a new message."""
    with server.api() as api:
        api.put("/s2s/contacts/another", json={}).raise_for_status()
        api.put("/s2s/contacts/another", json={"name": "Ada"}).raise_for_status()
        newest = str(api.get("/s2s/events").raise_for_status().json()["items"][-1]["id"])
        for user in users:
            body = {"contact": {"userId": user}, "message": {"text": "Your parcel is on its way."}}
            api.post("/s2s/conversations", json=body).raise_for_status()
    return newest


def _returned(directory: Path, panels: list[tuple[str, str]], mark: bytes) -> tuple[int, float, float, float]:
    """Restart, and open the streams of all panels, given by token and cursor; return their number and the time they took."""
    with deskwire(directory) as server, ExitStack() as stack:
        before, began = processes.cpu_s(server.process) or 0.0, time.perf_counter()
        wires = [stack.enter_context(_open(server, token, cursor)) for token, cursor in panels]
        for wire in wires:
            _until(wire, mark)
        seconds, used = time.perf_counter() - began, (processes.cpu_s(server.process) or 0.0) - before
        return len(panels), seconds, used, used * 1_000_000 / len(panels)


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
        assert data, f"the stream has ended: {seen[-400:]!r}"  # the reason is last
        seen += data


def _posts(scale: Scale, directory: Path) -> Section:
    """Compare a customer's POST of a message with that of a backend, in turn, to as many conversations."""
    with deskwire(directory, rate_limit_per_minute="60000000") as server:  # both count their calls
        channel = _channel(server)
        figures = [
            ("a backend's, `/s2s`", partial(_backend, server, scale.panels // 50)),
            ("a customer's, `/customer`", partial(_customers, server, channel, scale.panels // 50)),
        ]
        taken = in_turn(3 * scale.rounds, figures)
    rows = [(label, *_figures(found)) for label, found in taken.items()]
    ours, theirs = taken.values()
    ratio = median((that.us or 1) / (this.us or 1) for this, that in zip(ours, theirs, strict=True))
    return Section(
        "customer-post",
        "POST a message as a customer and as a backend",
        ("from", "requests/s", "p50 ms", "p99 ms", "worst ms", "server's µs"),
        rows,
        f"{_AT_ONCE} connections; rounds in turn. Median of the rounds' ratios of processor time: {ratio:.2f}; allowed: {_ALLOWED_RATIO}.",
    )


def _figures(found: list[Taken]) -> tuple[float, float, float, float, float | None]:
    of_all = middle(found)
    return of_all.rate, of_all.p50, of_all.p99, of_all.worst, of_all.us


def _backend(server: Server, count: int) -> Taken:
    """Post to new conversations by the server key."""
    bodies = json.dumps({"text": f"{TEXT}{NUMBER}"})
    calls = [
        Call("POST", f"/v3/s2s/conversations/{each}/messages", bodies)
        for each in server.create(max(1, count))
    ]
    return take(server, Job(server.port, calls=calls, key=server.key, connections=_AT_ONCE, count=len(calls) * _EACH))  # fmt: skip


def _customers(server: Server, channel: dict[str, Any], count: int) -> Taken:
    """Post to new conversations of as many customers, each with a session."""
    first = time.monotonic_ns()
    tokens = _sessions(server, channel, users=[f"p{first}-{number}" for number in range(max(1, count))])
    path = "/v3/customer/conversations"
    start = {"message": {"text": "Hello", "clientId": "first"}}
    starts = [Call("POST", path, json.dumps(start | {"clientId": each}), each) for each in tokens]
    started = [json.loads(each) for each in _called(server, starts)]
    body = json.dumps({"text": f"{TEXT}{NUMBER}", "clientId": f"m{NUMBER}"})
    calls = [Call("POST", f"{path}/{each['id']}/messages", body, each["clientId"]) for each in started]
    headers = {"Origin": _SITE}
    return take(server, Job(server.port, calls=calls, headers=headers, connections=_AT_ONCE, count=len(calls) * _EACH))  # fmt: skip
