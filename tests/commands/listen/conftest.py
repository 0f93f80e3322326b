"""A run of `listen` in this process, a receiver beside it, and what was shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import pytest
import trio

from deskwire.commands.api_client.access import ServiceAccess
from deskwire.commands.listen.feed import FeedEvent
from deskwire.commands.listen.forward import ForwardStep
from deskwire.commands.listen.run import ListenOptions, run_listen
from deskwire.engine.webhooks.retry.schedule import Schedule
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Behaviour, Receiver

AT_ONCE = Schedule(retry_delays_s=(0.0, 0.0, 0.0), jitter=0, horizon_s=3_600.0)
SECRET = "whsec_of_a_test"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Run a service on an empty directory."""
    async with running(tmp_path / "data") as started:
        yield started


class Shown:
    """A screen that keeps what it is given."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.steps: list[ForwardStep] = []
        self.printed: list[FeedEvent] = []
        self._something = trio.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def note(self, line: str) -> None:
        self.notes.append(line)
        self._something.set()

    def step(self, step: ForwardStep) -> None:
        self.steps.append(step)
        self._something.set()

    def event(self, event: FeedEvent) -> None:
        self.printed.append(event)
        self._something.set()

    async def run(self) -> None:
        await trio.sleep_forever()

    async def until_noted(self, words: str) -> None:
        """Return when a note has these words."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while not any(words in each for each in self.notes):
                self._something = trio.Event()
                await self._something.wait()

    @property
    def results(self) -> list[tuple[str, int | None, str]]:
        """Type, sequence and result of each finished step, in their order."""
        over = [each for each in self.steps if each.state in ("delivered", "failed")]
        return [(each.delivery.event.type, each.delivery.event.sequence, each.state) for each in over]


@asynccontextmanager
async def receiving(behaviour: Behaviour, port: int = 0) -> AsyncIterator[Receiver]:
    """Run a receiver that behaves like that, for the block."""
    receiver = Receiver(behaviour)
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(port, host="127.0.0.1")
        receiver.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, receiver.serve, [listener])
        yield receiver
        nursery.cancel_scope.cancel()


def plan(service: Service, url: str | None, state: Path, **more: Any) -> ListenOptions:
    """Return a plan for the demo project, without pauses between attempts."""
    return ListenOptions(
        access=ServiceAccess(service.url, service.demo["serverKey"]),
        forward=url,
        state=state,
        **{"secret": SECRET, "schedule": AT_ONCE, **more},
    )


async def once(service: Service, url: str | None, state: Path, **more: Any) -> tuple[int, Shown]:
    """Forward what is there; status and what was shown."""
    shown = Shown()
    with trio.fail_after(HANG_TIMEOUT_S):
        status = await run_listen(plan(service, url, state, once=True, **more), shown)
    return status, shown


@asynccontextmanager
async def listening(service: Service, url: str | None, state: Path, **more: Any) -> AsyncIterator[Shown]:
    """Run `listen` during the block, from when it has begun; it is cancelled at the end."""
    shown = Shown()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_listen, plan(service, url, state, **more), shown)
        await shown.until_noted("Starting ")
        yield shown
        nursery.cancel_scope.cancel()
