"""The server, its crashes and its writers, and the consumers it has; all of it from one seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final

import trio

from deskwire.engine.commands import Close, Delete
from deskwire.engine.directory import Directory
from deskwire.engine.errors import DomainError
from deskwire.engine.log import EventLog
from deskwire.engine.people import Project
from deskwire.engine.stream.channel import Channel, open_channel
from deskwire.engine.stream.hub import Hub
from deskwire.engine.stream.subscription import Subscription
from deskwire.engine.stream.token import Grant
from deskwire.http.socket import RealtimeStream
from deskwire.storage.writer import Commit
from tests.builders import create, post
from tests.simulation.consumer import Consumer, Kind, Pongs
from tests.simulation.disk import Disk, new_disk
from tests.simulation.judge import Judge
from tests.simulation.network import Link
from tests.streaming import KEY, found_project, trio_ms

CONTACTS: Final = ("ada", "bob")
_CONNECTION: Final[ContextVar[Link]] = ContextVar("connection")
_STOP_S: Final = 5.1
"""Within this the streams have ended after a stop."""


class _TellingHub(Hub):
    """The hub, with the moments told in which holders change."""

    judge: Judge

    async def subscribe(
        self, project: Project, channel: Channel, grant: Grant, superseded: Callable[[], None]
    ) -> Subscription:
        held = await super().subscribe(project, channel, grant, superseded)
        self.judge.seated(_CONNECTION.get(), channel.name, grant.consumer_id)
        return held

    def leave(self, holder: Subscription, *, for_good: bool) -> None:
        super().leave(holder, for_good=for_good)
        self.judge.left(_CONNECTION.get(), holder.channel.name, for_good=for_good)


class Server:
    """One process of the server."""

    def __init__(self, world: World) -> None:
        self.disk = Disk(world.path, world.dice, world.judge.committed, self._publish)
        self.scope = trio.CancelScope()
        self.project = world.project
        self._world = world
        last = self.disk.peek(lambda reader: reader.last_event_position())
        self._log = EventLog(self.disk, last, ring_events=world.ring_events, ring_bytes=1 << 20)
        self._hub = _TellingHub(self.disk, self._log, world.clock, resume_window_s=world.window_s)
        self._hub.judge = world.judge
        self.stream = RealtimeStream(self.disk, self._hub, world.clock, key=KEY)
        self.directory: Directory | None = None
        self._nursery: trio.Nursery | None = None
        self._ended = trio.Event()

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Serve until it is stopped, or its scope cancelled."""
        with self.scope:
            async with trio.open_nursery() as storage:
                storage.start_soon(self.disk.run)
                async with trio.open_nursery() as hub:
                    await hub.start(self._hub.run)
                    hub.start_soon(self.stream.run)
                    async with trio.open_nursery() as self._nursery:
                        self.directory = Directory(
                            self._nursery, self.disk, self._world.clock, mailbox=100, idle_s=20, live=4
                        )
                        task_status.started()
                        await trio.sleep_forever()
                    hub.cancel_scope.cancel()
                storage.cancel_scope.cancel()
        self._ended.set()

    def connect(self, link: Link) -> None:
        """Take a connection."""
        assert self._nursery is not None
        self._nursery.start_soon(self._serve, link)

    async def stop(self) -> None:
        """End all streams in good order, then the process."""
        assert self._nursery is not None
        self.stream.close_all()
        await trio.sleep(_STOP_S)  # virtual time: the mock clock jumps
        if self.stream.connections:
            self._world.judge.wrong("the stop did not end the streams in time")
        self._nursery.cancel_scope.cancel()
        await self._ended.wait()
        self.disk.kill()

    async def kill(self) -> None:
        """End the process at once."""
        self.disk.kill()
        self.scope.cancel()
        await self._ended.wait()

    async def _serve(self, link: Link) -> None:
        _CONNECTION.set(link)
        await self.stream.handle(link.server)

    def _publish(self, commit: Commit) -> None:
        self._world.judge.published(commit)
        self._log.publish(commit.events, commit.erased)


class World:
    """Everything that there is; `run` lets it live."""

    def __init__(self, directory: Path, dice: random.Random, nursery: trio.Nursery) -> None:
        self.dice = dice
        self.clock = trio_ms
        self.judge = Judge()
        self.path = new_disk(directory)
        self.consumers: list[Consumer] = []
        self.links: list[Link] = []
        self.server: Server | None = None
        self.ring_events = dice.choice((4, 30, 1000))
        self.window_s = self.judge.gap_s = dice.choice((5.0, 20.0, 7200.0))
        self.flaky = True
        self._nursery = nursery
        self._ids = self._dialled = 0
        self._capacity = dice.choice((600, 4_000, 30_000))
        self._conversations: list[str] = []
        self.project = self._found()
        names = [f"private-project-{self.project.id}", *(f"private-contact-{user}" for user in CONTACTS)]
        self.channels = [open_channel(self.project, name) for name in names]
        for channel in self.channels:
            self.judge.open(channel)

    def _found(self) -> Project:
        disk = Disk(self.path, self.dice, self.judge.committed, self.judge.published)
        project = disk.at_once(found_project)
        disk.kill()
        return project

    # The server

    async def start(self) -> None:
        """Start the server."""
        server = Server(self)
        await self._nursery.start(server.run)
        self.server = server

    async def crash(self, *, silently: bool) -> None:
        """Kill the server's process; `silently` with its machine, so that no client is told."""
        server, self.server = self.server, None
        if server is None:
            return
        self.judge.killed()
        if silently:
            for link in self.links:
                link.freeze()
        await server.kill()
        await trio.sleep(self.dice.random() * 5)  # virtual time: the mock clock jumps
        self.links.clear()
        self.judge.crashed(trio.current_time())
        await self.start()

    async def stop(self) -> None:
        """Stop the server in good order, and start it again."""
        server, self.server = self.server, None
        if server is None:
            return
        self.judge.note("server stops")
        await server.stop()
        self.links.clear()
        self.judge.stopped(trio.current_time())
        await self.start()

    async def dial(self) -> Link | None:
        """A connection to the server, None if it refuses."""
        await trio.sleep(self.dice.random() * 0.1)  # virtual time: the mock clock jumps
        if self.server is None:
            return None
        self._dialled += 1
        link = Link(self._dialled, self._capacity, self.dice.random() * 0.1)
        link.server.sending = lambda data: self.judge.writing(link, data)
        self.links.append(link)
        self.server.connect(link)
        if self.flaky and self.dice.random() < 0.35:
            self._nursery.start_soon(self._cut_soon, link)
        return link

    async def _cut_soon(self, link: Link) -> None:
        await trio.sleep(self.dice.random() * 0.5)  # virtual time: the mock clock jumps
        link.cut()

    # Its users

    def launch(self, consumer_id: str | None = None) -> Consumer:
        """Start a consumer's process of random manners, with an id of its own if none is given."""
        dice, one = self.dice, self.dice.choice(self.channels).name
        channels = [one] if dice.random() < 0.7 else [one, *(c.name for c in self.channels if c.name != one)]
        kinds: tuple[Kind, ...] = ("js", "net")
        manners: tuple[Pongs, ...] = ("prompt", "prompt", "some", "late", "never")
        resume = "live" if dice.random() < 0.05 else "auto"
        return self._run(consumer_id, channels, dice.choice(kinds), dice.choice(manners), resume)

    def launch_healthy(self, channel: Channel) -> Consumer:
        """Start a consumer's process that does all as it should."""
        return self._run(None, [channel.name], "js", "prompt", "auto")

    def _run(
        self, consumer_id: str | None, channels: Sequence[str], kind: Kind, pongs: Pongs, resume: str
    ) -> Consumer:
        self._ids += 1
        consumer = Consumer(self, consumer_id or f"c{self._ids}", channels, kind, pongs, resume)
        self.consumers.append(consumer)
        self._nursery.start_soon(consumer.run)
        return consumer

    async def write(self) -> None:
        """Have somebody do something that makes events, or try to."""
        server, dice = self.server, self.dice
        if server is None or server.directory is None:
            return
        with suppress(DomainError):
            if not self._conversations or dice.random() < 0.1:
                command = create(dice.choice(CONTACTS), project=server.project)
                await server.directory.create(server.project, command)
                self._conversations.append(command.conversation_id)
                return
            conversation_id, chance = dice.choice(self._conversations), dice.random()
            if chance < 0.05:
                self._conversations.remove(conversation_id)
                await server.directory.ask(server.project, conversation_id, Delete("manual"))
            elif chance < 0.15:
                await server.directory.ask(server.project, conversation_id, Close("agent"))
            else:
                message = post(text="x" * dice.randrange(1, 2_000))
                await server.directory.ask(server.project, conversation_id, message)
