"""One run of `deskwire listen`: feed, window, receiver, and the cursor that follows."""

from __future__ import annotations

import errno
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

import httpx
import orjson
import trio
from msgspec import Struct

from deskwire.commands.api_client.access import ServiceAccess
from deskwire.commands.api_client.service import Service, ServiceError
from deskwire.commands.listen.cursor import CursorError, CursorFile, CursorState, default_path
from deskwire.commands.listen.feed import LONG_POLL_S, FeedError, FeedEvent, FeedReader, RetryingService
from deskwire.commands.listen.forward import RETRY_SCHEDULE, WORKERS, Forwarder, ForwardResult
from deskwire.commands.listen.receiver import RouteWithHeaders
from deskwire.commands.listen.screen import ListenOutput
from deskwire.commands.listen.window import SequenceTable, Window, WindowEvent
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.http1 import Header
from deskwire.engine.webhooks.http.address import AddressPolicy, SystemResolver
from deskwire.engine.webhooks.http.client import Client
from deskwire.engine.webhooks.http.connectors import DirectConnector
from deskwire.engine.webhooks.retry.schedule import Schedule
from deskwire.engine.webhooks.signature import new_secret

RECEIVER_TIMEOUT_S: Final = 5.0  # contract 6.4.1
_SAVE_TIMEOUT_S: Final = 5.0  # for saving the cursor at the end


class ListenOptions(Struct, frozen=True, kw_only=True):
    """The options of a run.

    Args:
        access: the service and the project's key.
        forward: the receiver's URL; None to only print events.
        headers: additional headers for the receiver.
        secret: the signing secret; None for the stored or a new one.
        start: `now`, `beginning` or an event id; None for the stored cursor, else now.
        cursor: the cursor file; None for the default in `state`.
        state: the user's state directory.
        events: the types to forward; empty for all types of the contract.
        once: end when all stored events are forwarded.
        schedule: the retry schedule.
    """

    access: ServiceAccess
    forward: str | None
    headers: tuple[Header, ...] = ()
    secret: str | None = None
    start: str | None = None
    cursor: Path | None = None
    state: Path
    events: frozenset[str] = frozenset()
    once: bool = False
    schedule: Schedule = RETRY_SCHEDULE


async def run_listen(plan: ListenOptions, screen: ListenOutput) -> int:
    """Listen until SIGINT or SIGTERM, or with `once` until all is forwarded. Return the exit status.

    The status is 1 if listening is not possible, and with `once` also if an event was given up; else 0.
    """
    listening: Listening | None = None
    failures: list[BaseException] = []
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals, screen:
        try:
            async with Service(plan.access) as service, trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_at_signal, signals, nursery.cancel_scope)
                nursery.start_soon(screen.run)
                patient = RetryingService(service, not plan.once, screen.note)
                project = await _project_id(patient)
                kind = "listen" if plan.forward is not None else "listen-printing"
                with CursorFile(plan.cursor or default_path(plan.state, service.url, project, kind)) as file:
                    listening = Listening(plan, screen, FeedReader(patient, screen.note, plan.events), file)
                    await listening.run(project)
                nursery.cancel_scope.cancel()
        except* (ServiceError, FeedError, CursorError) as group:
            failures = [*_leaves(group)]
        except* BrokenPipeError as group:
            # click then ends without a message
            raise BrokenPipeError(errno.EPIPE, "the output is closed") from group
        if failures:
            screen.note(f"Error: {failures[0]}")
    given_up = plan.once and listening is not None and listening.failed > 0
    return 1 if failures or given_up else 0


async def _project_id(service: RetryingService) -> str:
    try:
        return str(orjson.loads(await service.get("/s2s/project"))["id"])
    except (ValueError, TypeError, KeyError) as error:
        raise FeedError("The response has no project: is this a Deskwire service?") from error


async def _cancel_at_signal(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


class Listening:
    """The tasks of a run, which all wait for changes of one window."""

    def __init__(self, plan: ListenOptions, screen: ListenOutput, feed: FeedReader, file: CursorFile) -> None:
        self.printed = 0
        self.delivered = 0
        self.failed = 0
        self._plan = plan
        self._screen = screen
        self._feed = feed
        self._file = file
        self._window = Window(None, SequenceTable({}, False))
        self._secret = ""
        self._changed = trio.lowlevel.ParkingLot()

    async def run(self, project: str) -> None:
        """Forward until cancelled or finished. Raises FeedError, CursorError and ServiceError."""
        await self._begin(project)
        client = self._client(self._plan.forward) if self._plan.forward is not None else None
        try:
            async with trio.open_nursery() as nursery:
                if client is not None:
                    self._start_workers(nursery, client)
                nursery.start_soon(self._save_changes)
                await self._read()
                await self._until(lambda: not len(self._window))
                nursery.cancel_scope.cancel()
        finally:
            with trio.move_on_after(_SAVE_TIMEOUT_S, shield=True):
                if client is not None:
                    await client.aclose()
                await self._save()
            self._screen.note(self._summary())

    def _client(self, url: str) -> Client:
        return Client(
            url,
            RouteWithHeaders(
                DirectConnector(AddressPolicy(allow_private=True), SystemResolver()), self._plan.headers
            ),
            ssl_context=httpx.create_ssl_context(),
            timeout_s=RECEIVER_TIMEOUT_S,
            clock=wall_clock,
        )

    def _start_workers(self, nursery: trio.Nursery, client: Client) -> None:
        forwarder = Forwarder(client, self._secret, self._screen.step, self._screen.note, self._plan.schedule)
        for troubled in (False, True) * WORKERS:
            nursery.start_soon(self._forward, forwarder, troubled, nursery)

    def _summary(self) -> str:
        after = self._window.after or "the feed's beginning"
        if self._plan.forward is None:
            return f"{self.printed} printed. The next run continues after {after}."
        return f"{self.delivered} delivered, {self.failed} failed. The next run continues after {after}."

    async def _begin(self, project: str) -> None:
        """Find the start position and save it, so that `now` stays the same after an early crash."""
        plan, kept = self._plan, await trio.to_thread.run_sync(self._file.load)
        self._secret = plan.secret or (kept.secret if kept else new_secret())
        if plan.start is None and kept is not None:
            self._feed.after = kept.after
            self._window = Window(kept.after, SequenceTable(kept.sequences, kept.forgot), kept.ahead)
        elif plan.start in (None, "now"):
            await self._feed.seek_end(wall_clock())
        elif plan.start != "beginning":
            await self._feed.seek(plan.start)
        if self._feed.after != self._window.after:
            self._window = Window(self._feed.after, self._window.sequences)
        await self._save()
        note = self._screen.note
        if plan.forward is None:
            note(f"Printing the events of {project} of {plan.access.url}; nothing is forwarded")
        else:
            note(f"Forwarding {project} of {plan.access.url} to {plan.forward}")
            note(f"Signing secret: {self._secret}")
        where = f"after {self._feed.after}" if self._feed.after else "with the oldest event"
        note(f"Starting {where}; cursor: {self._file.path}")

    async def _read(self) -> None:
        """Fill the window. Runs until cancelled; with `once`, returns at the end of the feed."""
        wait_s = 0 if self._plan.once else LONG_POLL_S
        while True:
            await self._until(lambda: not self._window.full)
            page = await self._feed.read(wait_s)
            for event in page.events:
                self._add(event)
            self._changed.unpark_all()
            if self._plan.once and not page.more:
                return

    def _add(self, event: FeedEvent) -> None:
        wanted = not self._plan.events or event.type in self._plan.events
        if wanted and self._plan.forward is not None:
            self._window.add(event)
            return
        if wanted:
            self._screen.event(event)
            self.printed += 1
        self._window.skip(event)

    async def _forward(self, forwarder: Forwarder, troubled: bool, pauses: trio.Nursery) -> None:
        while True:
            held = self._window.take(troubled)
            if held is None:
                await self._changed.park()
                continue
            result = await forwarder.attempt(held)
            if result.state == "retrying":
                self._window.later(held)
                pauses.start_soon(self._again, held, result)
                continue
            self.delivered += result.state == "delivered"
            self.failed += result.state == "failed"
            self._window.end(held, result.state == "delivered")
            self._changed.unpark_all()

    async def _again(self, held: WindowEvent, result: ForwardResult) -> None:
        await trio.sleep(result.pause_s)
        self._window.again(held)
        self._changed.unpark_all()

    async def _save_changes(self) -> None:
        saved = self._window.changes
        while True:
            if self._window.changes == saved:
                await self._changed.park()
                continue
            saved = self._window.changes
            await self._save()

    async def _save(self) -> None:
        window, sequences = self._window, self._window.sequences
        kept = CursorState(window.after, self._secret, sequences.last, sequences.forgot, window.ahead)
        await trio.to_thread.run_sync(self._file.save, kept)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.park()
