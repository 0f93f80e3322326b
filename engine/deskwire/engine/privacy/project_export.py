"""The export of a project's objects of one kind, line by line: all of them, or what has changed since another export.

An export without a mark reads everything, page by page, in an order in which nothing moves. Its last line has the mark
from which the next one goes on: that reads the events in between, in commit order, and shows each object that they tell
of as it is stored now, once, or its deletion. A mark from before the events that are stored is a time: what changed since
then is shown, or was imported since, and what is gone is not told.

Each page is a short read of its own: a slow reader holds no transaction open, and memory holds one page.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeVar, get_args

import orjson
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.emit import conversation_view, message_view
from deskwire.engine.conversations.listing import ConversationFilter, Listed, Sort
from deskwire.engine.conversations.listing import Place as ConversationPlace
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.clock import iso
from deskwire.engine.core.store import Store
from deskwire.engine.events.as_of import NO_EVENT, logged_as_of
from deskwire.engine.events.ports import EventReader
from deskwire.engine.events.types import STORED
from deskwire.engine.surveys.ports import SurveyReader
from deskwire.engine.surveys.survey import Response, ResponseFilter, Survey, response_view
from deskwire.engine.tickets.ports import Place, TicketFilter, TicketReader
from deskwire.engine.tickets.ports import Sort as TicketSort
from deskwire.engine.tickets.ticket import ticket_view
from deskwire.engine.uploads.links import AttachmentsView

T = TypeVar("T")
Kind = Literal["conversations", "messages", "tickets", "survey-responses"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Line = Mapping[str, Any]

PAGE: Final = 100
"""Objects, or events, that are read at a time."""
OVERLAP_MS: Final = 600_000
"""The time by which an export that goes by times begins earlier: what was changed then may not have been committed yet."""

_IMPORTED: Final = "conversations.imported"
_TYPES: Final[Mapping[Kind, frozenset[str]]] = {
    "conversations": STORED - {"contact.updated"} | {_IMPORTED},
    "messages": frozenset({"message.created", "conversation.updated", "conversation.deleted", _IMPORTED}),
    "tickets": frozenset({"ticket.created", "ticket.changed", "ticket.deleted"}),
    "survey-responses": frozenset({"survey.response.created", "survey.response.deleted", "survey.deleted"}),
}
"""The events that tell of each kind."""


class ProjectExportReader(ConversationReader, TicketReader, SurveyReader, EventReader, Protocol):
    """Queries on all that is exported."""


class Mark(Struct, frozen=True):
    """The moment at which an export began: the id of the project's newest event (`logged_as_of`), and the time (ms)."""

    event_id: str
    at: int


class Wanted(Struct, frozen=True):
    """The objects that an export has.

    Args:
        show: gives a message's attachments their URLs.
        since: the mark of the export that this one goes on from.
        changed_since: a time (ms) to go on from in place of a mark.
    """

    project: Project
    kind: Kind
    show: AttachmentsView
    since: Mark | None = None
    changed_since: int | None = None


class ProjectExport:
    """An export of objects of one kind."""

    def __init__(self, store: Store[ProjectExportReader, object], wanted: Wanted, now: int) -> None:
        self._store = store
        self._wanted = wanted
        self._project = wanted.project
        self._now = now

    async def lines(self, cursor: Callable[[Mark], str]) -> AsyncGenerator[bytes, None]:
        """Yield the lines, a page of them at a time, and the last one with what `cursor` makes of this export's mark."""
        begun, upto, after = await self._store.read(self._beginning)
        if after is not None:
            pages = self._told(after, upto)
        else:
            pages = self._all(self._time())
        async for page in pages:
            if page:
                yield b"".join([orjson.dumps(line) + b"\n" for line in page])
        told = after is not None or self._time() is None
        yield (
            orjson.dumps({"nextCursor": cursor(begun), "exportedAt": iso(self._now), "deletions": told})
            + b"\n"
        )

    def _time(self) -> int | None:
        """Return the time from which on changes are shown; None for an export of everything."""
        if self._wanted.since is not None:
            return self._wanted.since.at - OVERLAP_MS
        return self._wanted.changed_since

    def _beginning(self, reader: ProjectExportReader) -> tuple[Mark, int, int | None]:
        """Return this export's mark with its position, and that to read from; None if events can't tell."""
        project = self._project.rowid
        pruned, _ = reader.event_window(project)
        begun = Mark(logged_as_of(reader, project), self._now)
        upto = reader.event_position(project, begun.event_id)
        since = self._wanted.since
        if since is None:
            return begun, upto, None
        within = (pruned or NO_EVENT) <= since.event_id <= begun.event_id
        return begun, upto, reader.event_position(project, since.event_id) if within else None

    async def _told(self, after: int, upto: int) -> AsyncIterator[Sequence[Line]]:
        """Yield what events tell of, of those behind `after` up to `upto`."""
        at: int | None = after
        while at is not None:
            at, lines = await self._store.read(partial(self._told_page, at, upto))
            yield lines

    def _told_page(
        self, after: int, upto: int, reader: ProjectExportReader
    ) -> tuple[int | None, Sequence[Line]]:
        types = _TYPES[self._wanted.kind]
        events = reader.named_events(self._project.rowid, after, PAGE, types)
        lines: dict[str, Line] = {}
        for event in events:
            if event.position > upto:
                return None, [*lines.values()]
            data = orjson.loads(event.body)["data"]
            for line in _TOLD[self._wanted.kind](self, reader, event.type, data):
                lines[str(line.get("id", line))] = line
            if len(lines) >= PAGE:  # an import tells of many at once
                return event.position, [*lines.values()]
        return events[-1].position if len(events) == PAGE else None, [*lines.values()]

    def _conversations_told(self, reader: ProjectExportReader, kind: str, data: Any) -> list[Line]:
        """Return the conversation of an event, if that is the newest of it, or its deletion; or those that an import tells of."""
        if kind == _IMPORTED:
            return [
                line for told in data["conversations"] for line in self._conversation_imported(reader, told)
            ]
        told = data["conversation"]
        if kind == "conversation.deleted":
            return [{"id": told["id"], "deleted": True}]
        found = reader.conversation(self._project.rowid, told["id"])
        if found is None or not found[0].visible or found[0].sequence != told["sequence"]:
            return []  # a later event tells of it, in this export or the next
        return [conversation_view(*found, self._project.id)]

    def _conversation_imported(self, reader: ProjectExportReader, told: Any) -> Iterator[Line]:
        """Yield a conversation as a part of an import has left it; not if another event or part has changed it since."""
        found = reader.conversation(self._project.rowid, told["id"])
        if found is not None and found[0].visible:
            newest = found[0].sequence, found[0].messages
            if newest == (told["sequence"], told["messages"]):
                yield conversation_view(*found, self._project.id)

    def _messages_imported(self, reader: ProjectExportReader, told: Any) -> Iterator[Line]:
        """Yield the messages that a part of an import has stored in a conversation."""
        found = reader.conversation(self._project.rowid, told["id"]) if told["imported"] else None
        if found is None or not found[0].visible:
            return
        state = found[0]
        place = reader.message_rowid(state.rowid, told["firstMessageId"], internal=False)
        assert place is not None, "a deleted message keeps its place"
        for message in reader.messages(state.rowid, internal=False, after=place - 1, limit=told["imported"]):
            if message.index is not None and message.index < told["messages"]:
                yield message_view(message, state.id, self._wanted.show)

    def _messages_told(self, reader: ProjectExportReader, kind: str, data: Any) -> list[Line]:
        """Return the messages that an event tells of: new ones, those that were redacted, and those that are gone."""
        if kind == _IMPORTED:
            return [line for told in data["conversations"] for line in self._messages_imported(reader, told)]
        told = data["conversation"]["id"]
        if kind == "conversation.deleted":
            return [{"conversationId": told, "deleted": True}]
        ids = [data["message"]["id"]] if kind == "message.created" else []
        ids += [*data.get("redactedMessageIds", ()), *data.get("deletedMessageIds", ())]
        found = reader.conversation(self._project.rowid, told) if ids else None
        if found is None or not found[0].visible:
            return []
        return [self._message(reader, found[0], each) for each in ids]

    def _message(self, reader: ProjectExportReader, state: Conversation, message_id: str) -> Line:
        place = reader.message_rowid(state.rowid, message_id, internal=False)
        after = None if place is None else place - 1
        found = () if after is None else reader.messages(state.rowid, internal=False, after=after, limit=1)
        if not found or found[0].id != message_id:  # a deleted one may have a place still
            return {"id": message_id, "conversationId": state.id, "deleted": True}
        return message_view(found[0], state.id, self._wanted.show)

    def _tickets_told(self, reader: ProjectExportReader, kind: str, data: Any) -> list[Line]:
        """Return the ticket of an event, if that is the newest change of it, or its deletion."""
        told = data["ticket"]
        if kind == "ticket.deleted":
            return [{"id": told["id"], "deleted": True}]
        ticket = reader.ticket(self._project.rowid, told["id"])
        if ticket is None or iso(ticket.updated_at) != told["updatedAt"]:
            return []
        return [ticket_view(ticket)]

    def _responses_told(self, reader: ProjectExportReader, kind: str, data: Any) -> list[Line]:
        """Return the response of an event, its deletion, or that of its survey."""
        survey_id = data["survey"]["id"]
        if kind == "survey.deleted":
            return [{"surveyId": survey_id, "deleted": True}]
        response_id = data["response"]["id"]
        if kind == "survey.response.deleted":
            return [{"id": response_id, "surveyId": survey_id, "deleted": True}]
        survey = reader.survey(self._project.rowid, survey_id)
        response = None if survey is None else reader.survey_response(survey.rowid, response_id)
        return [] if survey is None or response is None else [response_view(survey, response)]

    def _all(self, since: int | None) -> AsyncIterator[Sequence[Line]]:
        """Yield everything, or what was changed since a time (ms)."""
        match self._wanted.kind:
            case "conversations":
                return self._all_conversations(since)
            case "messages":
                return self._all_messages(since)
            case "tickets":
                return self._all_tickets(since)
            case "survey-responses":
                return self._all_responses(since)

    async def _listed(self, since: int | None) -> AsyncGenerator[Sequence[Listed], None]:
        """Yield the conversations page by page.

        By their creation none moves meanwhile. By their change each moves to the end, and behind it: what changes after the
        beginning is the next export's. What was imported since then may have changed long before.
        """
        if since is None:
            lists = [(ConversationFilter(visible=True), Sort("created", "asc"))]
        else:
            changed = ConversationFilter(visible=True, changed_since=since, changed_before=self._now + 1)
            imported = ConversationFilter(visible=True, imported_since=since, changed_before=since)
            lists = [(changed, Sort("updated", "asc")), (imported, Sort("created", "asc"))]
        for wanted, sort in lists:
            async with aclosing(self._listed_by(wanted, sort)) as pages:
                async for page in pages:
                    yield page

    async def _listed_by(
        self, wanted: ConversationFilter, sort: Sort
    ) -> AsyncGenerator[Sequence[Listed], None]:
        project, after = self._project.rowid, None

        def read(after: ConversationPlace | None, reader: ProjectExportReader) -> Sequence[Listed]:
            return reader.conversations(project, wanted, sort, after, PAGE)

        while page := await self._store.read(partial(read, after)):
            yield page
            after = page[-1].at

    async def _all_conversations(self, since: int | None) -> AsyncIterator[Sequence[Line]]:
        async for page in self._listed(since):
            yield [conversation_view(each.conversation, each.contact, self._project.id) for each in page]

    async def _all_messages(self, since: int | None) -> AsyncIterator[Sequence[Line]]:
        """Yield the messages of the conversations, each from its first one on."""
        async with aclosing(self._listed(since)) as pages:
            async for page in pages:
                for each in page:
                    async for lines in self._thread(each.conversation):
                        yield lines

    async def _thread(self, state: Conversation) -> AsyncIterator[Sequence[Line]]:
        place = 0
        while lines := await self._store.read(partial(self._messages_of, state, place)):
            yield [line for line, _ in lines]
            place = lines[-1][1]
            if len(lines) < PAGE:
                break

    def _messages_of(
        self, state: Conversation, after: int, reader: ProjectExportReader
    ) -> Sequence[tuple[Line, int]]:
        found: Sequence[Message] = reader.messages(state.rowid, internal=False, after=after, limit=PAGE)
        if not found:
            return ()
        last = reader.message_rowid(state.rowid, found[-1].id, internal=False)
        assert last is not None, "it is read in the same transaction"
        return [(message_view(message, state.id, self._wanted.show), last) for message in found]

    async def _all_tickets(self, since: int | None) -> AsyncIterator[Sequence[Line]]:
        project, after = self._project.rowid, None
        sort = TicketSort("createdAt", "asc")

        def read(after: Place | None, reader: ProjectExportReader) -> Sequence[Any]:
            return reader.tickets(project, TicketFilter(), sort, after, PAGE)

        while page := await self._store.read(partial(read, after)):
            yield [ticket_view(ticket) for ticket, _ in page if since is None or ticket.updated_at >= since]
            after = page[-1][1]

    async def _all_responses(self, since: int | None) -> AsyncIterator[Sequence[Line]]:
        project, before = self._project.rowid, None

        def surveys(before: int | None, reader: ProjectExportReader) -> Sequence[Survey]:
            return reader.surveys(project, None, None, before, PAGE)

        while page := await self._store.read(partial(surveys, before)):
            for survey in page:
                async for lines in self._responses_of(survey, ResponseFilter(since=since)):
                    yield lines
            before = page[-1].rowid

    async def _responses_of(self, survey: Survey, wanted: ResponseFilter) -> AsyncIterator[Sequence[Line]]:
        before: int | None = None

        def read(before: int | None, reader: ProjectExportReader) -> Sequence[Response]:
            return reader.survey_responses(survey.rowid, wanted, before, PAGE)

        while page := await self._store.read(partial(read, before)):
            yield [response_view(survey, response) for response in page]
            before = page[-1].rowid


_TOLD: Final[Mapping[Kind, Callable[[ProjectExport, ProjectExportReader, str, Any], list[Line]]]] = {
    "conversations": ProjectExport._conversations_told,
    "messages": ProjectExport._messages_told,
    "tickets": ProjectExport._tickets_told,
    "survey-responses": ProjectExport._responses_told,
}
