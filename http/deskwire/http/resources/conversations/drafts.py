"""Drafts of the signed-in agent: read, listed and saved (ADR 53)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final, get_args

from pydantic import Field

from deskwire.engine.accounts.people import AssigneeType
from deskwire.engine.conversations.conversation import Mention
from deskwire.engine.conversations.drafts import (
    DRAFT_ATTACHMENTS_MAX,
    DRAFT_MENTIONS_MAX,
    DRAFT_TEXT_MAX,
    Draft,
    DraftMode,
    DraftWrite,
    draft_key,
    draft_view,
    drafts_view,
    write_draft,
)
from deskwire.engine.core.errors import Invalid, NotFound
from deskwire.engine.core.store import InlineJob, InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.uploads.links import AttachmentsView
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import WHOLE, Routes, Tag, dashboard, personal
from deskwire.http.resources.conversations import operations
from deskwire.http.schemas import writing as shapes
from deskwire.http.schemas.base import page_of

WRITING: Final = Tag(
    "Drafts and held messages",
    "Keep unsent texts of your own for each conversation, and take messages back before they are sent.",
)
OWN: Final = personal(dashboard("conversations.reply"))
UNRECORDED: Final = "A draft is private to its agent until it is sent."

routes = Routes(WRITING, OWN, unrecorded=UNRECORDED)

_VERSION_MAX: Final = 1 << 53  # the largest exact integer in JavaScript
_BRIEF_MAX: Final = 20_000  # characters that are merged in well below a millisecond
_MODES: Final[dict[str, DraftMode]] = {mode: mode for mode in get_args(DraftMode)}


class DraftMention(Body):
    """A user or team that you have picked for a note, with the name that the text of the draft has."""

    type: AssigneeType
    id: Annotated[str, Field(min_length=1, max_length=40)]
    name: Annotated[str, Field(min_length=1, max_length=200)]


class PutDraftRequest(Body):
    """The whole draft; without text and attachments it is removed.

    `version` is that of the draft that you have read, 0 for none. If a newer one is stored, both are merged, and no word of
    either is lost; with `baseText`, the text of the version that you have read, the merge keeps changes in different
    places apart. `baseSequence` is the newest sequence of the conversation that you have seen. `mentions` are kept as they are; the
    note itself is checked.
    """

    text: Annotated[str, Field(max_length=DRAFT_TEXT_MAX)]
    attachments: Annotated[list[str], Field(max_length=DRAFT_ATTACHMENTS_MAX, default_factory=list)]
    version: Annotated[int, Field(ge=0, lt=_VERSION_MAX)]
    base_text: Annotated[str, Field(max_length=2 * DRAFT_TEXT_MAX)] | None = None
    base_sequence: Annotated[int, Field(ge=0, lt=1 << 63)] | None = None
    mentions: Annotated[list[DraftMention], Field(max_length=DRAFT_MENTIONS_MAX, default_factory=list)]


async def _check_attachments(call: Call[PutDraftRequest, Any]) -> None:
    problems = (await operations.attached(call, call.body.attachments, ""))[1]
    if problems:
        raise Invalid(*problems)


def shown(call: Call[Any, Any]) -> AttachmentsView:
    """Return a function that adds current URLs to attachments."""
    return partial(call.services.uploads.links.shown, now=call.services.clock())


@routes.add(
    "GET",
    "/conversations/<conversation_id>/drafts",
    operation_id="getDrafts",
    answer=shapes.ConversationDrafts,
)
async def get_drafts(call: Call[Body, Query]) -> Answer:
    """Fetch your drafts in a conversation: the reply and the note. Drafts are private."""
    identifier, author = operations.conversation_id(call), call.user.rowid

    def read(reader: Reader) -> Sequence[Draft]:
        state, _ = operations.find(reader, call.project, identifier)
        return reader.drafts_in(author, state.rowid)

    found = await call.services.store.read(InlineQuery(read))
    return drafts_view({draft.key.mode: draft for draft in found}, shown(call))


class DraftList(Paged):
    """The page of your drafts to list. `cursor` continues where a page ended."""

    parts = 2


@routes.add("GET", "/drafts", operation_id="listDrafts", query=DraftList, answer=page_of(shapes.ListedDraft))
async def list_drafts(call: Call[Body, DraftList]) -> Answer:
    """List your drafts in a project, newest first."""
    query, place, show = call.query, call.query.place, shown(call)
    before = None if place is None else (place[0], place[1])
    drafts = await call.services.store.read(
        lambda reader: reader.drafts(call.user.rowid, call.project.rowid, before, query.rows)
    )
    return page(
        query,
        drafts,
        lambda draft: {**draft_view(draft, show), "conversationId": draft.key.conversation_id},
        lambda draft: (draft.updated_at, draft.rowid),
    )


@routes.add(
    "PUT",
    "/conversations/<conversation_id>/drafts/<mode>",
    operation_id="putDraft",
    body=PutDraftRequest,
    limit=WHOLE,
    answer=shapes.SavedDraft,
    errors=("draft_limit_reached", "draft_not_found", "draft_too_long"),
    further=(_check_attachments,),
)
async def put_draft(call: Call[PutDraftRequest, Query]) -> Answer:
    """Save your draft of a reply or note. A version that you have not seen is merged, never overwritten.

    The draft of a merged conversation is merged into that of the conversation that shows its messages.
    """
    identifier = operations.conversation_id(call)
    body, author, now = call.body, call.user.rowid, call.services.clock()
    attachments, problems = await operations.attached(call, body.attachments, "")
    if problems:
        raise Invalid(*problems)
    mentions = tuple(Mention(each.type, each.id, each.name) for each in body.mentions)
    written = DraftWrite(body.text, attachments, body.version, body.base_text, body.base_sequence, mentions)

    def save(tx: Transaction) -> dict[str, Any]:
        state, _ = operations.find(tx, call.project, identifier)
        given = written
        if state.merged_into is not None:
            # The page has not seen the draft of the other conversation, so both are merged.
            state, _ = operations.find(tx, call.project, state.merged_into)
            given = replace(written, version=None, base_text=None, base_sequence=None)
        decided = write_draft(tx, draft_key(state, author, internal=_mode(call) == "note"), given, now)
        draft = decided.draft
        return {"draft": draft and draft_view(draft, shown(call)), "merged": decided.merged}

    brief = len(body.text) + len(body.base_text or "") <= _BRIEF_MAX
    return await call.services.store.write(InlineJob(save) if brief else save)


def _mode(call: Call[Any, Any]) -> DraftMode:
    mode = _MODES.get(call.path["mode"])
    if mode is None:
        raise NotFound("A conversation has only two drafts of yours: reply and note.", code="draft_not_found")
    return mode
