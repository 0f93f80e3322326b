"""A search: what was found of each kind, in the order in which it is shown.

What has the very id, user id or e-mail address that was asked for comes first, then conversations by their newest activity, contacts
as they were made, newest first, and tickets by their last change. All words have to be in one conversation, whichever of its messages, notes and title have them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

from msgspec import Struct

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.search_terms import search_terms
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.folding import address_key
from deskwire.engine.search.hits import Hit, hits_in
from deskwire.engine.search.ports import Behind, SearchReader, Shown
from deskwire.engine.search.words import asked_words
from deskwire.engine.tickets.ports import Sort, TicketFilter
from deskwire.engine.tickets.ticket import Ticket

T = TypeVar("T")
Part: TypeAlias = Literal["conversations", "contacts", "tickets"]

MESSAGES_MAX: Final = 200
"""Messages of a conversation, the newest, among which hits are looked for; a word may stand further back."""

_NEWEST: Final = Sort("updatedAt", "desc")


class FoundConversation(Struct, frozen=True):
    """A conversation that was found, and its messages that show why."""

    conversation: Conversation
    contact: Contact
    hits: Sequence[Hit]


class Result(Struct, frozen=True):
    """The result of a search; a part that was not asked for is None.

    Args:
        more: the parts of which there is more than was asked for.
    """

    conversations: Sequence[FoundConversation] | None
    contacts: Sequence[Contact] | None
    tickets: Sequence[Ticket] | None
    more: frozenset[Part]
    behind: Behind


def search(reader: SearchReader, project: int, query: str, parts: Collection[Part], limit: int) -> Result:
    """Search a project for a query, as far as it is typed.

    Args:
        limit: how much of each part is returned at most.
    """
    words, name = asked_words(query), query.strip()
    behind = reader.search_behind()  # first: the index may take in meanwhile what this will not have found
    more: set[Part] = set()

    def cut(part: Part, found: list[T]) -> list[T]:
        if len(found) > limit:
            more.add(part)
        return found[:limit]

    conversations = contacts = tickets = None
    if "conversations" in parts:
        rows, others = _conversations(reader, project, words, name, limit)
        if others:
            more.add("conversations")
        conversations = [_found(each, words) for each in reader.shown(rows, MESSAGES_MAX)]
    if "contacts" in parts:
        contacts = cut("contacts", _contacts(reader, project, name, limit + 1))
    if "tickets" in parts:
        tickets = cut("tickets", _tickets(reader, project, name, limit + 1))
    return Result(conversations, contacts, tickets, frozenset(more), behind)


def _conversations(
    reader: SearchReader, project: int, words: Sequence[str], name: str, limit: int
) -> tuple[list[int], bool]:
    """Return the rows of conversations, and whether there are others."""
    found = reader.found_conversations(project, words, limit)
    named = reader.conversation_named(project, name)
    rows = list(dict.fromkeys((*(() if named is None else (named,)), *found.rows)))
    return rows[:limit], found.more or len(rows) > limit


def _found(shown: Shown, words: Sequence[str]) -> FoundConversation:
    hits = hits_in(shown.messages, shown.conversation.title, words)
    return FoundConversation(shown.conversation, shown.contact, hits)


def _contacts(reader: SearchReader, project: int, name: str, limit: int) -> list[Contact]:
    terms = search_terms(name)
    found = list(reader.contacts(project, terms, limit)) if terms else []
    named = (reader.contact_by_id(project, name), reader.contact(project, name))
    known = {contact.rowid: contact for contact in (*named, *found) if contact is not None}
    return sorted(known.values(), key=lambda contact: not _is_named(contact, name))


def _is_named(contact: Contact, name: str) -> bool:
    return name in (contact.id, contact.user_id) or address_key(contact.email or "") == address_key(name)


def _tickets(reader: SearchReader, project: int, name: str, limit: int) -> list[Ticket]:
    named = reader.ticket(project, name)
    found = [ticket for ticket, _ in reader.tickets(project, TicketFilter(text=name), _NEWEST, None, limit)]
    if named is None:
        return found
    return [named, *(ticket for ticket in found if ticket.rowid != named.rowid)]
