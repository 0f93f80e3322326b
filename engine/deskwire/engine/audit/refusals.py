"""Refused calls and sign-ins in the audit trail, at a cost that a flood of them does not raise.

Sign-ins refused by the throttle are recorded once per window. Other refused calls are counted in memory, and the counts are
written every few seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import structlog
import trio
from msgspec import Struct

from deskwire.engine.audit.trail import COUNT_WINDOW_MS, AuditEntry, AuditTransaction, ChangeOrigin
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.values import replace

log: Final = structlog.get_logger(__name__)

CACHE_MAX: Final = 10_000
"""Maximum number of cached refusals, about 2 MB. A refusal that is evicted too early is recorded a second time."""


class RefusalCache:
    """A cache of the refused sign-ins that are already in the audit trail."""

    def __init__(self) -> None:
        self._recorded: OrderedDict[tuple[int, str | None, str | None], None] = OrderedDict()

    def add_if_new(self, account: str | None, network: str | None, at: int) -> bool:
        """Add a refusal to the cache. Return whether it is the first one in the current window."""
        key = (at // COUNT_WINDOW_MS, account, network)
        if key in self._recorded:
            return False
        self._recorded[key] = None
        if len(self._recorded) > CACHE_MAX:
            self._recorded.popitem(last=False)
        return True


PENDING_MAX: Final = 2_000
"""Maximum number of kinds of refused calls that wait to be written, about 2 MB. Above it, calls of a credential, or of
unauthenticated clients, are counted without their network.
"""

WRITE_INTERVAL_S: Final = 2.0
"""Interval between writes of refused calls. The first refusal after a pause is written immediately."""


class RefusedCall(Struct, frozen=True):
    """A kind of refused calls. Calls of the same kind share one count.

    Args:
        slot: number of the window.
        network: network of the client, None for any.
        organisation, project, account: storage keys, as in `AuditEntry`.
    """

    slot: int
    actor: Actor
    reason: str
    network: str | None
    organisation: int | None = None
    project: int | None = None
    account: int | None = None


class RefusedCalls:
    """Counts the refused calls of this node and writes the counts every few seconds (ADR 45).

    Refusing must stay cheap, so any number of calls costs one write per interval. A crash loses the counts of one interval.

    Args:
        store: store for the audit records.
    """

    def __init__(self, store: Store[object, AuditTransaction]) -> None:
        self._store = store
        self._waiting: dict[RefusedCall, tuple[ChangeOrigin, str, int]] = {}
        self._due = trio.Event()

    def note(self, call: RefusedCall, origin: ChangeOrigin, route: str, times: int = 1) -> None:
        """Count refused calls of this kind.

        `origin` is kept from the first call, `route` from the last one.
        """
        if call not in self._waiting and len(self._waiting) >= PENDING_MAX:
            call, origin = replace(call, network=None), replace(origin, address=None)
        first, _, count = self._waiting.get(call, (origin, "", 0))
        self._waiting[call] = (first, route, count + times)
        self._due.set()

    async def run(self) -> None:
        """Write the counts until cancelled, and a last time at the end."""
        try:
            while True:
                await self._due.wait()
                self._due = trio.Event()
                await self._write()
                await trio.sleep(WRITE_INTERVAL_S)
        finally:
            with trio.move_on_after(WRITE_INTERVAL_S, shield=True):
                await self._write()

    async def _write(self) -> None:
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        try:
            await self._store.write(lambda tx: _record(tx, waiting))
        except Unavailable as error:
            log.warning("audit.refusals_not_recorded", reason=error.reason, kinds=len(waiting))
            self._put_back(waiting)

    def _put_back(self, unwritten: Mapping[RefusedCall, tuple[ChangeOrigin, str, int]]) -> None:
        """Add counts that could not be written to the next write, within `PENDING_MAX`."""
        for call, (origin, route, count) in unwritten.items():
            self.note(call, origin, route, count)


def _record(tx: AuditTransaction, waiting: Mapping[RefusedCall, tuple[ChangeOrigin, str, int]]) -> None:
    for call, (origin, route, count) in waiting.items():
        entry = AuditEntry(
            "access.refused",
            None,
            organisation=call.organisation,
            project=call.project,
            account=call.account,
            details={"reason": call.reason, "route": route},
            times=count,
        )
        with tx.signed(origin):
            tx.record(entry)
