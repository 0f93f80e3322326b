"""How often projects may call, and how often an address may fail to say who it is (decisions 8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final, Literal

import trio

from deskwire.engine.errors import TooManyRequests
from deskwire.engine.people import Project, User
from deskwire.engine.rate import Buckets, Quota, Rate

Counted = Literal["calls", "authorizations"]
"""Which quota of a project a call takes from."""

_PREFIX_BITS: Final = 64
"""Of an IPv6 address: what one customer is given at least, so what one attacker has."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limits on calls.

    Args:
        calls: of projects; of a user, for what is about no project.
        authorizations: of channels of the stream, by project. Who has thousands of channels asks for all of them at
            once, after each reconnect, and pusher-js takes a refusal for final.
        failures: of addresses to authenticate.
        clock: Trio's.
    """

    calls: Buckets
    authorizations: Buckets
    failures: Buckets
    clock: Callable[[], float] = trio.current_time

    def take(self, project: Project | None, user: User | None, counted: Counted = "calls") -> Quota | None:
        """Count a call; what is left, with a `retry_after_s` if there was nothing. None if it is not counted."""
        buckets = self.calls if counted == "calls" else self.authorizations
        if project is not None:
            return buckets.take(("project", project.rowid), self.clock())
        if user is not None:
            return buckets.take(("user", user.rowid), self.clock())
        return None

    def check_address(self, address: str | None) -> None:
        """Raise TooManyRequests (`too_many_failures`) if this address has failed too often."""
        place = network_of(address)
        left = None if place is None else self.failures.look(place, self.clock())
        if left is not None and left.retry_after_s:
            self.failures.refused += 1
            raise TooManyRequests(
                "Too many calls from this address came without a valid credential.",
                code="too_many_failures",
                retry_after_s=left.retry_after_s,
            )

    def note_failure(self, address: str | None) -> None:
        """Count a call that was answered with 401."""
        place = network_of(address)
        if place is not None:
            self.failures.take(place, self.clock())


@lru_cache(maxsize=1024)  # a client has the same one in each of its calls
def network_of(address: str | None) -> str | None:
    """What failures are counted by: the address, of IPv6 its /64; None for one that is this machine's own.

    A loopback address is a proxy's or a local script's: everybody's calls may come from it.
    """
    try:
        parsed = ip_address(address or "")
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is None:
            return (
                None if parsed.is_loopback else str(IPv6Address(int(parsed) >> _PREFIX_BITS << _PREFIX_BITS))
            )
        parsed = parsed.ipv4_mapped
    return None if parsed.is_loopback else str(parsed)


def refusal_of(left: Quota, counted: Counted) -> TooManyRequests:
    """The refusal of a call for which nothing was left."""
    what = "calls" if counted == "calls" else "authorizes channels"
    return TooManyRequests(
        f"This project {what} too often.", code="rate_limited", retry_after_s=left.retry_after_s
    )


def header_fields(left: Quota) -> dict[str, str]:
    """What every answer of a counted call says."""
    return {
        "RateLimit-Limit": str(left.limit),
        "RateLimit-Remaining": str(left.remaining),
        "RateLimit-Reset": str(left.reset_s),
    }


def rate_of(per_minute: int, burst: int) -> Rate | None:
    """The rate of the settings; 0 per minute is no limit."""
    return Rate(per_minute, burst) if per_minute else None
