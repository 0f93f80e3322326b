"""A contact's erasure: conversations through their actors, tickets, survey responses, then the contact (decisions 4).

The last commit removes the contact with its events and announces that, once, behind all the deletions.
The contact is marked before anything is removed. From then on it is not found, and an erasure that a
crash cut short is taken up at the next start, or by another node once the lease of the one that was at it is over. A second
call meanwhile waits for the erasure under way, wherever that is. What other contacts have left that were merged into it goes
with it; a merge that is under way ends.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Final, Protocol

import structlog
import trio
from msgspec import Struct, field

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.audit.naming import InNameOf
from deskwire.engine.audit.ports import AuditTransaction
from deskwire.engine.audit.trail import UNKNOWN, By
from deskwire.engine.cluster.cluster import Alone, Cluster
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.merged import found_contact
from deskwire.engine.contacts.ports import ContactReader, ContactTransaction
from deskwire.engine.conversations.actor import ActorFailed
from deskwire.engine.conversations.commands import Delete
from deskwire.engine.conversations.contacts import IdentityTransaction, erase_contact
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.conversations.registry import ActorRegistry
from deskwire.engine.conversations.together import ask_all
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import NotFound, Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.persistence import until_done
from deskwire.engine.events.extensions import response_deleted
from deskwire.engine.events.types import response_lane
from deskwire.engine.surveys.ports import SurveyTransaction
from deskwire.engine.tickets.change import erase_tickets_of
from deskwire.engine.tickets.ports import TicketTransaction
from deskwire.engine.webhooks.publish import publish_extension

log: Final = structlog.get_logger(__name__)
_LOOK_S: Final = 5.0
"""Time between two looks for erasures that nodes have left."""
_ASK_S: Final = 0.25
"""Time between two looks for the end of an erasure that another node carries out."""

_TICKETS: Final = 100
"""Tickets removed in one commit, each with its activity log."""

BATCH: Final = 500
"""Survey responses that one commit deletes; a few milliseconds of the writer's time."""

ANSWER_S: Final = 20.0
"""How long a caller waits for an erasure at most; it goes on behind the response."""


class ErasureReader(ConversationReader, ContactReader, AccountReader, Protocol):
    """Queries on what belongs to a contact, and on its project."""


class ErasureTransaction(
    TicketTransaction, SurveyTransaction, IdentityTransaction, AuditTransaction, Protocol
):
    """Changes that remove all that belongs to a contact."""


class _Erasure(Struct, eq=False):
    """The erasure of a contact that is under way; `contact` is what it was."""

    contact: Contact
    done: trio.Event = field(default_factory=trio.Event)


class Erasures:
    """Erases contacts in a nursery that no request owns."""

    def __init__(
        self,
        nursery: trio.Nursery,
        store: Store[ErasureReader, ErasureTransaction],
        clock: Clock,
        actors: ActorRegistry,
        cluster: Cluster | None = None,
    ) -> None:
        self._cluster = cluster or Alone()
        self._nursery = nursery
        self._store = store
        self._clock = clock
        self._actors = actors
        self._under_way: dict[tuple[int, str], _Erasure] = {}

    async def erase(self, project: Project, user_id: str, by: By = UNKNOWN) -> Contact:
        """Erase the contact with everything that belongs to it; return what it was.

        Raises NotFound if there is none, and none is being erased; Unavailable (`erasure_under_way`) if it takes
        longer than a caller should wait. Cancellation: the erasure goes on.
        """
        key = (project.rowid, user_id)
        try:
            mine = self._cluster.node.incarnation
            with trio.CancelScope(shield=True):  # what is marked has to be carried out, whoever waits for it
                contact = await InNameOf(by, self._store).write(lambda tx: _mark(tx, *key, mine))
        except NotFound:
            erasure = self._under_way.get(key) or await self._elsewhere(project, user_id)
            if erasure is None:
                raise
        else:
            erasure = self._begin(project, contact)
        with trio.move_on_after(ANSWER_S):
            await erasure.done.wait()
            return erasure.contact
        message = (
            "The contact is no longer found; the rest of its erasure takes longer and goes on by itself."
        )
        raise Unavailable(message, code="erasure_under_way", retry_after_s=10)

    async def keep_resuming(self) -> None:
        """Take up the erasures that other nodes have left, until cancelled; a duty."""
        while True:
            try:
                await self.resume()
            except Unavailable as refusal:
                log.warning("erasure.not_resumed", reason=refusal.reason)
            await trio.sleep(_LOOK_S)

    async def resume(self) -> None:
        """Take up the erasures that a crash cut short."""
        mine, at_it = (
            self._cluster.node.incarnation,
            {each.contact.rowid for each in self._under_way.values()},
        )
        for project, contact in await self._store.read(_cut_short):
            if contact.rowid not in at_it and await self._store.write(_taking(contact, mine)):
                self._begin(project, contact)

    async def _elsewhere(self, project: Project, user_id: str) -> _Erasure | None:
        """Return the erasure that another node carries out, which is waited for by asking the store; None if there is none."""
        found = [
            contact
            for project_id, contact in await self._store.read(lambda reader: reader.erasing())
            if (project_id, contact.user_id) == (project.id, user_id)
        ]
        if not found:
            return None
        erasure = _Erasure(found[-1])
        Context().run(self._nursery.start_soon, self._wait_for, erasure)
        return erasure

    async def _wait_for(self, erasure: _Erasure) -> None:
        with trio.move_on_after(ANSWER_S):
            while True:
                with suppress(Unavailable):
                    left = await self._store.read(lambda reader: reader.erasing())
                    if all(contact.rowid != erasure.contact.rowid for _, contact in left):
                        erasure.done.set()
                        return
                await trio.sleep(_ASK_S)

    def _begin(self, project: Project, contact: Contact) -> _Erasure:
        erasure = self._under_way[project.rowid, contact.user_id] = _Erasure(contact)
        Context().run(self._nursery.start_soon, self._carry_out, project, erasure)
        return erasure

    async def _carry_out(self, project: Project, erasure: _Erasure) -> None:
        contact = erasure.contact
        await until_done(
            partial(self._attempt, project, contact),
            lambda failure: log.error("erasure.failed", contact=contact.id, exc_info=failure),
        )
        key = (project.rowid, contact.user_id)
        if self._under_way.get(key) is erasure:  # a new contact of that name may be being erased as well
            del self._under_way[key]
        erasure.done.set()

    def _tickets(self, project: Project, contact: int) -> Callable[[ErasureTransaction], int]:
        return lambda tx: erase_tickets_of(tx, project, contact, _TICKETS, self._clock())

    def _responses(self, project: Project, contact: int) -> Callable[[ErasureTransaction], int]:
        return lambda tx: _erase_responses(tx, project, contact, self._clock())

    async def _attempt(self, project: Project, erased: Contact) -> bool:
        contact = erased.rowid
        try:
            merged = await self._store.read(lambda reader: reader.merged_into(contact))
            for each in (*(source.rowid for source in merged), contact):
                await self._erase_what_belongs_to(project, each)
            await self._store.write(lambda tx: _erase(tx, project, erased, self._clock()))
        except (Unavailable, ActorFailed) as error:  # the latter is a bug, which the actor has logged
            log.warning("erasure.delayed", reason=str(error))
            return False
        return True

    async def _erase_what_belongs_to(self, project: Project, contact: int) -> None:
        ids = await self._store.read(lambda reader: reader.conversation_ids(contact))
        await ask_all(self._actors, project, ids, Delete("gdpr"), _already_deleted, NotFound)
        while await self._store.write(self._tickets(project, contact)):
            await trio.lowlevel.checkpoint()
        while await self._store.write(self._responses(project, contact)):
            await trio.lowlevel.checkpoint()


def _cut_short(reader: ErasureReader) -> list[tuple[Project, Contact]]:
    """Return the contacts whose erasure has begun and not ended and nobody carries out, each with its project."""
    begun, abandoned = [], set(reader.abandoned_erasures())
    for project_id, contact in reader.erasing():
        if contact.rowid not in abandoned:
            continue
        project = reader.project(project_id)
        assert project is not None, "a contact's project exists"
        begun.append((project, contact))
    return begun


def _already_deleted(conversation_id: str) -> None:
    log.debug("erasure.already_deleted", conversation=conversation_id)


def _taking(contact: Contact, incarnation: int) -> Callable[[ErasureTransaction], bool]:
    return lambda tx: tx.take_erasure(contact.rowid, incarnation)


def _erase(tx: ErasureTransaction, project: Project, erased: Contact, at: int) -> None:
    """Remove the contact, unless another node that was at it as well has done so: it is announced once."""
    if any(contact.rowid == erased.rowid for _, contact in tx.erasing()):
        erase_contact(tx, project, erased, at)


def _erase_responses(tx: ErasureTransaction, project: Project, contact: int, at: int) -> int:
    """Remove some of the contact's survey responses, and tell whoever asks for it; return their number."""
    gone = tx.erase_responses(contact, BATCH)
    for survey_id, response_id in gone:
        if survey_id is not None:
            lane = response_lane(response_id)
            publish_extension(tx, project, response_deleted(survey_id, response_id), None, at, lane=lane)
    return len(gone)


def _mark(tx: ContactTransaction, project: int, user_id: str, incarnation: int) -> Contact:
    contact = found_contact(tx, project, user_id, by_id=False)
    tx.hold_contacts(contact.rowid)
    if tx.survivor(contact.rowid) is None:  # another node was first
        return _mark(tx, project, user_id, incarnation)
    tx.cut_merges(contact.rowid)
    tx.mark_erasing(contact.rowid)
    tx.take_erasure(contact.rowid, incarnation)
    return contact
