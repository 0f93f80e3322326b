"""The part of a store that conversations need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.ports import ContactTransaction
from deskwire.engine.conversations.activity import ActivityEntry, ConversationActivity, Milestone
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.facts import WorkflowCompleted
from deskwire.engine.conversations.listing import (
    AgentDetails,
    ConversationFilter,
    ConversationPageKey,
    ConversationSort,
    FoundConversations,
    ListedConversation,
    SeenMessages,
    ThreadMessage,
)
from deskwire.engine.uploads.ports import UploadTransaction
from deskwire.engine.webhooks.publish import PublishTransaction
from deskwire.engine.workflows.ports import PublishedReader, WorkflowTransaction


class Claimed(Struct, frozen=True):
    """A conversation that a commit may change: its contact, and what each endpoint was sent last."""

    contact: Contact
    routed: Mapping[int, int]


class ConversationReader(Protocol):
    """Queries on conversations and their messages."""

    def conversation(self, project: int, conversation_id: str) -> tuple[Conversation, Contact] | None:
        """The conversation with its contact, None if this project has none with that id."""

    def conversations(
        self,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
    ) -> Sequence[ListedConversation]:
        """Return conversations in the order of `sort`, each with its place in it, for a filter without a text."""

    def search_conversations(
        self,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
    ) -> FoundConversations:
        """Return conversations as `conversations` does, also for a text, which is looked for in a bounded number of texts."""

    def count_conversations(
        self, project: int, wanted: ConversationFilter, sort: ConversationSort, bound: int
    ) -> int:
        """Return how many conversations a list has, counted up to a bound."""

    def conversation_ids(self, contact: int) -> Sequence[str]:
        """Return the ids of all conversations of a contact, the oldest first."""

    def message_rowid(self, conversation: int, message_id: str, *, internal: bool) -> int | None:
        """Return the place of a message, also if it was deleted; a note is found only with `internal`."""

    def message(self, conversation: int, message_id: str, *, internal: bool) -> Message | None:
        """Return a message of a conversation, a note only with `internal`; None if there is none, or it was deleted."""

    def messages(
        self,
        conversation: int,
        *,
        internal: bool,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
        deleted: bool = False,
    ) -> Sequence[Message]:
        """Messages, oldest first; with `before` alone the last `limit` in front of it. Without `deleted` no such places."""

    def thread(
        self, conversation: int, *, after: int | None, before: int | None, newest_first: bool, limit: int
    ) -> Sequence[ThreadMessage]:
        """Return messages and notes behind and in front of these places, none that was deleted; newest first they begin at the end."""

    def message_before(self, conversation: int, sequence: int) -> int | None:
        """Return the place of the message in front of the first one whose event has a larger sequence, notes included.

        Without such a one that is the newest message; None if there is none in front.
        """

    def agent_details(self, conversations: Sequence[int]) -> Mapping[int, AgentDetails]:
        """Return what the agent's view shows besides the conversations' own rows, by their storage keys."""

    def seen(self, user: int, conversations: Sequence[int]) -> Mapping[int, SeenMessages]:
        """Return what a user has seen of these conversations; those of which that is not known are left out."""

    def unseen_after(self, conversation: int, index: int) -> int:
        """Return how many messages of the contact are behind the message with this index."""

    def seen_mark(self, user: int, project: int) -> int | None:
        """Return the time (ms) up to which a user has seen everything of a project; None if that was never said."""

    def network_requests(self, conversation: int) -> tuple[int, int] | None:
        """Return when (ms) the snapshot came, and how many requests it has; None if there is none."""

    def network_logs(self, conversation: int) -> bytes | None:
        """The snapshot as it was sent."""

    def conversation_activity(
        self, conversation: int, before: int | None, limit: int
    ) -> Sequence[ConversationActivity]:
        """Return who did what, newest first, in front of this row."""

    def conversation_tags(self, project: int, after: str, limit: int) -> Sequence[tuple[str, int]]:
        """Return tags after this one in the order of their keys, each with the number of conversations that have it."""

    def next_snooze_end(self) -> int | None:
        """Return when (ms) the next snoozed conversation of any project wakes; None if none is snoozed."""

    def due_snoozes(self, until: int, limit: int) -> Sequence[tuple[str, str]]:
        """Return project and conversation ids of those whose snooze ends by `until` (ms), the earliest first."""

    def conversation_events(self, conversation: int, after: int, limit: int) -> Sequence[bytes]:
        """Stored envelopes with a sequence larger than `after`."""


class ExpiredConversation(Struct, frozen=True):
    """A conversation that seems to have passed its retention.

    Args:
        project, conversation: their ids.
        rows: about how many rows its deletion removes.
        place: where a listing goes on: its time (ms) and storage key.
    """

    project: str
    conversation: str
    rows: int
    place: tuple[int, int]


class ExpiryReader(Protocol):
    """Queries for what has passed its retention, the oldest first; each is found by an index."""

    def bot_only_before(
        self, created_before: int, after: tuple[int, int], limit: int
    ) -> Sequence[ExpiredConversation]:
        """Bot-only conversations of all projects created, or imported, before this time (ms), behind the place `after`."""

    def archived_before(
        self, project: int, archived_before: int, after: tuple[int, int], limit: int
    ) -> Sequence[ExpiredConversation]:
        """Return a project's conversations archived before this time (ms), behind the place `after`."""

    def projects_with_expired(self, now: int, day_ms: int) -> Sequence[Project]:
        """Projects with a conversation that was archived longer ago than they want, a day being `day_ms`."""


class ConversationTransaction(ConversationReader, Protocol):
    """Changes of conversations."""

    def claim(self, state: Conversation) -> Claimed:
        """Make sure that `state` is what is stored. Raises StaleState if it is not."""

    def insert_conversation(
        self, state: Conversation, contact: int, routed: Mapping[int, int]
    ) -> Conversation:
        """Store a new conversation; returns it with its `rowid`."""

    def save_conversation(self, before: Conversation, state: Conversation, routed: Mapping[int, int]) -> None:
        """Store the changed conversation, which was `before`, a lower `revision`."""

    def move_conversation(self, conversation: int, source: int, target: int) -> None:
        """Give a conversation of one contact to another one."""

    def note_moved(self, conversation: int, source: int, event_id: str) -> None:
        """Note that the events in front of this one, as far as none before has noted that, are about the former contact."""

    def erase_conversation(self, state: Conversation) -> None:
        """Remove the conversation with all that belongs to it, events and deliveries included.

        Raises StaleState if this commit has events of it yet to be told: they would be lost.
        """

    def insert_message(self, conversation: int, message: Message, sequence: int | None) -> None:
        """Store a message with the sequence of its event, if it has one."""

    def rewrite_message(self, conversation: int, message: Message, at: int) -> None:
        """Store what is left of a message at this time (ms), and have the search find no other words of it.

        The bytes of what it was are overwritten. One that is deleted keeps its place.
        """

    def detach_from_message(self, conversation: int, upload_ids: Collection[str]) -> None:
        """Remove references to what no message of the conversation has any more, with the uploads that nothing refers to."""

    def rewrite_events(
        self, project: Project, conversation: int, message_id: str, rewritten: Callable[[bytes], bytes]
    ) -> None:
        """Put what `rewritten` makes of them in the place of a conversation's envelopes that name a message.

        What receivers have answered to them is forgotten. Whoever has an envelope in memory is told with this commit.
        """

    def number_messages(self, conversation: int, first: int) -> None:
        """Note that the messages that the customer sees have events, the first of them with sequence `first`."""

    def insert_conversation_activity(
        self, conversation: int, entry: ActivityEntry, at: int, event_id: str | None
    ) -> None:
        """Store an entry of the conversation's activity; `event_id` is that of its public event."""

    def put_milestone(self, state: Conversation, milestone: Milestone) -> None:
        """Store a milestone of the conversation; a rating takes the place of the one before."""

    def put_workflow_end(self, conversation: int, end: WorkflowCompleted, at: int) -> None:
        """Note that a workflow has ended in a conversation at this time (ms)."""

    def schedule_snooze_end(self, at: int) -> None:
        """Tell, with this commit, that a conversation wakes at this time (ms)."""

    def put_conversation_tags(self, state: Conversation) -> None:
        """Have the conversation found by its tags, and by no others."""

    def put_seen(self, user: int, conversation: int, seen: SeenMessages, at: int) -> bool:
        """Note what a user has seen of a conversation; return False if it is gone."""

    def put_seen_mark(self, user: int, project: int, until: int | None) -> None:
        """Note up to which time (ms) a user has seen everything of a project; None takes it back."""

    def put_network_logs(self, conversation: int, snapshot: bytes, at: int) -> None:
        """Store a snapshot in place of the previous one."""


class CommitReader(ConversationReader, PublishedReader, Protocol):
    """Queries on what a command is decided on."""


class CommitTransaction(
    ConversationTransaction,
    ContactTransaction,
    UploadTransaction,
    WorkflowTransaction,
    PublishedReader,
    PublishTransaction,
    Protocol,
):
    """Changes that a command's commit makes, its events and deliveries included."""
