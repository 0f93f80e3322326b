"""The context of a conversation for agents: contact, other conversations, tickets, workflow and activity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from deskwire.engine.contacts.contact import Contact, contact_with_profile_view
from deskwire.engine.contacts.memory import MemoryReader, memory_view
from deskwire.engine.conversations.activity import activity_view
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.inbox import InboxReader, inbox_views
from deskwire.engine.conversations.listing import NEWEST_FIRST, ConversationFilter
from deskwire.engine.core.clock import iso
from deskwire.engine.tickets.ports import TicketFilter, TicketReader, TicketSort
from deskwire.engine.tickets.ticket import ticket_view
from deskwire.http.api.calls import Answer, Call
from deskwire.http.resources.conversations.operations import conversation_id, find

OTHERS: Final = 5  # other conversations of the contact, and tickets

ACTIVITY: Final = 20  # entries of the activity


class ContextReader(InboxReader, TicketReader, MemoryReader, Protocol):
    """Reads for the context of a conversation."""


async def context_of(call: Call[Any, Any]) -> Answer:
    """Return the context of the conversation in the path, from one snapshot. Raises NotFound."""
    identifier = conversation_id(call)

    def read(reader: ContextReader) -> dict[str, Any]:
        state, contact = find(reader, call.project, identifier)
        return _context(reader, call, state, contact)

    return await call.services.store.read(read)


def _context(
    reader: ContextReader, call: Call[Any, Any], state: Conversation, contact: Contact
) -> dict[str, Any]:
    may = call.access.permissions
    (view,) = inbox_views(reader, call.project, call.user, [(state, contact)])
    logs = reader.network_requests(state.rowid)
    return {
        "contact": contact_with_profile_view(contact, reader.profile(contact.rowid))
        if "contacts.read" in may
        else None,
        "conversations": _others(reader, call, state, contact),
        "tickets": _tickets(reader, call, contact) if "tickets.read" in may else None,
        "memory": _memory(reader, call, contact) if "memory.read" in may else None,
        "networkLogs": logs and {"at": iso(logs[0]), "requests": logs[1]},
        "workflow": view["workflow"],
        "activity": [
            activity_view(each) for each in reader.conversation_activity(state.rowid, None, ACTIVITY)
        ],
        "asOf": view["asOf"],
    }


def _others(
    reader: ContextReader, call: Call[Any, Any], state: Conversation, contact: Contact
) -> Sequence[dict[str, Any]]:
    """Return the contact's other conversations, newest activity first."""
    project, wanted = call.project.rowid, ConversationFilter(contact=contact.rowid, merged=False)
    listed = reader.conversations(project, wanted, NEWEST_FIRST, None, OTHERS + 1)
    found = [(each.conversation, each.contact) for each in listed if each.conversation.rowid != state.rowid]
    return inbox_views(reader, call.project, call.user, found[:OTHERS])


def _tickets(reader: ContextReader, call: Call[Any, Any], contact: Contact) -> Sequence[dict[str, Any]]:
    """Return the contact's tickets, newest first."""
    wanted = TicketFilter(contact=contact.rowid)
    found = reader.tickets(call.project.rowid, wanted, TicketSort(), None, OTHERS)
    return [ticket_view(ticket) for ticket, _ in found]


def _memory(reader: ContextReader, call: Call[Any, Any], contact: Contact) -> Sequence[dict[str, Any]] | None:
    """Return the contact's memory entries; None if the project has disabled memory."""
    if not call.project.settings.memory_enabled:
        return None
    return [memory_view(entry) for entry in reader.memory_entries(contact.rowid, None, ENTRIES)]


ENTRIES: Final = 20  # memory entries
