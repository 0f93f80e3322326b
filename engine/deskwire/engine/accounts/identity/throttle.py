"""Throttling of failed sign-ins, counted in memory by network, by account, and by both together.

An attempt counts as failed from its start until it succeeds, so concurrent attempts cannot bypass the limit. A refused
attempt checks no password. It counts for its network because only machines go on after a refusal. It does not count for the
account, so an attacker can't keep an account locked by going on.

An account that has signed in from a network before has a separate count there. Failures of others at the account, or from the
network, do not block it. Attackers can't evict this count because only successful sign-ins add entries.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from deskwire.engine.core.errors import TooManyRequests, Unauthenticated
from deskwire.engine.core.folding import address_key
from deskwire.engine.core.limits.rate_limit import Quota, RateLimit, nanoseconds, quota, take
from deskwire.engine.core.limits.sketch import Sketch

WINDOW_MINUTES: Final = 15
PER_PAIR: Final = 10
"""Allowed failures from one network at one account."""
PER_ACCOUNT: Final = 100
PER_NETWORK: Final = 100
CODES_PER_ACCOUNT: Final = 30
"""Allowed wrong codes at one account. Of three codes in a million one is right at any time, so that a caller who has the
password needs about four months on average; each wrong code is in the audit trail."""
KNOWN_MAX: Final = 10_000
"""Maximum number of known pairs of account and network, about 3 MB. The least recently used one is evicted and then counts
like an unknown one."""

_PAIR_RATE: Final = RateLimit(PER_PAIR, PER_PAIR, WINDOW_MINUTES)


class SignInThrottle:
    """Allows a limited number of failed sign-ins in WINDOW_MINUTES.

    Args:
        clock: Trio's clock.
        per_account: allowed failures at one account.
    """

    def __init__(self, clock: Callable[[], float], per_account: int = PER_ACCOUNT) -> None:
        self._clock = clock
        self._pair_rate = _PAIR_RATE
        self._pairs = Sketch(_PAIR_RATE)
        self._accounts = Sketch(RateLimit(per_account, per_account, WINDOW_MINUTES))
        self._networks = Sketch(RateLimit(PER_NETWORK, PER_NETWORK, WINDOW_MINUTES))
        self._under_way: Counter[tuple[Sketch, str]] = Counter()
        self._known: OrderedDict[str, int] = OrderedDict()  # pair → time at which its bucket will be full

    def share(self, nodes: int) -> None:
        """Limit this node to its share of `nodes` nodes."""
        self._pair_rate = _PAIR_RATE.shared(nodes)
        for each in (self._pairs, self._accounts, self._networks):
            each.share(nodes)

    @contextmanager
    def attempt(self, email: str | None, network: str | None) -> Iterator[None]:
        """Count the block as an attempt.

        It is a failure if the block raises Unauthenticated, else it is not counted.

        Args:
            email: None for an attempt that names no account, as with a passkey alone. It counts for its network only, so that
                failures of strangers keep no one else from signing in.
            network: None for a client on this machine, which may be a proxy for any client.

        Raises TooManyRequests without running the block if too many attempts have failed.
        """
        counted, pair = list[tuple[Sketch, str]](), None
        if email is not None:
            account = address_key(email)
            pair = f"{account} {network or ''}"
            counted = [(self._pairs, pair), (self._accounts, account)]
        if network is not None:
            counted.append((self._networks, network))
        self._check(pair, counted, network)
        self._under_way.update(counted)
        try:
            yield
        except Unauthenticated:
            self._failed(pair, counted)
            raise
        else:
            self._succeeded(pair)
        finally:
            self._under_way.subtract(counted)
            for each in counted:
                if not self._under_way[each]:
                    del self._under_way[each]

    def _check(self, pair: str | None, counted: list[tuple[Sketch, str]], network: str | None) -> None:
        now = self._clock()
        known = None if pair is None else self._known.get(pair)
        if known is None:
            quotas = [(self._under_way[each], each[0].peek(each[1], now)) for each in counted]
        else:
            quotas = [(self._under_way[counted[0]], quota(self._pair_rate, known, nanoseconds(now)))]
        full = [left for under_way, left in quotas if left is not None and left.remaining <= under_way]
        if full:
            if network is not None:
                self._networks.take(network, now)
            raise _refusal(full)

    def _failed(self, pair: str | None, counted: list[tuple[Sketch, str]]) -> None:
        now = self._clock()
        for sketch, key in counted:
            sketch.take(key, now)
        known = None if pair is None else self._known.get(pair)
        if pair is not None and known is not None:
            self._known[pair] = take(self._pair_rate, known, nanoseconds(now)) or known

    def _succeeded(self, pair: str | None) -> None:
        if pair is None:
            return
        self._known[pair] = 0
        self._known.move_to_end(pair)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)


def _refusal(full: list[Quota]) -> TooManyRequests:
    return TooManyRequests(
        "Too many attempts to sign in have failed; wait.",
        code="too_many_sign_ins",
        retry_after_s=max(1, *(left.retry_after_s for left in full)),
    )
