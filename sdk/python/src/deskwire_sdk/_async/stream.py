"""A consumer of the realtime stream, which reconnects and resumes. Needs `deskwire-sdk[stream]`."""

from __future__ import annotations

import logging
import os
import socket
from base64 import b64encode
from collections import deque
from collections.abc import Iterator
from random import random
from typing import Any, Final, Self, cast
from urllib.parse import quote
from uuid import uuid4

import anyio
import httpcore
import httpx

from deskwire_sdk._async.client import AsyncDeskwire
from deskwire_sdk._pusher import ABNORMAL, Closed, Message, PusherConnection, Send
from deskwire_sdk._reconnects import Gap, StreamEvent, end_of, reconnect_delay
from deskwire_sdk.errors import APIError, ConnectionFailed, RateLimited, ServerError, StreamEnded, error_of

_LOG: Final = logging.getLogger("deskwire_sdk")
_CHUNK: Final = 64 * 1024
_PONG_TIMEOUT_S: Final = 30
_RECENT_MAX: Final = 1000  # events in flight when a connection broke arrive twice
_SUCCEEDED: Final = "pusher_internal:subscription_succeeded"


class AsyncStreamConsumer:
    """The live events of a project, a conversation or a contact, in order.

    It is an iterator of events and of `Gap`s. It reconnects automatically, and continues after the last event that it
    confirmed: an event is confirmed when the next one is asked for, so a crash repeats the event in work, and loses
    none. Work of more than 20 seconds for one event belongs into a queue of yours, because the server closes a
    connection that does not answer its pings; the event then comes again.
    """

    def __init__(
        self,
        client: AsyncDeskwire,
        *,
        channel: str | None = None,
        consumer_id: str | None = None,
        resume: str | None = None,
        typing_events: bool = False,
    ) -> None:
        """Make a consumer; it connects when the first event is asked for.

        Args:
            channel: such as `private-conversation-cnv_…`; by default the one of the key's project.
            consumer_id: the name of this process; by default a new one. A new name takes the channel over.
            resume: the start: `auto` (after the last event that the previous consumer confirmed), `live` (now), or
                the id of an event. By default `auto`.
            typing_events: whether to get typing events.
        """
        self._client = client
        self._channel = channel
        self.consumer_id = consumer_id or f"{socket.gethostname()[:64]}-{os.getpid()}-{uuid4().hex[:8]}"
        self._resume = resume or "auto"
        self._typing_events = typing_events
        self._stream_key: str | None = None
        self._response: httpx.Response | None = None
        self._pusher = PusherConnection()
        self._items: Iterator[Message | Closed | Send] = iter(())
        self._timeout = float(_PONG_TIMEOUT_S)
        self._failures = 0
        self._last: str | None = None
        self._recent: deque[str] = deque(maxlen=_RECENT_MAX)

    def __aiter__(self) -> AsyncStreamConsumer:
        return self

    async def __anext__(self) -> StreamEvent | Gap:
        """Return the next event, or a gap.

        Raises:
            Superseded: another consumer has taken over the channel.
            StreamEnded: the service refuses the connection or the subscription for good.
            APIError: the credential is refused.
        """
        while True:
            try:
                if self._response is None:
                    await self._connect()
                item = await self._next_item()
            except (ConnectionFailed, RateLimited, ServerError) as error:
                item = Closed(ABNORMAL, str(error))
            if isinstance(item, Closed):
                await self._reconnect_later(item)
            elif (found := await self._taken(item)) is not None:
                return found

    async def _connect(self) -> None:
        """Open a websocket; the server's first message follows."""
        if self._stream_key is None or self._channel is None:
            project = await self._client.project.get()
            self._stream_key = project["streamKey"]
            self._channel = self._channel or f"private-project-{project['id']}"
        transport = self._client._transport
        url = f"{transport.settings.base_url}/app/{quote(self._stream_key)}?protocol=7&client=deskwire-sdk-python"
        key = b64encode(os.urandom(16)).decode()
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key,
        }
        request = transport.http.build_request("GET", url, headers=headers)
        try:
            response = await transport.http.send(request, stream=True)
            if response.status_code != 101:
                await response.aread()
                raise error_of(response.status_code, response.headers, response.content)
        except httpx.RequestError as error:
            raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
        self._response = response
        self._pusher = PusherConnection()
        self._items = iter(())
        self._timeout = float(_PONG_TIMEOUT_S)

    async def _next_item(self) -> Message | Closed:
        """Return the next message, or the end of the connection."""
        pinged = False
        while True:
            for item in self._items:
                if not isinstance(item, Send):
                    return item
                await self._write(item.data)
            try:
                data = await self._network.read(_CHUNK, timeout=_PONG_TIMEOUT_S if pinged else self._timeout)
            except httpcore.ReadTimeout:
                if pinged:
                    return Closed(ABNORMAL, "The server did not respond to a ping.")
                pinged = True
                await self._write(self._pusher.command("pusher:ping", {}))
                continue
            except httpcore.NetworkError as error:
                return Closed(ABNORMAL, str(error))
            pinged = False
            self._pusher.receive(data)
            self._items = self._pusher.items()

    async def _taken(self, message: Message) -> StreamEvent | Gap | None:
        """Return the event or gap that a message carries; None for a message of the protocol."""
        if message.event == "pusher:connection_established":
            self._timeout = float(message.data.get("activity_timeout") or _PONG_TIMEOUT_S)
            await self._subscribe(message.data["socket_id"])
        elif message.event == _SUCCEEDED:
            self._failures, self._resume = 0, "auto"
            if message.data["gap"]:
                return Gap(cast(str, self._channel), self._last)
        elif message.event == "pusher:subscription_error":
            status = message.data.get("status")
            if status not in (409, 429):  # those are closed with 4100 when the channel is free
                raise StreamEnded(status or ABNORMAL, str(message.data.get("error")))
            _LOG.info("%s waits: %s", self.consumer_id, message.data.get("error"))
        elif message.channel == self._channel and not message.event.startswith("pusher"):
            return self._new(message.data)
        return None

    def _new(self, event: Any) -> StreamEvent | None:
        """Return an event; None if it was returned before."""
        if event["id"] in self._recent:
            return None
        self._recent.append(event["id"])
        if event.get("sequence") is not None:
            self._last = event["id"]
        return cast(StreamEvent, event)

    async def _subscribe(self, socket_id: str) -> None:
        channel = cast(str, self._channel)
        try:
            authorized = await self._client.stream.authorize(
                socket_id=socket_id,
                channel_name=channel,
                consumer_id=self.consumer_id,
                typing_events=self._typing_events,
                resume=self._resume,
            )
        except APIError as error:
            if error.status == 429 or error.status >= 500:
                raise ConnectionFailed(str(error)) from error
            await self.aclose()
            raise
        data = {"channel": channel, "auth": authorized["auth"]}
        await self._write(self._pusher.command("pusher:subscribe", data))

    async def _reconnect_later(self, closed: Closed) -> None:
        """Close the connection, and wait as its code demands.

        Raises:
            StreamEnded: the code forbids to connect again.
        """
        await self.aclose()
        if (end := end_of(closed)) is not None:
            raise end
        delay = reconnect_delay(closed.code, self._failures) * (0.5 + random())
        self._failures += 1
        _LOG.info("stream again in %.1f s: %s %s", delay, closed.code, closed.reason)
        await anyio.sleep(delay)

    @property
    def _network(self) -> Any:
        """The stream of bytes below the response (https://www.python-httpx.org/advanced/extensions/)."""
        return cast(httpx.Response, self._response).extensions["network_stream"]

    async def _write(self, data: bytes) -> None:
        try:
            await self._network.write(data, timeout=_PONG_TIMEOUT_S)
        except (httpcore.NetworkError, httpcore.TimeoutException) as error:
            raise ConnectionFailed(f"{type(error).__name__}: {error}") from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection; the next event that is asked for opens another."""
        response, self._response = self._response, None
        if response is None:
            return
        try:
            await response.extensions["network_stream"].write(self._pusher.close(), timeout=1)
        except (httpcore.NetworkError, httpcore.TimeoutException):
            pass  # it is closed
        finally:
            await response.aclose()
