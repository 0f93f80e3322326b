"""Pushes from the event log, which is their outbox (ADR 109).

The path of a message pays nothing: its commit stores no push. This task reads the log of each project that has subscribed
members, and a commit moves the project's position together with the insertion of the pushes. The move is conditional, so that
every event is decided once, also by two nodes, and a crash loses none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

import orjson
from msgspec import Struct

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.ids import id_before, id_time_ms, new_id
from deskwire.engine.core.store import Store
from deskwire.engine.core.values import replace
from deskwire.engine.events.ports import EventReader
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.push.ports import (
    LIFETIME_MS,
    WAITING_MAX,
    Push,
    PushRecipient,
    WebPushReader,
    WebPushTransaction,
    ended,
)
from deskwire.engine.push.rules import TYPES, NotifiedUser, notification_cause

BATCH_SIZE: Final = 200
"""Maximum number of events that one commit decides about."""
GATHER_MS: Final = 2_000
"""Delay of the first attempt, in which a newer event of the conversation, or a look at the desk, may make it unnecessary."""


class PlanReader(WebPushReader, EventReader, Protocol):
    """Queries on subscriptions, events and followers."""

    def event_position(self, project: int, event_id: str) -> int:
        """Return the position of the newest event up to this id."""

    def followers(self, conversations: Sequence[int]) -> Mapping[int, Sequence[str]]:
        """Return the ids of the users who follow conversations (storage keys) and may read them."""


class _Plan(Struct, frozen=True):
    """The decision about a batch of events: the pushes, and the move of the project's position."""

    project: int
    before: int | None
    position: int
    pushes: Sequence[Push]
    more: bool


class PushPlanner:
    """Decides which events are pushed to whom. The pushes are sent by `sending.PushSender`."""

    def __init__(self, store: Store[PlanReader, WebPushTransaction], clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def plan_all(self) -> int:
        """Decide about all new events. Return the number of stored pushes. Raises Unavailable."""
        stored = 0
        for project, before in await self._store.read(lambda reader: reader.push_projects()):
            position, more = before, True
            while more:
                plan = await self._store.read(
                    partial(_plan_of, project=project, before=position, now=self._clock())
                )
                if plan is None or not await self._store.write(partial(_carry_out, plan=plan)):
                    break  # without new events, or another node has just decided about them
                stored += len(plan.pushes)
                position, more = plan.position, plan.more
        return stored

    async def forget_idle(self) -> None:
        """Delete the positions of projects whose last subscription has ended. Raises Unavailable."""
        await self._store.write(lambda tx: tx.drop_idle_push_cursors())


def _plan_of(reader: PlanReader, *, project: int, before: int | None, now: int) -> _Plan | None:
    """Return the plan for the events of a project (storage key) after a position; None without any."""
    begin = before
    if begin is None:  # the first subscription is newer than all events before that time
        begin = reader.event_position(project, id_before("evt", now - LIFETIME_MS))
    events = reader.agents_events(project, begin, BATCH_SIZE)
    if not events:
        return None if before is not None else _Plan(project, before, begin, (), more=False)
    concerning = [event for event in events if event.type in TYPES]
    recipients = reader.push_recipients(project) if concerning else ()
    follows = reader.followers([each.conversation for each in concerning if each.conversation is not None])
    waiting = {each.subscription: each.waiting for each in recipients}
    pushes: list[Push] = []
    for event in concerning:
        data = orjson.loads(event.body)["data"]
        followers = frozenset(follows.get(event.conversation or 0, ()))
        for recipient in recipients:
            push = _push_for(event, data, recipient, followers, now)
            if push is None:
                continue
            waiting[recipient.subscription] += push.status == "waiting"
            if push.status == "waiting" and waiting[recipient.subscription] > WAITING_MAX:
                push = ended(push, "tooMany", now)
            pushes.append(push)
    return _Plan(project, before, events[-1].position, pushes, more=len(events) == BATCH_SIZE)


def _push_for(
    event: StoredEvent,
    data: Mapping[str, Any],
    recipient: PushRecipient,
    followers: frozenset[str],
    now: int,
) -> Push | None:
    at = id_time_ms(event.id)
    if at < recipient.created_at:
        return None
    user = NotifiedUser(recipient.user_id, recipient.teams, lambda _: recipient.user_id in followers)
    cause = notification_cause(event.type, data, user, recipient.settings)
    if cause is None:
        return None
    push = Push(
        new_id("psn", now),
        recipient.user,
        event.project,
        recipient.subscription,
        recipient.client,
        data["conversation"]["id"],
        event.id,
        cause,
        at,
        now,
        at + GATHER_MS,
    )
    return ended(push, "expired", now) if now >= push.expires_at else push


def _carry_out(tx: WebPushTransaction, *, plan: _Plan) -> bool:
    """Store a plan, unless another node has decided about its events. Return whether it was stored."""
    if not tx.move_push_cursor(plan.project, plan.before, plan.position):
        return False
    subscriptions = {each.subscription for each in plan.pushes if each.subscription is not None}
    there = frozenset(tx.claim_push_subscriptions(sorted(subscriptions)))
    for push in plan.pushes:
        if push.subscription not in there:
            push = replace(ended(push, "subscriptionEnded", push.created_at), subscription=None)
        elif push.status == "waiting":
            tx.supersede_pushes(push)
        tx.insert_push(push)
    return True
