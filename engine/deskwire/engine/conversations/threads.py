"""Threads of conversations that show messages of others, merged or split off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.listing import MessagePlace, ThreadMessage
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.errors import NotFound


class ThreadQuery(Struct, frozen=True):
    """A part of a thread.

    Args:
        internal: whether notes are included.
        after, before: ids of the messages around it.
        newest_first: whether it starts at `before`, or at the end of the thread.
    """

    internal: bool
    after: str | None
    before: str | None
    newest_first: bool
    limit: int


class Thread(Struct, frozen=True):
    """The conversations whose messages a thread shows.

    Args:
        members: the conversation and those merged into it.
        origins: conversations that members were split off from, if they are no members.
    """

    members: Sequence[Conversation]
    origins: Sequence[Conversation]

    @property
    def keys(self) -> list[int]:
        """The storage keys of the members."""
        return [each.rowid for each in self.members]

    @property
    def split_off(self) -> list[str]:
        """The ids of the members that may show messages of origins."""
        return [each.id for each in self.members if each.split_from is not None] if self.origins else []


def shows_others(state: Conversation) -> bool:
    """Return whether the thread of a conversation may have messages of others."""
    return bool(state.merged) or state.split_from is not None


def thread_of(reader: ConversationReader, state: Conversation) -> Thread:
    """Return the conversations of a thread."""
    members = (state, *(reader.conversations_by_id(state.project, state.merged) if state.merged else ()))
    ids = {each.id for each in members}
    others = {each.split_from for each in members if each.split_from is not None} - ids
    return Thread(members, reader.conversations_by_id(state.project, sorted(others)) if others else ())


def read_thread(
    reader: ConversationReader, state: Conversation, wanted: ThreadQuery
) -> list[tuple[Conversation, ThreadMessage]]:
    """Return messages of a conversation and of others that it shows as one list, each with its conversation.

    Raises NotFound for an unknown message.
    """
    thread = thread_of(reader, state)
    states = {each.rowid: each for each in (*thread.members, *thread.origins)}
    keys, shown_in = thread.keys, thread.split_off

    def place(message_id: str | None) -> MessagePlace | None:
        if message_id is None:
            return None
        found = reader.message_place(keys, shown_in, message_id, internal=wanted.internal)
        if found is None:
            raise no_such_message(message_id)
        return found

    found = reader.thread_messages(
        keys,
        shown_in=shown_in,
        # Imported messages are stored long after their time; all others in the order of their times.
        by_time=any(each.imported_at is not None for each in states.values()),
        internal=wanted.internal,
        after=place(wanted.after),
        before=place(wanted.before),
        newest_first=wanted.newest_first,
        limit=wanted.limit,
    )
    return [(states[each.conversation], each) for each in found]


class ThreadMarks(Struct, frozen=True):
    """The marks of the contact's client in one of the conversations of a thread, as indexes of messages."""

    state: Conversation
    reached: int | None
    seen: int | None

    def has(self, name: str) -> bool:
        """Return whether it has this mark."""
        return getattr(self, name) is not None


def marks_in_thread(
    reader: ConversationReader, state: Conversation, named: Mapping[str, str | None]
) -> list[ThreadMarks]:
    """Return the marks in a conversation and in others that it shows, for the newest messages `reached` and `seen` of a thread.

    A mark stands for the messages before it in all of them. One for an unknown message is left out. In a conversation that this
    one was split off from, it is at a message that this one shows.
    """
    given = [named[name] for name in ("reached", "seen")]
    if not shows_others(state):
        own = (None if each is None else reader.message_index(state.rowid, each) for each in given)
        return [ThreadMarks(state, *own)]
    thread = thread_of(reader, state)
    keys, shown_in = thread.keys, thread.split_off
    places = [
        None if each is None else reader.message_place(keys, shown_in, each, internal=False) for each in given
    ]

    def marks(of: Conversation, among: Sequence[str] | None = None) -> ThreadMarks:
        found = (
            None if place is None else reader.newest_index_at(of.rowid, place, among) for place in places
        )
        return ThreadMarks(of, *found)

    origins = [marks(each, shown_in) for each in thread.origins]
    return [
        *(marks(each) for each in thread.members),
        *(each for each in origins if each.has("reached") or each.has("seen")),
    ]


def no_such_message(message_id: str) -> NotFound:
    """Return the refusal for a message that the conversation does not have."""
    return NotFound(f"This conversation has no message {message_id!r}.", code="message_not_found")
