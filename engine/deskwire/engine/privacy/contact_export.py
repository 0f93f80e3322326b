"""The export of a contact: one JSON document with all its data, generated while it is sent (GDPR, article 15).

The document is read page by page in short transactions, so that memory holds one page, and a slow client keeps no transaction
open, which would keep erased text in the WAL. Messages written during the export may be included. All data that existed at
the start is included exactly once. An erasure cuts the document off.

Drafts and held messages are not included because they belong to their authors until they are sent (ADR 53).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import orjson
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact, contact_with_profile_view
from deskwire.engine.contacts.memory import MemoryReader, memory_view
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.activity import activity_view as conversation_activity_view
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.events import conversation_view, dashboard_message_view, message_view
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.store import Store
from deskwire.engine.customers.session import CustomerSessionReader, exported_session_view
from deskwire.engine.surveys.ports import SurveyReader
from deskwire.engine.surveys.survey import response_view
from deskwire.engine.tickets.activity import activity_view
from deskwire.engine.tickets.ports import TicketFilter, TicketReader, TicketSort
from deskwire.engine.tickets.ticket import Ticket, ticket_view
from deskwire.engine.uploads.links import AttachmentsView

C = TypeVar("C")
T = TypeVar("T")
_LAST: Final = (1 << 63) - 1
PAGE_SIZE: Final = 100
"""Objects per page. Messages are the largest, with up to 20,000 characters each."""


class ExportReader(
    ConversationReader,
    TicketReader,
    CustomerSessionReader,
    SurveyReader,
    MemoryReader,
    ContactReader,
    Protocol,
):
    """Queries on all data of a contact."""


class ExportSubject(Struct, frozen=True):
    """The contact to export, and the options of the export.

    Args:
        show: adds URLs to the attachments of a message.
        internal: whether to include data that only agents see: notes, tags, snoozes, followers, and the activity of tickets
            and conversations.
    """

    project: Project
    contact: Contact
    show: AttachmentsView
    internal: bool


class ContactExporter:
    """Generates the document of one contact."""

    def __init__(self, store: Store[ExportReader, object], subject: ExportSubject, now: int) -> None:
        self._store = store
        self._subject = subject
        self._now = now

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the document in pieces.

        Its last field is `complete`. Raises NotFound when the contact is erased.
        """
        contact = self._subject.contact
        profile = await self._read(lambda reader: reader.profile(contact.rowid))
        shown = contact_with_profile_view(contact, profile)
        if shown["blocked"] is not None and not self._subject.internal:
            shown["blocked"] = {**shown["blocked"], "reason": None}  # agents wrote it for agents
        yield _opened({"exportedAt": iso(self._now), "contact": shown})
        for name, pages in (
            ("memory", self._memory()),
            ("surveyResponses", self._responses()),
            ("tickets", self._tickets()),
            ("sessions", self._sessions()),
        ):
            async for piece in _array(name, pages):
                yield piece
        yield b',"conversations":['
        separator = b"\n"
        for conversation_id in await self._read(lambda reader: reader.conversation_ids(contact.rowid)):
            state = await self._read(partial(_conversation, self._subject.project.rowid, conversation_id))
            if state is None:  # deleted during the export
                continue
            yield separator
            separator = b",\n"
            async for piece in self._shown(state):
                yield piece
        yield b'\n],"complete":true}\n'

    async def _read(self, query: Callable[[ExportReader], T]) -> T:
        """Run a query. Raises NotFound if the contact has been erased."""
        project, contact = self._subject.project.rowid, self._subject.contact

        def checked(reader: ExportReader) -> T:
            if reader.contact_by_id(project, contact.id) is None:
                raise NotFound("The contact was erased.", code="contact_not_found")
            return query(reader)

        return await self._store.read(checked)

    async def _pages(
        self, fetch: Callable[[C | None, ExportReader], Sequence[T]], place: Callable[[T], C]
    ) -> AsyncIterator[Sequence[T]]:
        """Yield the pages of `fetch`, which returns the objects after a page key, None for the first page."""
        at: C | None = None
        while page := await self._read(partial(fetch, at)):
            yield page
            at = place(page[-1])

    async def _memory(self) -> AsyncIterator[Sequence[dict[str, Any]]]:
        contact = self._subject.contact.rowid
        pages = self._pages(
            lambda at, reader: reader.memory_entries(contact, at, PAGE_SIZE), lambda entry: entry.rowid
        )
        async for page in pages:
            yield [memory_view(entry) for entry in page]

    async def _responses(self) -> AsyncIterator[Sequence[dict[str, Any]]]:
        contact = self._subject.contact.rowid
        pages = self._pages(
            lambda at, reader: reader.responses_of_contact(contact, at, PAGE_SIZE),
            lambda answered: answered[1].rowid,
        )
        async for page in pages:
            yield [response_view(survey, response) for survey, response in page]

    async def _sessions(self) -> AsyncIterator[Sequence[dict[str, Any]]]:
        contact = self._subject.contact.rowid
        pages = self._pages(
            lambda at, reader: reader.all_customer_sessions(contact, _LAST if at is None else at, PAGE_SIZE),
            lambda session: session.rowid,
        )
        async for page in pages:
            yield [exported_session_view(session) for session in page]

    async def _tickets(self) -> AsyncIterator[Sequence[dict[str, Any]]]:
        project, of_contact = self._subject.project.rowid, TicketFilter(contact=self._subject.contact.rowid)
        pages = self._pages(
            lambda at, reader: reader.tickets(project, of_contact, TicketSort(), at, PAGE_SIZE),
            lambda placed: placed[1],
        )
        async for page in pages:
            yield [await self._ticket(ticket) for ticket, _ in page]

    async def _ticket(self, ticket: Ticket) -> dict[str, Any]:
        if not self._subject.internal:
            return ticket_view(ticket)
        pages = self._pages(
            lambda at, reader: reader.ticket_activity(ticket.rowid, at, PAGE_SIZE), lambda entry: entry.rowid
        )
        return {
            **ticket_view(ticket),
            "activity": [activity_view(entry) async for page in pages for entry in page],
        }

    async def _shown(self, state: Conversation) -> AsyncIterator[bytes]:
        """Yield the object of a conversation in pieces."""
        subject = self._subject
        yield _opened(
            {
                **conversation_view(state, subject.contact, subject.project.id),
                "ratedAt": iso_or_none(state.rated_at),
                "visible": state.visible,
                "contactSeenIndex": state.contact_seen_index,
                "contactSeenAt": iso_or_none(state.contact_seen_at),
                **((await self._filed(state)) if subject.internal else {}),
            }
        )
        if subject.internal:
            async for piece in _array("activity", self._activity(state)):
                yield piece
        async for piece in _array("messages", self._messages(state)):
            yield piece
        logs = await self._read(lambda reader: reader.network_logs(state.rowid))
        yield b',"networkLogs":' + (logs or b"null") + b"}"

    async def _filed(self, state: Conversation) -> dict[str, Any]:
        """Return the fields that agents set on a conversation: tags, followers, and `snoozedUntil` if it is snoozed."""
        snoozed = {} if state.snoozed_until is None else {"snoozedUntil": iso(state.snoozed_until)}
        followers = await self._read(lambda reader: reader.followers([state.rowid]))
        return {"tags": [*state.tags], "followers": [*followers.get(state.rowid, ())], **snoozed}

    async def _activity(self, state: Conversation) -> AsyncIterator[Sequence[dict[str, Any]]]:
        pages = self._pages(
            lambda at, reader: reader.conversation_activity(state.rowid, at, PAGE_SIZE),
            lambda entry: entry.rowid,
        )
        async for page in pages:
            yield [conversation_activity_view(entry) for entry in page]

    async def _messages(self, state: Conversation) -> AsyncIterator[Sequence[dict[str, Any]]]:
        show, internal = self._subject.show, self._subject.internal
        view = dashboard_message_view if internal else message_view
        pages = self._pages(partial(_messages, state.rowid, internal), lambda message: message.id)
        async for page in pages:
            yield [view(message, state.id, show) for message in page]


def _conversation(project: int, conversation_id: str, reader: ExportReader) -> Conversation | None:
    stored = reader.conversation(project, conversation_id)
    return None if stored is None else stored[0]


def _messages(conversation: int, internal: bool, last: str | None, reader: ExportReader) -> Sequence[Message]:
    after = 0 if last is None else reader.message_rowid(conversation, last, internal=internal)
    if after is None:  # the conversation was deleted during the export
        return ()
    return reader.messages(conversation, internal=internal, after=after, limit=PAGE_SIZE)


def _opened(fields: dict[str, Any]) -> bytes:
    """Return an object without its closing brace, so that fields can follow."""
    return orjson.dumps(fields)[:-1]


async def _array(name: str, pages: AsyncIterator[Sequence[dict[str, Any]]]) -> AsyncIterator[bytes]:
    """Yield a further field of an object: an array with the items of all pages."""
    opening = f',"{name}":['.encode()
    async for page in pages:
        yield opening + b",".join(orjson.dumps(item) for item in page)
        opening = b","
    yield b"]" if opening == b"," else opening + b"]"
