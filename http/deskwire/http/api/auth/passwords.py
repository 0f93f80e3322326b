"""Threads that hash passwords, and their bounded queue.

A hash takes tens of milliseconds on purpose, and a caller needs no credential to request one. So the clients
of one network may have two jobs at most, one running and one waiting, which leaves a thread for other
networks.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar

import trio

from deskwire.engine.core.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 2
# Jobs that run or wait; half a minute's work.
QUEUE_MAX: Final = 50
# Priority of the threads (setpriority(2)): next to other busy threads they get a tenth of a core.
NICENESS: Final = 15
# Jobs of one network's clients; one of them runs.
QUEUE_PER_NETWORK_MAX: Final = 2


def _lower_priority() -> None:
    """Lower the priority of this thread.

    It also applies to threads that a hash starts, on systems with a priority per thread.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


# A lowered priority can't be raised again, so these threads do nothing but hash.
_workers: Final = ThreadPoolExecutor(THREADS, "passwords", initializer=_lower_priority)


async def _in_a_thread(job: Callable[[], T]) -> T:
    """Return the job's result.

    The wait can't be cancelled, because a thread can't be stopped.
    """
    token, done = trio.lowlevel.current_trio_token(), trio.Event()
    future = _workers.submit(job)
    future.add_done_callback(lambda _: token.run_sync_soon(done.set))
    with trio.CancelScope(shield=True):
        await done.wait()
    return future.result()


class PasswordHashing:
    """The queue of jobs that hash passwords."""

    def __init__(self) -> None:
        self._threads = trio.Semaphore(THREADS)
        self._taken = 0
        self._turns: dict[str, trio.Lock] = {}

    async def run(self, network: str | None, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job in a thread and return its result.

        Args:
            network: the client's network; None for a client on this machine, or with a credential.

        Raises the job's exceptions, or Unavailable (`sign_in_busy`) if the queue is full, or full for that
        network.
        """
        with self._place():
            async with self._turn_of(network), self._threads:
                return await _in_a_thread(partial(job, *args, **kwargs))

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._taken >= QUEUE_MAX:
            raise Unavailable("Too many are signing in at once.", code="sign_in_busy", retry_after_s=5)
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1

    @asynccontextmanager
    async def _turn_of(self, network: str | None) -> AsyncIterator[None]:
        if network is None:
            yield
            return
        turn = self._turns.setdefault(network, trio.Lock())
        if turn.locked() and turn.statistics().tasks_waiting >= QUEUE_PER_NETWORK_MAX - 1:
            raise Unavailable("Too many are signing in at once from your network.", code="sign_in_busy")
        try:
            async with turn:
                yield
        finally:
            if not turn.locked() and not turn.statistics().tasks_waiting:
                self._turns.pop(network, None)
