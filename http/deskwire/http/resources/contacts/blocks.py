"""Blocks of contacts, for agents and for the project's own backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import Field

from deskwire.engine.contacts.blocks import REASON_MAX
from deskwire.engine.contacts.contact import (
    Contact,
    Profile,
    contact_with_profile_view,
    find_contact,
    no_such_contact,
)
from deskwire.engine.conversations.contacts import block_contact, unblock_contact
from deskwire.engine.core.ids import is_id
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import NOT_BLANK, Body, Query
from deskwire.http.api.routing import MEDIUM, Routes, dashboard, s2s
from deskwire.http.resources.contacts.contacts import CHANGE, CONTACTS
from deskwire.http.resources.conversations.operations import actor_of
from deskwire.http.schemas import conversations as shapes

routes = Routes(CONTACTS)
_AGENTS: Final = "/contacts/<contact_id>"
_BACKEND: Final = "/s2s/contacts/<user_id>"


class BlockContactRequest(Body):
    """The reason for the block, for agents and your backend. The customer never gets it."""

    reason: Annotated[str, Field(min_length=1, max_length=REASON_MAX), NOT_BLANK] | None = None


@routes.add(
    "POST",
    f"{_BACKEND}/block",
    s2s(CHANGE),
    operation_id="blockContact",
    body=BlockContactRequest,
    limit=MEDIUM,
    answer=shapes.Contact,
    records=("contact.blocked",),
)
async def block_for_backend(call: Call[BlockContactRequest, Query]) -> Answer:
    """Block a contact: it can read its conversations, and can't write.

    Its messages, ratings, files and new conversations are refused with 403 `contact_blocked`, also if your backend sends them
    in its name. Agents and bots can still write to it. The block of a blocked contact stays as it is.
    """
    return await _block(call)


@routes.add(
    "POST",
    f"{_AGENTS}/block",
    dashboard(CHANGE),
    operation_id="dashboardBlockContact",
    body=BlockContactRequest,
    limit=MEDIUM,
    answer=shapes.Contact,
    records=("contact.blocked",),
)
async def block_for_agents(call: Call[BlockContactRequest, Query]) -> Answer:
    """Block a contact: it can read its conversations, and can't write.

    Its messages, ratings, files and new conversations are refused with 403 `contact_blocked`. Agents can still write to it. The
    block of a blocked contact stays as it is.
    """
    return await _block(call)


@routes.add(
    "POST",
    f"{_BACKEND}/unblock",
    s2s(CHANGE),
    operation_id="unblockContact",
    answer=shapes.Contact,
    records=("contact.unblocked",),
)
async def unblock_for_backend(call: Call[Body, Query]) -> Answer:
    """End the block of a contact, which can write again."""
    return await _unblock(call)


@routes.add(
    "POST",
    f"{_AGENTS}/unblock",
    dashboard(CHANGE),
    operation_id="dashboardUnblockContact",
    answer=shapes.Contact,
    records=("contact.unblocked",),
)
async def unblock_for_agents(call: Call[Body, Query]) -> Answer:
    """End the block of a contact, which can write again."""
    return await _unblock(call)


async def _block(call: Call[BlockContactRequest, Query]) -> Answer:
    by, reason, now = actor_of(call), call.body.reason, call.services.clock()
    return await _changed(call, lambda tx, known: block_contact(tx, call.project, known, by, reason, now))


async def _unblock(call: Call[Body, Query]) -> Answer:
    by, now = actor_of(call), call.services.clock()
    return await _changed(call, lambda tx, known: unblock_contact(tx, call.project, known, by, now))


async def _changed(call: Call[Any, Any], change: Callable[[Transaction, Contact], Contact]) -> Answer:
    """Change the contact in the path, and return it. Raises NotFound."""
    by_id = "contact_id" in call.path
    identifier = call.path["contact_id" if by_id else "user_id"]
    if by_id and not is_id(identifier, "con"):
        raise no_such_contact(None)

    def changed(tx: Transaction) -> tuple[Contact, Profile]:
        known = find_contact(tx, call.project.rowid, identifier, by_id=by_id)
        return change(tx, known), tx.profile(known.rowid)

    return contact_with_profile_view(*await call.services.store.write(changed))
