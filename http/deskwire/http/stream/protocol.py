"""The protocol of one stream connection (Pusher protocol, messages).

Source: decisions 5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from sys import intern
from typing import Final, assert_never

import trio

from deskwire.engine.accounts.machines import is_machine, valid_until
from deskwire.engine.accounts.people import Project
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import DomainError, Forbidden, NotFound, Unavailable
from deskwire.engine.core.secret import Keyring
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.tasks.retry import retry_until_available
from deskwire.engine.ports import Store
from deskwire.engine.stream.channel import StreamChannel, open_channel, with_user_id
from deskwire.engine.stream.hub import ConsumerSuperseded, Hub, TooManyTakeovers
from deskwire.engine.stream.subscription import Loss
from deskwire.engine.stream.token import Grant, TokenRefused, verify
from deskwire.http.stream import pusher
from deskwire.http.stream.connection import StreamSession

# A machine credential needs this permission while a stream that it has authorized is open.
REQUIRED_PERMISSION: Final = "conversations.read"

# During a database outage, a client waits this long for its first message or its subscription; pusher-js
# reports its connection as unavailable after 10 s.
OUTAGE_TIMEOUT_S: Final = 8.0

# Channels of one connection: each ping records the position of each channel, and clients can open more
# connections.
_CHANNELS: Final = 100


class PusherProtocol:
    """The protocol of one connection: `greet` it, then `receive` each message.

    Args:
        store: has the valid server keys and machine credentials.
        signing: the keys that sign tokens.
        project: the project of the stream.
        ends_at: called with the time (ms) at which a credential that authorized it expires.

    Attributes:
        keys: names of the server keys and machine credentials that authorized its subscriptions
            (`valid_until`).
    """

    __slots__ = (
        "_awaited",
        "_clock",
        "_ends_at",
        "_hub",
        "_project",
        "_signing",
        "_store",
        "_unauthorized",
        "keys",
        "session",
        "socket_id",
    )

    def __init__(
        self,
        store: Store,
        hub: Hub,
        clock: Clock,
        signing: Keyring,
        session: StreamSession,
        project: Project,
        ends_at: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._ends_at = ends_at
        self.keys: tuple[str, ...] = ()
        self._store = store
        self._hub = hub
        self._clock = clock
        self._signing = signing
        self.session = session
        self._project = project
        self.socket_id = pusher.new_socket_id()
        self._awaited: tuple[str, ...] = ()
        self._unauthorized: tuple[str, ...] = ()

    @property
    def project_id(self) -> str:
        """The project's id."""
        return self._project.id

    def end_if_revoked(self, keys: set[str], projects: set[str]) -> bool:
        """End the connection if it depends on one of these deleted keys or projects.

        Returns whether it does.

        If all its keys are deleted, the close code keeps the client away, because it would be refused. If one key
        remains, the close code makes the client reconnect, and it gets the channels that it may still have.
        """
        if self.project_id in projects:
            reason = pusher.UNKNOWN_APP
        elif keys.isdisjoint(self.keys):
            return False
        else:
            reason = _revoked(self.keys) if keys.issuperset(self.keys) else pusher.PARTLY_REVOKED
        for subscription in self.session.subscriptions.values():  # now, not after the goodbye
            self._hub.leave(subscription, for_good=False)
        self.session.end(reason)
        return True

    def require_subscription(self, channel: str, within_s: float) -> None:
        """Make the client reconnect unless it subscribes in time.

        Its authorization was temporarily refused.
        """
        if channel in self._unauthorized or len(self._unauthorized) == _CHANNELS:
            return
        self._unauthorized = (*self._unauthorized, channel)

        async def wait() -> None:
            await trio.sleep(within_s)
            self._unauthorized = tuple(each for each in self._unauthorized if each != channel)
            if channel not in self.session.subscriptions and channel not in self._awaited:
                self.session.note_unauthorized()
                self.session.end(pusher.REAUTHORIZE)

        self.session.spawn(wait)

    async def greet(self) -> None:
        """Send the first message, with the socket id."""
        await self.session.send(pusher.connection_established(self.socket_id))

    async def receive(self, text: str) -> None:
        """Handle one message."""
        match pusher.decode(text):
            case pusher.Subscribe(channel, auth):
                await self._subscribe(channel, auth)
            case pusher.Unsubscribe(channel):
                self.session.unfollow(channel)
            case pusher.Ping():
                await self.session.send(pusher.pong())
            case pusher.ClientEvent():
                refused = pusher.error(
                    "Client events are not taken here.", pusher.CloseCode.CLIENT_EVENT_REFUSED
                )
                await self.session.send(refused)
            case pusher.Signin():
                await self.session.send(pusher.error("There is no user sign-in here."))
            case pusher.MalformedMessage(reason):
                await self.session.send(pusher.error(reason))
            case pusher.Pong() | pusher.Ignored():
                pass
            case message:
                assert_never(message)

    async def _subscribe(self, name: str, auth: str) -> None:
        """Subscribe or refuse.

        During a database outage it is retried here, because clients do not retry.
        """
        project = self._project
        try:
            channel = open_channel(project, name)
            grant = self._verified(project, name, auth)
            subscribe = partial(self._subscribe_as, project, channel, grant)
            await retry_until_available(subscribe, trio.current_time() + OUTAGE_TIMEOUT_S)
        except ConsumerSuperseded as refusal:
            await self._refuse(name, "ConsumerSuperseded", refusal, 409)
            self._end_when_free(channel, grant.consumer_id)
        except TooManyTakeovers as refusal:
            await self._refuse(name, "TooManyTakeovers", refusal, 429)
            self._end_when_free(channel, grant.consumer_id)
        except TokenRefused as refusal:
            await self._refuse(name, "AuthError", refusal, 401)
        except Forbidden as refusal:
            await self._refuse(name, "AuthError", refusal, 403)
        except NotFound as refusal:
            await self._refuse(name, "AuthError", refusal, 404)
        except Unavailable:
            self.session.end(pusher.OVER_CAPACITY)  # the client reconnects and subscribes again

    def _verified(self, project: Project, channel: str, auth: str) -> Grant:
        stream_key, _, token = auth.partition(":")
        if stream_key != project.stream_key:
            raise TokenRefused("`auth` does not begin with this app's key.")
        return verify(
            self._signing(),
            token,
            project_id=project.id,
            socket_id=self.socket_id,
            channel=channel,
            now_ms=self._clock(),
        )

    async def _note_key(self, key_id: str) -> None:
        """Record the key before its look-up.

        A concurrent revocation then finds this connection.

        Raises TokenRefused if the key is no longer valid.
        """
        noted, now = self.keys, self._clock()
        if key_id not in noted:
            self.keys = (*noted, intern(key_id))  # thousands of connections share one key
        until = await self._store.read(
            InlineQuery(lambda reader: valid_until(reader, key_id, now, REQUIRED_PERMISSION))
        )
        if until <= now:
            self.keys = noted
            raise _no_longer_good(key_id)
        if until < inf:
            self._ends_at(until)

    async def _subscribe_as(self, project: Project, channel: StreamChannel, grant: Grant) -> None:
        """Subscribe.

        A consumer that already holds the channel on this connection only gets another confirmation.
        """
        if self.session.ending:
            return
        await self._note_key(grant.key_id)
        if channel.kind == "contact":
            channel = await self._store.read(InlineQuery(partial(with_user_id, channel=channel)))
        subscriptions = self.session.subscriptions
        subscription = subscriptions.get(channel.name)
        if subscription is not None and subscription.consumer_id != grant.consumer_id:
            self.session.unfollow(channel.name)
            subscription = None
        if subscription is None and len(subscriptions) >= _CHANNELS:
            raise Forbidden(f"A connection may hold {_CHANNELS} channels.", code="too_many_channels")
        if subscription is None:
            subscription = await self._hub.subscribe(project, channel, grant, self._lost)
            subscriptions[channel.name] = subscription  # from now on the session ends it
            start = subscription.start
            confirmation = pusher.subscription_succeeded(channel.name, start.resumed_after, start.gap)
            if await self.session.send(confirmation):
                self.session.follow(subscription)
        else:
            await self.session.send(pusher.subscription_succeeded(channel.name, None, False))

    def _lost(self, loss: Loss) -> None:
        """End the connection, which has lost a channel.

        A client with other channels reconnects for them.
        """
        match loss:
            case "superseded":
                goodbye = pusher.SUPERSEDED
            case "ended" if any(each.held for each in self.session.subscriptions.values()):
                goodbye = pusher.PARTLY_ENDED
            case "ended":
                goodbye = pusher.ENDED
            case "lapsed":
                goodbye = pusher.LAPSED
            case _:
                assert_never(loss)
        self.session.end(goodbye)

    async def _refuse(self, channel: str, kind: str, refusal: DomainError, status: int) -> None:
        await self.session.send(pusher.subscription_error(channel, kind, refusal.detail, status))

    def _end_when_free(self, channel: StreamChannel, consumer_id: str) -> None:
        """Keep a refused client's connection until the channel is free.

        Then the client is asked to reconnect.
        """
        if channel.name in self._awaited or len(self._awaited) == _CHANNELS:
            return
        self.session.settle()
        self._awaited = (*self._awaited, channel.name)

        async def wait() -> None:
            await self._hub.until_unfenced(channel, consumer_id)
            self.session.end(pusher.STANDBY)

        self.session.spawn(wait)


def _revoked(names: tuple[str, ...]) -> pusher.StreamClose:
    return pusher.CREDENTIAL_ENDED if any(map(is_machine, names)) else pusher.REVOKED


def _no_longer_good(name: str) -> TokenRefused:
    if is_machine(name):
        return TokenRefused(
            "The machine credential of this token has been revoked, or has expired.",
            code="revoked_machine_credential",
        )
    return TokenRefused("The server key of this token has been revoked.", code="revoked_server_key")
