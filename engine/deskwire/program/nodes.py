"""A node's cooperation with others: shared limits, and caches that other nodes invalidate."""

from __future__ import annotations

from deskwire.http.api.services import Services
from deskwire.program.opening import OpenedStore
from deskwire.program.parts import Parts


def invalidate_with_other_nodes(parts: Parts) -> None:
    """Invalidate caches when another node has changed their data, before that node responds to its caller."""
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
    """Divide the callers' limits by the number of nodes, whenever that changes."""
    membership = here.membership
    if membership is None:
        return

    def share() -> None:
        services.rate_limits.share(membership.size)
        services.throttle.share(membership.size)

    share()
    membership.when_moved(share)
