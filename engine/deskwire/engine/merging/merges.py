"""Merging a contact into another one: conversations through their actors, then tickets and survey responses.

The target keeps its identity and gets only the fields that it lacks, such as a name (`missing_identity`).

The first transaction marks the source contact, which is not found from then on, and moves the small parts. A merge that a crash
interrupts is resumed at the next start, or by another node after the lease of the first node has expired. A second call during
a merge waits for it, on whichever node it runs. Erasing the target contact ends the merge and erases the parts not moved yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Final, Protocol

import structlog
import trio
from msgspec import Struct, field

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.audit.trail import UNKNOWN_ORIGIN, AttributedStore, AuditTransaction, ChangeOrigin
from deskwire.engine.cluster.cluster import Cluster, SingleNode
from deskwire.engine.contacts.contact import IDENTITY, Contact, MergedContact, Profile, find_contact
from deskwire.engine.contacts.memory import MemoryTransaction
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.actors import ActorFailed, ActorRegistry, ask_all
from deskwire.engine.conversations.commands import Move
from deskwire.engine.conversations.contacts import IdentityTransaction, change_contact, end_merge, put_profile
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.conversations.tags import TAGS_MAX, distinct_tags
from deskwire.engine.core.actor import SYSTEM, Actor
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Conflict, Invalid, NotFound, Problem, Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.retry import retry_until_done
from deskwire.engine.core.values import replace
from deskwire.engine.customers.session import CustomerSessionTransaction
from deskwire.engine.definitions.attributes import overfull
from deskwire.engine.events.project_events import append_internal_event, memory_changed
from deskwire.engine.events.types import contact_lane
from deskwire.engine.tickets.change import move_tickets_of
from deskwire.engine.tickets.ports import TicketTransaction

log: Final = structlog.get_logger(__name__)

_RESUME_INTERVAL_S: Final = 5.0  # between two searches for merges that other nodes have abandoned
_POLL_INTERVAL_S: Final = 0.25  # between two checks whether another node has finished a merge

TICKETS_BATCH_SIZE: Final = 100
"""Tickets moved by one commit, each with an entry in its activity."""

RESPONSES_BATCH_SIZE: Final = 500
"""Survey responses moved by one commit; a few milliseconds of the writer's time."""

ANSWER_TIMEOUT_S: Final = 20.0
"""Seconds that a caller waits for a merge; the merge continues after the response."""


class StartTransaction(
    IdentityTransaction, MemoryTransaction, CustomerSessionTransaction, AuditTransaction, Protocol
):
    """Changes of the first transaction of a merge."""


class MergeRequest(Struct, frozen=True):
    """A request to merge: both contacts by their `con_` ids or by the backend's ids, and the actor.

    Args:
        fills: whether the target gets the identity fields that it lacks. They are not carried over for a customer's own browser,
            because another person may have entered them there: an e-mail address of theirs would get the replies.
    """

    target: str
    source: str
    by_id: bool
    actor: Actor
    fills: bool = True


class StartedMerge(Struct, frozen=True):
    """A merge that has started, now or earlier; `mine` is True if this node carries it out."""

    merged: MergedContact
    mine: bool


class BlockedByMerge(Exception):
    """Another merge has to end first."""

    def __init__(self, merge: MergedContact) -> None:
        super().__init__(merge.source.id)
        self.merge = merge


def start_merge(
    tx: StartTransaction, project: Project, wanted: MergeRequest, incarnation: int, at: int
) -> StartedMerge:
    """Start a merge, or find the same merge started earlier; return it.

    Raises:
        NotFound: the target does not exist.
        Invalid: the source is unknown, equals the target, or was merged into another contact; or both together have too many
            attributes or tags.
        BlockedByMerge: a merge into the source is in progress.
    """
    target = find_contact(tx, project.rowid, wanted.target, by_id=wanted.by_id)
    find = tx.contact_by_id if wanted.by_id else tx.contact
    source = find(project.rowid, wanted.source)
    if source is None:
        merged = _repeated(tx.merged(project.rowid, wanted.source, by_id=wanted.by_id), target)
        return StartedMerge(merged, merged.under_way and tx.claim_erasure(merged.source.rowid, incarnation))
    if source.rowid == target.rowid:
        raise Invalid(Problem("/from", "same", "A contact can't be merged into itself."))
    for _, merge in tx.merges():
        if merge.target.rowid == source.rowid:
            raise BlockedByMerge(merge)
    tx.lock_contacts(source.rowid, target.rowid)
    held = tx.survivor(source.rowid), tx.survivor(target.rowid)
    if held[0] is None or held[1] is None:  # another node was first
        return start_merge(tx, project, wanted, incarnation, at)
    return _move_small_parts(tx, project, held[0], held[1], wanted, incarnation, at)


def _repeated(merged: MergedContact | None, target: Contact) -> MergedContact:
    """Return the earlier merge that a request repeats. Raises Invalid if there was none."""
    if merged is None:
        raise Invalid(Problem("/from", "unknown", "There is no such contact in this project."))
    if merged.target.rowid != target.rowid:
        message = "This contact was merged into another one before."
        raise Invalid(Problem("/from", "merged", message))
    return merged


def _move_small_parts(
    tx: StartTransaction,
    project: Project,
    source: Contact,
    target: Contact,
    wanted: MergeRequest,
    incarnation: int,
    at: int,
) -> StartedMerge:
    remembered, before = tx.memory_size(source.rowid), tx.profile(target.rowid)
    profile = united_profile(tx.profile(source.rowid), before)
    names = [name for name in ("attributes", "tags") if getattr(profile, name) != getattr(before, name)]
    if source.blocked is not None and target.blocked is None:
        # Otherwise a blocked visitor could write again after signing in.
        target = replace(target, blocked=source.blocked)
        tx.save_block(target)
        names.append("blocked")
    if wanted.fills:
        target = change_contact(tx, project, target, missing_identity(source, target), at)
    target = put_profile(tx, project, target, profile, names, wanted.actor, at)
    tx.begin_merge(source.rowid, target.rowid)
    tx.end_customer_sessions(source.rowid, at)
    tx.claim_erasure(source.rowid, incarnation)
    if remembered:
        draft = memory_changed(target.id, deleted=False)
        append_internal_event(tx, project, draft, contact_lane(target.rowid), at)
    return StartedMerge(MergedContact(source, target, True), True)


def missing_identity(source: Contact, target: Contact) -> Mapping[str, str | None]:
    """Return the identity fields that the target lacks and the source has."""
    names = (name for name in IDENTITY if getattr(target, name) is None)
    return {name: getattr(source, name) for name in names if getattr(source, name) is not None}


def united_profile(source: Profile, target: Profile) -> Profile:
    """Return the attributes and tags of both contacts. Raises Invalid if there are too many.

    For an attribute that both have, and for two tags with the same key, the target's is used.
    """
    both = Profile({**source.attributes, **target.attributes}, distinct_tags((*target.tags, *source.tags)))
    problems = []
    if (full := overfull(both.attributes, "contact")) is not None:
        problems.append(Problem("/from", full.code, f"Merged, they have too many attributes. {full.message}"))
    if len(both.tags) > TAGS_MAX:
        message = f"Merged, they have {len(both.tags)} tags; a contact has at most {TAGS_MAX}."
        problems.append(Problem("/from", "too_many", message))
    if problems:
        raise Invalid(*problems)
    return both


class MergeReader(ConversationReader, ContactReader, AccountReader, Protocol):
    """Queries on contacts, their conversations and their projects."""


class MergeTransaction(StartTransaction, TicketTransaction, Protocol):
    """Changes that move all parts of a contact to another one."""


class _Merge(Struct, eq=False):
    """A merge in progress; `actor` is the system after a restart, because the requester is not stored."""

    merged: MergedContact
    actor: Actor = SYSTEM
    done: trio.Event = field(default_factory=trio.Event)


class Merges:
    """Runs merges in a nursery that outlives the requests.

    Args:
        ended: called on this node with each merge that it has carried out.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        store: Store[MergeReader, MergeTransaction],
        clock: Clock,
        actors: ActorRegistry,
        cluster: Cluster | None = None,
        ended: Callable[[Project, MergedContact], None] = lambda _project, _merged: None,
    ) -> None:
        self._cluster = cluster or SingleNode()
        self._ended = ended
        self._nursery = nursery
        self._store = store
        self._clock = clock
        self._actors = actors
        self._under_way: dict[int, _Merge] = {}

    async def merge(
        self, project: Project, wanted: MergeRequest, origin: ChangeOrigin = UNKNOWN_ORIGIN
    ) -> Contact:
        """Merge a contact into another one; return the target. Repeating a finished merge changes nothing.

        Raises NotFound and Invalid as `start_merge`, and Unavailable (`merge_under_way`) after ANSWER_TIMEOUT_S.
        Cancellation: the merge continues.
        """
        with trio.move_on_after(ANSWER_TIMEOUT_S):
            begun = await self._started(project, wanted, origin)
            if begun.merged.under_way:
                await self._join(project, begun.merged, wanted.actor, mine=begun.mine).done.wait()
            return begun.merged.target
        message = "A merge of these contacts is in progress and continues. Repeat the request to check whether it has finished."
        raise Unavailable(message, code="merge_under_way", retry_after_s=10)

    async def keep_resuming(self) -> None:
        """Resume merges that other nodes have abandoned, until cancelled; the leader runs it."""
        while True:
            try:
                await self.resume()
            except Unavailable as refusal:
                log.warning("merge.not_resumed", reason=refusal.reason)
            await trio.sleep(_RESUME_INTERVAL_S)

    async def resume(self) -> None:
        """Resume the merges that a crash has interrupted."""
        mine = self._cluster.node.incarnation
        for project, merged in await self._store.read(_abandoned_merges):
            source = merged.source.rowid
            if source in self._under_way:
                continue
            if await self._store.write(lambda tx, source=source: tx.claim_erasure(source, mine)):  # type: ignore[misc]
                self._join(project, merged, mine=True)

    async def _started(self, project: Project, wanted: MergeRequest, origin: ChangeOrigin) -> StartedMerge:
        """Start the merge, after waiting for the merges that block it."""
        mine = self._cluster.node.incarnation
        store = AttributedStore(origin, self._store)
        while True:
            try:
                with trio.CancelScope(
                    shield=True
                ):  # a started merge runs to its end, even if the caller is gone
                    return await store.write(lambda tx: start_merge(tx, project, wanted, mine, self._clock()))
            except BlockedByMerge as other:
                await self._join(project, other.merge).done.wait()

    def _join(
        self, project: Project, merged: MergedContact, actor: Actor = SYSTEM, *, mine: bool = False
    ) -> _Merge:
        """Return the merge in progress on this or another node; with `mine` start it here if necessary."""
        merge = self._under_way.get(merged.source.rowid)
        if merge is None:
            merge = _Merge(merged, actor)
            if mine:
                self._under_way[merged.source.rowid] = merge
                Context().run(self._nursery.start_soon, self._run, project, merge)
            else:
                Context().run(self._nursery.start_soon, self._wait_for, merge)
        return merge

    async def _wait_for(self, merge: _Merge) -> None:
        """Poll the store until another node has finished the merge."""
        source = merge.merged.source.rowid
        with trio.move_on_after(ANSWER_TIMEOUT_S):
            while True:
                with suppress(Unavailable):
                    left = await self._store.read(lambda reader: reader.merges())
                    if all(merged.source.rowid != source for _, merged in left):
                        merge.done.set()
                        return
                await trio.sleep(_POLL_INTERVAL_S)

    async def _run(self, project: Project, merge: _Merge) -> None:
        contact = merge.merged.source.id
        await retry_until_done(
            partial(self._attempt, project, merge),
            lambda failure: log.error("merge.failed", contact=contact, exc_info=failure),
        )
        del self._under_way[merge.merged.source.rowid]
        merge.done.set()
        self._ended(project, merge.merged)

    async def _attempt(self, project: Project, merge: _Merge) -> bool:
        source, target = merge.merged.source.rowid, merge.merged.target.rowid
        try:
            ids = await self._store.read(lambda reader: reader.conversation_ids(source))
            await ask_all(self._actors, project, ids, Move(source, target), _not_moved, NotFound, Conflict)
            while await self._store.write(lambda tx: _move_some(tx, source, target, self._clock())):
                await trio.lowlevel.checkpoint()
            return await self._store.write(lambda tx: _end(tx, project, merge, self._clock()))
        except (Unavailable, ActorFailed) as error:  # the latter is a bug that the actor has logged
            log.warning("merge.delayed", reason=str(error))
            return False


def _abandoned_merges(reader: MergeReader) -> list[tuple[Project, MergedContact]]:
    """Return unfinished merges without a node that carries them out, each with its project."""
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
    """Move a batch of tickets or, once no tickets are left, of survey responses; return the number of rows moved."""
    survivor = tx.survivor(target)
    if survivor is None:  # the target is being erased, with the parts not moved yet
        return 0
    return move_tickets_of(tx, source, survivor, TICKETS_BATCH_SIZE, at) or tx.move_responses(
        source, target, RESPONSES_BATCH_SIZE
    )


def _end(tx: MergeTransaction, project: Project, merge: _Merge, at: int) -> bool:
    """End the merge, unless rows were added in the meantime; return whether it has ended, here or on another node."""
    for _, each in tx.merges():
        if each.source.rowid == merge.merged.source.rowid:
            return end_merge(tx, project, each, merge.actor, at)
    return True
