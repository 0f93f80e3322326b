"""Merging a contact into another one: conversations through their actors, tickets, survey responses, then the end.

The contact is marked before anything moves. From then on it is not found, and a merge that a crash cut short is taken up at
the next start, or by another node once the lease of the one that was at it is over. A second call meanwhile waits for the
merge under way, wherever that is; an erasure of the contact that is left ends it, and erases what it has not moved.
"""

from __future__ import annotations

from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Final, Protocol

import structlog
import trio
from msgspec import Struct, field

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.audit.trail import UNKNOWN_ORIGIN, AttributedStore, ChangeOrigin
from deskwire.engine.cluster.cluster import Cluster, SingleNode
from deskwire.engine.contacts.contact import Contact, MergedContact
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.actor import ActorFailed
from deskwire.engine.conversations.commands import Move
from deskwire.engine.conversations.contacts import end_merge
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.conversations.registry import ActorRegistry
from deskwire.engine.conversations.together import ask_all
from deskwire.engine.core.actor import SYSTEM, Actor
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Conflict, NotFound, Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.retry import retry_until_done
from deskwire.engine.merging.begin import BeginTransaction, Begun, InTheWay, Wanted, begin
from deskwire.engine.tickets.change import move_tickets_of
from deskwire.engine.tickets.ports import TicketTransaction

log: Final = structlog.get_logger(__name__)
_LOOK_S: Final = 5.0
"""Time between two looks for merges that nodes have left."""
_ASK_S: Final = 0.25
"""Time between two looks for the end of a merge that another node carries out."""

TICKETS: Final = 100
"""Tickets that one commit moves, each with an entry in its activity log."""

RESPONSES: Final = 500
"""Survey responses that one commit moves; a few milliseconds of the writer's time."""

ANSWER_S: Final = 20.0
"""How long a caller waits for a merge at most; it goes on behind the response."""


class MergeReader(ConversationReader, ContactReader, AccountReader, Protocol):
    """Queries on what belongs to a contact, and on its project."""


class MergeTransaction(BeginTransaction, TicketTransaction, Protocol):
    """Changes that give all that belongs to a contact to another one."""


class _Merge(Struct, eq=False):
    """A merge that is under way; `actor` is who has asked for it, as far as this life of a node knows."""

    merged: MergedContact
    actor: Actor = SYSTEM
    done: trio.Event = field(default_factory=trio.Event)


class Merges:
    """Merges contacts in a nursery that no request owns."""

    def __init__(
        self,
        nursery: trio.Nursery,
        store: Store[MergeReader, MergeTransaction],
        clock: Clock,
        actors: ActorRegistry,
        cluster: Cluster | None = None,
    ) -> None:
        self._cluster = cluster or SingleNode()
        self._nursery = nursery
        self._store = store
        self._clock = clock
        self._actors = actors
        self._under_way: dict[int, _Merge] = {}

    async def merge(self, project: Project, wanted: Wanted, by: ChangeOrigin = UNKNOWN_ORIGIN) -> Contact:
        """Merge a contact into another one; return that one. What was merged before is not merged again.

        Raises NotFound and Invalid as `begin`; Unavailable (`merge_under_way`) if it takes longer than a caller should
        wait. Cancellation: the merge goes on.
        """
        with trio.move_on_after(ANSWER_S):
            begun = await self._begun(project, wanted, by)
            if begun.merged.under_way:
                await self._joined(project, begun.merged, wanted.actor, mine=begun.mine).done.wait()
            return begun.merged.target
        message = "A merge of these contacts is under way and goes on by itself; send the request again to hear of its end."
        raise Unavailable(message, code="merge_under_way", retry_after_s=10)

    async def keep_resuming(self) -> None:
        """Take up the merges that other nodes have left, until cancelled; a duty."""
        while True:
            try:
                await self.resume()
            except Unavailable as refusal:
                log.warning("merge.not_resumed", reason=refusal.reason)
            await trio.sleep(_LOOK_S)

    async def resume(self) -> None:
        """Take up the merges that a crash cut short."""
        mine = self._cluster.node.incarnation
        for project, merged in await self._store.read(_cut_short):
            source = merged.source.rowid
            if source in self._under_way:
                continue
            if await self._store.write(lambda tx, source=source: tx.claim_erasure(source, mine)):  # type: ignore[misc]
                self._joined(project, merged, mine=True)

    async def _begun(self, project: Project, wanted: Wanted, by: ChangeOrigin) -> Begun:
        """Return the merge once it has begun, behind those that are in its way."""
        mine = self._cluster.node.incarnation
        store = AttributedStore(by, self._store)
        while True:
            try:
                with trio.CancelScope(shield=True):  # what has begun is carried out, whoever waits for it
                    return await store.write(lambda tx: begin(tx, project, wanted, mine, self._clock()))
            except InTheWay as other:
                await self._joined(project, other.merge).done.wait()

    def _joined(
        self, project: Project, merged: MergedContact, actor: Actor = SYSTEM, *, mine: bool = False
    ) -> _Merge:
        """Return the merge that is under way here or elsewhere; with `mine` it begins here."""
        merge = self._under_way.get(merged.source.rowid)
        if merge is None:
            merge = _Merge(merged, actor)
            if mine:
                self._under_way[merged.source.rowid] = merge
                Context().run(self._nursery.start_soon, self._carry_out, project, merge)
            else:
                Context().run(self._nursery.start_soon, self._wait_for, merge)
        return merge

    async def _wait_for(self, merge: _Merge) -> None:
        """Wait for the end of what another node carries out by asking the store."""
        source = merge.merged.source.rowid
        with trio.move_on_after(ANSWER_S):
            while True:
                with suppress(Unavailable):
                    left = await self._store.read(lambda reader: reader.merges())
                    if all(merged.source.rowid != source for _, merged in left):
                        merge.done.set()
                        return
                await trio.sleep(_ASK_S)

    async def _carry_out(self, project: Project, merge: _Merge) -> None:
        contact = merge.merged.source.id
        await retry_until_done(
            partial(self._attempt, project, merge),
            lambda failure: log.error("merge.failed", contact=contact, exc_info=failure),
        )
        del self._under_way[merge.merged.source.rowid]
        merge.done.set()

    async def _attempt(self, project: Project, merge: _Merge) -> bool:
        source, target = merge.merged.source.rowid, merge.merged.target.rowid
        try:
            ids = await self._store.read(lambda reader: reader.conversation_ids(source))
            await ask_all(self._actors, project, ids, Move(source, target), _not_moved, NotFound, Conflict)
            while await self._store.write(lambda tx: _move_some(tx, source, target, self._clock())):
                await trio.lowlevel.checkpoint()
            return await self._store.write(lambda tx: _end(tx, project, merge, self._clock()))
        except (Unavailable, ActorFailed) as error:  # the latter is a bug, which the actor has logged
            log.warning("merge.delayed", reason=str(error))
            return False


def _cut_short(reader: MergeReader) -> list[tuple[Project, MergedContact]]:
    """Return the merges that have begun and not ended and nobody carries out, each with its project."""
    begun, abandoned = [], set(reader.abandoned_merges())
    for project_id, merged in reader.merges():
        if merged.source.rowid not in abandoned:
            continue
        project = reader.project(project_id)
        assert project is not None, "a contact's project exists"
        begun.append((project, merged))
    return begun


def _not_moved(conversation_id: str) -> None:
    log.debug("merge.not_moved", conversation=conversation_id)


def _move_some(tx: MergeTransaction, source: int, target: int, at: int) -> int:
    """Move tickets, or if there are none survey responses; return how many."""
    survivor = tx.survivor(target)
    if survivor is None:  # it is being erased, with what was not moved
        return 0
    return move_tickets_of(tx, source, survivor, TICKETS, at) or tx.move_responses(source, target, RESPONSES)


def _end(tx: MergeTransaction, project: Project, merge: _Merge, at: int) -> bool:
    """End the merge, unless something was added meanwhile; return whether it is over, whoever has ended it."""
    for _, each in tx.merges():
        if each.source.rowid == merge.merged.source.rowid:
            return end_merge(tx, project, each, merge.actor, at)
    return True
