"""Rate limits: how often projects and users may call, and how often an address may fail to authenticate (decisions 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Project, User
from deskwire.engine.core.errors import TooManyRequests
from deskwire.engine.core.limits.network import remote_network
from deskwire.engine.core.limits.rate_limit import Buckets, Quota, RateLimit
from deskwire.engine.core.limits.sketch import Sketch

Counted = Literal["calls", "authorizations"]
"""The quota of a project that a call takes from."""


class RateLimits(Struct, frozen=True):
    """The limits on calls.

    Args:
        calls: of projects, with their server keys.
        users: of each signed-in user, whatever the project.
        authorizations: of channels of the stream, by project. Who has thousands of channels asks for all of them at
            once, after each reconnect, and pusher-js takes a refusal for final.
        failures: of networks to authenticate.
        members: that an organisation adds; each is an account, and may open streams of its own.
        clock: Trio's.
    """

    calls: Buckets
    users: Buckets
    authorizations: Buckets
    failures: Sketch
    members: Buckets
    clock: Callable[[], float] = trio.current_time

    def share(self, nodes: int) -> None:
        """Allow from now on what is the part of one of so many nodes."""
        for each in (self.calls, self.users, self.authorizations, self.failures, self.members):
            each.share(nodes)

    def take(self, project: Project | None, user: User | None, counted: Counted = "calls") -> Quota | None:
        """Count a call and return what is left, with a `retry_after_s` if there was nothing. None if it is not counted."""
        if user is not None:
            return self.users.take(user.rowid, self.clock())
        if project is None:
            return None
        buckets = self.calls if counted == "calls" else self.authorizations
        return buckets.take(project.rowid, self.clock())

    def check_address(self, address: str | None) -> None:
        """Raise TooManyRequests (`too_many_failures`) if this address's network has failed too often.

        For credentials that people choose, which can be guessed. A server key or an access token can't: it is looked
        at whatever came before, so that nobody is shut out by a neighbour (ADR 24).
        """
        network = remote_network(address)
        left = None if network is None else self.failures.look(network, self.clock())
        if left is not None and left.retry_after_s:
            self.failures.refused += 1
            raise _failed_too_often(left)

    def note_failure(self, address: str | None) -> TooManyRequests | None:
        """Count a call with a wrong credential; return the refusal if its network had failed too often before."""
        network = remote_network(address)
        left = None if network is None else self.failures.take(network, self.clock())
        return _failed_too_often(left) if left is not None and left.retry_after_s else None

    @contextmanager
    def adding_member(self, organisation: int) -> Iterator[None]:
        """Count a member that is added within the context, unless that raises.

        Entering it raises TooManyRequests (`too_many_members`) if the organisation has added too many.
        """
        left = self.members.take(organisation, self.clock())
        if left is not None and left.retry_after_s:
            raise TooManyRequests(
                f"This organisation has added {left.limit} members within an hour, which is the most "
                "(DESKWIRE_MEMBERS_PER_HOUR).",
                code="too_many_members",
                retry_after_s=left.retry_after_s,
            )
        try:
            yield
        except BaseException:  # re-raised: no member was added
            self.members.give_back(organisation)
            raise


def _failed_too_often(left: Quota) -> TooManyRequests:
    return TooManyRequests(
        "Too many calls from this address came without a valid credential.",
        code="too_many_failures",
        retry_after_s=left.retry_after_s,
    )


def refusal_of(left: Quota, user: User | None, counted: Counted) -> TooManyRequests:
    """Return the refusal of a call for which nothing was left."""
    who = "project" if user is None else "user"
    what = "calls" if counted == "calls" else "authorizes channels"
    return TooManyRequests(
        f"This {who} {what} too often.", code="rate_limited", retry_after_s=left.retry_after_s
    )


def header_fields(left: Quota) -> dict[str, str]:
    """Return the headers of every response to a counted call."""
    return {
        "RateLimit-Limit": str(left.limit),
        "RateLimit-Remaining": str(left.remaining),
        "RateLimit-Reset": str(left.reset_s),
    }


def rate_of(per_minute: int, burst: int) -> RateLimit | None:
    """Return the rate of the settings; 0 per minute is no limit."""
    return RateLimit(per_minute, burst) if per_minute else None
