"""A server that answers the recorded requests with their responses, and checks each request against the recorded one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, cast
from urllib.parse import parse_qsl, unquote

from tests.clients.comparison import differences
from tests.clients.tour.recorder import Exchange

TOKEN: Final = "the-clients-token"
"""The credential that each client has to send where the operation requires one."""


@dataclass(frozen=True)
class Request:
    """A client's request as received."""

    method: str
    target: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def segments(self) -> list[str]:
        """The decoded segments of the path: it is split before it is decoded."""
        return [unquote(each) for each in self.target.partition("?")[0].split("/")]

    @property
    def query(self) -> list[tuple[str, str]]:
        """The parameters in the query."""
        return parse_qsl(self.target.partition("?")[2], keep_blank_values=True)


@dataclass
class Replay:
    """The recorded exchanges with the responses that clients get.

    Args:
        responses: the JSON of the response of each exchange, by the exchange's name.
    """

    exchanges: Sequence[Exchange]
    responses: Mapping[str, Any]
    received: set[str] = field(default_factory=set)
    mismatches: dict[str, list[str]] = field(default_factory=dict)

    def answer(self, request: Request) -> tuple[int, bytes]:
        """Return status and body for a request; note how it differs from the recorded request."""
        candidates = [
            each
            for each in self.exchanges
            if each.method == request.method and _segments(each.path) == request.segments
        ]
        if not candidates:
            self.mismatches[f"{request.method} {request.target}"] = ["no operation was called like this"]
            return 404, b"{}"
        found = [(each, [*mismatches(each, request)]) for each in candidates]
        exchange, wrong = min(found, key=lambda pair: len(pair[1]))
        self.received.add(exchange.name)
        if wrong:
            self.mismatches[exchange.name] = wrong
        if exchange.status == 204:
            return 204, b""
        return exchange.status, json.dumps(self.responses[exchange.name]).encode()


def _segments(path: str) -> list[str]:
    return [unquote(each) for each in path.split("/")]


def mismatches(exchange: Exchange, request: Request) -> Iterator[str]:
    """Yield each difference between a recorded request and a client's."""
    given = dict(request.query)
    if len(given) < len(request.query):
        yield "a query parameter is sent twice"
    wanted = {name: _text(value) for name, value in exchange.given("query").items()}
    yield from differences(wanted, _numbers_like(wanted, given), nulls=True, at="query")
    for name, value in exchange.given("header").items():
        if request.headers.get(name) != str(value):
            yield f"header {name} is {request.headers.get(name)!r}, not {value!r}"
    if exchange.secured and request.headers.get("Authorization") != f"Bearer {TOKEN}":
        yield f"header Authorization is {request.headers.get('Authorization')!r}"
    yield from _body_mismatches(exchange, request)


def _body_mismatches(exchange: Exchange, request: Request) -> Iterator[str]:
    if not exchange.has_body:
        if request.content:
            yield f"a body is sent: {request.content[:100]!r}"
        return
    if request.headers.get("Content-Type", "").partition(";")[0] != "application/json":
        yield f"header Content-Type is {request.headers.get('Content-Type')!r}"
    try:
        body = json.loads(request.content)
    except ValueError:
        yield f"the body is no JSON: {request.content[:100]!r}"
        return
    yield from differences(exchange.body, body, nulls=True, at="body")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _numbers_like(wanted: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters, with `0.0` as `0` where that was recorded."""
    return {
        name: wanted[name]
        if name in wanted and _number(wanted[name]) == _number(value) is not None
        else value
        for name, value in given.items()
    }


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@contextmanager
def serving(replay: Replay) -> Iterator[str]:
    """Serve a replay on a free port until the context ends; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            content = self._chunks() if self.headers.get("Transfer-Encoding") else self.rfile.read(length)
            request = Request(self.command, self.path, cast("Mapping[str, str]", self.headers), content)
            status, body = replay.answer(request)
            self.send_response(status)
            if body:
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _chunks(self) -> bytes:
            """Return a body that comes in chunks, as Java's client sends it."""
            content = b""
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return content

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _do

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
