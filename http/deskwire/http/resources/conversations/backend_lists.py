"""Lists of conversations for a project's own backend, with filters and orders, including by last change."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Protocol

from pydantic import Field, field_validator

from deskwire.engine.conversations.events import conversation_view
from deskwire.engine.conversations.inbox import InboxReader
from deskwire.engine.conversations.listing import (
    NEWEST_FIRST,
    ConversationFilter,
    ConversationPageKey,
    ConversationSort,
    FoundConversations,
    ListedConversation,
)
from deskwire.engine.core.errors import BadRequest, Problem
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import SortOrder
from deskwire.engine.events.log import read_position
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Flag, Query, Time, bad_query
from deskwire.http.api.pagination import ByChange, list_number, page
from deskwire.http.resources.conversations.filter_values import (
    AttributesAre,
    Ratings,
    Statuses,
    Tags,
    later_than_since,
    one_assignee,
)
from deskwire.http.resources.conversations.operations import conversation_id, find
from deskwire.http.resources.member_filters import MemberFilterReader, contact_named, require_assignee

Include = Literal["tags"]
"""Optional additional fields of a conversation."""


class BackendListReader(InboxReader, MemberFilterReader, Protocol):
    """Reads of conversations and of possible assignees."""


class BackendView(Query):
    """The fields to add: with `include=tags`, the conversation has its `tags`."""

    include: Include | None = None


class BackendConversationLists(ByChange):
    """The filters and order of a list of conversations, and its page.

    `status` and `tag` take one or several values separated by commas, any of which matches. `assignee` is `none`, or the id of a
    user or team; `team` is an alias for a team's id. `contact` is your own user id or a con_ id. `unread` is the field of
    the conversation. `rating` is a value, or a range such as `0..6`. `attribute` is `name:value`, or several of these separated
    by commas, all of which must match; a value that looks like a number, `true` or `false` matches it and the text.
    `q` is a part of a text, without regard to case and accents. `since` and `until` limit the last activity, `updatedSince` and `updatedBefore` the last change.
    Hidden conversations are listed only with `visible=false`. One call with `q` searches some 50,000 texts: a page may then have
    fewer items than `limit`, or none, and `nextCursor` continues from there.
    """

    status: Statuses | None = None
    archived: Flag | None = None
    assignee: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    team: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    contact: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    unread: Flag | None = None
    rated: Flag | None = None
    rating: Ratings | None = None
    attribute: AttributesAre | None = None
    tag: Tags | None = None
    visible: Flag = True
    merged: Flag | None = None
    since: Time | None = None
    until: Time | None = None
    q: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    include: Include | None = None
    sort: Literal["updated", "activity", "created"] = "activity"
    order: SortOrder = "desc"

    _alone = field_validator("team")(one_assignee)
    _not_before = field_validator("until")(later_than_since)


async def list_conversations(call: Call[Any, BackendConversationLists]) -> Answer:
    """Return a page of conversations. Raises BadRequest for another list's cursor, and for an unknown contact or assignee."""
    query, project = call.query, call.project
    number = list_number(project.id, query)
    begun = query.goes_on(number)
    after = None if begun is None else ConversationPageKey(*begun[0])
    sort = ConversationSort(query.sort, query.order)

    def read(reader: BackendListReader) -> tuple[FoundConversations, str]:
        moment = (
            read_position(reader, project.rowid) if begun is None else begun[1]
        )  # read before the list, which it covers
        wanted = _filter(reader, call)
        return reader.search_conversations(project.rowid, wanted, sort, after, query.rows), moment

    found, moment = await call.services.store.read(read)

    def view(each: ListedConversation) -> dict[str, Any]:
        shown = conversation_view(each.conversation, each.contact, project.id)
        return {**shown, "tags": list(each.conversation.tags)} if query.include else shown

    def place(at: ConversationPageKey) -> tuple[int, ...]:
        return number, at.value, at.rowid

    reached = None if found.reached is None else place(found.reached)
    return page(query, found.listed, view, lambda each: place(each.at), moment, reached)


async def get_conversation(call: Call[Any, BackendView]) -> Answer:
    """Return the conversation object with the requested additional fields."""
    identifier, project = conversation_id(call), call.project
    state, contact = await call.services.store.read(
        InlineQuery(lambda reader: find(reader, project, identifier))
    )
    shown = conversation_view(state, contact, project.id)
    return {**shown, "tags": list(state.tags)} if call.query.include else shown


def _filter(reader: BackendListReader, call: Call[Any, BackendConversationLists]) -> ConversationFilter:
    """Return the filter of a list. Raises BadRequest for an unknown contact or assignee."""
    query, project = call.query, call.project
    contact, problems = None, list[Problem]()
    name, assignee = ("assignee", query.assignee) if query.team is None else ("team", query.team)

    def has_some() -> bool:
        wanted = ConversationFilter(assignees=(assignee,))
        return bool(reader.conversations(project.rowid, wanted, NEWEST_FIRST, None, 1))

    try:
        contact = None if query.contact is None else contact_named(reader, project, query.contact)
    except BadRequest as refused:
        problems += refused.problems
    try:
        if assignee is not None and (name, assignee) != ("assignee", "none"):
            require_assignee(reader, project, name, assignee, has_some)
    except BadRequest as refused:
        problems += refused.problems
    if problems:
        raise bad_query(*problems)
    return ConversationFilter(
        contact=contact,
        statuses=query.status,
        archived=query.archived,
        assignees=None if assignee is None else ((None if assignee == "none" else assignee),),
        tags=query.tag,
        visible=query.visible,
        since=query.since,
        until=query.until,
        text=query.q,
        notes=False,
        changed_since=query.updated_since,
        changed_before=query.updated_before,
        unread_by_contact=query.unread,
        rated=query.rated,
        rating=query.rating,
        attributes=query.attribute or (),
        merged=query.merged,
    )
