"""Websocket upgrades that reach the app, where none is served.

The stream's upgrades in HTTP/1.1 are taken out before (ADR 7). What is left is upgrades of other paths, which are
refused before the app (`strict`), and those in HTTP/2 (RFC 8441), which are refused here.
"""

from __future__ import annotations

from typing import Final

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable
from quart_trio.asgi import TrioASGIWebsocketConnection

from deskwire.engine.clock import wall_clock
from deskwire.engine.ids import new_id
from deskwire.http.problems import raw_problem

_STREAM: Final = "/app/"


def refusal_of(path: str) -> tuple[int, str, str, list[tuple[bytes, bytes]]]:
    """Status, code, detail and headers of the refusal of an upgrade of this path."""
    if path.startswith(_STREAM):
        return (
            503,
            "connection_in_use",
            "The stream is served in HTTP/1.1: open a connection for it.",
            [(b"retry-after", b"1")],
        )
    return 404, "not_found", "There is no such path.", []


class RefusedUpgrade(TrioASGIWebsocketConnection):
    """Quart's handler of a websocket connection; it answers the upgrade with a problem document."""

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Answer, and have the connection closed."""
        await receive()
        status, code, detail, more = refusal_of(self.scope["path"])
        headers, body = raw_problem(status, code, detail, new_id("req", wall_clock()))
        headers += more
        await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": body, "more_body": False})
