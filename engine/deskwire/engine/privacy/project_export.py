"""The export of a project's objects of one kind, one JSON line each: all of them, or the changes since an earlier export.

An export without a mark reads all objects page by page, in an order in which no object moves. Its last line contains the mark
for the next export. That one reads the events since the mark in commit order, and writes each changed object once, in its
current state, or its deletion. If the events since the mark have been deleted by retention, the time in the mark is used
instead: the export contains objects changed or imported since then, and no deletions.

Each page is read in a short transaction, so that memory holds one page and a slow client keeps no transaction open.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final, Literal, Protocol

import orjson
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.events import conversation_view, message_view
from deskwire.engine.conversations.listing import ConversationFilter, ConversationSort, ListedConversation
from deskwire.engine.conversations.listing import ConversationPageKey as ConversationPlace
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.clock import iso
from deskwire.engine.core.store import Store
from deskwire.engine.events.log import NO_EVENT_ID, logged_read_position
from deskwire.engine.events.ports import EventReader
from deskwire.engine.events.types import STORED
from deskwire.engine.surveys.ports import SurveyReader
from deskwire.engine.surveys.survey import ResponseFilter, Survey, SurveyResponse, response_view
from deskwire.engine.tickets.ports import TicketFilter, TicketPageKey, TicketReader, TicketSort
from deskwire.engine.tickets.ticket import ticket_view
from deskwire.engine.uploads.links import AttachmentsView

ExportKind = Literal["conversations", "messages", "tickets", "survey-responses"]
ExportLine = Mapping[str, Any]

PAGE_SIZE: Final = 100
"""Objects or events per page."""
OVERLAP_MS: Final = 600_000
"""Overlap of exports by time, for changes that had an earlier time but were not yet committed at the mark."""

_IMPORTED: Final = "conversations.imported"
_TYPES: Final[Mapping[ExportKind, frozenset[str]]] = {
    "conversations": STORED - {"contact.updated"} | {_IMPORTED},
    "messages": frozenset({"message.created", "conversation.updated", "conversation.deleted", _IMPORTED}),
    "tickets": frozenset({"ticket.created", "ticket.changed", "ticket.deleted"}),
    "survey-responses": frozenset({"survey.response.created", "survey.response.deleted", "survey.deleted"}),
}
"""The types of events that announce changes of each kind."""


class ProjectExportReader(ConversationReader, TicketReader, SurveyReader, EventReader, Protocol):
    """Queries on all kinds of exported objects."""


class ExportMark(Struct, frozen=True):
    """The start of an export: the id of the project's newest event (`logged_read_position`), and the time (ms)."""

    event_id: str
    at: int


class ExportRequest(Struct, frozen=True):
    """The parameters of an export.

    Args:
        show: adds URLs to the attachments of a message.
        since: mark of the earlier export.
        changed_since: time (ms) to start from if there is no mark.
    """

    project: Project
    kind: ExportKind
    show: AttachmentsView
    since: ExportMark | None = None
    changed_since: int | None = None


class ProjectExport:
    """Generates an export of one kind."""

    def __init__(self, store: Store[ProjectExportReader, object], wanted: ExportRequest, now: int) -> None:
        self._store = store
        self._wanted = wanted
        self._project = wanted.project
        self._now = now

    async def lines(self, cursor: Callable[[ExportMark], str]) -> AsyncGenerator[bytes, None]:
        """Yield the lines page by page.

        The last line contains this export's mark, encoded by `cursor`.
        """
        begun, upto, after = await self._store.read(self._beginning)
        if after is not None:
            pages = self._changed(after, upto)
        else:
            pages = self._all(self._changed_since())
        async for page in pages:
            if page:
                yield b"".join([orjson.dumps(line) + b"\n" for line in page])
        deletions = after is not None or self._changed_since() is None
        yield (
            orjson.dumps({"nextCursor": cursor(begun), "exportedAt": iso(self._now), "deletions": deletions})
            + b"\n"
        )

    def _changed_since(self) -> int | None:
        """Return the time (ms) since which changes are exported.

        None for an export of all objects.
        """
        if self._wanted.since is not None:
            return self._wanted.since.at - OVERLAP_MS
        return self._wanted.changed_since

    def _beginning(self, reader: ProjectExportReader) -> tuple[ExportMark, int, int | None]:
        """Return this export's mark, its log position, and the position to read events from.

        None to read objects instead.
        """
        project = self._project.rowid
        pruned, _ = reader.event_window(project)
        begun = ExportMark(logged_read_position(reader, project), self._now)
        upto = reader.event_position(project, begun.event_id)
        since = self._wanted.since
        if since is None:
            return begun, upto, None
        within = (pruned or NO_EVENT_ID) <= since.event_id <= begun.event_id
        return begun, upto, reader.event_position(project, since.event_id) if within else None

    async def _changed(self, after: int, upto: int) -> AsyncIterator[Sequence[ExportLine]]:
        """Yield the objects of the events after position `after`, up to `upto`."""
        at: int | None = after
        while at is not None:
            at, lines = await self._store.read(partial(self._changed_page, at, upto))
            yield lines

    def _changed_page(
        self, after: int, upto: int, reader: ProjectExportReader
    ) -> tuple[int | None, Sequence[ExportLine]]:
        types = _TYPES[self._wanted.kind]
        events = reader.named_events(self._project.rowid, after, PAGE_SIZE, types)
        lines: dict[str, ExportLine] = {}
        for event in events:
            if event.position > upto:
                return None, [*lines.values()]
            data = orjson.loads(event.body)["data"]
            for line in _CHANGED[self._wanted.kind](self, reader, event.type, data):
                lines[str(line.get("id", line))] = line
            if len(lines) >= PAGE_SIZE:  # an event of an import has many objects
                return event.position, [*lines.values()]
        return events[-1].position if len(events) == PAGE_SIZE else None, [*lines.values()]

    def _changed_conversations(self, reader: ProjectExportReader, kind: str, data: Any) -> list[ExportLine]:
        """Return the conversations of an event, or a deletion.

        A conversation with a newer event is left to that event.
        """
        if kind == _IMPORTED:
            return [
                line for view in data["conversations"] for line in self._imported_conversation(reader, view)
            ]
        view = data["conversation"]
        if kind == "conversation.deleted":
            return [{"id": view["id"], "deleted": True}]
        found = reader.conversation(self._project.rowid, view["id"])
        if found is None or not found[0].visible or found[0].sequence != view["sequence"]:
            return []  # a later event has it, in this export or the next one
        return [conversation_view(*found, self._project.id)]

    def _imported_conversation(self, reader: ProjectExportReader, view: Any) -> Iterator[ExportLine]:
        """Yield an imported conversation, unless a later event or batch of the import has changed it."""
        found = reader.conversation(self._project.rowid, view["id"])
        if found is not None and found[0].visible:
            newest = found[0].sequence, found[0].messages
            if newest == (view["sequence"], view["messages"]):
                yield conversation_view(*found, self._project.id)

    def _imported_messages(self, reader: ProjectExportReader, view: Any) -> Iterator[ExportLine]:
        """Yield the messages that one batch of an import stored in a conversation."""
        found = reader.conversation(self._project.rowid, view["id"]) if view["imported"] else None
        if found is None or not found[0].visible:
            return
        state = found[0]
        place = reader.message_rowid(state.rowid, view["firstMessageId"], internal=False)
        assert place is not None, "a deleted message keeps its place"
        for message in reader.messages(state.rowid, internal=False, after=place - 1, limit=view["imported"]):
            if message.index is not None and message.index < view["messages"]:
                yield message_view(message, state.id, self._wanted.show)

    def _changed_messages(self, reader: ProjectExportReader, kind: str, data: Any) -> list[ExportLine]:
        """Return the new, redacted and deleted messages of an event."""
        if kind == _IMPORTED:
            return [line for view in data["conversations"] for line in self._imported_messages(reader, view)]
        conversation_id = data["conversation"]["id"]
        if kind == "conversation.deleted":
            return [{"conversationId": conversation_id, "deleted": True}]
        ids = [data["message"]["id"]] if kind == "message.created" else []
        ids += [*data.get("redactedMessageIds", ()), *data.get("deletedMessageIds", ())]
        found = reader.conversation(self._project.rowid, conversation_id) if ids else None
        if found is None or not found[0].visible:
            return []
        return [self._message(reader, found[0], each) for each in ids]

    def _message(self, reader: ProjectExportReader, state: Conversation, message_id: str) -> ExportLine:
        place = reader.message_rowid(state.rowid, message_id, internal=False)
        after = None if place is None else place - 1
        found = () if after is None else reader.messages(state.rowid, internal=False, after=after, limit=1)
        if not found or found[0].id != message_id:  # a deleted message may still have its row
            return {"id": message_id, "conversationId": state.id, "deleted": True}
        return message_view(found[0], state.id, self._wanted.show)

    def _changed_tickets(self, reader: ProjectExportReader, kind: str, data: Any) -> list[ExportLine]:
        """Return the ticket of an event, or its deletion.

        A ticket with a newer event is left to that event.
        """
        view = data["ticket"]
        if kind == "ticket.deleted":
            return [{"id": view["id"], "deleted": True}]
        ticket = reader.ticket(self._project.rowid, view["id"])
        if ticket is None or iso(ticket.updated_at) != view["updatedAt"]:
            return []
        return [ticket_view(ticket)]

    def _changed_responses(self, reader: ProjectExportReader, kind: str, data: Any) -> list[ExportLine]:
        """Return the survey response of an event, its deletion, or the deletion of its survey."""
        survey_id = data["survey"]["id"]
        if kind == "survey.deleted":
            return [{"surveyId": survey_id, "deleted": True}]
        response_id = data["response"]["id"]
        if kind == "survey.response.deleted":
            return [{"id": response_id, "surveyId": survey_id, "deleted": True}]
        survey = reader.survey(self._project.rowid, survey_id)
        response = None if survey is None else reader.survey_response(survey.rowid, response_id)
        return [] if survey is None or response is None else [response_view(survey, response)]

    def _all(self, since: int | None) -> AsyncIterator[Sequence[ExportLine]]:
        """Yield all objects, or those changed since a time (ms)."""
        match self._wanted.kind:
            case "conversations":
                return self._all_conversations(since)
            case "messages":
                return self._all_messages(since)
            case "tickets":
                return self._all_tickets(since)
            case "survey-responses":
                return self._all_responses(since)

    async def _listed(self, since: int | None) -> AsyncGenerator[Sequence[ListedConversation], None]:
        """Yield the conversations page by page.

        Sorted by creation, none moves during the export. Sorted by change, a changed one moves beyond the upper bound and is left
        to the next export. Imported conversations are queried separately because their last change may be much older.
        """
        if since is None:
            lists = [(ConversationFilter(visible=True), ConversationSort("created", "asc"))]
        else:
            changed = ConversationFilter(visible=True, changed_since=since, changed_before=self._now + 1)
            imported = ConversationFilter(visible=True, imported_since=since, changed_before=since)
            lists = [
                (changed, ConversationSort("updated", "asc")),
                (imported, ConversationSort("created", "asc")),
            ]
        for wanted, sort in lists:
            async with aclosing(self._listed_by(wanted, sort)) as pages:
                async for page in pages:
                    yield page

    async def _listed_by(
        self, wanted: ConversationFilter, sort: ConversationSort
    ) -> AsyncGenerator[Sequence[ListedConversation], None]:
        project, after = self._project.rowid, None

        def read(
            after: ConversationPlace | None, reader: ProjectExportReader
        ) -> Sequence[ListedConversation]:
            return reader.conversations(project, wanted, sort, after, PAGE_SIZE)

        while page := await self._store.read(partial(read, after)):
            yield page
            after = page[-1].at

    async def _all_conversations(self, since: int | None) -> AsyncIterator[Sequence[ExportLine]]:
        async for page in self._listed(since):
            yield [conversation_view(each.conversation, each.contact, self._project.id) for each in page]

    async def _all_messages(self, since: int | None) -> AsyncIterator[Sequence[ExportLine]]:
        """Yield the messages of the conversations, oldest first within each."""
        async with aclosing(self._listed(since)) as pages:
            async for page in pages:
                for each in page:
                    async for lines in self._thread(each.conversation):
                        yield lines

    async def _thread(self, state: Conversation) -> AsyncIterator[Sequence[ExportLine]]:
        place = 0
        while lines := await self._store.read(partial(self._messages_of, state, place)):
            yield [line for line, _ in lines]
            place = lines[-1][1]
            if len(lines) < PAGE_SIZE:
                break

    def _messages_of(
        self, state: Conversation, after: int, reader: ProjectExportReader
    ) -> Sequence[tuple[ExportLine, int]]:
        found: Sequence[Message] = reader.messages(state.rowid, internal=False, after=after, limit=PAGE_SIZE)
        if not found:
            return ()
        last = reader.message_rowid(state.rowid, found[-1].id, internal=False)
        assert last is not None, "it is read in the same transaction"
        return [(message_view(message, state.id, self._wanted.show), last) for message in found]

    async def _all_tickets(self, since: int | None) -> AsyncIterator[Sequence[ExportLine]]:
        project, after = self._project.rowid, None
        sort = TicketSort("createdAt", "asc")

        def read(after: TicketPageKey | None, reader: ProjectExportReader) -> Sequence[Any]:
            return reader.tickets(project, TicketFilter(), sort, after, PAGE_SIZE)

        while page := await self._store.read(partial(read, after)):
            yield [ticket_view(ticket) for ticket, _ in page if since is None or ticket.updated_at >= since]
            after = page[-1][1]

    async def _all_responses(self, since: int | None) -> AsyncIterator[Sequence[ExportLine]]:
        project, before = self._project.rowid, None

        def surveys(before: int | None, reader: ProjectExportReader) -> Sequence[Survey]:
            return reader.surveys(project, None, None, before, PAGE_SIZE)

        while page := await self._store.read(partial(surveys, before)):
            for survey in page:
                async for lines in self._responses_of(survey, ResponseFilter(since=since)):
                    yield lines
            before = page[-1].rowid

    async def _responses_of(
        self, survey: Survey, wanted: ResponseFilter
    ) -> AsyncIterator[Sequence[ExportLine]]:
        before: int | None = None

        def read(before: int | None, reader: ProjectExportReader) -> Sequence[SurveyResponse]:
            return reader.survey_responses(survey.rowid, wanted, before, PAGE_SIZE)

        while page := await self._store.read(partial(read, before)):
            yield [response_view(survey, response) for response in page]
            before = page[-1].rowid


_CHANGED: Final[
    Mapping[ExportKind, Callable[[ProjectExport, ProjectExportReader, str, Any], list[ExportLine]]]
] = {
    "conversations": ProjectExport._changed_conversations,
    "messages": ProjectExport._changed_messages,
    "tickets": ProjectExport._changed_tickets,
    "survey-responses": ProjectExport._changed_responses,
}
