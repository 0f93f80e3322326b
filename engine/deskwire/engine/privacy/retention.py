"""Retention: the removal of conversations, events, deliveries, kept responses, audit records, sessions and old secrets.

Each has a time for which it is kept. What is older is removed in small batches with room between them, so that no
commit waits long behind one (decisions 4 and 8); `UploadService` removes uploads. Nothing is removed by a clock that
has just been set forward: see `SetForward`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import structlog
import trio
from msgspec import Struct, field

from deskwire.engine.accounts.access_tokens import AccessTokenTransaction
from deskwire.engine.accounts.sessions import Life, SessionTransaction
from deskwire.engine.audit.ports import AuditTransaction
from deskwire.engine.conversations.registry import ActorRegistry
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.clock_jumps import SetForward
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.failure import contained
from deskwire.engine.events.ports import EventTransaction
from deskwire.engine.idempotency.idempotent_requests import StoredResponseTransaction
from deskwire.engine.privacy.sweep import Sweep, SweepReader
from deskwire.engine.webhooks.ports import DeliveryTransaction

log: Final = structlog.get_logger(__name__)

BATCH: Final = 500
"""Rows removed in one commit; about a millisecond of the writer's time."""

_KINDS: Final = (
    "bot_only_conversations",
    "archived_conversations",
    "events",
    "deliveries",
    "answers",
    "audit",
    "sessions",
    "tokens",
)


class Pruned(Struct):
    """Counts of what was removed since the start, and when (ms) that was last done; None for never."""

    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0))
    done_at: int | None = None


class Keep(Struct, frozen=True):
    """The times for which things are kept, in seconds.

    Args:
        day: length of a day of a project's `archivedRetentionDays`.
        sessions: how long those of browsers last.
    """

    bot_only: float
    day: float
    events: float
    delivery_log: float
    answers: float
    audit: float
    sessions: Life


class RetentionTransaction(
    DeliveryTransaction,
    StoredResponseTransaction,
    EventTransaction,
    AuditTransaction,
    SessionTransaction,
    AccessTokenTransaction,
    Protocol,
):
    """Changes that remove rows whose time is over."""


class Retention:
    """The task that removes what is too old, and counts it in `pruned`."""

    def __init__(
        self,
        store: Store[SweepReader, RetentionTransaction],
        actors: ActorRegistry,
        clock: Clock,
        keep: Keep,
        pruned: Pruned,
    ) -> None:
        self._store = store
        self._actors = actors
        self._clock = clock
        self._keep = keep
        self._pruned = pruned

    async def run(self, interval_s: float) -> None:
        """Remove what is too old at the start and then every `interval_s` seconds, until cancelled."""
        forward = SetForward(self._clock)
        while True:
            if forward.noticed():
                await trio.sleep(interval_s)
                continue
            # Each by itself: what prevents one must not prevent the others.
            outcomes = [await self._tried(part) for part in (self._conversations, self._events, self._rest)]
            if all(outcomes):
                self._pruned.done_at = self._clock()
            await trio.sleep(interval_s)

    async def _tried(self, part: Callable[[], Awaitable[None]]) -> bool:
        with contained(lambda failure: log.error("retention.failed", exc_info=failure)):
            try:
                await part()
            except Unavailable as error:
                log.warning("retention.delayed", reason=error.reason)
            else:
                return True
        return False

    async def _conversations(self) -> None:
        bot_only_ms, day_ms = int(self._keep.bot_only * 1000), int(self._keep.day * 1000)
        sweep = Sweep(self._store, self._actors, self._clock, bot_only_ms=bot_only_ms, day_ms=day_ms)
        try:
            await sweep.run()
        finally:
            for kind, count in sweep.deleted.items():
                self._pruned.rows[f"{kind}_conversations"] += count
            if any(sweep.deleted.values()):
                log.info("retention.conversations_deleted", **sweep.deleted)

    async def _events(self) -> None:
        now = self._clock()
        older_than = int(now - self._keep.events * 1000)
        await self._prune("events", lambda tx: tx.prune_events(older_than, BATCH, now))

    async def _rest(self) -> None:
        now = self._clock()
        older_than = int(now - self._keep.delivery_log * 1000)
        await self._prune("deliveries", lambda tx: tx.prune_deliveries(older_than, BATCH))
        answered = int(now - self._keep.answers * 1000)
        await self._prune("answers", lambda tx: tx.prune_responses(answered, BATCH))
        done = int(now - self._keep.audit * 1000)
        await self._prune("audit", lambda tx: tx.prune_audit(done, BATCH))
        over = self._keep.sessions.over(now)
        await self._prune("sessions", lambda tx: tx.prune_sessions(over, BATCH))
        await self._prune("tokens", lambda tx: tx.prune_access_tokens(now, BATCH))
        await self._store.write(lambda tx: tx.forget_old_secrets(now))

    async def _prune(self, what: str, batch: Callable[[RetentionTransaction], int]) -> None:
        while True:
            count = await self._store.write(batch)
            self._pruned.rows[what] += count
            if count < BATCH:
                return
