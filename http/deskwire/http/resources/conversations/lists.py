"""Lists of conversations for agents: filters, orders, and cursors that are valid for one list only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Protocol, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError

from deskwire.engine.conversations.conversation import UNCLOSED, Status
from deskwire.engine.conversations.events import conversation_view
from deskwire.engine.conversations.inbox import InboxReader, inbox_views
from deskwire.engine.conversations.listing import (
    NEWEST_FIRST,
    ConversationFilter,
    ConversationPageKey,
    ConversationSort,
    ListedConversation,
)
from deskwire.engine.conversations.tags import normal_tag
from deskwire.engine.core.values import SortOrder
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Flag, Time, unique
from deskwire.http.api.pagination import Paged, bad_cursor, list_number, page
from deskwire.http.resources.member_filters import MemberFilterReader, contact_named, require_assignee


class InboxListReader(InboxReader, MemberFilterReader, Protocol):
    """Reads of lists, and of the members and contacts in filters."""


View = Literal["agent"]
"""The view of a conversation: `agent` adds the fields for agents."""

_STATUSES: Final = get_args(Status)
_TAGS_MAX: Final = 10  # in the filter of one list


def _statuses(text: object) -> object:
    names = text.split(",") if isinstance(text, str) else text
    if not isinstance(names, list) or not set(names) <= set(_STATUSES):
        message = "This must be OPEN, PENDING or CLOSED, or several of these separated by commas."
        raise PydanticCustomError("literal_error", message)
    return tuple(names)


def _tags(text: object) -> object:
    return tuple(map(normal_tag, text.split(","))) if isinstance(text, str) else text


Statuses = Annotated[
    tuple[Status, ...],
    BeforeValidator(_statuses),
    AfterValidator(unique),
    WithJsonSchema({"type": "string", "examples": ["OPEN,PENDING"]}),
]
"""One status, or several separated by commas."""

Tags = Annotated[
    tuple[str, ...],
    BeforeValidator(_tags),
    AfterValidator(unique),
    Field(max_length=_TAGS_MAX),
    WithJsonSchema({"type": "string", "examples": ["returns,vip"]}),
]
"""One tag, or several separated by commas."""


def one_assignee(team: str | None, info: ValidationInfo) -> str | None:
    """Return the team of a list, which can't be combined with `assignee`. Raises ValueError."""
    if team is not None and info.data.get("assignee") is not None:
        raise ValueError("A conversation has one assignee: give `assignee` or `team`.")
    return team


def later_than_since(until: int | None, info: ValidationInfo) -> int | None:
    """Return the end of a list's period, which must follow its start. Raises ValueError."""
    since = info.data.get("since")
    if until is not None and since is not None and until <= since:
        raise ValueError("This must be later than `since`.")
    return until


class ConversationLists(Paged):
    """The filters and order of a list of conversations, and its page.

    `status` and `tag` take one or several values separated by commas, any of which matches. `assignee` is `me`, `none`, or the
    id of a user or team; `team` is an alias for a team's id. `contact` is a con_ id or the backend's user id. `q` is a part of
    a text. `since` and `until` limit the last activity. `unread=true` shows open conversations with messages of the contact
    that you have not seen, `mentioned=true` those with a note that mentions you, `following=true` those that you follow.
    `sort=waiting` shows conversations whose contact waits for an answer, the longest wait first.
    With `view=agent`, archived conversations are omitted unless `archived`, `contact`, `q` or `mentioned` is given. Snoozed ones are omitted
    from lists by `assignee`, `team`, `unread` or `waiting` unless `snoozed` is given. One call with `q` searches some 50,000
    texts: a page may then have fewer items than `limit`, or none, and `nextCursor` continues from there.
    """

    parts = 3

    view: View | None = None
    status: Statuses | None = None
    assignee: str | None = None
    team: str | None = None
    contact: str | None = None
    unread: Flag | None = None
    mentioned: Flag | None = None
    following: Flag | None = None
    tag: Tags | None = None
    snoozed: Flag | None = None
    waiting: Flag | None = None
    archived: Flag | None = None
    visible: Flag | None = None
    since: Time | None = None
    until: Time | None = None
    q: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    sort: Literal["activity", "waiting", "created"] = "activity"
    order: SortOrder = "desc"

    _alone = field_validator("team")(one_assignee)
    _not_before = field_validator("until")(later_than_since)

    @property
    def in_order(self) -> ConversationSort:
        """Return the order of the list."""
        return ConversationSort(self.sort, self.order)


async def list_conversations(call: Call[Any, ConversationLists]) -> Answer:
    """Return a page of conversations. Raises BadRequest for another list's cursor, and for a filter with an unknown member."""
    query, list_id = call.query, list_number(call.project.id, call.query)
    own = (query.view, query.unread, query.mentioned, query.following)
    if query.assignee == "me" or any(each is not None for each in own):
        call.access.require_person(
            "a list with `view=agent`, `unread`, `mentioned`, `following` or `assignee=me`"
        )
    after = _place(query, list_id)

    def read(
        reader: InboxListReader,
    ) -> tuple[Sequence[tuple[dict[str, Any], ConversationPageKey]], ConversationPageKey | None]:
        wanted, project = _filter(reader, call), call.project.rowid
        found = reader.search_conversations(project, wanted, query.in_order, after, query.rows)
        return _shown(reader, call, found.listed), found.reached

    def place(at: ConversationPageKey) -> tuple[int, ...]:
        return list_id, at.value, at.rowid

    rows, reached = await call.services.store.read(read)
    stopped = None if reached is None else place(reached)
    return page(query, rows, lambda row: row[0], lambda row: place(row[1]), reached=stopped)


def _shown(
    reader: InboxReader, call: Call[Any, ConversationLists], listed: Sequence[ListedConversation]
) -> Sequence[tuple[dict[str, Any], ConversationPageKey]]:
    """Return the objects of a list in the requested view, each with its page key."""
    found = [(each.conversation, each.contact) for each in listed]
    if call.query.view == "agent":
        views = inbox_views(reader, call.project, call.user, found)
    else:
        views = [conversation_view(*each, call.project.id) for each in found]
    return [(view, each.at) for view, each in zip(views, listed, strict=True)]


def _place(query: ConversationLists, list_id: int) -> ConversationPageKey | None:
    place = query.place
    if place is None:
        return None
    if place[0] != list_id:
        raise bad_cursor("This cursor is from a list with another filter or order.")
    return ConversationPageKey(*place[1:])


def _filter(reader: InboxListReader, call: Call[Any, ConversationLists]) -> ConversationFilter:
    """Return the filter of a list. Raises BadRequest for an unknown member."""
    query, contact = call.query, None
    if query.contact is not None:
        contact = contact_named(reader, call.project, query.contact)
    _require_assignee(reader, call)
    sought = query.view is None or query.contact is not None or query.q is not None or bool(query.mentioned)
    work = (query.assignee, query.team, query.unread, query.waiting)
    awake = not sought and (query.sort == "waiting" or any(each is not None for each in work))
    return ConversationFilter(
        contact=contact,
        statuses=UNCLOSED if query.unread and query.status is None else query.status,
        archived=query.archived if sought or query.archived is not None else False,
        assignees=_assignees(call),
        tags=query.tag,
        snoozed=False if awake and query.snoozed is None else query.snoozed,
        waiting=query.waiting,
        visible=query.visible,
        unread=query.unread,
        user=0 if (query.unread, query.mentioned, query.following) == (None, None, None) else call.user.rowid,
        mentioned=query.mentioned,
        following=query.following,
        since=query.since,
        until=query.until,
        text=query.q,
    )


def _assignees(call: Call[Any, ConversationLists]) -> tuple[str | None, ...] | None:
    match call.query.team if call.query.assignee is None else call.query.assignee:
        case None:
            return None
        case "none":
            return (None,)
        case "me":
            return (call.user.id,)
        case other:
            return (other,)


def _require_assignee(reader: InboxListReader, call: Call[Any, ConversationLists]) -> None:
    query, project = call.query, call.project
    given = query.team if query.assignee is None else query.assignee
    if given is None or (query.assignee is not None and given in ("me", "none")):
        return

    def has_some() -> bool:
        assigned = ConversationFilter(assignees=(given,))
        return reader.count_conversations(project.rowid, assigned, NEWEST_FIRST, 1) > 0

    require_assignee(reader, project, "team" if query.assignee is None else "assignee", given, has_some)
