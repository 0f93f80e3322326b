"""The work of a node that has others beside it: it shares limits with them, and forgets what they have changed."""

from __future__ import annotations

from deskwire.http.api.services import Services
from deskwire.program.opening import OpenedStore
from deskwire.program.parts import Parts


def invalidate_with_other_nodes(parts: Parts) -> None:
    """Have everything forgotten here that another node has changed, before that node answers whoever has changed it."""
    membership = parts.here.membership
    if membership is None:
        return

    async def forget_callers() -> None:
        parts.keys.forget()
        parts.machines.forget()
        parts.sessions.forget()
        parts.ended_tokens.forget()
        await parts.agents.end_lost_sessions()
        parts.agents.rights_changed_nowait()
        parts.stream.rights_changed_nowait()
        parts.uploads.wake_nowait()

    membership.forget_with(forget_callers)
    if parts.couriers is not None:
        membership.forget_with(parts.couriers.look)
    if parts.follower is not None:
        membership.forget_with(parts.follower.catch_up)


def share_limits(here: OpenedStore, services: Services) -> None:
    """Have this node allow its part of what all nodes together allow callers, as long as there are so many."""
    membership = here.membership
    if membership is None:
        return

    def share() -> None:
        services.rate_limits.share(membership.size)
        services.throttle.share(membership.size)

    share()
    membership.when_moved(share)
