"""A stream consumer: connects, authorizes, subscribes, and comes back when the connection is lost.

It leaves it to the service to send what was missed, as the service promises; that is what the checks check.
"""

from __future__ import annotations

import secrets
from importlib.metadata import PackageNotFoundError, version
from typing import Final, assert_never
from urllib.parse import quote

import trio
from trio_websocket import ConnectionClosed, HandshakeError, WebSocketConnection

from tests.support.replay.api import Api
from tests.support.replay.errors import ReplayError
from tests.support.replay.frames import (
    FINAL_CODES,
    SUPERSEDED,
    Established,
    Event,
    Failure,
    Refused,
    Subscribed,
    decode,
    subscribe,
)
from tests.support.replay.history import Arrival
from tests.support.replay.journal import Journal
from tests.support.replay.websocket import websocket

PAUSE_S: Final = 0.2
"""The pause between two connections; short, because there is one consumer, and it measures time."""


def project_channel(project_id: str) -> str:
    """Return the channel that carries every event of a project."""
    return f"private-project-{project_id}"


class Consumer:
    """The project's one consumer, under an id of its own."""

    def __init__(self, api: Api, project_id: str, stream_key: str, journal: Journal) -> None:
        self.connections = 0
        """Successful subscriptions so far."""
        self.gaps = 0
        """Subscriptions that the service said it could not fill completely."""
        self._api = api
        self._channel = project_channel(project_id)
        self._journal = journal
        self._consumer_id = f"deskwire-demo-{secrets.token_hex(8)}"
        ws = api.base_url.replace("http", "ws", 1)
        query = f"protocol=7&client=deskwire-demo&version={quote(_version())}"
        self._url = f"{ws}/app/{quote(stream_key, safe='')}?{query}"

    @property
    def reconnects(self) -> int:
        """The number of times that the connection was lost and taken up again."""
        return max(self.connections - 1, 0)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Consume until cancelled; started once subscribed.

        Raises DemoError if the service refuses the consumer, drops it for another one, or stays disconnected.
        """
        give_up = trio.current_time() + self._api.away_s
        while True:
            before, reason = self.connections, ""
            try:
                async with websocket(self._url, self._api.trust) as socket:
                    await self._consume(socket, task_status)
            except* (ConnectionClosed, HandshakeError, OSError, trio.TooSlowError) as group:
                reason = "; ".join(repr(each) for each in group.exceptions)
            if self.connections > before:
                give_up = trio.current_time() + self._api.away_s
            elif trio.current_time() > give_up:
                raise ReplayError(f"The stream can't be reached for {self._api.away_s:g} s: {reason}")
            await trio.sleep(PAUSE_S)

    async def _consume(self, socket: WebSocketConnection, task_status: trio.TaskStatus[None]) -> None:
        """Consume over one connection, until it is lost."""
        while True:
            text = await socket.get_message()
            match decode(text if isinstance(text, str) else text.decode("latin-1")):
                case Event(name, body):
                    self._journal.record(Arrival(trio.current_time(), body, name))
                case Established(socket_id):
                    await socket.send_message(subscribe(self._channel, await self._authorize(socket_id)))
                case Subscribed(gap):
                    self.connections += 1
                    self.gaps += gap
                    if self.connections == 1:
                        task_status.started()
                case Refused(reason):
                    raise ReplayError(f"The stream refused the subscription: {reason}")
                case Failure(code, message) if code == SUPERSEDED:
                    raise ReplayError(
                        f"Another consumer has taken over the stream ({code} {message}); "
                        "give the demo a project of its own."
                    )
                case Failure(code, message) if code in FINAL_CODES:
                    raise ReplayError(f"The stream refused the connection: {code} {message}")
                case Failure() | None:
                    pass
                case never:
                    assert_never(never)

    async def _authorize(self, socket_id: str) -> str:
        body = {"socket_id": socket_id, "channel_name": self._channel, "consumerId": self._consumer_id}
        if self.connections == 0:
            body["resume"] = "live"  # earlier events are not replayed
        result = await self._api.call("POST", "/s2s/stream/auth", body, repeatable=True)
        if result.outcome != "acknowledged":
            raise ReplayError(f"The stream's authorization was refused: {result.detail}")
        return str(result.body["auth"])


def _version() -> str:
    try:
        return version("deskwire")
    except PackageNotFoundError:  # run from the sources
        return "0"
