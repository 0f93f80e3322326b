"""The queries and changes of a store that conversations need. Rows are named by their storage keys, unless said otherwise."""

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
    BoundedCount,
    ConversationFilter,
    ConversationPageKey,
    ConversationSort,
    FoundConversations,
    ListedConversation,
    MessagePlace,
    ReadPosition,
    SeenMessages,
    ThreadMessage,
)
from deskwire.engine.conversations.mentions import MentionReader, MentionTransaction
from deskwire.engine.conversations.merge_records import MergeRecord
from deskwire.engine.conversations.split_decisions import OwnedMessage
from deskwire.engine.uploads.ports import UploadTransaction
from deskwire.engine.webhooks.publish import PublishTransaction
from deskwire.engine.workflows.ports import PublishedReader, WorkflowTransaction


class Claimed(Struct, frozen=True):
    """A conversation that a commit may change: its contact, and the last sequence sent to each endpoint."""

    contact: Contact
    routed: Mapping[int, int]


class ConversationReader(MentionReader, Protocol):
    """Queries on conversations and their messages."""

    def conversation(self, project: int, conversation_id: str) -> tuple[Conversation, Contact] | None:
        """Return the conversation with its contact; None if the project has none with this id."""

    def conversations(
        self,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
    ) -> Sequence[ListedConversation]:
        """Return conversations in the order of `sort`, each with its page key, for a filter without a text."""

    def search_conversations(
        self,
        project: int,
        wanted: ConversationFilter,
        sort: ConversationSort,
        after: ConversationPageKey | None,
        limit: int,
        examined_max: int | None = None,
    ) -> FoundConversations:
        """Return conversations as `conversations` does; the query may have a text. The search reads a bounded number of texts.

        Args:
            examined_max: conversations that a list without an index for its filter may examine; None for any number.
        """

    def matching_conversations(
        self, project: int, wanted: ConversationFilter, sort: ConversationSort, limit: int, examined_max: int
    ) -> tuple[Sequence[int], bool]:
        """Return the storage keys of a list's first conversations, and whether all were examined; the filter has no text.

        Args:
            examined_max: conversations that are examined if no index has only those of the filter.
        """

    def count_some_conversations(
        self, project: int, wanted: ConversationFilter, found_max: int, examined_max: int
    ) -> BoundedCount:
        """Return the number of conversations with a filter without a text, counted up to bounds.

        Args:
            found_max: the largest count.
            examined_max: conversations that are examined if the list has no index of its own.
        """

    def count_conversations(
        self, project: int, wanted: ConversationFilter, sort: ConversationSort, bound: int
    ) -> int:
        """Return the number of conversations in a list, counted up to `bound`."""

    def conversation_ids(self, contact: int) -> Sequence[str]:
        """Return the ids of all conversations of a contact, the oldest first."""

    def message_rowid(self, conversation: int, message_id: str, *, internal: bool) -> int | None:
        """Return the rowid of a message, even if it was deleted; a note is found only with `internal`."""

    def message(self, conversation: int, message_id: str, *, internal: bool) -> Message | None:
        """Return a message of a conversation, or with `internal` a note; None if it does not exist or was deleted."""

    def message_by_client_id(self, conversation: int, client_id: str) -> Message | None:
        """Return the message with this client id, even if it was deleted."""

    def message_passed_on(
        self, project: int, conversation_id: str, client_id: str
    ) -> tuple[Message, str] | None:
        """Return the message with this client id that a merged conversation has, or has passed on, with its conversation's id.

        A message to a merged conversation is passed on to the one that it is merged into.
        """

    def conversations_by_id(self, project: int, ids: Sequence[str]) -> Sequence[Conversation]:
        """Return the conversations with these ids, in no order; without those that are gone."""

    def thread_messages(
        self,
        conversations: Sequence[int],
        *,
        shown_in: Sequence[str],
        by_time: bool,
        internal: bool,
        after: MessagePlace | None,
        before: MessagePlace | None,
        newest_first: bool,
        limit: int,
    ) -> Sequence[ThreadMessage]:
        """Return messages of several conversations as one list, without deleted ones; `internal` includes notes.

        Args:
            shown_in: ids of those of them that show messages of others.
            by_time: whether the list is ordered by the time of the messages, and not only by the order of their storing.
        """

    def message_place(
        self, conversations: Sequence[int], shown_in: Sequence[str], message_id: str, *, internal: bool
    ) -> MessagePlace | None:
        """Return the place of a message in such a list, even if it was deleted."""

    def newest_index_at(
        self, conversation: int, place: MessagePlace, shown_in: Sequence[str] | None = None
    ) -> int | None:
        """Return the index of the conversation's newest message at or before a place in the order of storing.

        Args:
            shown_in: ids of the other conversations that show the message; None for any message.
        """

    def first_of_contact(
        self, conversations: Sequence[int], shown_in: Sequence[str], since: int, *, without: int = 0
    ) -> int | None:
        """Return the time (ms) of the contact's first message in a thread at `since` or later; None without one.

        Args:
            conversations, shown_in: storage keys and ids of the conversations of the thread. Messages that another conversation
                shows do not count.
            without: the storage key of a conversation whose messages do not count.
        """

    def owned_messages(self, project: int, message_ids: Sequence[str]) -> Sequence[OwnedMessage]:
        """Return the project's messages and notes with these ids, also deleted ones, in the order of their times."""

    def merge_of(self, conversation: int) -> MergeRecord | None:
        """Return the record of the conversation's merge into another one; None if it is not merged."""

    def follower_keys(self, conversation: int) -> Sequence[int]:
        """Return the storage keys of the users who follow a conversation."""

    def conversation_by_client_id(self, contact: int, client_id: str) -> str | None:
        """Return the id of the contact's conversation with this client id."""

    def visible_conversation(self, project: int, contact: int, conversation_id: str) -> int | None:
        """Return the storage key of a contact's conversation; None if it is hidden, another contact's, or unknown."""

    def newest_messages(self, conversations: Sequence[int]) -> Mapping[int, Message]:
        """Return the newest message of each conversation that customers see, without deleted ones, by storage key."""

    def message_index(self, conversation: int, message_id: str) -> int | None:
        """Return the index of a message, even if it was deleted; None for an unknown one and for a note."""

    def message_id_at(self, conversation: int, index: int) -> str | None:
        """Return the id of the message with this index, even if it was deleted."""

    def messages(
        self,
        conversation: int,
        *,
        internal: bool,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
        deleted: bool = False,
        newest: bool = False,
    ) -> Sequence[Message]:
        """Return messages, oldest first, between the rowids `after` and `before`.

        With `before` alone, and with `newest`, these are the last `limit` messages. `deleted` includes deleted messages.
        """

    def thread(
        self, conversation: int, *, after: int | None, before: int | None, newest_first: bool, limit: int
    ) -> Sequence[ThreadMessage]:
        """Return messages and notes between the rowids `after` and `before`, without deleted ones.

        With `newest_first` the list starts at `before`, or at the end of the thread.
        """

    def message_before(self, conversation: int, sequence: int) -> int | None:
        """Return the rowid of the message or note before the first one whose event has a larger sequence.

        If no event has a larger sequence, this is the newest message. None if there is no message before.
        """

    def agent_details(self, conversations: Sequence[int]) -> Mapping[int, AgentDetails]:
        """Return the parts of the agent's view that are not in the conversations' own rows, by storage key."""

    def seen(self, user: int, conversations: Sequence[int]) -> Mapping[int, SeenMessages]:
        """Return the messages that a user has seen in each conversation, without conversations for which this is unknown."""

    def newest_of_contact(self, conversation: int) -> int | None:
        """Return the index of the contact's newest message that is not deleted; None if there is none."""

    def unseen_after(self, conversation: int, index: int) -> int:
        """Return the number of the contact's messages after the message with this index."""

    def seen_mark(self, user: int, project: int) -> int | None:
        """Return the time (ms) up to which a user has marked a project as seen; None if there is no mark."""

    def network_requests(self, conversation: int) -> tuple[int, int] | None:
        """Return the time (ms) of the network log snapshot and its number of requests; None without a snapshot."""

    def network_logs(self, conversation: int) -> bytes | None:
        """Return the network log snapshot as it was sent; None without one."""

    def conversation_activity(
        self, conversation: int, before: int | None, limit: int
    ) -> Sequence[ConversationActivity]:
        """Return activity entries before this rowid, newest first."""

    def conversation_tags(self, project: int, after: str, limit: int) -> Sequence[tuple[str, int]]:
        """Return tags after this one in the order of their keys, each with its number of conversations."""

    def next_snooze_end(self) -> int | None:
        """Return the time (ms) at which the next snooze of any project ends; None if no conversation is snoozed."""

    def due_snoozes(self, until: int, limit: int) -> Sequence[tuple[str, str]]:
        """Return project and conversation ids of the snoozes that end by `until` (ms), the earliest first."""

    def conversation_events(self, conversation: int, after: int, limit: int) -> Sequence[bytes]:
        """Return stored envelopes with a sequence larger than `after`."""


class ExpiredConversation(Struct, frozen=True):
    """A conversation that has probably passed its retention period.

    Args:
        project, conversation: ids.
        rows: about how many rows its deletion removes.
        place: the cursor of the listing: time (ms) and storage key.
    """

    project: str
    conversation: str
    rows: int
    place: tuple[int, int]


class ExpiryReader(Protocol):
    """Queries on conversations past their retention period, the oldest first; each uses an index."""

    def bot_only_before(
        self, created_before: int, after: tuple[int, int], limit: int
    ) -> Sequence[ExpiredConversation]:
        """Return bot-only conversations of all projects, created or imported before this time (ms), after a cursor."""

    def archived_before(
        self, project: int, archived_before: int, after: tuple[int, int], limit: int
    ) -> Sequence[ExpiredConversation]:
        """Return a project's conversations archived before this time (ms), after a cursor."""

    def projects_with_expired(self, now: int, day_ms: int) -> Sequence[Project]:
        """Return projects with a conversation that was archived longer ago than their retention, in days of `day_ms`."""


class ConversationTransaction(ConversationReader, MentionTransaction, Protocol):
    """Changes of conversations."""

    def claim(self, state: Conversation) -> Claimed:
        """Claim the conversation for this transaction. Raises StaleState if `state` is not the stored state."""

    def insert_conversation(
        self, state: Conversation, contact: int, routed: Mapping[int, int]
    ) -> Conversation:
        """Store a new conversation; return it with its `rowid`."""

    def insert_conversation_client_id(self, contact: int, client_id: str, state: Conversation) -> None:
        """Store the client id of a new conversation; the contact has none with it."""

    def move_conversation_client_id(self, conversation: int, source: int, target: int) -> None:
        """Move a conversation's client id to another contact, unless that contact has a conversation with it."""

    def save_conversation(self, before: Conversation, state: Conversation, routed: Mapping[int, int]) -> None:
        """Store a changed conversation; `before` is the stored state, with a lower `revision`."""

    def note_passed_on(self, project: int, conversation_id: str, message: Message) -> None:
        """Record that a message was sent to a merged conversation; its client id counts in both."""

    def show_in(self, message_ids: Sequence[str], conversation_id: str) -> None:
        """Show messages in another conversation, too."""

    def show_only_in_own(self, conversation_id: str) -> None:
        """Show the messages that this conversation shows of others only in those again."""

    def put_merge(self, record: MergeRecord) -> None:
        """Store the record of a merge."""

    def delete_merge(self, conversation: int) -> None:
        """Delete the record of the conversation's merge."""

    def move_conversation(self, conversation: int, source: int, target: int) -> None:
        """Move a conversation from one contact to another."""

    def note_moved(self, conversation: int, source: int, event_id: str) -> None:
        """Record that the events before this one, since the last such record, belong to the previous contact."""

    def erase_conversation(self, state: Conversation) -> None:
        """Remove the conversation with all of its rows, including events and deliveries.

        Raises StaleState if this commit has unpublished events of the conversation, which would be lost.
        """

    def insert_message(self, conversation: int, message: Message, sequence: int | None) -> None:
        """Store a message with the sequence of its event, if any."""

    def rewrite_message(self, conversation: int, message: Message, at: int) -> None:
        """Store a redacted or deleted message at this time (ms), and update the search index.

        The bytes of the previous content are overwritten. A deleted message keeps its row.
        """

    def detach_from_message(self, conversation: int, upload_ids: Collection[str]) -> None:
        """Remove references to uploads that no message of the conversation has anymore, and uploads without references."""

    def rewrite_events(
        self, project: Project, conversation: int, message_id: str, rewritten: Callable[[bytes], bytes]
    ) -> None:
        """Replace a conversation's envelopes that contain a message by the results of `rewritten`.

        The receivers' answers to them are deleted. The commit notifies the components that have envelopes in memory.
        """

    def number_messages(self, conversation: int, first: int) -> None:
        """Number the events of the messages that the customer sees, starting with sequence `first`."""

    def insert_conversation_activity(
        self, conversation: int, entry: ActivityEntry, at: int, event_id: str | None
    ) -> None:
        """Store an activity entry of the conversation; `event_id` is the id of its event."""

    def put_milestone(self, state: Conversation, milestone: Milestone) -> None:
        """Store a milestone of the conversation; a rating replaces the previous one."""

    def put_workflow_end(self, conversation: int, end: WorkflowCompleted, at: int) -> None:
        """Store the end of a workflow in a conversation at this time (ms)."""

    def schedule_snooze_end(self, at: int) -> None:
        """Schedule the end of a snooze at this time (ms); the commit wakes the timer."""

    def put_conversation_tags(self, state: Conversation) -> None:
        """Replace the rows by which the conversation's tags are found."""

    def put_seen(self, user: int, conversation: int, seen: SeenMessages, at: int) -> bool:
        """Store the messages that a user has seen in a conversation; return False if the conversation is gone."""

    def claim_read_position(self, user: int, conversation: int) -> ReadPosition | None:
        """Return the stored position of a user, locked against other nodes until this commit; None if there is none.

        The times up to which everything counts as seen are not in it; see `seen`.
        """

    def delete_read_position(self, user: int, conversation: int) -> None:
        """Remove the position that a user has in a conversation."""

    def put_seen_mark(self, user: int, project: int, until: int | None) -> None:
        """Store the time (ms) up to which a user has marked a project as seen; None removes the mark."""

    def put_network_logs(self, conversation: int, snapshot: bytes, at: int) -> None:
        """Replace the network log snapshot."""


class CommitReader(ConversationReader, PublishedReader, Protocol):
    """Queries on the state that a command is decided on."""


class CommitTransaction(
    ConversationTransaction,
    ContactTransaction,
    UploadTransaction,
    WorkflowTransaction,
    PublishedReader,
    PublishTransaction,
    Protocol,
):
    """Changes of a command's commit, including events and deliveries."""
