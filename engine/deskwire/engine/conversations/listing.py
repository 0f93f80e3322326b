"""Lists of conversations: which they show, in which order, and where they go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation, Message, Status
from deskwire.engine.core.sorting import Order
from deskwire.engine.definitions.attributes import AttributeIs
from deskwire.engine.workflows.run import Run

SortKey = Literal["activity", "waiting", "created", "updated"]


class ConversationFilter(Struct, frozen=True):
    """The filter of a list; None means any. What has several values takes each of them.

    Args:
        contact: storage key.
        assignees: ids of users and teams, and None for nobody.
        waiting: whether the contact waits for an answer.
        unread: whether the contact wrote something that `user`, a storage key, has not seen.
        seen_mark: the time (ms) up to which `user` has seen everything; the storage fills it in.
        since, until: bounds (ms) of the last activity; it is at `since` or later, and before `until`.
        text: a part of a text, of the title, or of what the contact is known by.
        notes: whether that text may be a note's.
        changed_since, changed_before: bounds (ms) of the last change that a customer can see, as those of the activity.
        imported_since: the time (ms) since which they were imported.
        unread_by_contact: whether the contact has something to read.
        rating: the lowest and the highest one.
        attributes: all of them.
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


class ConversationSort(Struct, frozen=True):
    """The order of a list. Of equals the conversation stored later counts as the larger.

    `updated` goes by the last change that a customer can see.

    `waiting` has those whose contact waits for an answer, and no other; the longest wait is the largest.
    """

    key: SortKey = "activity"
    order: Order = "desc"


NEWEST_FIRST: Final = ConversationSort()


class ConversationPageKey(Struct, frozen=True):
    """The place where a list goes on: behind this value of its sort key, a time (ms), and this row."""

    value: int
    rowid: int


class ListedConversation(Struct, frozen=True):
    """A conversation in a list."""

    conversation: Conversation
    contact: Contact
    at: ConversationPageKey


class FoundConversations(Struct, frozen=True):
    """The next conversations of a list. A search for a text may stop before its page is full: `reached` is where it goes on."""

    listed: Sequence[ListedConversation]
    reached: ConversationPageKey | None = None


class AgentDetails(Struct, frozen=True):
    """The parts of the view that are not in the conversation's own row.

    Args:
        last_message: the newest message or note, with the beginning of its text alone.
        run: the workflow that runs; `workflow` is its name, None once it is deleted.
    """

    last_message: Message | None = None
    run: Run | None = None
    workflow: str | None = None


class SeenMessages(Struct, frozen=True):
    """The messages that an agent has seen: up to `index`, -1 for none; `contact_messages` of them are the contact's."""

    index: int
    contact_messages: int


class ThreadMessage(Struct, frozen=True):
    """A message with its place in the thread, and the sequence of its event; None if that is not known, or it has none."""

    message: Message
    sequence: int | None
    rowid: int


NOTHING_SEEN: Final = SeenMessages(-1, 0)


NO_AGENT_DETAILS: Final = AgentDetails()
