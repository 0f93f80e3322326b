"""A search: what was found of each kind, in the order in which it is shown.

What has the very id, user id or e-mail address that was asked for comes first, then conversations by their newest activity, contacts and
tickets by their last change. All words have to be in one conversation, whichever of its messages, notes and title have them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.search.hits import Hit, hits_in
from deskwire.engine.search.ports import Behind, Found, SearchReader
from deskwire.engine.search.words import asked_words
from deskwire.engine.tickets.ports import Sort, TicketFilter
from deskwire.engine.tickets.ticket import Ticket

Part: TypeAlias = Literal["conversations", "contacts", "tickets"]

MESSAGES_MAX: Final = 200
"""Messages of a conversation, the newest, among which hits are looked for; a word may stand further back."""

_NEWEST: Final = Sort("updatedAt", "desc")
_END: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """A conversation that was found, and its messages that show why."""

    conversation: Conversation
    contact: Contact
    hits: Sequence[Hit]


@dataclass(frozen=True, slots=True)
class Result:
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
    more: set[Part] = set()

    def bounded(part: Part, named: Sequence[int], found: Found) -> Sequence[int]:
        rows = list(dict.fromkeys((*named, *found.rows)))
        if found.more or len(rows) > limit:
            more.add(part)
        return rows[:limit]

    conversations = contacts = tickets = None
    if "conversations" in parts:
        named = reader.conversation_named(project, name)
        found = reader.found_conversations(project, words, limit)
        rows = bounded("conversations", [] if named is None else [named], found)
        conversations = [_shown(reader, row, words) for row in rows]
    if "contacts" in parts:
        rows = bounded(
            "contacts", reader.contacts_named(project, name), reader.found_contacts(project, words, limit)
        )
        contacts = sorted(map(reader.contact_at, rows), key=lambda contact: not _is_named(contact, name))
    if "tickets" in parts:
        tickets = _tickets(reader, project, name, limit + 1)
        if len(tickets) > limit:
            more.add("tickets")
        tickets = tickets[:limit]
    return Result(conversations, contacts, tickets, frozenset(more), reader.search_behind())


def _shown(reader: SearchReader, row: int, words: Sequence[str]) -> FoundConversation:
    conversation, contact = reader.conversation_at(row)
    messages = reader.messages(row, internal=True, before=_END, limit=MESSAGES_MAX)
    return FoundConversation(conversation, contact, hits_in(messages, conversation.title, words))


def _is_named(contact: Contact, name: str) -> bool:
    return name in (contact.id, contact.user_id) or (contact.email or "").casefold() == name.casefold()


def _tickets(reader: SearchReader, project: int, name: str, limit: int) -> list[Ticket]:
    named = reader.ticket(project, name)
    found = [ticket for ticket, _ in reader.tickets(project, TicketFilter(text=name), _NEWEST, None, limit)]
    if named is None:
        return found
    return [named, *(ticket for ticket in found if ticket.rowid != named.rowid)]
