"""A client websocket that is gone, socket and all, when its block is left, however the peer behaves.

trio-websocket leaves the TCP connection open when the peer breaks off without a closing frame; here the block
that opens the connection closes it.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import SplitResult, urlsplit

import trio
from trio_websocket import WebSocketConnection, wrap_client_stream

CONNECT_S: Final = 20.0
CLOSE_S: Final = 2.0
_FRAME_MAX: Final = 1024 * 1024
_READ: Final = 64 * 1024
_QUEUE: Final = 64  # messages read ahead of the caller


@asynccontextmanager
async def websocket(url: str, trust: ssl.SSLContext) -> AsyncIterator[WebSocketConnection]:
    """Connect to a `ws` or `wss` URL, for the block; `trust` verifies the latter's certificate.

    Raises, possibly in a group:
        OSError, trio.TooSlowError: there is no connection to be had.
        HandshakeError: there is no websocket at the other end.
    """
    parts = urlsplit(url)
    resource = f"{parts.path}?{parts.query}"
    with trio.fail_after(CONNECT_S):
        stream = await _dial(parts, trust)
    async with stream, trio.open_nursery() as nursery:
        with trio.fail_after(CONNECT_S):
            socket = await wrap_client_stream(
                nursery,
                stream,
                parts.netloc,
                resource,
                message_queue_size=_QUEUE,
                max_message_size=_FRAME_MAX,
                receive_buffer_size=_READ,
            )
        try:
            yield socket
        finally:
            with trio.move_on_after(CLOSE_S):
                await socket.aclose()
            nursery.cancel_scope.cancel()


async def _dial(
    parts: SplitResult, trust: ssl.SSLContext
) -> trio.SocketStream | trio.SSLStream[trio.SocketStream]:
    host, secure = parts.hostname or "", parts.scheme == "wss"
    if not secure:
        return await trio.open_tcp_stream(host, parts.port or 80)
    return await trio.open_ssl_over_tcp_stream(
        host, parts.port or 443, https_compatible=True, ssl_context=trust
    )
