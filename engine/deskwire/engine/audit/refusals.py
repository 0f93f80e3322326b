"""Refusals in the audit trail, which cost little however many there are.

Sign-ins that the throttle refuses are recorded once in a quarter of an hour. Other refused calls are counted in memory, and
the counts are written every few seconds.
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
"""The refusals that are remembered, about 2 MB. One that is forgotten too early is counted in its record once more."""


class RefusalCache:
    """A memory of the refusals that the trail has."""

    def __init__(self) -> None:
        self._recorded: OrderedDict[tuple[int, str | None, str | None], None] = OrderedDict()

    def add_if_new(self, account: str | None, network: str | None, at: int) -> bool:
        """Tell whether the trail lacks this refusal in this quarter of an hour, and remember it."""
        key = (at // COUNT_WINDOW_MS, account, network)
        if key in self._recorded:
            return False
        self._recorded[key] = None
        if len(self._recorded) > CACHE_MAX:
            self._recorded.popitem(last=False)
        return True


PENDING_MAX: Final = 2_000
"""The kinds of refused calls that wait to be recorded, some 2 MB; of a flood the further ones of a credential, or of strangers, share one that names no network."""

WRITE_INTERVAL_S: Final = 2.0
"""The time between two writes of refused calls; the first of a kind is written at once."""


class RefusedCall(Struct, frozen=True):
    """A kind of refused calls; those that are equal add to one count.

    Args:
        network: of the client; None for any.
        route: the operation that was called last, not compared.
    """

    slot: int
    actor: Actor
    reason: str
    network: str | None
    organisation: int | None = None
    project: int | None = None
    account: int | None = None


class RefusedCalls:
    """The refused calls of this node, counted in memory and written every few seconds (ADR 45).

    To refuse has to stay cheap, so a flood of calls costs one write in a while, however many there are; a crash loses the
    count of that while.

    Args:
        store: the records' place.
    """

    def __init__(self, store: Store[object, AuditTransaction]) -> None:
        self._store = store
        self._waiting: dict[RefusedCall, tuple[ChangeOrigin, str, int]] = {}
        self._due = trio.Event()

    def note(self, call: RefusedCall, by: ChangeOrigin, route: str, times: int = 1) -> None:
        """Count calls of this kind."""
        if call not in self._waiting and len(self._waiting) >= PENDING_MAX:
            call, by = replace(call, network=None), replace(by, address=None)
        first, _, count = self._waiting.get(call, (by, "", 0))
        self._waiting[call] = (first, route, count + times)
        self._due.set()

    async def run(self) -> None:
        """Write what was counted, until cancelled; then once more."""
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
        """Add counts that could not be written to those of the next write, within `PENDING_MAX`."""
        for call, (by, route, count) in unwritten.items():
            self.note(call, by, route, count)


def _record(tx: AuditTransaction, waiting: Mapping[RefusedCall, tuple[ChangeOrigin, str, int]]) -> None:
    for call, (by, route, count) in waiting.items():
        deed = AuditEntry(
            "access.refused",
            None,
            organisation=call.organisation,
            project=call.project,
            account=call.account,
            details={"reason": call.reason, "route": route},
            times=count,
        )
        with tx.signed(by):
            tx.record(deed)
