"""The bus between nodes by NOTIFY and LISTEN, on a connection of its own (ADR 60).

A NOTIFY in a commit makes all commits of the server wait for each other, so none is: each message goes out behind what
it is about, in a transaction of its own that is not waited for to be on disk. What is sent within a moment goes as one.

Whether messages come at all, the server says by itself: each session begins with a message to itself. A proxy that
shares sessions out, or a server that forbids it, is noticed so, and who needs to know looks by itself then.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable
from typing import Final

import psycopg
import structlog
import trio
from msgspec import Struct

from deskwire.engine.core.tasks.failure import contain_failures
from deskwire.storage.postgres.driver.recall import single
from deskwire.storage.postgres.driver.refusals import ConnectionLost, DatabaseError
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.driver.wire import Statement, Wire

log: Final = structlog.get_logger(__name__)

PAYLOAD_MAX: Final = 4_000
"""Bytes of a message at most."""
WAITING_MAX: Final = 256
"""Messages that wait to be sent at most; the oldest are dropped."""
_NOTIFY_MAX: Final = 7_999
"""Bytes that PostgreSQL takes in one NOTIFY."""
_PACE_S: Final = 0.002
"""Time from one NOTIFY to the next."""
_TEST_S: Final = 5.0
"""Time in which a session's message to itself must come."""
_AGAIN_S: Final = 0.5
"""Pause before a lost session is opened anew."""
_PATIENCE_S: Final = 10.0
"""Time that the server has for an answer."""
_TEST: Final = "test"
_CHANNEL: Final = Statement("SELECT 'deskwire/' || md5(current_schema())")


class BusCounters(Struct):
    """Counts of messages.

    Args:
        sent, received: messages, of which a NOTIFY has several.
        dropped: messages that were too many or too long.
    """

    sent: int = 0
    received: int = 0
    dropped: int = 0


class _Line(Wire):
    """A session that messages come in on."""

    @property
    def pid(self) -> int:
        """The server's number of the session."""
        return self._opened().backend_pid

    def come(self) -> list[tuple[int, str]]:
        """Return the messages that have come, each with the number of the session that has sent it."""
        found: list[tuple[int, str]] = []
        connection = self._opened()
        while (notice := connection.notifies()) is not None:
            found.append((notice.be_pid, notice.extra.decode()))
        return found

    async def wait(self) -> None:
        """Return when something comes. Raises ConnectionLost."""
        connection = self._opened()
        await trio.lowlevel.wait_readable(connection.socket)
        with self._whole():
            connection.consume_input()
            if connection.status != psycopg.pq.ConnStatus.OK:
                raise ConnectionLost(connection.get_error_message())


class PostgresBus:
    """`cluster.Bus` by one session of a database; `run` keeps it up.

    Messages of nodes that use another schema of the database do not come.
    """

    def __init__(self, database: Database) -> None:
        self._line = _Line(database, "bus")
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._receivers: dict[str, list[Callable[[bytes], None]]] = {}
        self._connected: list[Callable[[], None]] = []
        self._idle: trio.CancelScope | None = None
        self._channel = ""
        self._complaint: str | None = None
        self.listening = False
        self.counters: Final = BusCounters()

    def send(self, kind: str, payload: bytes) -> None:
        """See `Bus.send`."""
        if len(payload) > PAYLOAD_MAX:
            self.counters.dropped += 1
            return
        if len(self._waiting) >= WAITING_MAX:
            self._waiting.popleft()
            self.counters.dropped += 1
        self._waiting.append((kind, payload))
        if self._idle is not None:
            self._idle.cancel()

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        """See `Bus.receive`."""
        self._receivers.setdefault(kind, []).append(receiver)

    def connected(self, receiver: Callable[[], None]) -> None:
        """See `Bus.connected`."""
        self._connected.append(receiver)

    async def run(self) -> None:
        """Send and receive until cancelled, on a new session whenever one is lost."""
        while True:
            try:
                await self._serve()
            except DatabaseError as error:
                self._down("storage.bus_lost", str(error))
            finally:
                self.listening = False
                self._line.close()
            await trio.sleep(_AGAIN_S)

    async def _serve(self) -> None:
        """Open a session, try it, and use it. Raises DatabaseError when it is lost."""
        await self._line.open()
        answer = (await self._line.exchange([_CHANNEL], _PATIENCE_S))[0]
        channel = answer.get_value(0, 0)
        assert channel is not None
        self._channel = channel.decode()
        await self._line.exchange([Statement(f'LISTEN "{self._channel}"')], _PATIENCE_S)
        await self._notify(f"{_TEST}:")
        if await self._tested():
            self._up()
        else:
            self._down("storage.bus_deaf", "a message that the session sent to itself did not come")
        sent_at = -_PACE_S
        while True:
            self._take()
            if self._waiting:
                await trio.sleep_until(sent_at + _PACE_S)
                sent_at = trio.current_time()
                await self._notify(self._gathered())
            else:
                try:
                    with trio.CancelScope() as self._idle:
                        await self._line.wait()
                finally:
                    self._idle = None

    async def _tested(self) -> bool:
        with trio.move_on_after(_TEST_S):
            while True:
                if any(pid == self._line.pid for pid, _ in self._line.come()):
                    return True
                await self._line.wait()
        return False

    async def _notify(self, text: str) -> None:
        await self._line.exchange([single("SELECT pg_notify($1, $2)", (self._channel, text))], _PATIENCE_S)

    def _gathered(self) -> str:
        """Take messages that go as one, the oldest first."""
        taken: list[str] = []
        size = 0
        while self._waiting:
            kind, payload = self._waiting[0]
            text = f"{kind}:{b64encode(payload).decode()}"
            size += len(text) + 1
            if size > _NOTIFY_MAX:
                break
            taken.append(text)
            self._waiting.popleft()
        self.counters.sent += len(taken)
        return "\n".join(taken)

    def _take(self) -> None:
        """Hand out the messages that have come from others."""
        for pid, text in self._line.come():
            if pid == self._line.pid:
                continue
            for line in text.split("\n"):
                kind, _, payload = line.partition(":")
                for receiver in self._receivers.get(kind, ()):
                    self.counters.received += 1
                    with contain_failures(
                        lambda failure: log.error("storage.bus_message_failed", exc_info=failure)
                    ):
                        receiver(b64decode(payload, validate=True))

    def _up(self) -> None:
        if self._complaint is not None:
            log.info("storage.bus_back")
        self._complaint = None
        self.listening = True
        for receiver in self._connected:
            receiver()

    def _down(self, event: str, reason: str) -> None:
        self.listening = False
        if self._complaint != event:  # once for each, however often it is tried again
            log.warning(event, reason=reason, advice="nodes look by themselves meanwhile, a little later")
        self._complaint = event
