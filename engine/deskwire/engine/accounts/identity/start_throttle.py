"""Throttling of sign-ins that are begun without a name: at an identity provider, or by a passkey alone.

Each one stores a row for ten minutes, and a caller needs no credential.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from deskwire.engine.core.errors import TooManyRequests
from deskwire.engine.core.limits.rate_limit import RateLimit
from deskwire.engine.core.limits.sketch import Sketch

STARTS_PER_NETWORK: Final = 300  # a whole company may share one address
_WINDOW_MINUTES: Final = 10


class StartThrottle:
    """Allows a limited number of starts for each network.

    Args:
        clock: Trio's clock.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._networks = Sketch(RateLimit(STARTS_PER_NETWORK, STARTS_PER_NETWORK, _WINDOW_MINUTES))

    def share(self, nodes: int) -> None:
        """Limit this node to its share of `nodes` nodes."""
        self._networks.share(nodes)

    def take(self, network: str | None) -> None:
        """Count a start. Raises TooManyRequests (`too_many_sign_ins`).

        Args:
            network: None for a client on this machine, which may be a proxy for any client.
        """
        left = None if network is None else self._networks.take(network, self._clock())
        if left is not None and left.retry_after_s:
            raise TooManyRequests(
                "Too many sign-ins were started from your network; wait.",
                code="too_many_sign_ins",
                retry_after_s=max(1, left.retry_after_s),
            )
