"""The three channels on which the demo receives events: webhook, stream and feed."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote

import h11
import orjson
import trio
from msgspec import Struct
from trio_websocket import ConnectionClosed, HandshakeError, WebSocketConnection, open_websocket_url

from deskwire.commands.api_client.service import raw_items
from deskwire.commands.demo.client import ApiClient, DemoError

WEBHOOK: Final = "webhook"
STREAM: Final = "stream"
FEED: Final = "feed"

_HOST: Final = "127.0.0.1"
_BODY_MAX: Final = 1024 * 1024  # bytes; the envelope of a message is far smaller
_IDLE_TIMEOUT_S: Final = 120.0
_READ_SIZE: Final = 64 * 1024
_PAGE_SIZE: Final = "200"  # decisions 1: the largest
_ULID_TIME_DIGITS: Final = 10
_ULID_RANDOM_DIGITS: Final = 16


class Arrival(Struct, frozen=True):
    """An event as a channel delivered it.

    Args:
        at: seconds of Trio's clock.
        body: the raw bytes of the envelope.
        signature: the header `Service-Signature` of a webhook.
        received_at: the wall clock in seconds since the epoch, to check the signature against.
    """

    at: float
    body: bytes
    signature: str = ""
    received_at: float = 0.0


class DemoChannel:
    """The arrivals of one channel, in their order."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.ids: set[str] = set()
        """The ids of the events that have arrived."""
        self._changed = trio.Event()

    def record(self, arrival: Arrival) -> None:
        """Add an arrival, whether or not its body is an event."""
        self.arrivals.append(arrival)
        event = parse_event(arrival.body)
        if event is not None:
            self.ids.add(event["id"])
        self._changed.set()

    async def wait_for(self, event_ids: Iterable[str], timeout_s: float) -> None:
        """Wait until all these events have arrived, or nothing has for `timeout_s`."""
        missing = set(event_ids)
        while missing := missing - self.ids:
            self._changed = trio.Event()
            with trio.move_on_after(timeout_s):
                await self._changed.wait()
                continue
            return


def parse_event(body: bytes) -> dict[str, Any] | None:
    """Return the envelope; None if the bytes are no event."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    match value:
        case {"id": str(), "type": str(), "sequence": int() | None, "data": dict()}:
            return dict(value)
    return None


class WebhookReceiver:
    """An HTTP server on a free port that records webhooks.

    Args:
        status: the status of each response.
    """

    def __init__(self, channel: DemoChannel, status: int = 200) -> None:
        self.url = ""
        """The URL of the endpoint, once the receiver runs."""
        self._channel = channel
        self._status = status

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        listeners = await trio.open_tcp_listeners(0, host=_HOST)
        port = listeners[0].socket.getsockname()[1]
        self.url = f"http://{_HOST}:{port}/hooks/{secrets.token_urlsafe(12)}"
        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_listeners, self._serve, listeners)
            task_status.started()

    async def _serve(self, stream: trio.SocketStream) -> None:
        http = h11.Connection(h11.SERVER)
        try:
            async with stream:
                while await self._exchange(stream, http):
                    http.start_next_cycle()
        except (OSError, trio.BrokenResourceError, trio.TooSlowError, h11.ProtocolError):
            return  # the service records the failed attempt, and tries again

    async def _exchange(self, stream: trio.SocketStream, http: h11.Connection) -> bool:
        """Record one request and respond. True if the connection can take another."""
        request: h11.Request | None = None
        body = bytearray()
        while len(body) <= _BODY_MAX:
            match http.next_event():
                case h11.NEED_DATA:
                    with trio.fail_after(_IDLE_TIMEOUT_S):
                        http.receive_data(await stream.receive_some(_READ_SIZE))
                case h11.Request() as request:
                    pass
                case h11.Data(data=data):
                    body += data
                case h11.EndOfMessage() if request is not None:
                    status = self._record(request, bytes(body))
                    head = http.send(h11.Response(status_code=status, headers=[("Content-Length", "0")]))
                    await stream.send_all((head or b"") + (http.send(h11.EndOfMessage()) or b""))
                    return http.our_state is h11.DONE
                case _:  # the peer has closed the connection
                    return False
        return False

    def _record(self, request: h11.Request, body: bytes) -> int:
        """Record a delivery. Return the status of the response."""
        if request.method != b"POST" or not self.url.endswith(request.target.decode("latin-1")):
            return 404
        signature = dict(request.headers).get(b"service-signature", b"").decode("latin-1")
        self._channel.record(Arrival(trio.current_time(), body, signature, time.time()))
        return self._status


def project_channel(project_id: str) -> str:
    """Return the stream's channel that carries every event of a project."""
    return f"private-project-{project_id}"


async def run_stream_consumer(
    client: ApiClient,
    project: dict[str, Any],
    channel: DemoChannel,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Record the events of the project's stream until cancelled; started once subscribed.

    Args:
        project: as the API shows it.

    Raises DemoError if the stream can't be reached, refuses the consumer, or ends.
    """
    ws = client.base_url.replace("http", "ws", 1)
    url = f"{ws}/app/{quote(project['streamKey'], safe='')}?protocol=7&client=deskwire-demo&version=1"
    trust = client.trust if url.startswith("wss:") else None
    try:
        async with open_websocket_url(url, trust) as socket:
            await _consume(client, project_channel(project["id"]), socket, channel, task_status)
    except* (ConnectionClosed, HandshakeError, OSError) as group:
        raise DemoError(f"The stream can't be reached, or has ended: {group.exceptions[0]!r}") from None


async def _consume(
    client: ApiClient,
    name: str,
    socket: WebSocketConnection,
    channel: DemoChannel,
    task_status: trio.TaskStatus[None],
) -> None:
    while True:
        match orjson.loads(await socket.get_message()):
            case {"event": "pusher:connection_established", "data": str(data)}:
                body = {
                    "socket_id": orjson.loads(data)["socket_id"],
                    "channel_name": name,
                    "consumerId": f"deskwire-demo-{secrets.token_hex(8)}",
                    "resume": "live",  # events from before the demo are not replayed
                }
                auth = (await client.post("/s2s/stream/auth", body))["auth"]
                subscription = {"event": "pusher:subscribe", "data": {"channel": name, "auth": auth}}
                await socket.send_message(orjson.dumps(subscription).decode())
            case {"event": "pusher_internal:subscription_succeeded"}:
                task_status.started()
            case {"event": "pusher:error" | "pusher:subscription_error", "data": reason}:
                raise DemoError(f"The stream refused the demo: {orjson.dumps(reason).decode()}")
            case {"event": str(event), "data": str(data)} if not event.startswith("pusher"):
                channel.record(Arrival(trio.current_time(), data.encode()))
            case _:
                pass


async def read_feed(client: ApiClient, channel: DemoChannel, conversations: Sequence[str]) -> None:
    """Record all events of the feed since the first of these conversations. Raises DemoError."""
    # An id is a prefix and a ULID, whose first ten digits are the time (decisions 1).
    first = min(each.partition("_")[2][:_ULID_TIME_DIGITS] for each in conversations)
    after = f"evt_{first}{'0' * _ULID_RANDOM_DIGITS}"
    while True:
        page = await client.get_bytes("/s2s/events", limit=_PAGE_SIZE, after=after)
        try:
            items = raw_items(page)
        except ValueError as error:
            raise DemoError(f"The feed can't be read: {error}.") from error
        for body in items:
            channel.record(Arrival(trio.current_time(), body))
        if orjson.loads(page)["nextCursor"] is None:
            return
        after = orjson.loads(items[-1])["id"]
