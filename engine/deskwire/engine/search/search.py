"""A search over conversations, contacts and tickets.

Exact matches of an id, user id or e-mail address come first, then conversations by newest activity, contacts by
creation and tickets by last change. A conversation matches if its messages, notes and title together have all words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

from msgspec import Struct

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.search_terms import search_terms
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.folding import address_key
from deskwire.engine.search.hits import Hit, HitFinder
from deskwire.engine.search.ports import ConversationMatch, IndexLag, SearchReader
from deskwire.engine.search.tokens import query_words
from deskwire.engine.tickets.ports import TicketFilter, TicketSort
from deskwire.engine.tickets.ticket import Ticket

T = TypeVar("T")
Part: TypeAlias = Literal["conversations", "contacts", "tickets"]

MESSAGES_MAX: Final = 200
"""Newest messages of a conversation that are searched for excerpts; a word may be in an older one."""

_NEWEST: Final = TicketSort("updatedAt", "desc")


class FoundConversation(Struct, frozen=True):
    """A conversation that matches, with the messages that show why."""

    conversation: Conversation
    contact: Contact
    hits: Sequence[Hit]


class SearchResult(Struct, frozen=True):
    """The result of a search; a part that was not requested is None.

    Args:
        more: the parts that the limit cut.
        behind: the lag of the index when the search began.
    """

    conversations: Sequence[FoundConversation] | None
    contacts: Sequence[Contact] | None
    tickets: Sequence[Ticket] | None
    more: frozenset[Part]
    behind: IndexLag


def search(
    reader: SearchReader, project: int, query: str, parts: Collection[Part], limit: int
) -> SearchResult:
    """Search a project for the words of a query; the last one may be incomplete.

    Args:
        limit: maximum matches of each part.
    """
    words, name = query_words(query), query.strip()
    behind = reader.search_lag()  # first: the index may grow during the search
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
        finder = HitFinder(words)
        conversations = [_found(each, finder) for each in reader.shown(rows, MESSAGES_MAX, words)]
    if "contacts" in parts:
        contacts = cut("contacts", _contacts(reader, project, name, limit + 1))
    if "tickets" in parts:
        tickets = cut("tickets", _tickets(reader, project, name, limit + 1))
    return SearchResult(conversations, contacts, tickets, frozenset(more), behind)


def _conversations(
    reader: SearchReader, project: int, words: Sequence[str], name: str, limit: int
) -> tuple[list[int], bool]:
    """Return the rows of matching conversations, and whether there are more."""
    found = reader.found_conversations(project, words, limit)
    named = reader.conversation_named(project, name)
    rows = list(dict.fromkeys((*(() if named is None else (named,)), *found.rows)))
    return rows[:limit], found.more or len(rows) > limit


def _found(shown: ConversationMatch, finder: HitFinder) -> FoundConversation:
    hits = finder.hits_in(shown.texts, shown.conversation.title)
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
