"""The task that sends pushes, each at most once to a browser, and records why one is not sent.

An attempt first claims its push in a commit of its own. If the process ends during the attempt, the claim lapses, and the push
ends as `interrupted`: the request may have left, so it is not repeated. Refusals of the push service, and connections that
never carried the request, are retried for four hours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Final, Protocol

import structlog
import trio
from msgspec import Struct, field

from deskwire.engine.accounts.sessions import SessionLifetime
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.core.values import replace
from deskwire.engine.push.client import ATTEMPT_TIMEOUT_S, PushAnswer, PushClient, PushRequest
from deskwire.engine.push.decision import DecisionReader, OutgoingPush, decide
from deskwire.engine.push.encryption import encrypt, to_base64url
from deskwire.engine.push.planning import PlanReader, PushPlanner
from deskwire.engine.push.ports import Push, PushReason, WebPushTransaction, ended
from deskwire.engine.push.vapid import VapidKey

log: Final = structlog.get_logger(__name__)

RETRY_DELAYS_S: Final = (5, 15, 60, 300, 900, 1_800)
"""Retry delays by number of failed attempts. The last one repeats until the push expires."""
CLAIM_MS: Final = int(ATTEMPT_TIMEOUT_S * 1000) + 45_000
"""Time after which a claimed push counts as interrupted; longer than an attempt may take."""
_POLL_INTERVAL_S: Final = 1.0
_CONCURRENT_MAX: Final = 32
_CONCURRENT_OF_USER_MAX: Final = 4
"""Maximum number of concurrent attempts of one user, so that a push service that does not answer delays no one else."""
_TOPIC_BYTES: Final = 24  # 32 characters of base64url, the longest topic (RFC 8030, 5.4)
_DETAIL_MAX: Final = 200
_GONE: Final = (404, 410)  # RFC 8030, 7.3
_TOO_MANY: Final = 429


class PushSendingReader(PlanReader, DecisionReader, Protocol):
    """Queries on events, and on everything that decides about a push."""


class PushSendingTransaction(DecisionReader, WebPushTransaction, Protocol):
    """Changes of pushes, and the queries that decide about them."""


class PushCounters(Struct):
    """Numbers of ended pushes by reason, and of failed attempts, since the start."""

    ended: dict[PushReason, int] = field(default_factory=dict)
    failures: int = 0


class PushSender:
    """Sends waiting pushes.

    Args:
        desk_open: whether a session (id) has the desk of a project (storage key) open, on any node.
    """

    def __init__(
        self,
        store: Store[PushSendingReader, PushSendingTransaction],
        clock: Clock,
        sealing: Encryption,
        life: SessionLifetime,
        key: VapidKey,
        client: PushClient,
        desk_open: Callable[[str, int], bool],
        counters: PushCounters,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sealing = sealing
        self._life = life
        self._key = key
        self._client = client
        self._desk_open = desk_open
        self._counters = counters
        self._planner = PushPlanner(store, clock)
        self._under_way: dict[int, int] = {}

    async def run(self) -> None:
        """Decide about new events and send due pushes, until cancelled. Of several nodes only the leader runs this."""
        self._under_way.clear()
        async with trio.open_nursery() as nursery:
            await self._forget_idle()
            while True:
                try:
                    await self._planner.plan_all()
                    await self._begin_due(nursery)
                except Unavailable as error:
                    log.warning("push.delayed", reason=error.reason)
                await trio.sleep(_POLL_INTERVAL_S)

    async def _forget_idle(self) -> None:
        try:
            await self._planner.forget_idle()
        except Unavailable as error:
            log.warning("push.delayed", reason=error.reason)

    async def _begin_due(self, nursery: trio.Nursery) -> None:
        now = self._clock()
        for rowid in await self._store.read(lambda reader: reader.due_pushes(now, 4 * _CONCURRENT_MAX)):
            if rowid in self._under_way or len(self._under_way) >= _CONCURRENT_MAX:
                continue
            push = await self._store.read(InlineQuery(lambda reader, rowid=rowid: reader.push_with(rowid)))  # type: ignore[misc]
            if push is None or [*self._under_way.values()].count(push.user) >= _CONCURRENT_OF_USER_MAX:
                continue
            self._under_way[rowid] = push.user
            nursery.start_soon(self._attempt, push)

    async def _attempt(self, push: Push) -> None:
        try:
            outgoing = await self._claimed(push)
            if outgoing is not None:
                await self._deliver(outgoing)
        except Unavailable as error:
            log.warning("push.not_recorded", push=push.id, reason=error.reason)
        finally:
            del self._under_way[push.rowid]

    async def _claimed(self, push: Push) -> OutgoingPush | None:
        """Claim a due push for an attempt. Return None if it is not sent, or was claimed by another node."""
        # Before the claim: a push that is claimed and not sent counts as interrupted.
        await self._key.public()
        desk_open = await self._has_desk_open(push)
        now = self._clock()

        def claim(tx: PushSendingTransaction) -> OutgoingPush | Push | None:
            present = tx.push_with(push.rowid)
            if present is None or present.ended_at is not None or present.due_at > now:
                return None
            if present.status == "sending":
                verdict: OutgoingPush | PushReason = "interrupted"
            else:
                verdict = decide(
                    tx, present, sealing=self._sealing, life=self._life, desk_open=desk_open, now=now
                )
            if isinstance(verdict, OutgoingPush):
                claimed = replace(
                    present, status="sending", attempts=present.attempts + 1, due_at=now + CLAIM_MS
                )
                tx.save_push(claimed)
                return replace(verdict, push=claimed)
            gone = ended(present, verdict, now, present.detail)
            tx.save_push(gone)
            return gone

        claimed = await self._store.write(claim)
        if isinstance(claimed, Push):
            self._count(claimed)
            return None
        return claimed

    async def _has_desk_open(self, push: Push) -> bool:
        subscription = push.subscription
        if subscription is None:
            return False
        session = await self._store.read(InlineQuery(lambda reader: reader.push_session(subscription)))
        return session is not None and self._desk_open(session, push.project)

    async def _deliver(self, outgoing: OutgoingPush) -> None:
        """Send a claimed push and record the outcome."""
        push, endpoint, now = outgoing.push, outgoing.endpoint, self._clock()
        request = PushRequest(
            endpoint.url,
            encrypt(outgoing.payload, endpoint.point, endpoint.auth),
            await self._key.authorization(endpoint.origin),
            max(0, push.expires_at - now) // 1000,
            to_base64url(sha256(push.conversation.encode()).digest()[:_TOPIC_BYTES]),
        )
        answer = await self._client.send(request)
        after = outcome(push, answer, self._clock())
        await self._store.write(partial(_record, push=after, answer=answer))
        if after.ended_at is None:
            self._counters.failures += 1
            log.warning("push.failed", push=push.id, attempts=push.attempts, reason=after.detail)
        else:
            self._count(after)

    def _count(self, push: Push) -> None:
        assert push.reason is not None, "an ended push has a reason"
        self._counters.ended[push.reason] = self._counters.ended.get(push.reason, 0) + 1
        log.info("push.ended", push=push.id, reason=push.reason, attempts=push.attempts, detail=push.detail)


def outcome(push: Push, answer: PushAnswer, now: int) -> Push:
    """Return a claimed push after an attempt: ended, or waiting for the next one."""
    status = answer.status
    if status is None and answer.may_have_left:
        return ended(push, "unanswered", now, _shown(answer))
    if status is not None and 200 <= status < 300:
        return ended(push, "accepted", now)
    if status in _GONE:
        return ended(push, "gone", now, _shown(answer))
    if status is not None and status != _TOO_MANY and status < 500:
        return ended(push, "refused", now, _shown(answer))
    delay_ms = RETRY_DELAYS_S[min(push.attempts, len(RETRY_DELAYS_S)) - 1] * 1000
    due_at = now + max(delay_ms, answer.wait_ms or 0)
    if due_at >= push.expires_at:
        return ended(push, "expired", now, _shown(answer))
    return replace(push, status="waiting", due_at=due_at, detail=_shown(answer))


def _record(tx: WebPushTransaction, *, push: Push, answer: PushAnswer) -> None:
    tx.save_push(push)
    if push.subscription is None:
        return
    if push.reason == "gone":
        tx.delete_push_subscription(push.subscription)
    elif push.status == "waiting":
        tx.hold_push_subscription(push.subscription, push.due_at)


def _shown(answer: PushAnswer) -> str:
    text = f"status {answer.status}" if answer.error is None else answer.error
    return text[:_DETAIL_MAX]
