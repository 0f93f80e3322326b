"""A site that shows the widget: pages of another origin and site than the service, each with a policy of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

NONCE: Final = "aG9zdA"
_PAGE: Final = """<!doctype html>
<html lang="{language}"><head><meta charset="utf-8"><title>Shop</title>
<link rel="icon" href="/icon.svg"><link rel="stylesheet" href="/site.css">
<script nonce="{nonce}" src="/first.js"></script>
<script nonce="{nonce}" async src="{loader}"></script></head>
<body><h1>Shop</h1><main><p>{text}</p><button id="own">A button of the shop</button></main></body></html>"""
_FIRST: Final = "window.Deskwire = window.Deskwire || [];\n"
_STYLE: Final = "* { box-sizing: content-box; } button, iframe, section { all: unset; color: red; } div { display: none; }"


@dataclass
class HostSite:
    """Pages that embed a loader.

    Args:
        url: the site's origin, `http://localhost:…`: another site than the service at `127.0.0.1`.
        loader: the address of the loader.
        policy: the Content-Security-Policy of the pages; empty for none.
        first: the script that runs before the loader.
    """

    url: str
    loader: str = ""
    policy: str = ""
    first: str = _FIRST
    language: str = "en"
    headers: dict[str, str] = field(default_factory=dict)

    def page(self) -> str:
        """Return the HTML of a page."""
        return _PAGE.format(
            language=self.language, loader=self.loader, nonce=NONCE, text="Shoes and hats. " * 200
        )


@contextmanager
def hosting() -> Iterator[HostSite]:
    """Serve a site on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            kinds = {
                "/site.css": ("text/css", _STYLE),
                "/first.js": ("text/javascript", site.first),
                "/icon.svg": ("image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg"/>'),
            }
            kind, text = kinds.get(path, ("text/html", site.page()))
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            if site.policy:
                self.send_header("Content-Security-Policy", site.policy)
            for name, value in site.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = HostSite(f"http://localhost:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, name="a host's site", daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
