"""A webhook receiver: a small HTTP server that notes what comes and answers at once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Final

import h11
import structlog
import trio

from tests.support.replay.history import Delivery
from tests.support.replay.journal import Journal

log: Final = structlog.get_logger(__name__)

HOST: Final = "127.0.0.1"
BODY_MAX: Final = 1024 * 1024
"""Largest accepted body in bytes; an envelope carries a message and a conversation, far below that."""
IDLE_S: Final = 120.0
_READ: Final = 64 * 1024
_DIGITS: Final = 9
"""The most digits of an attempt's number; Python makes no number of thousands of them."""


class Receiver:
    """Deliveries posted to one secret path on a free port of this machine.

    Args:
        status: the status of the response to a delivery.
    """

    def __init__(self, journal: Journal, status: Callable[[Delivery], int] = lambda _: 200) -> None:
        self._journal = journal
        self._status = status
        self._path = f"/hooks/{secrets.token_urlsafe(12)}".encode()
        self._port = 0

    @property
    def url(self) -> str:
        """The URL to post to, once the receiver runs."""
        return f"http://{HOST}:{self._port}{self._path.decode()}"

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        listeners = await trio.open_tcp_listeners(0, host=HOST)
        self._port = listeners[0].socket.getsockname()[1]
        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_listeners, self._serve, listeners)
            task_status.started()

    async def _serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection until it ends; its failures concern no other."""
        http = h11.Connection(h11.SERVER)
        try:
            async with stream:
                while http.our_state is h11.IDLE:
                    await self._exchange(stream, http)
        except (OSError, trio.BrokenResourceError, trio.TooSlowError, h11.RemoteProtocolError) as error:
            log.debug("receiver.connection_lost", error=repr(error))

    async def _exchange(self, stream: trio.SocketStream, http: h11.Connection) -> None:
        """Take one request and respond; without one the connection is closed at the return."""
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                with trio.fail_after(IDLE_S):
                    http.receive_data(await stream.receive_some(_READ))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > BODY_MAX:
                    await _answer(stream, http, 413)
                    return
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                break
            else:  # the peer has closed
                http.send(h11.ConnectionClosed())
                return
        if request.target != self._path or request.method != b"POST":
            await _answer(stream, http, 404)
            return
        delivery = _delivery(request, bytes(body))
        self._journal.record(delivery)
        await _answer(stream, http, self._status(delivery))
        if http.our_state is h11.DONE:
            http.start_next_cycle()


async def _answer(stream: trio.SocketStream, http: h11.Connection, status: int) -> None:
    closing = [] if status == 200 else [("Connection", "close")]
    head = http.send(h11.Response(status_code=status, headers=[("Content-Length", "0"), *closing]))
    await stream.send_all((head or b"") + (http.send(h11.EndOfMessage()) or b""))


def _delivery(request: h11.Request, body: bytes) -> Delivery:
    headers = {name: value.decode("latin-1") for name, value in request.headers}
    attempt = headers.get(b"service-attempt", "")
    return Delivery(
        at=trio.current_time(),
        body=body,
        label=headers.get(b"service-event", ""),
        received_at=time.time(),
        signature=headers.get(b"service-signature", ""),
        delivery_id=headers.get(b"service-delivery-id", ""),
        previous=headers.get(b"service-previous-sequence"),
        attempt=int(attempt) if attempt.isdecimal() and len(attempt) <= _DIGITS else 0,
    )
