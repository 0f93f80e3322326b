"""The agents' view of a conversation and its thread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.inbox import InboxReader, inbox_views, thread_view
from deskwire.engine.conversations.listing import ThreadMessage
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.conversations.threads import ThreadQuery, read_thread, shows_others
from deskwire.engine.core.store import InlineQuery
from deskwire.http.api.calls import Answer, Call
from deskwire.http.resources.conversations.operations import (
    BACK,
    conversation_id,
    find,
    from_cursor,
    place_of,
)
from deskwire.http.resources.conversations.requests import ThreadList


async def get_conversation(call: Call[Any, Any]) -> Answer:
    """Return the conversation in the path in the signed-in agent's view."""
    identifier = conversation_id(call)

    def read(reader: InboxReader) -> dict[str, Any]:
        found = find(reader, call.project, identifier)
        return inbox_views(reader, call.project, call.user, [found])[0]

    return await call.services.store.read(InlineQuery(read))


async def list_messages(call: Call[Any, ThreadList]) -> Answer:
    """Return a page of messages and notes. `nextCursor` continues in the same direction."""
    identifier, query = conversation_id(call), from_cursor(call.query)
    backwards = query.before is not None and query.after is None
    newest_first = query.order == "desc"

    def read(reader: ConversationReader) -> Sequence[tuple[Conversation, ThreadMessage]]:
        state, _ = find(reader, call.project, identifier)
        newest = newest_first or backwards
        if shows_others(state):
            wanted = ThreadQuery(True, query.after, query.before, newest, query.limit + 1)
            return read_thread(reader, state, wanted)

        def place(message_id: str | None) -> int | None:
            return None if message_id is None else place_of(reader, state, message_id, internal=True)

        after, before = place(query.after), place(query.before)
        found = reader.thread(
            state.rowid,
            after=after,
            before=before,
            newest_first=newest,
            limit=query.limit + 1,
        )
        return [(state, each) for each in found]

    found = await call.services.store.read(read)
    shown, more = list(found[: query.limit]), len(found) > query.limit
    last = shown[-1][1].message.id if more else None
    if backwards and not newest_first:
        shown.reverse()
    show = partial(call.services.uploads.links.shown, now=call.services.clock())
    return {
        "items": [thread_view(each, state, show) for state, each in shown],
        "nextCursor": last and (f"{BACK}{last}" if newest_first or backwards else last),
    }


SINCE_MAX: Final = 50  # newer messages in the response to a refused reply


async def since(call: Call[Any, Any], sequence: int) -> dict[str, Any]:
    """Return the sequence of the conversation in the path, with the newest messages and notes after another sequence."""
    identifier = conversation_id(call)

    def read(reader: ConversationReader) -> tuple[Conversation, Sequence[ThreadMessage]]:
        state, _ = find(reader, call.project, identifier)
        seen = reader.message_before(state.rowid, sequence)
        found = reader.thread(state.rowid, after=seen, before=None, newest_first=True, limit=SINCE_MAX)
        return state, found

    state, found = await call.services.store.read(read)
    show = partial(call.services.uploads.links.shown, now=call.services.clock())
    return {"sequence": state.sequence, "since": [thread_view(each, state, show) for each in reversed(found)]}
