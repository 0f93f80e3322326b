"""Lists of conversations for agents: filters, orders, and cursors that are valid for one list only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from deskwire.engine.conversations.events import conversation_view
from deskwire.engine.conversations.inbox import InboxReader, inbox_views
from deskwire.engine.conversations.listing import EXAMINED_MAX, ConversationPageKey, ListedConversation
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.pagination import Paged, bad_cursor, list_number, page
from deskwire.http.resources.conversations.list_conditions import (
    ConversationConditions,
    InboxListReader,
    filter_of,
)

View = Literal["agent"]
"""The view of a conversation: `agent` adds the fields for agents."""


class ConversationLists(ConversationConditions, Paged):
    """The filters and order of a list of conversations, and its page.

    `status`, `priority`, `assignee`, `channel` and `tag` take one or several values separated by commas, any of which matches;
    `allTags` and `withoutTags` take tags that a conversation must all have, and must not have. `assignee` is `me`, `none`, or the
    id of a user or team; `team` is an alias for a team's id. `contact` is a con_ id or the backend's user id. `attribute` and
    `contactAttribute` are `name:value`, or several of these separated by commas, all of which must match. `priority` is that of
    the conversation's ticket, `rating` a value or a range such as `0..6`. `q` is a part of a text. `since` and `until` limit the
    last activity, `createdSince` and `createdUntil` the creation; `activeWithin`, `inactiveFor`, `createdWithin` and `waitingFor`
    are durations up to now, such as `30m`, `4h` or `7d`. `unread=true` shows open conversations with messages of the contact
    that you have not seen, `mentioned=true` those with a note that mentions you, `following=true` those that you follow. `sort=waiting` shows conversations whose contact waits for an answer, the longest wait first.
    With `view=agent`, archived conversations are omitted unless `archived`, `contact` or `q` is given. Snoozed ones are omitted
    from lists by `assignee`, `team`, `unread` or `waiting` unless `snoozed` is given. One call examines some 10,000 conversations
    if no index has only those of the filter, and with `q` some 50,000 texts: a page may then have fewer items than `limit`,
    or none, and `nextCursor` continues from there.
    """

    parts = 3

    view: View | None = None


async def list_conversations(call: Call[Any, ConversationLists]) -> Answer:
    """Return a page of conversations. Raises BadRequest for another list's cursor, and for a filter with an unknown member."""
    query, list_id = call.query, list_number(call.project.id, call.query)
    now = call.services.clock()
    if query.view is not None or query.is_personal:
        call.access.require_person(
            "a list with `view=agent`, `unread`, `mentioned`, `following` or `assignee=me`"
        )
    after = _place(query, list_id)

    def read(
        reader: InboxListReader,
    ) -> tuple[Sequence[tuple[dict[str, Any], ConversationPageKey]], ConversationPageKey | None]:
        user = call.user if query.is_personal else None
        agents = query.view is not None
        wanted = filter_of(reader, query, call.project, user, now, for_agents=agents)
        project = call.project.rowid
        found = reader.search_conversations(project, wanted, query.in_order, after, query.rows, EXAMINED_MAX)
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
