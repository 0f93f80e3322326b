"""The readiness of the service for requests, for load balancers and the metrics.

The service is ready from the end of its start to the beginning of its stop, while the disk accepts writes.
A recent
commit proves that the disk does. If the last commit is older or failed, a check writes something. So the
result is
current even without traffic, and nothing is written unless a client asks.
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

# A commit proves for this long that the disk accepts writes.
COMMIT_FRESH_S: Final = 5.0
# Time between two test writes after a failure.
RETRY_DELAY_S: Final = 1.0
# Time limit of a test write, and of a caller's wait for it.
TRY_TIMEOUT_S: Final = 2.0


class Readiness:
    """The check of readiness.

    `up` is True from the end of the start to the beginning of the stop.

    Args:
        commits: the counters of the writer.
        apart: returns the reason why this node can't work with the other nodes, if there is one.
        identity: whether the store has the expected database; None for a store that does not check.
        unsigned: returns the number of webhook endpoints whose signing secret can't be opened.
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
        """Return the reason why the service is not ready.

        Returns None if it is ready. Takes at most TRY_TIMEOUT_S.
        """
        if not self.up:
            return Unavailable("The service is not ready.", code="not_ready")
        self._identity.look()
        if (other := self._other_database()) is not None:
            return other
        if (apart := self._apart()) is not None:
            return Unavailable(apart, code="not_ready")
        if not self._known():
            reason = await self._tried()
            if reason is None:
                reason = self._other_database()  # the writer has compared the identities as well
            if reason is not None:
                return reason
        failure = self._commits.failure
        return None if failure is None else _refused(f"The disk refuses what is written: {failure}.")

    @property
    def notices(self) -> list[str]:
        """Faults that do not affect readiness, because every node would have them."""
        count = self._unsigned()
        if not count:
            return []
        lost = (
            f"The signing secrets of {count} webhook endpoints can't be opened with the installation's secret"
        )
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
        """Write something, or wait for a write under way.

        Returns None once its result is known.
        """
        if self._under_way is None:
            try:
                self._try()
            except Unavailable as refusal:
                return refusal
        with trio.move_on_after(TRY_TIMEOUT_S):
            while self._under_way is not None:
                await self._under_way.wait()
            return None
        return _refused(f"The disk has taken nothing for {TRY_TIMEOUT_S:g} s.")

    def _try(self) -> None:
        over = trio.Event()

        def ended(_: object) -> None:  # the writer has recorded the outcome
            self._under_way = None
            over.set()

        self._store.submit(_try_out, ended)
        self._tried_at, self._under_way = trio.current_time(), over


def _try_out(tx: Transaction) -> None:
    tx.try_out()


def _refused(detail: str) -> Unavailable:
    return Unavailable(detail, code="storage_failed")
