"""The realtime stream's websocket: opening, the protocol's messages, and closing all (decisions 5)."""

from __future__ import annotations

from typing import Final

import structlog
import trio

from deskwire.engine.clock import Clock
from deskwire.engine.errors import DomainError, Forbidden, Unavailable
from deskwire.engine.people import Project
from deskwire.engine.ports import Store
from deskwire.engine.stream.channel import Channel, open_channel
from deskwire.engine.stream.hub import ConsumerSuperseded, Hub
from deskwire.engine.stream.token import Grant, TokenRefused, verify
from deskwire.http import pusher
from deskwire.http.frames import FrameCache
from deskwire.http.handshake import Handshake, NoWebsocket, Opening
from deskwire.http.session import LINGER_S, Limits, Session

log: Final = structlog.get_logger(__name__)

_OPENING_S: Final = 10.0
"""How long a client may take over its request."""
_READ: Final = 16 * 1024


class RealtimeStream:
    """Serves stream connections; `handle` is one connection's task.

    Args:
        key: what tokens are signed with (`token.issue`).
        ping_s: time between websocket pings; after two without a pong the connection is dropped.
        write_timeout_s: how long one write may take before the connection is dropped.
        inbound_bytes: size of the largest message a client may send.
        unsubscribed_s: how long a connection may stay without ever subscribing.
    """

    def __init__(
        self,
        store: Store,
        hub: Hub,
        clock: Clock,
        *,
        key: bytes,
        ping_s: float = 25.0,
        write_timeout_s: float = 20.0,
        inbound_bytes: int = 65_536,
        unsubscribed_s: float = 120.0,
    ) -> None:
        self._store = store
        self._hub = hub
        self._clock = clock
        self._key = key
        self._limits = Limits(ping_s, write_timeout_s, inbound_bytes, unsubscribed_s)
        self._frames = FrameCache()
        self._sessions: set[Session] = set()
        self._openings: set[trio.CancelScope] = set()
        self._closing = False

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._sessions)

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Serve one connection whose request begins with `GET /app/`, and close it.

        Cancellation: the connection is dropped without a goodbye.
        """
        try:
            opening = await self._open(stream)
            if opening is not None:
                await self._serve(stream, opening)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the peer has gone
        except Exception:  # the task's top: one connection's bug ends that connection and nothing else
            log.exception("stream.connection_failed")
        finally:
            await trio.aclose_forcefully(stream)

    def close_all(self) -> None:
        """End every connection with 4200, and each later one likewise; they are gone within 5 s.

        A client that has not finished its request, or not read its answer, is dropped.
        """
        self._closing = True
        for scope in self._openings:
            scope.cancel()
        for session in list(self._sessions):
            session.end(pusher.SHUTTING_DOWN)

    async def _open(self, stream: trio.abc.Stream) -> Opening | None:
        """The client's request, accepted; None if there is nothing to serve."""
        with trio.CancelScope() as scope:
            self._openings.add(scope)
            try:
                return await self._shake_hands(stream)
            finally:
                self._openings.discard(scope)
        return None

    async def _shake_hands(self, stream: trio.abc.Stream) -> Opening | None:
        handshake, result = Handshake(), None
        with trio.move_on_after(_OPENING_S):
            while result is None:
                result = handshake.feed(bytes(await stream.receive_some(_READ)))
        if result is None:
            return None
        with trio.move_on_after(self._limits.write_timeout_s) as writing:
            await stream.send_all(result.answer)
        if writing.cancelled_caught:
            return None
        if isinstance(result, NoWebsocket):
            await _drain(stream)
            return None
        return result

    async def _serve(self, stream: trio.abc.Stream, opening: Opening) -> None:
        session = Session(stream, self._hub, self._frames, self._limits, opening.rest)
        project, refusal = self._admit(opening)
        socket_id = pusher.new_socket_id()
        talk = _Talk(self._hub, self._clock, self._key, session, project, socket_id)
        self._sessions.add(session)
        try:
            await session.run(lambda: talk.greet(refusal), talk.hear)
        finally:
            self._sessions.discard(session)

    def _admit(self, opening: Opening) -> tuple[Project | None, pusher.Close | None]:
        if self._closing:
            return None, pusher.SHUTTING_DOWN
        if opening.refusal is not None:
            return None, opening.refusal
        try:
            project = self._store.peek(lambda reader: reader.project_by_stream_key(opening.stream_key))
        except Unavailable:
            return None, pusher.OVER_CAPACITY
        return project, None if project is not None else pusher.UNKNOWN_APP


class _Talk:
    """What a connection says and is told, message by message."""

    def __init__(
        self,
        hub: Hub,
        clock: Clock,
        key: bytes,
        session: Session,
        project: Project | None,
        socket_id: str,
    ) -> None:
        self._hub = hub
        self._clock = clock
        self._key = key
        self._session = session
        self._project = project
        self._socket_id = socket_id

    async def greet(self, refusal: pusher.Close | None) -> None:
        """Begin: with the socket id, or with the reason why not (Pusher protocol, 4001, 4007)."""
        if refusal is not None:
            self._session.end(refusal)
        else:
            await self._session.send(pusher.connection_established(self._socket_id))

    async def hear(self, text: str) -> None:
        """Act on one message."""
        match pusher.decode(text):
            case pusher.Subscribe(channel, auth):
                await self._subscribe(channel, auth)
            case pusher.Unsubscribe(channel):
                self._session.unfollow(channel)
            case pusher.Ping():
                await self._session.send(pusher.pong())
            case pusher.ClientEvent():
                refused = pusher.error("Client events are not taken here.", pusher.CLIENT_EVENTS_REFUSED)
                await self._session.send(refused)
            case pusher.Signin():
                await self._session.send(pusher.error("There is no user sign-in here."))
            case pusher.Malformed(reason):
                await self._session.send(pusher.error(reason))
            case pusher.Pong() | pusher.Ignored():
                pass

    async def _subscribe(self, name: str, auth: str) -> None:
        assert self._project is not None, "refused connections are not heard"
        try:
            channel = open_channel(self._project, name)
            grant = self._granted(self._project, name, auth)
            await self._take(self._project, channel, grant)
        except ConsumerSuperseded as refusal:
            await self._refuse(name, "ConsumerSuperseded", refusal, 409)
            self._stand_by(channel, grant.consumer_id)
        except TokenRefused as refusal:
            await self._refuse(name, "AuthError", refusal, 401)
        except Forbidden as refusal:
            await self._refuse(name, "AuthError", refusal, 403)
        except Unavailable:
            self._session.end(pusher.OVER_CAPACITY)  # they come back and subscribe anew

    def _granted(self, project: Project, channel: str, auth: str) -> Grant:
        stream_key, _, token = auth.partition(":")
        if stream_key != project.stream_key:
            raise TokenRefused("`auth` does not begin with this app's key.")
        return verify(
            self._key,
            token,
            project_id=project.id,
            socket_id=self._socket_id,
            channel=channel,
            now_ms=self._clock(),
        )

    async def _take(self, project: Project, channel: Channel, grant: Grant) -> None:
        """Subscribe. The same consumer again on this connection is only told so again."""
        held = self._session.subscriptions.get(channel.name)
        if held is not None and held.consumer_id != grant.consumer_id:
            self._session.unfollow(channel.name)
            held = None
        if held is None:
            held = await self._hub.subscribe(
                project, channel, grant, lambda: self._session.end(pusher.SUPERSEDED)
            )
            self._session.subscriptions[channel.name] = held  # from here on the session leaves it
            start = held.start
            await self._session.send(
                pusher.subscription_succeeded(channel.name, start.resumed_after, start.gap)
            )
            self._session.follow(held)
        else:
            await self._session.send(pusher.subscription_succeeded(channel.name, None, False))

    async def _refuse(self, channel: str, kind: str, refusal: DomainError, status: int) -> None:
        await self._session.send(pusher.subscription_error(channel, kind, refusal.detail, status))

    def _stand_by(self, channel: Channel, consumer_id: str) -> None:
        """Keep a fenced client's connection; when the channel is free it is told to come back."""
        self._session.settled = True

        async def wait() -> None:
            await self._hub.until_unfenced(channel, consumer_id)
            self._session.end(pusher.STANDBY)

        self._session.spawn(wait)


async def _drain(stream: trio.abc.Stream) -> None:
    """Read until the client closes, so that closing first does not destroy the answer on its way."""
    with trio.move_on_after(LINGER_S):
        while await stream.receive_some(_READ):
            pass
