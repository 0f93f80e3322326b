"""A server on a real socket that speaks the OpenAI chat-completions protocol, as well or badly as a test requires."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import trio

from deskwire.engine.core.clock import wall_clock

NEVER: Final = b""
"""A reply that never comes."""


def http(status: str, body: bytes, **headers: str) -> bytes:
    """Return an HTTP response."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def said(content: str) -> bytes:
    """Return the model's answer with this text."""
    message = {"role": "assistant", "content": content}
    return http("200 OK", orjson.dumps({"choices": [{"index": 0, "message": message}]}))


@dataclass
class ModelServer:
    """A running server, with its next reply and the requests it received, with their times (ms)."""

    url: str
    reply: bytes = NEVER
    heads: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    asked_at: list[int] = field(default_factory=list)
    reached: trio.Event = field(default_factory=trio.Event)

    def answer(self, document: Mapping[str, Any]) -> None:
        """Set the reply to this JSON object."""
        self.reply = said(orjson.dumps(document).decode())

    async def serve(self, stream: trio.SocketStream) -> None:
        """Read one request, answer, and close."""
        received = b""
        while b"\r\n\r\n" not in received:
            received += await stream.receive_some()
        head, _, body = received.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
        while len(body) < int(fields["content-length"]):
            body += await stream.receive_some()
        self.heads.append(head.decode())
        self.asked.append(orjson.loads(body))
        self.asked_at.append(wall_clock())
        self.reached.set()
        if self.reply == NEVER:
            await trio.sleep_forever()
        await stream.send_all(self.reply)
        await stream.aclose()


@asynccontextmanager
async def model_server() -> AsyncIterator[ModelServer]:
    """Run a server on a free port until the context ends."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server = ModelServer(f"http://127.0.0.1:{listener.socket.getsockname()[1]}/v1")
        nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        yield server
        nursery.cancel_scope.cancel()
