"""Messages between nodes by NOTIFY and LISTEN, on one connection (ADR 60).

A NOTIFY within a commit would serialize all commits of the server. So each message is sent after the commit
it is about, in a transaction that does not wait for the disk. Messages that are queued within 2 ms share one
NOTIFY.

Each session first sends a message to itself. If that does not arrive, because of a proxy that shares sessions
or a server that forbids NOTIFY, the bus counts as down, and its users poll instead.
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
from deskwire.storage.postgres.driver.errors import ConnectionLost, DatabaseError
from deskwire.storage.postgres.driver.pipeline import PipelineConnection, Statement, bound_statement
from deskwire.storage.postgres.driver.session import Database

log: Final = structlog.get_logger(__name__)

PAYLOAD_MAX: Final = 4_000  # maximum bytes of a message
QUEUE_MAX: Final = 256  # maximum number of queued messages; the oldest are dropped
_NOTIFY_MAX: Final = 7_999  # bytes that PostgreSQL accepts in one NOTIFY
_NOTIFY_INTERVAL_S: Final = 0.002  # minimum time between two NOTIFY
_TEST_TIMEOUT_S: Final = 5.0  # time in which the session's message to itself must arrive
_RETRY_DELAY_S: Final = 0.5  # pause before a lost session is opened again
_ANSWER_TIMEOUT_S: Final = 10.0  # time for the server to respond
_TEST: Final = "test"
_CHANNEL: Final = Statement("SELECT 'deskwire/' || md5(current_schema())")


class BusCounters(Struct):
    """Counts of messages.

    Args:
        sent, received: messages; one NOTIFY may carry several.
        dropped: messages that were too long, or too many.
    """

    sent: int = 0
    received: int = 0
    dropped: int = 0


class _ListenSession(PipelineConnection):
    """A session that receives notifications."""

    @property
    def pid(self) -> int:
        """The server's process id of the session."""
        return self._session().backend_pid

    def received(self) -> list[tuple[int, str]]:
        """Return the messages that have arrived, each with the process id of the sending session."""
        found: list[tuple[int, str]] = []
        connection = self._session()
        while (notice := connection.notifies()) is not None:
            found.append((notice.be_pid, notice.extra.decode()))
        return found

    async def wait(self) -> None:
        """Return when data arrives. Raises ConnectionLost."""
        connection = self._session()
        await trio.lowlevel.wait_readable(connection.socket)
        with self._close_on_error():
            connection.consume_input()
            if connection.status != psycopg.pq.ConnStatus.OK:
                raise ConnectionLost(connection.get_error_message())


class PostgresBus:
    """`cluster.Bus` on one session of a database, which `run` opens again when it is lost.

    Messages of nodes that use another schema of the database are not received.
    """

    def __init__(self, database: Database) -> None:
        self._session = _ListenSession(database, "bus")
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._receivers: dict[str, list[Callable[[bytes], None]]] = {}
        self._connected: list[Callable[[], None]] = []
        self._idle: trio.CancelScope | None = None
        self._channel = ""
        self._logged_event: str | None = None
        self.listening = False
        self.counters: Final = BusCounters()

    def send(self, kind: str, payload: bytes) -> None:
        """See `Bus.send`."""
        if len(payload) > PAYLOAD_MAX:
            self.counters.dropped += 1
            return
        if len(self._waiting) >= QUEUE_MAX:
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
        """Send and receive until cancelled; open another session whenever one is lost."""
        while True:
            try:
                await self._serve()
            except DatabaseError as error:
                self._mark_down("storage.bus_lost", str(error))
            finally:
                self.listening = False
                self._session.close()
            await trio.sleep(_RETRY_DELAY_S)

    async def _serve(self) -> None:
        """Open, test and use a session. Raises DatabaseError when it is lost."""
        await self._session.open()
        answer = (await self._session.exchange([_CHANNEL], _ANSWER_TIMEOUT_S))[0]
        channel = answer.get_value(0, 0)
        assert channel is not None
        self._channel = channel.decode()
        await self._session.exchange([Statement(f'LISTEN "{self._channel}"')], _ANSWER_TIMEOUT_S)
        await self._notify(f"{_TEST}:")
        if await self._test_passes():
            self._mark_up()
        else:
            self._mark_down("storage.bus_deaf", "a message that the session sent to itself did not arrive")
        sent_at = -_NOTIFY_INTERVAL_S
        while True:
            self._dispatch()
            if self._waiting:
                await trio.sleep_until(sent_at + _NOTIFY_INTERVAL_S)
                sent_at = trio.current_time()
                await self._notify(self._next_payload())
            else:
                try:
                    with trio.CancelScope() as self._idle:
                        await self._session.wait()
                finally:
                    self._idle = None

    async def _test_passes(self) -> bool:
        with trio.move_on_after(_TEST_TIMEOUT_S):
            while True:
                if any(pid == self._session.pid for pid, _ in self._session.received()):
                    return True
                await self._session.wait()
        return False

    async def _notify(self, text: str) -> None:
        await self._session.exchange(
            [bound_statement("SELECT pg_notify($1, $2)", (self._channel, text))], _ANSWER_TIMEOUT_S
        )

    def _next_payload(self) -> str:
        """Take the oldest messages that fit into one NOTIFY."""
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

    def _dispatch(self) -> None:
        """Pass messages of other sessions to their receivers."""
        for pid, text in self._session.received():
            if pid == self._session.pid:
                continue
            for line in text.split("\n"):
                kind, _, payload = line.partition(":")
                for receiver in self._receivers.get(kind, ()):
                    self.counters.received += 1
                    with contain_failures(
                        lambda failure: log.error("storage.bus_message_failed", exc_info=failure)
                    ):
                        receiver(b64decode(payload, validate=True))

    def _mark_up(self) -> None:
        if self._logged_event is not None:
            log.info("storage.bus_back")
        self._logged_event = None
        self.listening = True
        for receiver in self._connected:
            receiver()

    def _mark_down(self, event: str, reason: str) -> None:
        self.listening = False
        if self._logged_event != event:  # once for each event, however often the session is lost
            log.warning(
                event, reason=reason, advice="nodes poll the database in the meantime, with a short delay"
            )
        self._logged_event = event
