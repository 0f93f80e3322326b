"""The parts of a life: the server and its crashes, its clients, consumers and receivers, all from one seed."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import trio

from deskwire.config.config import Config
from deskwire.engine.accounts.people import Project
from deskwire.engine.customers.tokens import hash_token
from deskwire.engine.ports import Commit
from deskwire.engine.stream.channel import StreamChannel, open_channel
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitBreaker
from deskwire.storage.sqlite.database import connect_reader
from deskwire.storage.sqlite.directory import FILE_NAME
from tests.simulation.customers import CustomerJudge
from tests.simulation.disk import Disk, End, new_disk
from tests.simulation.held import HeldMessages
from tests.simulation.judge import Judge
from tests.simulation.ledger import MARK, Ledger
from tests.simulation.network import Link
from tests.simulation.peers.agent import Agent, found_agent
from tests.simulation.peers.client import Client
from tests.simulation.peers.consumer import Consumer, Kind, Pongs
from tests.simulation.peers.customer import Customer, found_channel
from tests.simulation.peers.internet import Internet, Sockets
from tests.simulation.peers.mail import Mail
from tests.simulation.peers.receiver import Answer, Receiver
from tests.simulation.server import Server
from tests.support.seeing import seen
from tests.support.streaming import found_project, trio_ms

CONTACTS: Final = ("ada", "bob", "carol")
"""The last contact's channel has a consumer that is always healthy."""
CUSTOMERS: Final = 2
"""The number of browsers, each with a panel and its customer, who signs in and out."""
_RECEIVERS: Final = 5
_DELAYED: Final = 60
"""The number of first marks among which each receiver has one that it always delays."""
_HOUR_S: Final = 3600.0
_DAY_S: Final = 24 * _HOUR_S


def settings(dice: random.Random) -> Config:
    """Return a world's settings: the defaults, with bounds so narrow that they are reached."""
    return replace(
        Config(),
        mailbox_commands=dice.choice((2, 100)),
        actor_idle_s=dice.choice((1.0, 20.0, 60.0)),
        actors_live=dice.choice((2, 4, 100)),
        log_ring_events=dice.choice((4, 30, 1000)),
        stream_resume_window_s=dice.choice((5.0, 20.0, 2 * _HOUR_S)),
        webhook_concurrency=dice.choice((1, 4, 16)),
        webhook_memory_deliveries=dice.choice((3, 20, 1000)),
        retention_interval_s=dice.choice((6 * _HOUR_S, _DAY_S)),
        bot_only_retention_s=dice.choice((_DAY_S, 33 * _DAY_S)),
    )


class World:
    """All parts of a life; `start` starts the server."""

    def __init__(self, directory: Path, dice: random.Random, nursery: trio.Nursery) -> None:
        self.dice = dice
        self.clock = trio_ms
        self.directory = directory
        self.config = settings(dice)
        self.judge = Judge()
        self.judge.gap_s = self.config.stream_resume_window_s
        self.ledger = Ledger(
            self.judge.wrong, trio.current_time, self.config.event_window_s, self.config.idempotency_s
        )
        self.held = HeldMessages(self.judge.wrong, trio_ms)
        self.customer_judge = CustomerJudge(self.judge.wrong, self.ledger, self.config.event_window_s)
        self.mail = Mail(self.judge.wrong, self.ledger, self.config.delivery_log_s, self._breaker)
        self.internet = Internet(dice, self._receive, self._posting)
        trio.socket.set_custom_socket_factory(Sockets(self.internet))
        self.contacts = CONTACTS
        self.consumers: list[Consumer] = []
        self.links: list[Link] = []
        self.server: Server | None = None
        self.flaky = True
        self._dying = False
        self._nursery = nursery
        self.crashes = 0
        self._seated: set[str] = set()
        self._ids = self._dialled = 0
        self._capacity = dice.choice((600, 4_000, 30_000))
        self._path = new_disk(directory)
        self.project = self._found()
        names = [f"private-project-{self.project.id}", *(f"private-contact-{user}" for user in CONTACTS)]
        self.channels = [open_channel(self.project, name) for name in names]
        for channel in self.channels:
            self.judge.open(channel)
        self._quiet = self.channels.pop()
        self.judge.watch(self._quiet.name)
        self._steady: Consumer | None = None
        for number in range(_RECEIVERS):
            self.internet.receivers.append(Receiver(f"receiver-{number}.test", dice, self._arrived))
        self.internet.receivers[0].healthy = True
        for receiver in self.internet.receivers[1:]:
            receiver.delays = MARK.format(dice.randrange(_DELAYED))  # of one event, permanently
        self.client = Client(self)
        self.agent = Agent(self)
        self.customers = [Customer(self, number) for number in range(CUSTOMERS)]

    def _found(self) -> Project:
        def found(tx: Any) -> Project:
            project = found_project(tx)
            found_agent(tx, project.organisation)
            found_channel(tx, project)
            return project

        with closing(Disk(self._path, self.dice, lambda *_: None, lambda _: None)) as disk:
            return disk.at_once(found)

    # Reports to the judges

    def committed(self, commit: Commit, connection: sqlite3.Connection) -> None:
        """Pass a commit to the judges before any other code learns about it."""
        self.judge.committed(commit)
        self.ledger.committed(commit)
        self.mail.committed(commit, connection)
        self.held.committed(commit, connection)
        self.customer_judge.committed(commit)
        seated = {channel for (channel,) in connection.execute("SELECT channel FROM consumers")}
        for channel in sorted(self._seated - seated):
            self.judge.forgotten(channel)
        self._seated = seated

    def published(self, commit: Commit) -> None:
        """Pass a commit to the judges before the server's parts receive it."""
        self.judge.published(commit)
        self.customer_judge.published(commit)
        self.mail.published(commit, {each.url for each in self.internet.receivers if each.healthy})

    # The server

    async def start(self) -> None:
        """Start the server."""
        server = Server(self, self._path)
        await self._nursery.start(server.run)
        self.server = server

    async def crash(self, how: End, *, silently: bool = False) -> None:
        """End the server's process or its machine, with `silently` without notice to any client."""
        server, self.server = self.server, None
        if server is None:
            return
        self.judge.killed()
        self.judge.note(f"the server ends: {how}")
        if silently:
            for link in self.links:
                link.freeze()
        self.crashes += 1
        path = self.directory / str(self.crashes) / FILE_NAME
        path.parent.mkdir()
        server.disk.crash(how, path)
        self.internet.break_off()
        self._dying = True
        await server.kill()
        self._dying = False
        self._path = path
        await self._restart()

    async def stop(self) -> None:
        """Stop the server in an orderly way, and start it again."""
        server, self.server = self.server, None
        if server is None:
            return
        self.judge.note("the server stops")
        await server.stop()
        await self._restart(stopped=True)

    async def _restart(self, *, stopped: bool = False) -> None:
        self.mail.ended()
        self.judge.forgive()
        self.links.clear()
        await trio.sleep(self.dice.random() * 5)  # virtual time: the mock clock jumps
        self.audit(
            recover=True
        )  # first: the server knows from its start the commits that it stored but never published
        (self.judge.stopped if stopped else self.judge.crashed)(trio.current_time())
        await self.start()
        self.held.forgive()

    def audit(self, *, recover: bool = False, settled: bool = False) -> None:
        """Check the database."""
        with closing(connect_reader(self._path)) as connection:
            if recover:
                self.committed(self.ledger.recovered(connection), connection)
                self.customer_judge.recovered(connection)
            self.ledger.audit(connection, settled=settled)
            self.mail.audit(connection, settled=settled)
            self.held.audit(connection, settled=settled)
            self.customer_judge.audit(connection, settled=settled)

    def audit_deliveries(self) -> None:
        """Check that every delivery was sent, although no new one has shown that its receiver is back."""
        with closing(connect_reader(self._path)) as connection:
            self.mail.audit(connection, settled=True)

    def check(self) -> None:
        """Check that no size exceeds its bound, and no event is late."""
        if self.server is not None and self.server.disk.full:
            self.disk_failed()  # unrecorded deliveries keep their place in memory, so no others are loaded
        if self.server is not None and self.server.up:
            for finding in (
                *self.server.over_bounds(),
                *self.mail.overdue(),
                *self.held.overdue(),
                *self.judge.overdue(),
            ):
                self.judge.wrong(finding)

    def disk_failed(self) -> None:
        """Expect no promptness and no saved positions for work that waited for the failing disk."""
        self.judge.disk_refused()
        self.judge.forgive()
        self.mail.forgive()
        self.held.forgive()

    def end(self) -> None:
        """End the life: actions of its tasks during their cancellation are not judged."""
        self._dying = True

    def heal(self) -> None:
        """Stop all faults, and make every consumer and receiver behave well."""
        self.flaky = False
        for link in self.links:
            link.cut()
        for consumer in self.consumers:
            consumer.go_on()
            consumer.pongs = "prompt"
        for receiver in self.internet.receivers:
            receiver.manner = "well"

    def disagreements(self) -> list[str]:
        """Return a difference between the stored endpoints and those that are served."""
        server = self.server
        assert server is not None
        stored = seen(server.disk, lambda reader: reader.endpoints())
        wanted = {each.rowid: (each.url, each.events) for each in stored if each.status == "enabled"}
        endpoints = [supervised.worker.endpoint for supervised in server.dispatcher._workers.values()]
        served = {endpoint.rowid: (endpoint.url, endpoint.events) for endpoint in endpoints}
        return [] if wanted == served else [f"endpoints {wanted} are stored, {served} are served"]

    def leftovers(self) -> list[str]:
        """Return deleted texts that the database's files still contain."""
        wal = self._path.with_name(f"{FILE_NAME}-wal")
        return self.ledger.leftovers(self._path.read_bytes() + (wal.read_bytes() if wal.exists() else b""))

    # The customers

    def session_of(self, token: str) -> str | None:
        """Return the id of the stored session with this token; None if nothing is stored of it."""
        rows = self._rows("SELECT id FROM contact_sessions WHERE hash = ?", hash_token(token))
        return rows[0][0] if rows else None

    def check_ended(self, token: str) -> None:
        """Check that the session of a token has ended, if it was stored."""
        if self._rows(
            "SELECT 1 FROM contact_sessions WHERE hash = ? AND ended_at IS NULL", hash_token(token)
        ):
            self.judge.wrong("a customer was signed out, and the session is live")

    def has_thread(self, user_id: str, client_id: str) -> bool:
        """Return whether a contact has a conversation with this client id."""
        sql = (
            "SELECT 1 FROM conversations c JOIN contacts k ON k.rowid = c.contact "
            "WHERE c.client_id = ? AND k.user_id = ? AND k.erasing = 0"
        )
        return bool(self._rows(sql, client_id, user_id))

    def _rows(self, sql: str, *values: object) -> list[Any]:
        with closing(connect_reader(self._path)) as connection:
            return connection.execute(sql, values).fetchall()

    async def dial(self, *, steady: bool = False) -> Link | None:
        """Return a connection to the server, None if it refuses; a `steady` one never fails."""
        await trio.sleep(self.dice.random() * 0.1)  # virtual time: the mock clock jumps
        if self.server is None or not self.server.up:
            return None
        self._dialled += 1
        link = Link(self._dialled, self._capacity, self.dice.random() * 0.1)
        link.server.sending = lambda data: self.judge.writing(link, data)
        self.server.connect(link)
        if steady:
            return link
        self.links.append(link)
        if self.flaky and self.dice.random() < 0.35:
            self.later(self._cut_soon, link)
        return link

    async def _cut_soon(self, link: Link) -> None:
        await trio.sleep(self.dice.random() * 0.5)  # virtual time: the mock clock jumps
        link.cut()

    # The receivers

    def _breaker(self, endpoint: int) -> CircuitBreaker | None:
        supervised = None if self.server is None else self.server.dispatcher._workers.get(endpoint)
        return None if supervised is None else supervised.worker.breaker

    def _receive(self, take: Callable[[Link], Awaitable[None]], link: Link) -> None:
        self.later(take, link)

    def _posting(self, receiver: Receiver, link: Link, data: bytes) -> None:
        if self._dying:
            return  # a killed process sends nothing, and its tasks are only cancelled
        self.mail.posting(receiver, link, data)

    def _arrived(self, receiver: Receiver, headers: dict[str, str], body: bytes, answer: Answer) -> None:
        delivery, attempt = headers["service-delivery-id"], headers["service-attempt"]
        self.judge.note(f"{receiver.host} has {delivery}, attempt {attempt}: {answer}")
        self.mail.arrived(receiver, headers, body, answer)

    # The users

    def later(self, task: Callable[..., Awaitable[Any]], *values: object) -> None:
        """Start a background task."""
        self._nursery.start_soon(task, *values)

    def launch(self, consumer_id: str | None = None) -> Consumer:
        """Start a consumer's process with random behaviour, and an id of its own if none is given."""
        dice, one = self.dice, self.dice.choice(self.channels).name
        channels = [one] if dice.random() < 0.7 else [one, *(c.name for c in self.channels if c.name != one)]
        kinds: tuple[Kind, ...] = ("js", "net")
        manners: tuple[Pongs, ...] = ("prompt", "prompt", "some", "late", "never")
        resume = "live" if dice.random() < 0.05 else "auto"
        return self._run(consumer_id, channels, dice.choice(kinds), dice.choice(manners), resume)

    def launch_healthy(self, channel: StreamChannel) -> Consumer:
        """Start a consumer's process that behaves well."""
        return self._run(None, [channel.name], "js", "prompt", "auto")

    def attend(self) -> None:
        """Start the consumer that is always healthy, unless it runs."""
        if self._steady is None:
            channels = [self._quiet.name]
            self._steady = Consumer(self, "steady", channels, "js", "prompt", steady=True)
            self.later(self._steady.run)
        for customer in self.customers:
            customer.open()

    def go_home(self) -> None:
        """End all consumers."""
        for consumer in (*self.consumers, *([self._steady] if self._steady else [])):
            consumer.kill()
        self._steady = None
        for customer in self.customers:
            customer.close()
        self.judge.forgive()

    def _run(
        self, consumer_id: str | None, channels: Sequence[str], kind: Kind, pongs: Pongs, resume: str
    ) -> Consumer:
        self._ids += 1
        consumer = Consumer(self, consumer_id or f"c{self._ids}", channels, kind, pongs, resume)
        self.consumers.append(consumer)
        self.later(consumer.run)
        return consumer
