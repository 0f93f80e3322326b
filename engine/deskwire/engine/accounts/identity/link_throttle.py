"""Throttling of requests for a new password by mail, counted in memory by account and by network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from deskwire.engine.core.errors import TooManyRequests
from deskwire.engine.core.folding import address_key
from deskwire.engine.core.limits.rate_limit import RateLimit
from deskwire.engine.core.limits.sketch import Sketch

PER_ACCOUNT: Final = 3
PER_NETWORK: Final = 20
WINDOW_MINUTES: Final = 60


class LinkRequestThrottle:
    """Allows a limited number of requests in WINDOW_MINUTES.

    Args:
        clock: Trio's clock.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._accounts = Sketch(RateLimit(PER_ACCOUNT, PER_ACCOUNT, WINDOW_MINUTES))
        self._networks = Sketch(RateLimit(PER_NETWORK, PER_NETWORK, WINDOW_MINUTES))

    def share(self, nodes: int) -> None:
        """Limit this node to its share of `nodes` nodes."""
        for each in (self._accounts, self._networks):
            each.share(nodes)

    def allows(self, email: str, network: str | None) -> bool:
        """Count a request. Return whether the address may get another mail, whether or not it has an account.

        Args:
            network: None for a client on this machine, which may be a proxy for any client.

        Raises TooManyRequests (`too_many_sign_ins`) if the network has sent too many requests.
        """
        now = self._clock()
        left = None if network is None else self._networks.take(network, now)
        if left is not None and left.retry_after_s:
            raise TooManyRequests(
                "Too many new passwords were requested from your network; wait.",
                code="too_many_sign_ins",
                retry_after_s=left.retry_after_s,
            )
        left = self._accounts.take(address_key(email), now)
        return left is None or not left.retry_after_s
