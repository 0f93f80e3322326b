"""A push service in its own thread, and a browser that is subscribed to it.

Chromium can't subscribe here, because its push service is on the Internet. So the page's `PushManager` returns the subscription of a
browser whose keys the test has. The rest is real: the desk, the service, the encryption, and the service worker.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.sockets.push_service import PushBrowser


class PushEndpoint(ThreadingHTTPServer):
    """A push service on loopback. `bodies` are the encrypted bodies that it accepted."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []
        self.browser = PushBrowser(f"http://127.0.0.1:{self.server_address[1]}/push")

    @property
    def payloads(self) -> list[dict[str, Any]]:
        """The payloads after the browser's decryption."""
        return [json.loads(self.browser.decrypted(body)) for body in self.bodies]

    @property
    def script(self) -> str:
        """The script by which pages subscribe to it."""
        return _SCRIPT.replace("SUBSCRIPTION", json.dumps(self.browser.subscription))


_SCRIPT = """
  const bytes = (text) => Uint8Array.from(text.split(",").map(Number)).buffer;
  const made = () => ({
    options: { applicationServerKey: bytes(localStorage.getItem("test push")) },
    toJSON: () => ({ ...SUBSCRIPTION, expirationTime: null }),
    unsubscribe: async () => (localStorage.removeItem("test push"), true),
  });
  PushManager.prototype.getSubscription = async () => (localStorage.getItem("test push") ? made() : null);
  PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
    if (window.pushFails) throw new DOMException("Registration failed - push service error", "AbortError");
    if (!userVisibleOnly) throw new DOMException("Only for notifications", "NotAllowedError");
    localStorage.setItem("test push", [...applicationServerKey].join());
    return made();
  };
"""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: PushEndpoint

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def push_endpoint() -> Iterator[PushEndpoint]:
    """Serve a push service until the context ends."""
    with PushEndpoint() as endpoint:
        thread = threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield endpoint
        finally:
            endpoint.shutdown()
            thread.join()
