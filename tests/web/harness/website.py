"""A customer's website with one page, in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Website(ThreadingHTTPServer):
    """A website on loopback.

    Args:
        content: the HTML of all its pages; tests can change it at any time.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = "<title>Shop</title>"

    @property
    def url(self) -> str:
        """The address of its first page."""
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: Website

    def do_GET(self) -> None:
        body = self.server.content.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def website() -> Iterator[Website]:
    """Serve a website until the context ends."""
    with Website() as site:
        thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield site
        finally:
            site.shutdown()
            thread.join()
