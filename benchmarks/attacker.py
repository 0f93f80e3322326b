"""One hostile machine without a credential: `python -m benchmarks.attacker <port> <attack> <stream key> <channel>`, until it is killed.

It uses its own address of the loopback network, and prints `begun` once the attack is fully under way.
Connections that the server closes are opened again at once.
"""

from __future__ import annotations

import base64
import os
import re
import socket
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import trio
import trio.lowlevel

from benchmarks.job import BEGUN

SITE: Final = "https://shop.example"
"""The website of the customers' channel."""
_STREAMS: Final = 20
_CONVERSATIONS: Final = 3
_REFUSED_S: Final = 0.05
_SOURCE: Final = "127.0.0.2"
_PAUSE_S: Final = 0.01
_HOST: Final = b"Host: localhost\r\n"
_JSON: Final = _HOST + b"Content-Type: application/json\r\n"
_SIGN_IN: Final = b"POST /v3/auth/token HTTP/1.1\r\n"

Attack = Callable[[int], Awaitable[None]]
"""The part of one connection, which is repeated whenever it ends."""


async def _dial(port: int, *, window: int | None = None) -> trio.SocketStream:
    made = trio.socket.socket()
    if window is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    await made.bind((_SOURCE, 0))
    await made.connect(("127.0.0.1", port))
    return trio.SocketStream(made)


async def _hold(opening: bytes, port: int) -> None:
    """Send some bytes, then keep the connection silent until the server closes it."""
    async with await _dial(port) as stream:
        await stream.send_all(opening)
        while await stream.receive_some():
            pass


async def _never_read(request: bytes, port: int) -> None:
    """Send requests repeatedly without ever reading a response."""
    async with await _dial(port, window=4096) as stream:
        for _ in range(1_000):
            await stream.send_all(request)
        await trio.sleep(20)


async def _repeat(request: bytes, port: int) -> None:
    """Send a request and read its response, over and over."""
    async with await _dial(port) as stream:
        while True:
            await stream.send_all(request)
            if b"\r\nconnection: close" in bytes(await stream.receive_some()).lower():
                return


async def _come_and_go(port: int) -> None:
    while True:
        await trio.aclose_forcefully(await _dial(port))


async def _frames(key: str, frames: bytes, port: int) -> None:
    """Open a websocket and send these frames without end."""
    nonce = base64.b64encode(os.urandom(16)).decode()
    request = (
        f"GET /app/{key}?protocol=7 HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {nonce}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    async with await _dial(port) as stream, trio.open_nursery() as nursery:
        await stream.send_all(request.encode())
        nursery.start_soon(_hear_out, stream, nursery.cancel_scope)
        while True:
            await stream.send_all(frames)


async def _hear_out(stream: trio.SocketStream, scope: trio.CancelScope) -> None:
    with suppress(trio.BrokenResourceError):
        while await stream.receive_some(1 << 20):
            pass
    scope.cancel()


def _page(port: int) -> bytes:
    """Return a request for the largest file of the explorer."""
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.sendall(b"GET /docs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        found = b"".join(iter(partial(plain.recv, 65_536), b""))
    name = re.search(rb"docs/(swagger-ui-bundle[^\"]*)", found)
    assert name is not None, "the explorer has a script"
    return b"GET /docs/" + name[1] + b" HTTP/1.1\r\n" + _HOST + b"\r\n"


def _posted(body: bytes, head: bytes = _SIGN_IN) -> bytes:
    return head + _JSON + b"Content-Length: %d\r\n\r\n" % len(body) + body


def _masked(opcode: int, payload: bytes = b"", *, last: bool = True) -> bytes:
    return bytes((0x80 * last | opcode, 0x80 | len(payload))) + bytes(4) + payload


def attacks(port: int, stream_key: str, channel: str = "") -> Mapping[str, tuple[int, Attack]]:
    """Return each attack by its name: its number of connections, and the function of one of them."""
    fields = b"{" + b",".join(b'"%06d":1' % n for n in range(90_000)) + b"}"
    guess = b'{"email":"someone@example.com","password":"not the password"}'
    pings, pieces = _masked(0x9) * 2_000, _masked(0x1, last=False) + _masked(0x0, b"x", last=False) * 2_000
    half_body = _SIGN_IN + _JSON + b"Content-Length: 8000\r\n\r\n" + b"{" * 4_000
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0))
    return {
        "pages that are not read": (250, partial(_never_read, _page(port))),
        "descriptions that are not read": (
            250,
            partial(_never_read, b"GET /v3/openapi.json HTTP/1.1\r\n" + _HOST + b"\r\n"),
        ),
        "1 MB of unknown fields": (4, partial(_repeat, _posted(fields))),
        "passwords": (64, partial(_repeat, _posted(guess))),
        "halves of bodies": (2_000, partial(_hold, half_body)),
        "halves of heads": (2_000, partial(_hold, b"GET /v3/s2s/project HTTP/1.1\r\nX: ")),
        "connections that say nothing": (11_000, partial(_hold, b"")),
        "connections that come and go": (50, _come_and_go),
        "HTTP/2 by prior knowledge": (50, partial(_hold, preface)),
        "pings": (1, partial(_frames, stream_key, pings)),
        "pings, unknown key": (1, partial(_frames, "nobody", pings)),
        "pings, 50 connections": (50, partial(_frames, stream_key, pings)),
        "a message in pieces of a byte": (4, partial(_frames, stream_key, pieces)),
        "websockets without a subscription": (
            2_000,
            partial(_frames, stream_key, b""),
        ),
        "visitors": (50, partial(_visit, channel)),
    }


async def _visit(channel: str, port: int) -> None:
    """Be one new visitor after the other: start a session, open a stream, and start conversations without a proof of work.

    After the first ten conversations of the network, the service refuses them.
    """
    opened: deque[trio.SocketStream] = deque()
    try:
        async with await _dial(port) as stream:
            while True:
                started = await _asked(
                    stream, _of_customer("session", b'{"channelId":"%b"}' % channel.encode())
                )
                found = re.search(rb'"token": *"(cv_[^"]+)"', started)
                if found is None:
                    await trio.sleep(_REFUSED_S)
                    continue
                opened.append(await _dial(port))
                await opened[-1].send_all(_of_customer("stream", b"", found[1], b"GET"))
                if len(opened) > _STREAMS:
                    await trio.aclose_forcefully(opened.popleft())
                body = b'{"clientId":"a","message":{"clientId":"b","text":"Buy this"}}'
                for _ in range(_CONVERSATIONS):
                    await _asked(stream, _of_customer("conversations", body, found[1]))
    finally:
        for each in opened:
            await trio.aclose_forcefully(each)


def _of_customer(path: str, body: bytes, token: bytes = b"", method: bytes = b"POST") -> bytes:
    """Return the request of a customer's browser."""
    credential = b"Authorization: Bearer %b\r\n" % token if token else b""
    head = b"%b /v3/customer/%b HTTP/1.1\r\nOrigin: %b\r\n%b" % (
        method,
        path.encode(),
        SITE.encode(),
        credential,
    )
    return _posted(body, head) if body else head + _HOST + b"\r\n"


async def _asked(stream: trio.SocketStream, request: bytes) -> bytes:
    """Send a request; return what has arrived of its response. Raises BrokenResourceError if the connection ends."""
    await stream.send_all(request)
    answer = bytes(await stream.receive_some())
    if not answer or b"\r\nconnection: close" in answer.lower():
        raise trio.BrokenResourceError
    return answer


async def _again(attack: Attack, port: int) -> None:
    while True:
        try:
            await attack(port)
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # closed by the server: start again
        await trio.sleep(_PAUSE_S)


async def _attack(port: int, name: str, stream_key: str, channel: str) -> None:
    count, attack = attacks(port, stream_key, channel)[name]
    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(_again, attack, port)
            if number % 100 == 0:
                await trio.lowlevel.checkpoint()
        await trio.sleep(1)
        print(BEGUN, flush=True)


if __name__ == "__main__":
    os.nice(15)  # the measuring process shares this core, and must not be slowed down
    trio.run(_attack, int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4])
