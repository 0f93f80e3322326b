"""The threads that hash passwords, and the few places of those who wait for one.

A hash takes tens of milliseconds on purpose, so whoever needs no credential to ask for one could keep everybody else
waiting. So a network has two places at most, as many as there are threads: it holds up others by the work of two hashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

import trio

from deskwire.engine.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 2
PLACES: Final = 50
"""Passwords that may be with the threads or wait for them; half a minute's work."""
PER_NETWORK: Final = 2
"""Of one network's clients, who need no credential to take them."""


class Hashing:
    """Carries out what hashes passwords."""

    def __init__(self) -> None:
        self._threads = trio.CapacityLimiter(THREADS)
        self._taken = 0
        self._of_network: Counter[str] = Counter()

    async def run(self, network: str | None, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The job's result, made in a thread.

        Args:
            network: the client's; None for one on this machine, or who has shown a credential.

        Raises what the job raises, or Unavailable (`sign_in_busy`) if there is no place, or none for that network.
        """
        with self._place(), self._place_of(network):
            return await trio.to_thread.run_sync(lambda: job(*args, **kwargs), limiter=self._threads)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._taken >= PLACES:
            raise Unavailable("Too many are signing in at once.", code="sign_in_busy", retry_after_s=5)
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1

    @contextmanager
    def _place_of(self, network: str | None) -> Iterator[None]:
        if network is None:
            yield
            return
        if self._of_network[network] >= PER_NETWORK:
            raise Unavailable("Too many are signing in at once from your network.", code="sign_in_busy")
        self._of_network[network] += 1
        try:
            yield
        finally:
            self._of_network[network] -= 1
            if not self._of_network[network]:
                del self._of_network[network]
