"""Rate limits of calls and of failed authentications (decisions 8).

Calls are limited by project or user, failed authentications by network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Project, User
from deskwire.engine.core.errors import TooManyRequests
from deskwire.engine.core.limits.network import remote_network
from deskwire.engine.core.limits.rate_limit import Buckets, Quota, RateLimit
from deskwire.engine.core.limits.sketch import Sketch

# The quota of a project that a call counts against.
Counted = Literal["calls", "authorizations"]


class RateLimits(Struct, frozen=True):
    """The limits on calls.

    Args:
        calls: of projects, by their server keys.
        users: of each signed-in user, in all projects.
        authorizations: of the stream's channels, by project. A client with thousands of channels requests all
            of their authorizations at once after a reconnect, and pusher-js never repeats a refused one.
        failures: of networks to authenticate.
        members: that an organisation adds; each is an account that may open streams of its own.
        clock: Trio's.
    """

    calls: Buckets
    users: Buckets
    authorizations: Buckets
    failures: Sketch
    members: Buckets
    clock: Callable[[], float] = trio.current_time

    def share(self, nodes: int) -> None:
        """Limit this node to its part, one of `nodes`, from now on."""
        for each in (self.calls, self.users, self.authorizations, self.failures, self.members):
            each.share(nodes)

    def take(self, project: Project | None, user: User | None, counted: Counted = "calls") -> Quota | None:
        """Count a call and return the remaining quota.

        `retry_after_s` is set if it was exceeded. None if calls are not counted.
        """
        if user is not None:
            return self.users.take(user.rowid, self.clock())
        if project is None:
            return None
        buckets = self.calls if counted == "calls" else self.authorizations
        return buckets.take(project.rowid, self.clock())

    def check_address(self, address: str | None) -> None:
        """Raise TooManyRequests if this address's network has failed too often.

        The code is `too_many_failures`. For passwords, which can be guessed. Server keys and access tokens
        can't be guessed: they are always checked, so that a client is not locked out by another client of
        its network (ADR 24).
        """
        network = remote_network(address)
        left = None if network is None else self.failures.peek(network, self.clock())
        if left is not None and left.retry_after_s:
            self.failures.refused += 1
            raise _failed_too_often(left)

    def note_failure(self, address: str | None) -> TooManyRequests | None:
        """Count a call with a wrong credential.

        Returns the refusal if its network has failed too often.
        """
        network = remote_network(address)
        left = None if network is None else self.failures.take(network, self.clock())
        return _failed_too_often(left) if left is not None and left.retry_after_s else None

    @contextmanager
    def adding_member(self, organisation: int) -> Iterator[None]:
        """Count a member that is added within the context, unless the context raises.

        Entering the context raises TooManyRequests (`too_many_members`) if the organisation has added too
        many.
        """
        left = self.members.take(organisation, self.clock())
        if left is not None and left.retry_after_s:
            raise TooManyRequests(
                f"This organisation has added {left.limit} members within an hour, which is the most "
                "(DESKWIRE_MEMBERS_PER_HOUR).",
                code="too_many_members",
                retry_after_s=left.retry_after_s,
            )
        with ExitStack() as undo:
            undo.callback(self.members.give_back, organisation)
            yield
            undo.pop_all()  # the member was added


def _failed_too_often(left: Quota) -> TooManyRequests:
    return TooManyRequests(
        "Too many calls from this address came without a valid credential.",
        code="too_many_failures",
        retry_after_s=left.retry_after_s,
    )


def refusal_of(left: Quota, user: User | None, counted: Counted) -> TooManyRequests:
    """Return the refusal of a call whose quota is used up."""
    who = "project" if user is None else "user"
    what = "calls" if counted == "calls" else "authorizes channels"
    return TooManyRequests(
        f"This {who} {what} too often.", code="rate_limited", retry_after_s=left.retry_after_s
    )


def header_fields(left: Quota) -> dict[str, str]:
    """Return the rate limit headers of a counted call's response."""
    return {
        "RateLimit-Limit": str(left.limit),
        "RateLimit-Remaining": str(left.remaining),
        "RateLimit-Reset": str(left.reset_s),
    }


def rate_of(per_minute: int, burst: int) -> RateLimit | None:
    """Return the rate of the settings.

    Returns None, no limit, for 0 per minute.
    """
    return RateLimit(per_minute, burst) if per_minute else None
