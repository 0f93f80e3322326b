"""Retention: deletion of conversations, events, deliveries, stored responses, audit records, sessions and old secrets.

Each kind has a retention period. Old rows are deleted in small batches with pauses, so that other commits do not wait long
(decisions 4 and 8). `UploadService` deletes uploads. Nothing is deleted just after the clock was set forward
(`ClockJumpDetector`).

A conversation is deleted in a commit of its own actor (contract 3). The queries only find candidates: the actor checks the
retention again when it decides because an agent may have replied in the meantime.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, Protocol

import structlog
import trio
from msgspec import Struct, field

from deskwire.engine.accounts.access_tokens import AccessTokenTransaction
from deskwire.engine.accounts.factors.factor import FactorTransaction
from deskwire.engine.accounts.identity.oidc.requests import OidcRequestTransaction
from deskwire.engine.accounts.invitations import EXPIRED_KEPT_MS
from deskwire.engine.accounts.known_browsers import KNOWN_FOR_S, KnownBrowserTransaction
from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.sessions import SessionLifetime, SessionTransaction
from deskwire.engine.audit.audited_changes import conversation_expired
from deskwire.engine.audit.trail import AuditEntry, AuditTransaction, ChangeOrigin, RecordingHook
from deskwire.engine.conversations.actors import ActorFailed, ActorRegistry
from deskwire.engine.conversations.bulk_jobs import KEPT_MS, BulkTransaction
from deskwire.engine.conversations.commands import ConversationRetention, Expire
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.expiry import ExpiryReason
from deskwire.engine.conversations.ports import ExpiredConversation, ExpiryReader
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.clock_jumps import ClockJumpDetector
from deskwire.engine.core.errors import DomainError, Unavailable
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.core.tasks.failure import contain_failures
from deskwire.engine.customers.session import IDLE_MS, CustomerSessionTransaction
from deskwire.engine.events.ports import EventTransaction
from deskwire.engine.idempotency.idempotent_requests import StoredResponseTransaction
from deskwire.engine.mail.ports import MailTransaction
from deskwire.engine.push.ports import WebPushTransaction
from deskwire.engine.webhooks.ports import DeliveryTransaction

log: Final = structlog.get_logger(__name__)

CONVERSATIONS_BATCH_SIZE: Final = 16
"""Maximum number of conversations that are deleted concurrently. Most of them share a commit."""

BATCH_ROWS_MAX: Final = 500
"""Maximum number of rows in a batch, unless one conversation alone has more. They take a few milliseconds of the writer."""

_PAGE_SIZE: Final = 200
"""Maximum number of conversations that one query returns."""


class SweepReader(ExpiryReader, AccountReader, Protocol):
    """Queries on expired conversations and their projects."""


_PageQuery = Callable[[SweepReader, tuple[int, int]], Sequence[ExpiredConversation]]


class ConversationSweep:
    """One pass over all expired conversations. `deleted` counts the deleted ones.

    Args:
        bot_only_ms: retention of a bot-only conversation from its creation.
        day_ms: length of a day of the projects' retention.
    """

    def __init__(
        self,
        store: Store[SweepReader, object],
        actors: ActorRegistry,
        clock: Clock,
        *,
        bot_only_ms: int,
        day_ms: int,
    ) -> None:
        self._store = store
        self._actors = actors
        self._clock = clock
        self._bot_only_ms = bot_only_ms
        self._day_ms = day_ms
        self.deleted: dict[ExpiryReason, int] = {"bot_only": 0, "archived": 0}

    async def run(self) -> None:
        """Delete all expired conversations.

        Raises Unavailable if a whole batch failed. The next pass retries it.
        """
        now = self._clock()
        day_ms, created_before = self._day_ms, now - self._bot_only_ms
        for project in await self._store.read(lambda reader: reader.projects_with_expired(now, day_ms)):
            window = self._windows(project).archived
            assert window is not None, "a project without one has nothing expired"
            await self._delete_all("archived", _archived(project.rowid, now - window))
        await self._delete_all(
            "bot_only", lambda reader, place: reader.bot_only_before(created_before, place, _PAGE_SIZE)
        )

    async def _delete_all(self, kind: ExpiryReason, query: _PageQuery) -> None:
        """Delete the conversations that the query returns, page by page, skipping those that can't be deleted."""
        place = (-1, -1)
        while conversations := await self._store.read(lambda reader, place=place: query(reader, place)):  # type: ignore[misc]
            place = conversations[-1].place
            for batch in batches(conversations):
                began = trio.current_time()
                self.deleted[kind] += await self._delete(batch)
                await trio.sleep(trio.current_time() - began)

    async def _delete(self, batch: Sequence[ExpiredConversation]) -> int:
        """Delete conversations through their actors.

        Return the number of deleted ones. Raises Unavailable if all failed.
        """
        outcomes: list[bool | Unavailable] = []
        async with trio.open_nursery() as nursery:
            for due in batch:
                nursery.start_soon(self._ask, due, outcomes)
        refusals = [outcome for outcome in outcomes if isinstance(outcome, Unavailable)]
        if len(refusals) == len(batch):
            raise refusals[0]
        return sum(outcome is True for outcome in outcomes)

    async def _ask(self, due: ExpiredConversation, outcomes: list[bool | Unavailable]) -> None:
        project = await self._store.read(InlineQuery(lambda reader: reader.project(due.project)))
        if project is None:  # removed since the query, so it has no conversations
            outcomes.append(False)
            return
        try:
            recording: RecordingHook[Receipt] = RecordingHook(
                ChangeOrigin(Actor("system"), self._clock()), _expired
            )
            receipt = await self._actors.ask(
                project, due.conversation, Expire(self._windows(project)), recording
            )
        except Unavailable as refusal:
            outcomes.append(refusal)
        except (DomainError, ActorFailed) as error:  # already deleted, or a bug that the actor has logged
            log.debug("retention.passed_over", conversation=due.conversation, error=str(error))
            outcomes.append(False)
        else:
            outcomes.append(receipt.state is None)

    def _windows(self, project: Project) -> ConversationRetention:
        days = project.settings.archived_retention_days
        return ConversationRetention(self._bot_only_ms, None if days is None else days * self._day_ms)


def _expired(receipt: Receipt) -> Sequence[AuditEntry]:
    """Return the audit entries of an `Expire` command.

    None if the actor kept the conversation.
    """
    return () if receipt.state is not None else (conversation_expired(receipt.project),)


def _archived(project: int, before: int) -> _PageQuery:
    return lambda reader, place: reader.archived_before(project, before, place, _PAGE_SIZE)


def batches(conversations: Sequence[ExpiredConversation]) -> Iterator[Sequence[ExpiredConversation]]:
    """Yield batches in order, within CONVERSATIONS_BATCH_SIZE and BATCH_ROWS_MAX. A larger conversation is a batch of its own."""
    batch: list[ExpiredConversation] = []
    for due in conversations:
        if batch and (
            len(batch) == CONVERSATIONS_BATCH_SIZE
            or sum(other.rows for other in batch) + due.rows > BATCH_ROWS_MAX
        ):
            yield batch
            batch = []
        batch.append(due)
    if batch:
        yield batch


BATCH_SIZE: Final = 500
"""Rows deleted in one commit. They take about a millisecond of the writer."""

_KINDS: Final = (
    "bot_only_conversations",
    "archived_conversations",
    "events",
    "deliveries",
    "answers",
    "audit",
    "sessions",
    "browsers",
    "tokens",
    "sign_ins",
    "challenges",
    "customer_sessions",
    "links",
    "invitations",
    "mails",
    "pushes",
    "bulk_jobs",
)


class RetentionCounters(Struct):
    """Numbers of rows deleted since the start, by kind, and the time (ms) of the last complete pass, None if there was none."""

    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0))
    done_at: int | None = None


class RetentionPeriods(Struct, frozen=True):
    """The retention periods, in seconds.

    Args:
        day: length of a day of a project's `archivedRetentionDays`.
        sessions: lifetime of browser sessions.
    """

    bot_only: float
    day: float
    events: float
    delivery_log: float
    answers: float
    audit: float
    sessions: SessionLifetime


class RetentionTransaction(
    BulkTransaction,
    FactorTransaction,
    DeliveryTransaction,
    StoredResponseTransaction,
    EventTransaction,
    AuditTransaction,
    SessionTransaction,
    KnownBrowserTransaction,
    AccessTokenTransaction,
    OidcRequestTransaction,
    CustomerSessionTransaction,
    MailTransaction,
    WebPushTransaction,
    Protocol,
):
    """Changes that delete rows after their retention."""


class Retention:
    """The task that deletes old rows and counts them in `pruned`."""

    def __init__(
        self,
        store: Store[SweepReader, RetentionTransaction],
        actors: ActorRegistry,
        clock: Clock,
        keep: RetentionPeriods,
        pruned: RetentionCounters,
    ) -> None:
        self._store = store
        self._actors = actors
        self._clock = clock
        self._keep = keep
        self._pruned = pruned

    async def run(self, interval_s: float) -> None:
        """Delete old rows at the start and then every `interval_s` seconds, until cancelled."""
        forward = ClockJumpDetector(self._clock)
        while True:
            if forward.noticed():
                await trio.sleep(interval_s)
                continue
            # Separately, so that a failure of one part does not prevent the others.
            outcomes = [await self._tried(part) for part in (self._conversations, self._events, self._rest)]
            if all(outcomes):
                self._pruned.done_at = self._clock()
            await trio.sleep(interval_s)

    async def _tried(self, part: Callable[[], Awaitable[None]]) -> bool:
        with contain_failures(lambda failure: log.error("retention.failed", exc_info=failure)):
            try:
                await part()
            except Unavailable as error:
                log.warning("retention.delayed", reason=error.reason)
            else:
                return True
        return False

    async def _conversations(self) -> None:
        bot_only_ms, day_ms = int(self._keep.bot_only * 1000), int(self._keep.day * 1000)
        sweep = ConversationSweep(
            self._store, self._actors, self._clock, bot_only_ms=bot_only_ms, day_ms=day_ms
        )
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
        await self._prune("events", lambda tx: tx.prune_events(older_than, BATCH_SIZE, now))

    async def _rest(self) -> None:
        now = self._clock()
        older_than = int(now - self._keep.delivery_log * 1000)
        await self._prune("deliveries", lambda tx: tx.prune_deliveries(older_than, BATCH_SIZE))
        answered = int(now - self._keep.answers * 1000)
        await self._prune("answers", lambda tx: tx.prune_responses(answered, BATCH_SIZE))
        done = int(now - self._keep.audit * 1000)
        await self._prune("audit", lambda tx: tx.prune_audit(done, BATCH_SIZE))
        over = self._keep.sessions.over(now)
        await self._prune("sessions", lambda tx: tx.prune_sessions(over, now, BATCH_SIZE))
        unknown = now - KNOWN_FOR_S * 1000
        await self._prune("browsers", lambda tx: tx.prune_browsers(unknown, BATCH_SIZE))
        await self._prune("tokens", lambda tx: tx.prune_access_tokens(now, BATCH_SIZE))
        await self._prune("sign_ins", lambda tx: tx.prune_oidc(now, BATCH_SIZE))
        await self._prune("challenges", lambda tx: tx.prune_challenges(now, BATCH_SIZE))
        issued = now - IDLE_MS
        await self._prune("customer_sessions", lambda tx: tx.prune_customer_sessions(now, issued, BATCH_SIZE))
        await self._prune("links", lambda tx: tx.prune_links(now, BATCH_SIZE))
        expired = now - EXPIRED_KEPT_MS
        await self._prune("invitations", lambda tx: tx.prune_invitations(expired, BATCH_SIZE))
        await self._prune("mails", lambda tx: tx.prune_mails(now, BATCH_SIZE))
        await self._prune("pushes", lambda tx: tx.prune_pushes(now, BATCH_SIZE))
        ended = now - KEPT_MS
        await self._prune("bulk_jobs", lambda tx: tx.prune_bulk_jobs(ended, BATCH_SIZE))
        await self._store.write(lambda tx: tx.forget_old_secrets(now))

    async def _prune(self, what: str, batch: Callable[[RetentionTransaction], int]) -> None:
        while True:
            count = await self._store.write(batch)
            self._pruned.rows[what] += count
            if count < BATCH_SIZE:
                return
