"""Slows down guessing of passwords: failures are counted in memory, by address, by account, and by both."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from deskwire.engine.errors import TooManyRequests

WINDOW_S: Final = 900.0
PER_PAIR: Final = 10
"""Failures of one client address at one account."""
PER_ACCOUNT: Final = 100
PER_ADDRESS: Final = 100
COUNTERS_MAX: Final = 20_000
"""Counters kept; about 4 MB. The one that began longest ago makes room, so a flood only forgets, never grows."""


@dataclass(slots=True)
class _Counter:
    since: float
    failures: int = 0


class Throttle:
    """Lets a limited number of attempts at signing in fail within a window.

    An attempt is counted before it is made and taken back when it succeeds: attempts side by side do not slip
    through.
    """

    def __init__(self) -> None:
        self._counters: OrderedDict[tuple[str, str], _Counter] = OrderedDict()

    def begin(self, email: str, address: str | None, now_s: float) -> None:
        """Count an attempt. Raises TooManyRequests, and counts nothing, if one of the limits is reached."""
        found = [(self._counter(key, now_s), limit) for key, limit in _limits(email, address)]
        full = [counter for counter, limit in found if counter.failures >= limit]
        if full:
            wait_s = math.ceil(max(counter.since for counter in full) + WINDOW_S - now_s)
            raise TooManyRequests(
                "Too many attempts to sign in have failed; wait.",
                code="too_many_sign_ins",
                retry_after_s=max(1, wait_s),
            )
        for counter, _ in found:
            counter.failures += 1

    def succeeded(self, email: str, address: str | None) -> None:
        """Take the attempt back, and forget what failed before from this address at this account."""
        (pair, _), *others = _limits(email, address)
        self._counters.pop(pair, None)
        for key, _ in others:
            counter = self._counters.get(key)
            if counter is not None and counter.failures:
                counter.failures -= 1

    def _counter(self, key: tuple[str, str], now_s: float) -> _Counter:
        counter = self._counters.get(key)
        if counter is None or now_s - counter.since >= WINDOW_S:
            self._counters.pop(key, None)
            counter = self._counters[key] = _Counter(now_s)
            if len(self._counters) > COUNTERS_MAX:
                self._counters.popitem(last=False)
        return counter


def _limits(email: str, address: str | None) -> list[tuple[tuple[str, str], int]]:
    """The counters of an attempt, that of both together first.

    A loopback address is a proxy's or a local script's: everybody's attempts may come from it.
    """
    account, where = email.lower(), address or ""
    limits = [((account, where), PER_PAIR), ((account, "*"), PER_ACCOUNT)]
    if not _local(where):
        limits.append((("*", where), PER_ADDRESS))
    return limits


def _local(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return True
