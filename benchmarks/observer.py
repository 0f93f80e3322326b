"""A stream consumer and a webhook receiver in one process, which say how old messages are when they come.

Each message carries the time it was sent, by the clock that all processes of a machine share. Started with the
port, server key, project id and stream key; prints a line when it is in place, and then for each line on stdin the
ages in milliseconds of what has come since the last one.
"""

from __future__ import annotations

import json
import re
import sys
import time
from functools import partial
from typing import Final

import trio
from trio_websocket import WebSocketConnection, open_websocket_url

from benchmarks.stream import client, subscribe, url

_SENT: Final = re.compile(rb"sent (\d{19}) ")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ANSWER: Final = b"HTTP/1.1 204 No Content\r\n\r\n"
_READ: Final = 65_536


class Ages:
    """Ages in milliseconds of the messages that have come by one way."""

    def __init__(self) -> None:
        self._taken: list[float] = []

    def note(self, data: bytes) -> None:
        """Note the message in `data` if there is one."""
        now = time.monotonic_ns()
        if found := _SENT.search(data):
            self._taken.append((now - int(found[1])) / 1e6)

    def take(self) -> list[float]:
        """All since the last call."""
        taken, self._taken = self._taken, []
        return taken


async def _consume(websocket: WebSocketConnection, ages: Ages) -> None:
    while True:
        ages.note(str(await websocket.get_message()).encode())


async def _receive(ages: Ages, stream: trio.SocketStream) -> None:
    """Answer webhook after webhook on one connection."""
    data = b""
    async with stream:
        async for chunk in stream:
            data += chunk
            head, blank, body = data.partition(b"\r\n\r\n")
            size = _LENGTH.search(head)
            if not blank or size is None or len(body) < int(size[1]):
                continue
            ages.note(body)
            data = body[int(size[1]) :]
            await stream.send_all(_ANSWER)


async def main(port: int, key: str, project: str, stream_key: str) -> None:
    """Observe until stdin ends."""
    frames, webhooks = Ages(), Ages()
    async with trio.open_nursery() as nursery, client(port, key) as api:
        serve = partial(trio.serve_tcp, partial(_receive, webhooks), 0, host="127.0.0.1")
        listeners: list[trio.SocketListener] = await nursery.start(serve)
        hook = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/hook"
        (await api.post("/s2s/webhooks", json={"url": hook})).raise_for_status()
        async with open_websocket_url(url(port, stream_key)) as websocket:
            await subscribe(websocket, api, f"private-project-{project}", "benchmark")
            nursery.start_soon(_consume, websocket, frames)
            print("in place", flush=True)
            while await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
                print(json.dumps({"frames": frames.take(), "webhooks": webhooks.take()}), flush=True)
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4])
