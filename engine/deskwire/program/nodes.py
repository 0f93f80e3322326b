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
        parts.keys.invalidate()
        parts.machines.invalidate()
        parts.channels.invalidate()
        parts.sessions.invalidate()
        parts.ended_tokens.invalidate()
        parts.customers.invalidate()
        await parts.agents.end_lost_sessions()
        parts.customer_streams.check_sessions_nowait()
        parts.agents.rights_changed_nowait()
        parts.stream.rights_changed_nowait()
        parts.uploads.wake_nowait()

    membership.on_invalidate(forget_callers)
    if parts.endpoint_leases is not None:
        membership.on_invalidate(parts.endpoint_leases.reconcile)
    if parts.follower is not None:
        membership.on_invalidate(parts.follower.catch_up)


def share_limits(here: OpenedStore, services: Services) -> None:
    """Divide the callers' limits by the number of nodes, whenever that changes."""
    membership = here.membership
    if membership is None:
        return

    def share() -> None:
        services.rate_limits.share(membership.size)
        services.customer_limits.share(membership.size)
        services.throttle.share(membership.size)
        services.link_requests.share(membership.size)
        services.second_factors.throttle.share(membership.size)
        services.second_factors.starts.share(membership.size)
        services.oidc.starts.share(membership.size)

    share()
    membership.on_nodes_changed(share)
