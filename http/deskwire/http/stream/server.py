"""The server of the realtime stream (decisions 5).

It accepts each websocket and closes all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import structlog
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.limits.network import remote_network
from deskwire.engine.core.secret import Keyring
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.tasks.failure import report_failure
from deskwire.engine.core.tasks.retry import retry_until_available
from deskwire.engine.ports import Store
from deskwire.engine.stream.hub import Hub
from deskwire.http.api.input.headers import Network, client_address
from deskwire.http.measurements import Traffic
from deskwire.http.stream import pusher
from deskwire.http.stream.connection import SessionLimits, StreamSession
from deskwire.http.stream.event_writer import Flusher
from deskwire.http.stream.limits import SLOT_TIMEOUT_S, UnsubscribedLimit, UnsubscribedSlot
from deskwire.http.stream.protocol import OUTAGE_TIMEOUT_S, PusherProtocol
from deskwire.http.stream.revocations import RefusedAuthorizations, Revocations
from deskwire.http.stream.socket_writer import CLOSE_TIMEOUT_S
from deskwire.http.stream.websocket import (
    CLOSE_FRAME,
    Handshake,
    UpgradeRefusal,
    UpgradeRequest,
    close_frame,
    text_frame,
)
from deskwire.http.transport.connection import LINGER_TIMEOUT_S, FrontStream, drain

log: Final = structlog.get_logger(__name__)

# Time limit of a client's request.
_OPENING_TIMEOUT_S: Final = 10.0
# The same during a stop; a client that is dropped without a response may stay disconnected for long (ADR 38).
_OPENING_AT_STOP_TIMEOUT_S: Final = 0.5
_READ: Final = 16 * 1024
# Reads of one request. It may have 16 KB, and even a usual one may arrive byte by byte.
_READS: Final = 1_024


class RealtimeStream:
    """The stream's connections.

    `handle` is one connection's task, `run` writes events to all of them.

    Args:
        keys: the keys that sign tokens (`token.issue`).
        ping_s: time between websocket pings; after two without a pong the connection is dropped.
        write_timeout_s: how long one write may take before the connection is dropped.
        inbound_bytes: size of the largest message a client may send.
        unsubscribed_s: how long a connection may stay without ever subscribing.
        unsubscribed_each: unsubscribed connections that one network may have (`UnsubscribedLimit`).
        trusted_proxies: networks of proxies whose `X-Forwarded-For` is trusted.
        bus: the connection to the other nodes, if there are any.
    """

    def __init__(
        self,
        store: Store,
        hub: Hub,
        clock: Clock,
        *,
        keys: Keyring,
        ping_s: float = 25.0,
        write_timeout_s: float = 20.0,
        inbound_bytes: int = 65_536,
        unsubscribed_s: float = 120.0,
        unsubscribed_each: int = 50,
        trusted_proxies: Sequence[Network] = (),
        bus: Bus | None = None,
    ) -> None:
        self._store = store
        self._hub = hub
        self._clock = clock
        self._keys = keys
        self._limits = SessionLimits(ping_s, write_timeout_s, inbound_bytes, unsubscribed_s)
        self._flusher = Flusher()
        self._unsubscribed = UnsubscribedLimit(unsubscribed_each)
        self._trusted_proxies = trusted_proxies
        self.traffic: Final = Traffic()
        self._protocols: dict[str, PusherProtocol] = {}  # by socket id, oldest first
        self._revocations = Revocations(store, self._protocols.values(), clock)
        self._refused = RefusedAuthorizations(self._protocols, bus)
        self._openings: set[trio.CancelScope] = set()
        self._held: set[trio.CancelScope] = set()
        self._closing: pusher.StreamClose | None = None

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._protocols)

    async def run(self) -> None:
        """Write events and end connections without a valid credential.

        Runs until cancelled.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._revocations.run)
            nursery.start_soon(self._refused.run)
            await self._flusher.run()

    def follow(self, commits: Commits[CallerCommit]) -> None:
        """End connections whose credential or project is ended by a commit, from now on."""
        commits.subscribe(lambda _: self.rights_changed_nowait(), "callers")

    def rights_changed_nowait(self) -> None:
        """End connections whose credential or project has ended on disk."""
        self._revocations.note_nowait()

    def authorization_refused(self, socket_id: str, channel: str, retry_after_s: float, known: bool) -> None:
        """End a connection soon after a refused authorization.

        The authorization of a channel was temporarily refused.

        Args:
            known: True if the caller has shown a valid credential.
        """
        self._refused.note(socket_id, channel, retry_after_s, known)

    def count_unsubscribed(self) -> int:
        """Return the number of connections without a subscription for long.

        They look healthy to their clients.
        """
        return sum(protocol.session.lacks_subscription for protocol in self._protocols.values())

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Serve one connection whose request begins with `GET /app/`, and close it.

        Cancellation: the connection is dropped without a goodbye.
        """
        protocol: PusherProtocol | None = None
        slot: UnsubscribedSlot | None = None
        try:
            opening = await self._open(stream)
            if opening is not None:
                slot = await self._unsubscribed.admit(self._network(stream, opening))
                admitted = await self._admit(opening, slot)
                if isinstance(admitted, pusher.StreamClose):
                    await _turn_away(stream, admitted)
                elif slot is not None:
                    protocol = self._begin(stream, opening.rest, slot, admitted)
                    await protocol.session.run(protocol)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the peer has disconnected
        except BaseException as error:  # noqa: BLE001  # the task's top level: a bug ends one connection only
            report_failure(error, partial(_log_failure, protocol))
        finally:
            if protocol is not None:
                del self._protocols[protocol.socket_id]
            if slot is not None:
                slot.leave()
            await trio.aclose_forcefully(stream)

    def close_all(self, goodbye: pusher.StreamClose = pusher.RESTARTING) -> None:
        """End every connection, and each one that opens later, within 5 s.

        A client that has not finished its request, or not read the response, gets half a second.
        """
        self._closing = goodbye
        for scope in self._openings:
            scope.deadline = trio.current_time() + _OPENING_AT_STOP_TIMEOUT_S
        for scope in self._held:
            scope.cancel()
        self._unsubscribed.close()
        for protocol in list(self._protocols.values()):
            protocol.session.end(goodbye)

    async def _open(self, stream: trio.abc.Stream) -> UpgradeRequest | None:
        """Return the client's request, accepted.

        Returns None if there is nothing to serve.
        """
        with trio.CancelScope() as scope:
            if self._closing is not None:
                scope.deadline = trio.current_time() + _OPENING_AT_STOP_TIMEOUT_S
            self._openings.add(scope)
            try:
                return await self._shake_hands(stream)
            finally:
                self._openings.discard(scope)
        return None

    async def _shake_hands(self, stream: trio.abc.Stream) -> UpgradeRequest | None:
        handshake, result = Handshake(), None
        with trio.move_on_after(_OPENING_TIMEOUT_S):
            for _ in range(_READS):
                result = handshake.feed(bytes(await stream.receive_some(_READ)))
                if result is not None:
                    break
        if result is None:
            return None
        with trio.move_on_after(self._limits.write_timeout_s) as writing:
            await stream.send_all(result.response)
        if writing.cancelled_caught:
            return None
        if isinstance(result, UpgradeRefusal):
            with trio.move_on_after(LINGER_TIMEOUT_S):
                await drain(stream, CLOSE_FRAME)
            return None
        return result

    def _begin(
        self, stream: trio.abc.Stream, rest: bytes, slot: UnsubscribedSlot, project: Project
    ) -> PusherProtocol:
        session = StreamSession(stream, self._hub, self._flusher, self.traffic, self._limits, rest, slot)
        protocol = PusherProtocol(
            self._store, self._hub, self._clock, self._keys, session, project, self._revocations.ends_at
        )
        self._protocols[protocol.socket_id] = protocol
        return protocol

    def _network(self, stream: trio.abc.Stream, opening: UpgradeRequest) -> str | None:
        """Return the network that an unsubscribed connection counts against.

        Returns None for this machine (`remote_network`).
        """
        peer = stream.peer if isinstance(stream, FrontStream) else None
        return remote_network(client_address(peer, opening.forwarded_for, self._trusted_proxies))

    async def _admit(
        self, opening: UpgradeRequest, slot: UnsubscribedSlot | None
    ) -> Project | pusher.StreamClose:
        if self._closing is not None:
            return self._closing
        if slot is None:
            self.traffic.crowded += 1
            return pusher.CROWDED
        if opening.refusal is not None:
            return opening.refusal
        project = None
        with trio.CancelScope() as scope:
            self._held.add(scope)
            try:  # no node has the database now, and some clients give up after a few refusals
                find = partial(self._project, opening.stream_key)
                project = await retry_until_available(
                    find, min(slot.since + SLOT_TIMEOUT_S, trio.current_time() + OUTAGE_TIMEOUT_S)
                )
            except Unavailable:
                return pusher.OVER_CAPACITY
            finally:
                self._held.discard(scope)
        return self._closing or project or pusher.UNKNOWN_APP

    async def _project(self, stream_key: str) -> Project | None:
        """Return the current project of a stream key.

        A change during the read repeats it, a later one finds the connection.
        """
        changes = None
        while changes != self._revocations.changes:
            changes = self._revocations.changes
            project = await self._store.read(
                InlineQuery(lambda reader: reader.project_by_stream_key(stream_key))
            )
        return project


def _log_failure(protocol: PusherProtocol | None, failure: BaseException) -> None:
    socket_id = None if protocol is None else protocol.socket_id
    log.error("stream.connection_failed", socket_id=socket_id, exc_info=failure)


async def _turn_away(stream: trio.abc.Stream, goodbye: pusher.StreamClose) -> None:
    """Send the client the reason of its refusal, and wait for its close.

    Its data is not parsed.
    """
    refusal = text_frame(pusher.error(goodbye.message, goodbye.code))
    with trio.move_on_after(CLOSE_TIMEOUT_S):
        await stream.send_all(refusal + close_frame(goodbye.code, goodbye.message))
        await drain(stream, CLOSE_FRAME)
