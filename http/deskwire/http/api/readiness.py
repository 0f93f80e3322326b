"""The readiness of the service for load balancers and metrics.

The service is ready from the end of the start to the beginning of the stop, while the disk accepts writes. The last
commit shows whether it does; if that commit is old or failed, a check writes a probe. So the result is current
even if no client writes, and a probe is only written on request.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

import trio

from deskwire.engine.core.counters import CommitCounters
from deskwire.engine.core.database_identity import WRONG_DATABASE, DatabaseIdentity
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.ports import Store, Transaction

COMMIT_FRESH_S: Final = 5.0  # for which a commit shows that the disk accepts writes
RETRY_DELAY_S: Final = 1.0  # between two probes of a failed disk
PROBE_TIMEOUT_S: Final = 2.0  # for a probe, and for its caller


class ReadinessProbe:
    """The readiness check. `up` is true from the end of the start to the beginning of the stop.

    Args:
        commits: the counters of the writer.
        apart: returns the reason why this node can't work with others, if any.
        identity: whether the database is the expected one; None for a store without this check.
        unsigned: returns the number of webhook endpoints whose signing secret can't be decrypted.
    """

    def __init__(
        self,
        store: Store,
        commits: CommitCounters,
        apart: Callable[[], str | None] = lambda: None,
        identity: DatabaseIdentity | None = None,
        unsigned: Callable[[], int] = lambda: 0,
    ) -> None:
        self._unsigned = unsigned
        self._apart = apart
        self._identity = identity or DatabaseIdentity()
        self.up = False
        self._store = store
        self._commits = commits
        self._tried_at = -inf
        self._under_way: trio.Event | None = None

    async def refusal(self) -> Unavailable | None:
        """Return the reason why the service is not ready, None if it is ready, within PROBE_TIMEOUT_S."""
        if not self.up:
            return Unavailable("The service is not ready.", code="not_ready")
        self._identity.check()
        if (other := self._other_database()) is not None:
            return other
        if (apart := self._apart()) is not None:
            return Unavailable(apart, code="not_ready")
        if not self._known():
            reason = await self._tried()
            if reason is None:
                reason = self._other_database()  # the writer may have found out in the meantime
            if reason is not None:
                return reason
        failure = self._commits.failure
        return None if failure is None else _refused(f"The disk refuses writes: {failure}.")

    @property
    def notices(self) -> list[str]:
        """Return faults that all nodes have, so that the service stays ready."""
        count = self._unsigned()
        if not count:
            return []
        lost = f"The signing secrets of {count} webhook endpoints can't be decrypted with the installation's secret"
        return [f"{lost}, and nothing is sent to them: set the right secret, or rotate theirs."]

    def _other_database(self) -> Unavailable | None:
        other = self._identity.refusal
        return None if other is None else Unavailable(other.detail, code=WRONG_DATABASE)

    def _known(self) -> bool:
        """True if the last result is recent enough to use."""
        last = (
            self._tried_at + RETRY_DELAY_S
            if self._commits.failure
            else self._commits.done_at + COMMIT_FRESH_S
        )
        return self._under_way is None and trio.current_time() < last

    async def _tried(self) -> Unavailable | None:
        """Write a probe, or wait for one in progress. Return None after a success."""
        if self._under_way is None:
            try:
                self._try()
            except Unavailable as refusal:
                return refusal
        with trio.move_on_after(PROBE_TIMEOUT_S):
            while self._under_way is not None:
                await self._under_way.wait()
            return None
        return _refused(f"The disk has accepted no write for {PROBE_TIMEOUT_S:g} s.")

    def _try(self) -> None:
        over = trio.Event()

        def ended(_: object) -> None:  # the writer has recorded the result
            self._under_way = None
            over.set()

        self._store.submit(_try_out, ended)
        self._tried_at, self._under_way = trio.current_time(), over


def _try_out(tx: Transaction) -> None:
    tx.try_out()


def _refused(detail: str) -> Unavailable:
    return Unavailable(detail, code="storage_failed")
