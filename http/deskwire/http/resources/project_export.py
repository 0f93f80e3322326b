"""Exports of a project for its backend: objects of one kind as NDJSON, all of them or the changes since the last export."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import Annotated, Final

import orjson
from pydantic import Field, ValidationInfo, field_validator

from deskwire.engine.audit.audited_changes import project_exported
from deskwire.engine.privacy.project_export import ExportKind, ExportMark, ExportRequest, ProjectExport
from deskwire.http.api.audit_records import recorded_export
from deskwire.http.api.calls import Answer, Call, Streamed
from deskwire.http.api.input.validation import Body, Query, Time
from deskwire.http.api.pagination import bad_cursor, decode_cursor_as_of, encode_cursor
from deskwire.http.api.routing import Media, Routes, Tag, s2s

NDJSON: Final = "application/x-ndjson"
routes = Routes(
    Tag(
        "Exports",
        "Export the objects of a project as NDJSON: all of them, or the changes since the last export.",
    ),
    s2s("conversations.read"),
)


class ExportQuery(Query):
    """The start of an export: the `nextCursor` of an earlier one, a time, or neither for everything."""

    cursor: Annotated[str, Field(min_length=1)] | None = None
    updated_since: Time | None = None

    @field_validator("updated_since")
    @classmethod
    def _one(cls, since: int | None, info: ValidationInfo) -> int | None:
        if since is not None and info.data.get("cursor") is not None:
            raise ValueError("Give only one of `cursor` and `updatedSince`, where the export starts.")
        return since


@routes.add(
    "GET",
    "/s2s/export/conversations",
    operation_id="exportConversations",
    query=ExportQuery,
    answer=Media(NDJSON),
    records=("project.exported",),
)
async def export_conversations(call: Call[Body, ExportQuery]) -> Answer:
    """Export conversations as NDJSON, one per line. The export is streamed.

    With the `nextCursor` of an earlier export, it has the conversations changed since, and `{"id", "deleted": true}` for each
    deleted one. The last line is `{"nextCursor", "exportedAt", "deletions"}`; without it, the export is incomplete.
    """
    return await _exported(call, "conversations")


@routes.add(
    "GET",
    "/s2s/export/messages",
    operation_id="exportMessages",
    query=ExportQuery,
    answer=Media(NDJSON),
    records=("project.exported",),
)
async def export_messages(call: Call[Body, ExportQuery]) -> Answer:
    """Export the messages of all conversations as NDJSON, one per line, without agents' notes. The export is streamed.

    With the `nextCursor` of an earlier export, it has the messages added or redacted since, `{"id",
    "conversationId", "deleted": true}` for each deleted one, and `{"conversationId", "deleted": true}` for each
    deleted conversation with all its messages. The last line is `{"nextCursor", "exportedAt", "deletions"}`.
    """
    return await _exported(call, "messages")


@routes.add(
    "GET",
    "/s2s/export/tickets",
    s2s("tickets.read"),
    operation_id="exportTickets",
    query=ExportQuery,
    answer=Media(NDJSON),
    records=("project.exported",),
)
async def export_tickets(call: Call[Body, ExportQuery]) -> Answer:
    """Export tickets as NDJSON, one per line. The export is streamed.

    With the `nextCursor` of an earlier export, it has the tickets changed since, and `{"id", "deleted": true}` for each
    deleted one. The last line is `{"nextCursor", "exportedAt", "deletions"}`; without it, the export is incomplete.
    """
    return await _exported(call, "tickets")


@routes.add(
    "GET",
    "/s2s/export/survey-responses",
    s2s("surveys.read"),
    operation_id="exportSurveyResponses",
    query=ExportQuery,
    answer=Media(NDJSON),
    records=("project.exported",),
)
async def export_survey_responses(call: Call[Body, ExportQuery]) -> Answer:
    """Export the responses to all surveys as NDJSON, one per line. The export is streamed.

    With the `nextCursor` of an earlier export, it has the responses added since, `{"id", "surveyId", "deleted": true}`
    for each deleted one, and `{"surveyId", "deleted": true}` for each deleted survey with all its responses. The last line is
    `{"nextCursor", "exportedAt", "deletions"}`.
    """
    return await _exported(call, "survey-responses")


async def _exported(call: Call[Body, ExportQuery], kind: ExportKind) -> Answer:
    services, project, now = call.services, call.project, call.services.clock()
    number = int.from_bytes(blake2b(orjson.dumps([project.id, kind]), digest_size=6).digest())
    show = partial(services.uploads.links.shown, now=now)
    since = None if call.query.cursor is None else _mark(call.query.cursor, number)
    wanted = ExportRequest(project, kind, show, since, call.query.updated_since)
    export = ProjectExport(call.revocable_store, wanted, now)
    lines = export.lines(lambda mark: encode_cursor(number, mark.at, as_of=mark.event_id))
    sent = await recorded_export(call, project_exported(project, kind), lines)
    disposition = {"Content-Disposition": f'attachment; filename="{project.id}-{kind}.ndjson"'}
    return Streamed(sent, NDJSON, disposition)


def _mark(cursor: str, number: int) -> ExportMark:
    """Return the position of a cursor. Raises BadRequest for another export's cursor."""
    (of, at), event_id = decode_cursor_as_of(cursor, 2)
    if of != number:
        raise bad_cursor("This cursor is from an export of other objects.")
    return ExportMark(event_id, at)
