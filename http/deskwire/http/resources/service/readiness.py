"""Whether requests may be sent here, as a load balancer and the metrics are told.

That is so from the end of the start to the beginning of the stop, while the disk takes what is written. What was
committed last tells; if that is a while ago, or was refused, something is written to find out. So whoever asks knows,
though no client writes, and nothing is written where nobody asks.
"""

from __future__ import annotations

from math import inf
from typing import Final

import trio

from deskwire.engine.core.counters import Commits
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.ports import Store, Transaction

FRESH_S: Final = 5.0
"""How long a commit tells that the disk takes what is written."""
RETRY_S: Final = 1.0
"""Between two tries of a disk that refuses."""
TRY_S: Final = 2.0
"""How long a try may take; whoever asks does not wait longer."""


class Readiness:
    """`up` is set from the end of the start to the beginning of the stop.

    Args:
        commits: the writer's.
    """

    def __init__(self, store: Store, commits: Commits) -> None:
        self.up = False
        self._store = store
        self._commits = commits
        self._tried_at = -inf
        self._under_way: trio.Event | None = None

    async def refusal(self) -> Unavailable | None:
        """Why no requests should be sent here; None if they may be. Takes TRY_S at most."""
        if not self.up:
            return Unavailable("The service is not ready.", code="not_ready")
        if not self._known():
            reason = await self._tried()
            if reason is not None:
                return reason
        failure = self._commits.failure
        return None if failure is None else _refused(f"The disk refuses what is written: {failure}.")

    def _known(self) -> bool:
        """Whether what is known is of now."""
        last = self._tried_at + RETRY_S if self._commits.failure else self._commits.done_at + FRESH_S
        return self._under_way is None and trio.current_time() < last

    async def _tried(self) -> Unavailable | None:
        """Write something, or wait for it if somebody else does; None if it is known what came of it."""
        if self._under_way is None:
            try:
                self._try()
            except Unavailable as refusal:
                return refusal
        with trio.move_on_after(TRY_S):
            while self._under_way is not None:
                await self._under_way.wait()
            return None
        return _refused(f"The disk has taken nothing for {TRY_S:g} s.")

    def _try(self) -> None:
        over = trio.Event()

        def ended(_: object) -> None:  # the writer has noted what came of it
            self._under_way = None
            over.set()

        self._store.submit(_try_out, ended)
        self._tried_at, self._under_way = trio.current_time(), over


def _try_out(tx: Transaction) -> None:
    tx.try_out()


def _refused(detail: str) -> Unavailable:
    return Unavailable(detail, code="storage_failed")
