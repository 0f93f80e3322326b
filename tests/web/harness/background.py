"""A Trio loop in its own thread, because the browser's driver blocks the test's thread."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from queue import SimpleQueue
from typing import Any, Self, TypeVar, TypeVarTuple

import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Background:
    """Runs async functions and contexts for synchronous tests."""

    def __init__(self) -> None:
        self._nursery: trio.Nursery
        self._token: trio.lowlevel.TrioToken
        self._failure: BaseException | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="background of a browser test")

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        trio.from_thread.run_sync(self._nursery.cancel_scope.cancel, trio_token=self._token)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def call(self, function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Call an async function and return its result."""
        return trio.from_thread.run(function, *args, trio_token=self._token)

    def soon(self, function: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call a plain function in the loop's thread."""
        trio.from_thread.run_sync(function, *args, trio_token=self._token)

    def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        """Enter a context that stays open until the background ends, and return its value."""
        entered: SimpleQueue[Any] = SimpleQueue()

        async def stay() -> None:
            async with context as value:
                entered.put(value)
                await trio.sleep_forever()

        trio.from_thread.run_sync(self._nursery.start_soon, stay, trio_token=self._token)
        value: T = entered.get(timeout=120)
        return value

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as failure:  # noqa: BLE001 - raised again in the test's thread
            self._failure = failure

    async def _main(self) -> None:
        async with _nursery() as self._nursery:
            self._token = trio.lowlevel.current_trio_token()
            self._ready.set()
            await trio.sleep_forever()


@asynccontextmanager
async def _nursery() -> AsyncIterator[trio.Nursery]:
    async with trio.open_nursery() as nursery:
        yield nursery
