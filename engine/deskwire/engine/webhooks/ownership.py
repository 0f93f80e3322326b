"""Endpoints owned by machine credentials, and their automatic disabling when the credential ends (ADR 70).

An endpoint belongs to the machine that last decided its URL or its event types. It delivers while the
credential may read its events. When the credential is revoked, expires or loses a permission, its endpoints
are disabled with the reason. A person who enables such an endpoint becomes responsible for it.

The service disables an endpoint for no other reason. Failed deliveries open its circuit instead
(`retry.circuit_breaker`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import structlog
import trio

from deskwire.engine.accounts.machines import (
    Machine,
    MachineReader,
    MachineTransaction,
    has_unrestricted_children,
    restrict_children,
)
from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import STORED, permissions_to_read
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ports import DeliveryReader
from deskwire.engine.webhooks.publish import HealthTransaction, publish_transition

log: Final = structlog.get_logger(__name__)

MANAGE_PERMISSION: Final = "webhooks.manage"

_POLL_INTERVAL_MAX_S: Final = 30.0  # clocks can be set, so a long wait is split
_RETRY_DELAY_S: Final = 1.0


class OwnedReader(DeliveryReader, MachineReader, Protocol):
    """Queries on endpoints and the credentials that own them."""


class OwnedTransaction(HealthTransaction, MachineTransaction, Protocol):
    """Changes of endpoints owned by credentials."""


def permissions_of_endpoint(events: Iterable[str]) -> Sequence[str]:
    """Return the permissions needed to read the events of this `events` list."""
    return permissions_to_read(frozenset(events) or STORED)


def lapsed_reason(endpoint: Endpoint, machine: Machine | None, now: int) -> str | None:
    """Return why an endpoint's credential no longer allows deliveries, or None.

    Args:
        machine: the endpoint's credential, None if it does not exist.
    """
    if endpoint.credential is None:
        return None
    if machine is None:
        return f"its machine credential {endpoint.credential} does not exist"
    named = f"its machine credential {machine.name!r} ({machine.id})"
    if machine.revoked_at is not None:
        return f"{named} was revoked"
    if machine.expires_at is not None and machine.expires_at <= now:
        return f"{named} has expired"
    lacking = [
        each
        for each in (MANAGE_PERMISSION, *permissions_of_endpoint(endpoint.events))
        if each not in machine.permissions
    ]
    return f"{named} does not have the permission {', '.join(lacking)}" if lacking else None


def disable_lapsed(tx: OwnedTransaction, project: int | None, now: int) -> list[Endpoint]:
    """Disable endpoints whose credentials no longer allow deliveries; return them.

    Args:
        project: storage key of the project; None for all projects.
    """
    tx.lock_across_nodes()  # else two nodes could both disable it and publish two events
    lapsed: list[Endpoint] = []
    for endpoint in tx.endpoints(project):
        reason = _reason(tx, endpoint, now) if endpoint.status == "enabled" else None
        if reason is not None:
            disabled = replace(endpoint, status="disabled", status_reason=reason, updated_at=now)
            tx.save_endpoint(disabled)
            publish_transition(tx, "disabled", disabled, now)
            lapsed.append(disabled)
    return lapsed


class LapseMonitor:
    """Disables endpoints when the credentials that own them end or expire.

    Args:
        signed: returns the store that writes in the name of the service at a time (ms).
        stop: stops deliveries to an endpoint, by its storage key; without effect if there are none.
    """

    def __init__(
        self,
        signed: Callable[[int], Store[OwnedReader, OwnedTransaction]],
        clock: Clock,
        stop: Callable[[int], None],
    ) -> None:
        self._signed = signed
        self._clock = clock
        self._stop = stop
        self._wakeup = trio.Event()

    def follow(self, commits: Commits[CallerCommit]) -> None:
        """Check after each commit that changes credentials."""
        commits.subscribe(lambda _: self._wakeup.set(), "callers")

    async def start(self) -> None:
        """Disable endpoints that lapsed while the service was down. Raises Unavailable.

        Call it before any deliveries start.
        """
        now = self._clock()
        store = self._signed(now)
        if await store.read(has_unrestricted_children):
            log.warning(
                "credentials.settled", changed=await store.write(lambda tx: restrict_children(tx, now))
            )
        await self.check()

    async def run(self) -> None:
        """Disable lapsed endpoints until cancelled."""
        while True:
            self._wakeup = trio.Event()
            try:
                wait_s = await self.check()
            except Unavailable as refusal:
                log.warning("webhooks.lapses_not_read", reason=refusal.reason)
                wait_s = _RETRY_DELAY_S
            with trio.move_on_after(wait_s):
                await self._wakeup.wait()

    async def check(self) -> float:
        """Disable endpoints that have lapsed; return the seconds until the next check.

        Raises Unavailable.
        """
        now = self._clock()
        store = self._signed(now)
        owned = await store.read(_owned)
        if any(
            endpoint.status == "enabled" and lapsed_reason(endpoint, machine, now)
            for endpoint, machine in owned
        ):
            for endpoint in await store.write(lambda tx: disable_lapsed(tx, None, now)):
                log.warning("webhook.lapsed", endpoint=endpoint.id, reason=endpoint.status_reason)
                self._stop(endpoint.rowid)
        for endpoint, _ in owned:
            if endpoint.status != "enabled":  # disabled by a commit that did not reach the dispatcher
                self._stop(endpoint.rowid)
        # All credentials count, because a commit that makes one of them an owner does not wake this task.
        end = await store.read(lambda reader: reader.next_machine_end(now))
        return _POLL_INTERVAL_MAX_S if end is None else min((end - now) / 1000, _POLL_INTERVAL_MAX_S)


def _owned(reader: OwnedReader) -> list[tuple[Endpoint, Machine | None]]:
    """Return the endpoints owned by credentials, each with its credential."""
    return [
        (endpoint, reader.machine(endpoint.credential))
        for endpoint in reader.endpoints()
        if endpoint.credential is not None
    ]


def _reason(reader: OwnedReader | OwnedTransaction, endpoint: Endpoint, now: int) -> str | None:
    machine = None if endpoint.credential is None else reader.machine(endpoint.credential)
    return lapsed_reason(endpoint, machine, now)
