"""Actors over a store whose writes tests can delay or fail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from deskwire.engine.conversations.actors import ActorFailed, ActorRegistry
from deskwire.engine.core.errors import DomainError
from tests.support.builders import PROJECT, HandClock, InlineStore
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.seeing import seen


@asynccontextmanager
async def open_directory(store: InlineStore, **limits: Any) -> AsyncIterator[ActorRegistry]:
    """Open a registry over `store`; its actors are cancelled at the end, and the whole test has a timeout."""
    with trio.fail_after(HANG_TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            bounds = {"mailbox": 256, "idle_s": 60.0, "live": 100} | limits
            yield ActorRegistry(nursery, store, HandClock(), **bounds)
            nursery.cancel_scope.cancel()


class Gate:
    """Delays writes until it is opened; `between` is called once, before the second write."""

    def __init__(self, between: Callable[[], None] | None = None) -> None:
        self._open = trio.Event()
        self._between = between
        self.waiting = 0

    async def __call__(self) -> None:
        self.waiting += 1
        await self._open.wait()
        if self.waiting == 2 and self._between is not None:
            self._between()

    def open(self) -> None:
        self._open.set()


def sequences(store: InlineStore, conversation_id: str) -> list[int]:
    """Return the sequences of the stored events of a conversation."""
    found = seen(store, lambda reader: reader.conversation(PROJECT.rowid, conversation_id))
    assert found is not None
    rowid = found[0].rowid
    events = seen(store, lambda reader: reader.events(PROJECT.rowid, 0, 10_000, frozenset()))
    return [event.sequence or 0 for event in events if event.conversation == rowid]


async def ask_into(answers: list[Any], call: Callable[[], Awaitable[Any]]) -> None:
    """Append the result or the refusal of `call`."""
    try:
        answers.append(await call())
    except (DomainError, ActorFailed) as refusal:
        answers.append(refusal)
