"""A contact's erasure: conversations through their actors, tickets, survey responses, then the contact (decisions 4).

The contact is marked before anything is removed. From then on it is not found, and an erasure that a
crash cut short is taken up at the next start.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Final

import structlog
import trio

from deskwire.engine.commands import Delete
from deskwire.engine.contact import Contact
from deskwire.engine.directory import Directory
from deskwire.engine.errors import NotFound, Unavailable
from deskwire.engine.people import Project
from deskwire.engine.ports import Reader, Store, Transaction

log: Final = structlog.get_logger(__name__)
_RETRY_S: Final = 1.0

_TICKETS: Final = 100
"""Tickets removed in one commit, each with its activity log."""

BATCH: Final = 500
"""Survey responses that one commit deletes; a few milliseconds of the writer's time."""


class Erasures:
    """Erases contacts in a nursery that no request owns."""

    def __init__(self, nursery: trio.Nursery, store: Store, directory: Directory) -> None:
        self._nursery = nursery
        self._store = store
        self._directory = directory

    async def erase(self, project: Project, user_id: str) -> Contact:
        """Erase the contact with everything that belongs to it; return what it was.

        Raises NotFound if there is none. Cancellation: the erasure goes on.
        """
        contact = await self._store.write(lambda tx: _mark(tx, project.rowid, user_id))
        done = trio.Event()
        Context().run(self._nursery.start_soon, self._carry_out, project, contact.rowid, done)
        await done.wait()
        return contact

    async def resume(self) -> None:
        """Take up the erasures that were cut short."""
        for project_id, contact in await self._store.read(lambda reader: reader.erasing()):
            project = self._store.peek(_project(project_id))
            assert project is not None, "a contact's project exists"
            self._nursery.start_soon(self._carry_out, project, contact, trio.Event())

    async def _carry_out(self, project: Project, contact: int, done: trio.Event) -> None:
        while True:
            if await self._attempt(project, contact):
                break
            await trio.sleep(_RETRY_S)
        done.set()

    async def _attempt(self, project: Project, contact: int) -> bool:
        try:
            for conversation_id in await self._store.read(lambda reader: reader.conversation_ids(contact)):
                await self._delete(project, conversation_id)
            while await self._store.write(lambda tx: tx.erase_tickets_of(contact, _TICKETS)):
                await trio.lowlevel.checkpoint()
            while await self._store.write(lambda tx: tx.erase_responses(contact, BATCH)):
                await trio.lowlevel.checkpoint()
            await self._store.write(lambda tx: tx.erase_contact(contact))
        except Unavailable as error:
            log.warning("erasure.delayed", reason=error.reason)
            return False
        return True

    async def _delete(self, project: Project, conversation_id: str) -> None:
        try:
            await self._directory.ask(project, conversation_id, Delete("gdpr"))
        except NotFound:
            log.debug("erasure.already_deleted", conversation=conversation_id)


def _project(project_id: str) -> Callable[[Reader], Project | None]:
    return lambda reader: reader.project(project_id)


def _mark(tx: Transaction, project: int, user_id: str) -> Contact:
    contact = tx.contact(project, user_id)
    if contact is None:
        raise NotFound("There is no such contact.", code="contact_not_found")
    tx.mark_erasing(contact.rowid)
    return contact
