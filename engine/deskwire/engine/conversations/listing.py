"""Lists of conversations: filter, order, page key and rows; and the rows of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation, Message, Status
from deskwire.engine.core.values import SortOrder
from deskwire.engine.definitions.attributes import AttributeIs
from deskwire.engine.workflows.runs import WorkflowRun

SortKey = Literal["activity", "waiting", "created", "updated"]


class ConversationFilter(Struct, frozen=True):
    """The filter of a list. None matches any value; a tuple matches each of its values.

    Args:
        contact: storage key.
        assignees: ids of users and teams, and None for unassigned.
        tags, all_tags, without_tags: has one of these tags, has all of them, has none of them.
        waiting: whether the contact waits for an answer.
        waiting_before: the contact waits for an answer since a time (ms) before this one.
        created_since, created_before: bounds (ms) of the creation.
        channels: ids of the channels in which the contact began it, and None for none.
        contact_attributes: the contact has all of them.
        priorities: the priorities of its ticket.
        unread: whether the contact wrote a message that `user`, a storage key, has not seen.
        seen_mark: the time (ms) up to which `user` has marked the project as seen; the storage sets it.
        since, until: bounds (ms) of the last activity: at `since` or later, and before `until`.
        text: a part of a message, of the title, or of the contact's name, e-mail address or user id.
        notes: whether notes are searched for the text as well.
        changed_since, changed_before: bounds (ms) of the last change that the customer can see, like those of the activity.
        imported_since: the earliest time (ms) of the import.
        unread_by_contact: whether the contact has unread messages.
        rating: the lowest and the highest rating.
        attributes: the conversation has all of them.
        mentioned: whether a note of the conversation mentions `user`.
        following: whether `user` follows the conversation.
        merged: whether the conversation is merged into another one.
    """

    contact: int | None = None
    statuses: tuple[Status, ...] | None = None
    archived: bool | None = None
    assignees: tuple[str | None, ...] | None = None
    tags: tuple[str, ...] | None = None
    snoozed: bool | None = None
    waiting: bool | None = None
    visible: bool | None = None
    unread: bool | None = None
    user: int = 0
    seen_mark: int = 0
    since: int | None = None
    until: int | None = None
    text: str | None = None
    notes: bool = True
    changed_since: int | None = None
    changed_before: int | None = None
    imported_since: int | None = None
    unread_by_contact: bool | None = None
    rated: bool | None = None
    rating: tuple[int, int] | None = None
    attributes: tuple[AttributeIs, ...] = ()
    all_tags: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()
    waiting_before: int | None = None
    created_since: int | None = None
    created_before: int | None = None
    channels: tuple[str | None, ...] | None = None
    contact_attributes: tuple[AttributeIs, ...] = ()
    priorities: tuple[str, ...] | None = None
    mentioned: bool | None = None
    following: bool | None = None
    merged: bool | None = None


class ConversationSort(Struct, frozen=True):
    """The order of a list. Among equal keys, the conversation stored later counts as the larger.

    The key `updated` is the time of the last change that the customer can see. A list by `waiting` contains only
    conversations whose contact waits for an answer; the longest wait is the largest.
    """

    key: SortKey = "activity"
    order: SortOrder = "desc"


NEWEST_FIRST: Final = ConversationSort()


class ConversationPageKey(Struct, frozen=True):
    """The key after which a page starts: the value of the sort key, a time (ms), and the row."""

    value: int
    rowid: int


class ListedConversation(Struct, frozen=True):
    """A conversation in a list."""

    conversation: Conversation
    contact: Contact
    at: ConversationPageKey


class FoundConversations(Struct, frozen=True):
    """A page of conversations. A search for a text may stop before the page is full; it continues after `reached`."""

    listed: Sequence[ListedConversation]
    reached: ConversationPageKey | None = None


class BoundedCount(Struct, frozen=True):
    """The number of conversations with a filter, counted up to bounds.

    Args:
        complete: whether all of them were counted.
        examined: the rows that were read for it, at most. A list with an index of its own counts none.
    """

    value: int
    complete: bool
    examined: int


EXAMINED_MAX: Final = 10_000
"""Conversations that a list for agents examines for a page if no index has only those of its filter."""


class AgentDetails(Struct, frozen=True):
    """The parts of the agent's view that are not in the conversation's own row.

    Args:
        last_message: the newest message or note, with only the beginning of its text.
        run: the workflow run; `workflow` is its name, None after the workflow was deleted.
        followers: ids of the users who follow the conversation.
    """

    last_message: Message | None = None
    run: WorkflowRun | None = None
    workflow: str | None = None
    followers: Sequence[str] = ()


class SeenMessages(Struct, frozen=True):
    """The messages that an agent has seen: up to `index`, or -1 for none; `contact_messages` are the contact's."""

    index: int
    contact_messages: int


class ReadPosition(Struct, frozen=True):
    """An agent's stored position in a conversation, and the time (ms) at which it was stored."""

    seen: SeenMessages
    at: int


class ThreadMessage(Struct, frozen=True):
    """A message of a thread, and the sequence of its event; None if it is unknown or the message has none.

    `conversation` is the storage key of its conversation; 0 if that is the one whose thread was read.
    """

    message: Message
    sequence: int | None
    rowid: int
    conversation: int = 0


class MessagePlace(Struct, frozen=True):
    """The place of a message in a list of several conversations: its time (ms), and its row."""

    at: int
    rowid: int


NOTHING_SEEN: Final = SeenMessages(-1, 0)


NO_AGENT_DETAILS: Final = AgentDetails()
