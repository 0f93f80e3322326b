"""Erasure of contacts: conversations through their actors, tickets, survey responses, then the contact (decisions 4).

The contact is marked first and is no longer found from then on. After a crash the erasure is resumed at the next start, or by
another node once the lease of the first one has expired. A second call waits for the erasure in progress, on any node.

The last commit deletes the contact with its events and publishes its deletion, once, after all other deletions. Data of
contacts that were merged into it is erased, too, and a merge in progress is aborted.
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
from deskwire.engine.audit.trail import UNKNOWN_ORIGIN, AttributedStore, AuditTransaction, ChangeOrigin
from deskwire.engine.cluster.cluster import Cluster, SingleNode
from deskwire.engine.contacts.contact import Contact, find_contact
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.actors import ActorFailed, ActorRegistry, ask_all
from deskwire.engine.conversations.commands import Delete
from deskwire.engine.conversations.contacts import IdentityTransaction, erase_contact
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import NotFound, Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.retry import retry_until_done
from deskwire.engine.customers.session import CustomerSessionTransaction
from deskwire.engine.events.project_events import response_deleted
from deskwire.engine.events.types import response_lane
from deskwire.engine.surveys.ports import SurveyTransaction
from deskwire.engine.tickets.change import erase_tickets_of
from deskwire.engine.tickets.ports import TicketTransaction
from deskwire.engine.webhooks.publish import publish_extension

log: Final = structlog.get_logger(__name__)
_RESUME_INTERVAL_S: Final = 5.0
"""Interval between polls for abandoned erasures."""
_DONE_POLL_INTERVAL_S: Final = 0.25
"""Interval between polls for the end of an erasure on another node."""

_TICKETS_BATCH_SIZE: Final = 100
"""Tickets deleted in one commit, each with its activity log."""

RESPONSES_BATCH_SIZE: Final = 500
"""Survey responses deleted in one commit. They take a few milliseconds of the writer."""

RESPONSE_TIMEOUT_S: Final = 20.0
"""Maximum time that a caller waits. The erasure continues after the response."""


class ErasureReader(ConversationReader, ContactReader, AccountReader, Protocol):
    """Queries on a contact's data and its project."""


class ErasureTransaction(
    TicketTransaction,
    SurveyTransaction,
    IdentityTransaction,
    CustomerSessionTransaction,
    AuditTransaction,
    Protocol,
):
    """Changes that delete a contact's data."""


class _Erasure(Struct, eq=False):
    """An erasure in progress. `contact` is the contact before it."""

    contact: Contact
    done: trio.Event = field(default_factory=trio.Event)


class Erasures:
    """Runs erasures in a nursery of the service, so that they outlive the requests that start them."""

    def __init__(
        self,
        nursery: trio.Nursery,
        store: Store[ErasureReader, ErasureTransaction],
        clock: Clock,
        actors: ActorRegistry,
        cluster: Cluster | None = None,
    ) -> None:
        self._cluster = cluster or SingleNode()
        self._nursery = nursery
        self._store = store
        self._clock = clock
        self._actors = actors
        self._under_way: dict[tuple[int, str], _Erasure] = {}

    async def erase(self, project: Project, user_id: str, origin: ChangeOrigin = UNKNOWN_ORIGIN) -> Contact:
        """Erase the contact with all its data. Return the contact as it was before.

        Raises NotFound if there is no such contact and it is not being erased, Unavailable (`erasure_under_way`) after
        RESPONSE_TIMEOUT_S. Cancellation: the erasure continues.
        """
        key = (project.rowid, user_id)
        try:
            mine = self._cluster.node.incarnation
            with trio.CancelScope(shield=True):  # a marked contact must be erased even if the caller is gone
                contact = await AttributedStore(origin, self._store).write(
                    lambda tx: _mark(tx, *key, mine, self._clock())
                )
        except NotFound:
            erasure = self._under_way.get(key) or await self._on_another_node(project, user_id)
            if erasure is None:
                raise
        else:
            erasure = self._begin(project, contact)
        with trio.move_on_after(RESPONSE_TIMEOUT_S):
            await erasure.done.wait()
            return erasure.contact
        message = "The contact is no longer found; the rest of its erasure takes longer and continues in the background."
        raise Unavailable(message, code="erasure_under_way", retry_after_s=10)

    async def keep_resuming(self) -> None:
        """Resume abandoned erasures of other nodes, until cancelled. Runs on the leader."""
        while True:
            try:
                await self.resume()
            except Unavailable as refusal:
                log.warning("erasure.not_resumed", reason=refusal.reason)
            await trio.sleep(_RESUME_INTERVAL_S)

    async def resume(self) -> None:
        """Resume abandoned erasures."""
        mine = self._cluster.node.incarnation
        running = {each.contact.rowid for each in self._under_way.values()}
        for project, contact in await self._store.read(_abandoned):
            if contact.rowid not in running and await self._store.write(_claim(contact, mine)):
                self._begin(project, contact)

    async def _on_another_node(self, project: Project, user_id: str) -> _Erasure | None:
        """Return an erasure that another node runs, and poll the store for its end.

        None if there is none.
        """
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
        with trio.move_on_after(RESPONSE_TIMEOUT_S):
            while True:
                with suppress(Unavailable):
                    left = await self._store.read(lambda reader: reader.erasing())
                    if all(contact.rowid != erasure.contact.rowid for _, contact in left):
                        erasure.done.set()
                        return
                await trio.sleep(_DONE_POLL_INTERVAL_S)

    def _begin(self, project: Project, contact: Contact) -> _Erasure:
        erasure = self._under_way[project.rowid, contact.user_id] = _Erasure(contact)
        Context().run(self._nursery.start_soon, self._carry_out, project, erasure)
        return erasure

    async def _carry_out(self, project: Project, erasure: _Erasure) -> None:
        contact = erasure.contact
        await retry_until_done(
            partial(self._attempt, project, contact),
            lambda failure: log.error("erasure.failed", contact=contact.id, exc_info=failure),
        )
        key = (project.rowid, contact.user_id)
        if (
            self._under_way.get(key) is erasure
        ):  # an erasure of a new contact with the same id may have started
            del self._under_way[key]
        erasure.done.set()

    def _tickets(self, project: Project, contact: int) -> Callable[[ErasureTransaction], int]:
        return lambda tx: erase_tickets_of(tx, project, contact, _TICKETS_BATCH_SIZE, self._clock())

    def _responses(self, project: Project, contact: int) -> Callable[[ErasureTransaction], int]:
        return lambda tx: _erase_responses(tx, project, contact, self._clock())

    async def _attempt(self, project: Project, erased: Contact) -> bool:
        contact = erased.rowid
        try:
            merged = await self._store.read(lambda reader: reader.merged_into(contact))
            for each in (*(source.rowid for source in merged), contact):
                await self._erase_what_belongs_to(project, each)
            await self._store.write(lambda tx: _erase(tx, project, erased, self._clock()))
        except (Unavailable, ActorFailed) as error:  # ActorFailed is a bug that the actor has logged
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


def _abandoned(reader: ErasureReader) -> list[tuple[Project, Contact]]:
    """Return the contacts with an abandoned erasure, each with its project."""
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


def _claim(contact: Contact, incarnation: int) -> Callable[[ErasureTransaction], bool]:
    return lambda tx: tx.claim_erasure(contact.rowid, incarnation)


def _erase(tx: ErasureTransaction, project: Project, erased: Contact, at: int) -> None:
    """Delete the contact and publish its deletion, unless another node has done so already."""
    if any(contact.rowid == erased.rowid for _, contact in tx.erasing()):
        erase_contact(tx, project, erased, at)


def _erase_responses(tx: ErasureTransaction, project: Project, contact: int, at: int) -> int:
    """Delete a batch of the contact's survey responses and publish their deletion.

    Return the number of deleted ones.
    """
    gone = tx.erase_responses(contact, RESPONSES_BATCH_SIZE)
    for survey_id, response_id in gone:
        if survey_id is not None:
            lane = response_lane(response_id)
            publish_extension(tx, project, response_deleted(survey_id, response_id), None, at, lane=lane)
    return len(gone)


def _mark(tx: ErasureTransaction, project: int, user_id: str, incarnation: int, at: int) -> Contact:
    contact = find_contact(tx, project, user_id, by_id=False)
    tx.lock_contacts(contact.rowid)
    if tx.survivor(contact.rowid) is None:  # another node was first
        return _mark(tx, project, user_id, incarnation, at)
    tx.abort_merges(contact.rowid)
    tx.mark_erasing(contact.rowid)
    tx.end_customer_sessions(contact.rowid, at)
    tx.claim_erasure(contact.rowid, incarnation)
    return contact
