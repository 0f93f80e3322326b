"""A base for comparison: an app that does nothing, on stock Hypercorn; `asgi` or `quart`."""

from __future__ import annotations

import sys
from typing import Any, Final, cast

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from quart import Response, request
from quart_trio import QuartTrio

_HEADERS: Final = [(b"content-type", b"application/json"), (b"content-length", b"2")]


async def empty(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Reads the body and responds with `{}`."""
    if scope["type"] != "http":
        await _live(receive, send)
        return
    more = True
    while more:
        message: Any = await receive()
        more = message.get("more_body", False)
    await send(cast(Any, {"type": "http.response.start", "status": 200, "headers": _HEADERS}))
    await send({"type": "http.response.body", "body": b"{}", "more_body": False})


async def _live(receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Handle the lifespan of an app without startup or shutdown."""
    for _ in range(2):
        message = await receive()
        await send(cast(Any, {"type": f"{message['type']}.complete"}))


def quart_app() -> QuartTrio:
    """Return an app with a route that reads the body and responds with `{}`."""
    app = QuartTrio(__name__)

    @app.post("/v3/s2s/conversations/<identifier>/messages")
    async def post(identifier: str) -> Response:
        assert identifier
        await request.get_data()
        return Response(b"{}", 200, content_type="application/json")

    return app


async def main(kind: str) -> None:
    """Serve on a free port, which is printed, until killed."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{listener.socket.fileno()}"]
    config.keep_alive_timeout = 120.0
    config.errorlog = None
    print(f"http://127.0.0.1:{port}", flush=True)
    await serve(cast(Any, quart_app() if kind == "quart" else empty), config)


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
