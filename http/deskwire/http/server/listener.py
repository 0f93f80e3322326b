"""The listener: it accepts connections, and passes each to the stream, the fast path or Hypercorn (ADR 7).

Each request is routed by its first bytes (inside TLS, if there is a certificate). The first request for the
stream makes the connection the stream's for good. A stop has five steps: accept only the connections in
the queue, let accepted connections send their first request, let requests under way finish for a limited
time, close the streams, and cut the remaining connections.

If TLS is enabled, plain HTTP gets a response that says so, instead of a broken connection.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Final

import h11
import structlog
import trio
from msgspec import Struct

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.http1 import phrase
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.tasks.failure import contain_failures
from deskwire.http.api.problems import raw_problem
from deskwire.http.server.adapters.hypercorn import HypercornServer
from deskwire.http.server.fast_path import FastPath
from deskwire.http.transport.connection import STREAM_REQUEST, FrontStream, TlsFrontStream
from deskwire.http.transport.connection_slots import Connections
from deskwire.http.transport.fair_scheduling import FairScheduler

log: Final = structlog.get_logger(__name__)

_PEEK: Final = 4096
# Errors of `accept` when the system is out of resources; they pass (as in `trio.serve_listeners`).
_NO_ROOM_ERRNOS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_ACCEPT_RETRY_DELAY_S: Final = 0.1
_LOG_INTERVAL_S: Final = 60.0
# Errors of connections that broke before they were accepted; the next one may be sound (accept(2)).
_BROKEN_ERRNOS: Final = frozenset(
    (
        *(errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.ENOPROTOOPT, errno.EOPNOTSUPP),
        *(errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH),
    )
)
# Connections that are accepted in one turn.
_ACCEPT_BATCH_SIZE: Final = 64
# Connections that wait to be accepted take turns like a network of their own.
_NEWCOMERS: Final = "newcomers"
# Time that an evicted connection needs to end.
_EVICTION_DELAY_S: Final = 0.001
# The longest queue of a listener; all connections in it are accepted when a stop begins.
_QUEUE_MAX: Final = 65_535
# During a stop, an accepted connection may take this long to send its first bytes.
_ARRIVAL_TIMEOUT_S: Final = 0.5

StreamHandler = Callable[[trio.abc.Stream], Awaitable[None]]
# Returns the TLS context of the next connection, which changes when the certificate is renewed.
Tls = Callable[[], ssl.SSLContext]


class FrontLimits(Struct, frozen=True):
    """Limits of the front.

    Times in seconds.

    Args:
        peek_s: how long a client may take to send its first bytes, TLS included.
        handshake_s: how long a TLS handshake may take once it has begun.
        handshakes: concurrent handshakes; another one evicts the longest one of the network that has most
            of them. Each takes some 40 KB.
        write_timeout_s: how long one write may take.
        requests_s: how long requests under way may continue after the stop.
        shutdown_s: when every connection is closed after the stop, whatever the clients do.
    """

    peek_s: float = 10.0
    handshake_s: float = 5.0
    handshakes: int = 500
    write_timeout_s: float = 20.0
    requests_s: float = 10.0
    shutdown_s: float = 20.0

    def __post_init__(self) -> None:
        if not 0 <= self.requests_s < self.shutdown_s:
            raise ValueError("requests_s must be less than shutdown_s")


async def serve_front(
    listeners: Sequence[trio.SocketListener],
    server: HypercornServer,
    *,
    stream_handler: StreamHandler,
    close_streams: Callable[[], None],
    stop: trio.Event,
    limits: FrontLimits,
    tls: Tls | None = None,
    fast_path: FastPath | None = None,
    connections: Connections | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `listeners` until `stop` is set, then stop in order.

    Started once connections are accepted.

    Args:
        listeners: closed on return.
        server: serves all requests that are neither plain nor `GET /app/...`.
        stream_handler: serves a connection from its first `GET /app/` on, and closes it.
        close_streams: makes all connections of `stream_handler` end.
        tls: for HTTPS; None for plain HTTP.
        connections: limits and evicts connections; None for default limits.
        fast_path: serves each connection until a request that is not for the fast path; None for no fast
            path.

    Raises the exceptions of the app's startup.

    Cancellation: at once, except that Hypercorn's shielded writes may take up to the write timeout.
    """
    try:
        async with server.up(), trio.open_nursery() as outside:
            front = _Front(server, stream_handler, limits, tls, fast_path, connections or Connections())
            if fast_path is not None:
                outside.start_soon(fast_path.run)
            await front.run(listeners, close_streams, stop, task_status)
            outside.cancel_scope.cancel()
    finally:
        for listener in listeners:
            await trio.aclose_forcefully(listener)


class _Front:
    """The nursery tree of the connections.

    From outside: streams, requests, connections without a request, accepting.
    """

    def __init__(
        self,
        server: HypercornServer,
        stream: StreamHandler,
        limits: FrontLimits,
        tls: Tls | None,
        fast_path: FastPath | None,
        connections: Connections,
    ) -> None:
        self._connections = connections
        self._fast_path = fast_path
        self._server = server
        self._stream = stream
        self._limits = limits
        self._tls = tls
        self._scheduler = FairScheduler()
        self._handshakes = Connections(limits.handshakes)
        self._requests: set[FrontStream] = set()
        self._streams: set[FrontStream] = set()

    async def run(
        self,
        listeners: Sequence[trio.SocketListener],
        close_streams: Callable[[], None],
        stop: trio.Event,
        task_status: trio.TaskStatus[None],
    ) -> None:
        async with trio.open_nursery() as schedulers:
            schedulers.start_soon(self._scheduler.run)
            await self._serve_all(listeners, close_streams, stop, task_status)
            schedulers.cancel_scope.cancel()

    async def _serve_all(
        self,
        listeners: Sequence[trio.SocketListener],
        close_streams: Callable[[], None],
        stop: trio.Event,
        task_status: trio.TaskStatus[None],
    ) -> None:
        async with trio.open_nursery() as streams:
            async with trio.open_nursery() as requests:
                async with trio.open_nursery() as arriving:
                    async with trio.open_nursery() as accepting:
                        for listener in listeners:
                            accepting.start_soon(self._accept, listener, arriving, requests, streams)
                        task_status.started()
                        await stop.wait()
                        accepting.cancel_scope.cancel()
                    began = trio.current_time()
                    for listener in listeners:
                        for raw in _drained(listener):
                            self._take(raw, arriving, requests, streams)
                    arriving.cancel_scope.deadline = began + min(_ARRIVAL_TIMEOUT_S, self._limits.requests_s)
                last = began + self._limits.shutdown_s
                self._bound(requests, self._requests, began + self._limits.requests_s)
                if self._fast_path is not None:
                    self._fast_path.stop()
                await self._server.stop()
            close_streams()
            self._bound(streams, self._streams, last)

    @staticmethod
    def _bound(nursery: trio.Nursery, open_streams: set[FrontStream], deadline: float) -> None:
        nursery.cancel_scope.deadline = deadline
        for stream in open_streams:
            stream.limit_writes(deadline)  # also writes that are shielded from the nursery's cancellation

    async def _accept(
        self,
        listener: trio.SocketListener,
        arriving: trio.Nursery,
        requests: trio.Nursery,
        streams: trio.Nursery,
    ) -> None:
        logged_at = -_LOG_INTERVAL_S
        with socket.socket(fileno=os.dup(listener.socket.fileno())) as queue:
            while True:
                await trio.lowlevel.wait_readable(queue)
                await self._scheduler.acquire(listener, _NEWCOMERS)
                try:
                    for raw in _queued(queue, _ACCEPT_BATCH_SIZE):
                        self._take(raw, arriving, requests, streams)
                    continue
                except OSError as error:
                    failure = error
                finally:
                    self._scheduler.release(listener, usual=False)
                if failure.errno not in _NO_ROOM_ERRNOS:
                    raise failure
                if trio.current_time() - logged_at >= _LOG_INTERVAL_S:  # not for each connection
                    log.error("front.accept_failed", error=str(failure), effect="idle connections end")
                    logged_at = trio.current_time()
                ended = self._connections.make_room()
                await trio.sleep(_EVICTION_DELAY_S if ended else _ACCEPT_RETRY_DELAY_S)

    def _take(
        self, raw: trio.SocketStream, arriving: trio.Nursery, requests: trio.Nursery, streams: trio.Nursery
    ) -> None:
        """Give a connection its slot, or end it at once."""
        stream = self._wrapped(raw)
        stream.slot = self._connections.admit(stream.peer, stream.abort)
        stream.scheduler = self._scheduler
        if stream.slot is None:
            raw.socket.close()
        else:
            stream.slot.on_identified = partial(self._scheduler.release, stream)
            stream.slot.detect_dead_peer = stream.detect_dead_peer
            first = stream.receive_arrived(_PEEK)
            stream.push_back(first)
            if _shows_its_kind(first):
                self._pass_on(stream, first, requests, streams)
            else:
                arriving.start_soon(self._route, stream, requests, streams)

    def _wrapped(self, raw: trio.SocketStream) -> FrontStream:
        timeout_s = self._limits.write_timeout_s
        if self._tls is None:
            return FrontStream(raw, write_timeout_s=timeout_s)
        return TlsFrontStream(raw, self._tls(), write_timeout_s=timeout_s)

    async def _route(self, stream: FrontStream, requests: trio.Nursery, streams: trio.Nursery) -> None:
        """Read the first bytes and pass the connection on."""
        first = None
        try:
            with contain_failures(_log_failure):
                first = await self._first_bytes(stream)
        finally:
            if not first:
                await self._close(stream)
        if first:
            if self._fast_path is not None and not first.startswith(STREAM_REQUEST):
                stream.pass_turn()  # the fast path uses it at once
            self._pass_on(stream, first, requests, streams)

    def _pass_on(
        self, stream: FrontStream, first: bytes, requests: trio.Nursery, streams: trio.Nursery
    ) -> None:
        """Start the task that serves a connection with these first bytes, which are pushed back."""
        if first.startswith(STREAM_REQUEST):
            self._to_the_stream(stream, streams)
        else:
            self._requests.add(stream)
            requests.start_soon(self._serve_requests, stream, streams)

    async def _first_bytes(self, stream: FrontStream) -> bytes:
        """Return the client's first bytes.

        Returns empty bytes if it disconnects, takes too long, or does not use TLS.
        """
        with (
            suppress(trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError),
            stream.arrival_timeout(self._limits.peek_s),
        ):
            if not isinstance(stream, TlsFrontStream) or await self._complete_handshake(stream):
                return await _peek(stream)
        return b""

    def _to_the_stream(self, stream: FrontStream, streams: trio.Nursery) -> None:
        """Give the connection to the stream for good."""
        self._streams.add(stream)  # before its task starts, so that a stop in between finds it
        streams.start_soon(self._serve_stream, stream)

    async def _serve_requests(self, stream: FrontStream, streams: trio.Nursery) -> None:
        """Serve a connection until it ends or requests the stream.

        Any exception ends this connection only.
        """
        for_stream = False
        try:
            with contain_failures(_log_failure):
                for_stream = await self._serve(stream)
        finally:
            self._requests.discard(stream)
            if not for_stream:
                await self._close(stream)
        if for_stream:
            self._to_the_stream(stream, streams)

    async def _serve_stream(self, stream: FrontStream) -> None:
        try:
            with contain_failures(_log_failure):
                await self._stream(stream)
        finally:
            self._streams.discard(stream)
            await self._close(stream)

    async def _close(self, stream: FrontStream) -> None:
        if stream.slot is not None:
            stream.slot.leave()
        self._scheduler.release(stream)
        await trio.aclose_forcefully(stream)

    async def _serve(self, stream: FrontStream) -> bool:
        """Serve requests on the fast path or by Hypercorn, until a request for the stream.

        Returns True if there is such a request; its bytes are pushed back.
        """
        while True:
            try:
                if self._fast_path is not None and not await self._fast_path.serve(stream):
                    await stream.aclose()
                    return False
                if await self._for_stream(stream):
                    return True
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return False
            if not await self._server.serve(stream):
                return False

    async def _for_stream(self, stream: FrontStream) -> bool:
        """Return whether the next request is for the stream.

        Its bytes are pushed back.
        """
        try:
            with stream.arrival_timeout(self._limits.peek_s):
                return (await _peek(stream)).startswith(STREAM_REQUEST)
        except trio.TooSlowError as error:
            raise trio.ClosedResourceError("the rest of a request did not come in time") from error

    async def _complete_handshake(self, stream: TlsFrontStream) -> bool:
        """Make the TLS handshake.

        Returns whether it succeeded.
        """
        if is_plain_http(await stream.peek_byte()):
            await refuse_plain_http(stream)
            return False
        await stream.acquire_turn()
        with trio.move_on_after(self._limits.handshake_s) as scope:
            slot = self._handshakes.admit(stream.peer, scope.cancel)
            if slot is None:
                return False
            try:
                await stream.do_handshake()
            finally:
                slot.leave()
        return not scope.cancelled_caught


def _drained(listener: trio.SocketListener) -> list[trio.SocketStream]:
    """Accept all connections in the listener's queue and close the listener.

    Closing resets the remaining connections. A listener of a service manager stays open there.
    """
    # OSError: the system has no room for a connection.
    with socket.socket(fileno=listener.socket.detach()) as queue, suppress(OSError):
        return _queued(queue, _QUEUE_MAX)
    return []


def _queued(queue: socket.socket, most: int) -> list[trio.SocketStream]:
    """Accept connections in a listener's queue, at most `most`, without waiting.

    They are accepted in one step. `trio.SocketListener.accept` lets all other tasks run between two
    connections, so that under load each would delay the next.

    Raises OSError if the system has no room for the first of them.
    """
    found: list[trio.SocketStream] = []
    queue.setblocking(False)
    for _ in range(most):
        try:
            accepted, _peer = queue.accept()
        except BlockingIOError:
            break
        except OSError as error:
            if error.errno in _BROKEN_ERRNOS:
                continue
            if found:
                break
            raise
        found.append(trio.SocketStream(trio.socket.from_stdlib_socket(accepted)))
    return found


def _shows_its_kind(first: bytes) -> bool:
    """Return whether these first bytes are enough to tell a request for the stream from others."""
    return len(first) >= len(STREAM_REQUEST) or not STREAM_REQUEST.startswith(first)


def _log_failure(failure: BaseException) -> None:
    log.error("front.connection_failed", exc_info=failure)


async def _peek(stream: FrontStream) -> bytes:
    """Return enough of a request's first bytes for routing, and push them back.

    Returns empty bytes if the client sends none.
    """
    first = b""
    while not _shows_its_kind(first):
        await stream.until_readable()
        data = await stream.receive_some(_PEEK)
        if not data:
            break
        first += data
    stream.push_back(first)
    return first


_DETAIL: Final = "This port speaks TLS: use https:// and wss://."


def is_plain_http(first_byte: bytes) -> bool:
    """Return whether a connection with this first byte is plain HTTP.

    A method begins with a letter, TLS with 22.
    """
    return first_byte.isalpha()


async def refuse_plain_http(stream: trio.abc.Stream) -> None:
    """Answer any request with 400 `tls_required` and close.

    Raises BrokenResourceError.
    """
    await stream.send_all(_answer(new_id("req", wall_clock())))
    await stream.aclose()


def _answer(request_id: str) -> bytes:
    status = HTTPStatus.BAD_REQUEST
    headers, body = raw_problem(status, "tls_required", _DETAIL, request_id)
    headers.append((b"connection", b"close"))
    connection = h11.Connection(h11.SERVER)
    response = h11.Response(status_code=status, headers=headers, reason=phrase(status).encode())
    parts = (connection.send(part) for part in (response, h11.Data(data=body), h11.EndOfMessage()))
    return b"".join(part or b"" for part in parts)
