"""The work of a node that has others beside it: it shares limits with them, and forgets what they have changed."""

from __future__ import annotations

from deskwire.http.api.services import Services
from deskwire.program.opening import Opened
from deskwire.program.parts import Parts


def forget_with_others(parts: Parts) -> None:
    """Have everything forgotten here that another node has changed, before that node answers whoever has changed it."""
    membership = parts.here.membership
    if membership is None:
        return

    async def forget_callers() -> None:
        parts.keys.invalidate()
        parts.machines.invalidate()
        parts.sessions.invalidate()
        parts.ended_tokens.invalidate()
        await parts.agents.end_lost_sessions()
        parts.agents.rights_changed_nowait()
        parts.stream.rights_changed_nowait()
        parts.uploads.wake_nowait()

    membership.on_invalidate(forget_callers)
    if parts.endpoint_leases is not None:
        membership.on_invalidate(parts.endpoint_leases.reconcile)
    if parts.follower is not None:
        membership.on_invalidate(parts.follower.catch_up)


def share_out(here: Opened, services: Services) -> None:
    """Have this node allow its part of what all nodes together allow callers, as long as there are so many."""
    membership = here.membership
    if membership is None:
        return

    def share() -> None:
        services.rate_limits.share(membership.size)
        services.throttle.share(membership.size)

    share()
    membership.on_nodes_changed(share)
