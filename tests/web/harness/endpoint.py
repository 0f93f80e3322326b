"""A webhook receiver with configurable responses, in its own thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Endpoint(ThreadingHTTPServer):
    """A receiver on loopback.

    Args:
        status: the status of its responses; tests can change it at any time.
        refuses: events containing this text get 400 while the status is 200.
        events: the envelopes it received.
    """

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.refuses: str | None = None
        self.events: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        """The address to register."""
        return f"http://127.0.0.1:{self.server_address[1]}/hook"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        self.server.events.append(json.loads(body))
        refused = self.server.refuses is not None and self.server.refuses.encode() in body
        self.send_response(400 if refused and self.server.status == 200 else self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def receiving(status: int = 200) -> Iterator[Endpoint]:
    """Serve a receiver until the context ends."""
    with Endpoint(status) as endpoint:
        thread = threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield endpoint
        finally:
            endpoint.shutdown()
            thread.join()
