"""The state of a conversation, its messages and their authors (decisions 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct, field

from deskwire.engine.accounts.people import Assignee, AssigneeType
from deskwire.engine.core.errors import Conflict, NotFound
from deskwire.engine.uploads.upload import Attachment
from deskwire.engine.workflows.runs import WorkflowRun

Unclosed = Literal["OPEN", "PENDING"]
UNCLOSED: Final[tuple[Unclosed, ...]] = get_args(Unclosed)
"""The statuses of conversations that are not closed."""
Status = Literal[Unclosed, "CLOSED"]
AuthorType = Literal["contact", "agent", "bot", "system"]
AUTHOR_TYPES: Final[tuple[AuthorType, ...]] = get_args(AuthorType)
"""All author types. SQLite stores their indexes in `message_times`, so a new one goes last."""
Closer = Literal["agent", "bot", "system"]
Reason = Literal["retention", "gdpr", "manual"]
TextFormat = Literal["markdown"]


class Author(Struct, frozen=True):
    """The author of a message; the commit fills in a contact's id and name."""

    type: AuthorType
    id: str | None = None
    name: str | None = None


class Mention(Struct, frozen=True):
    """A user or team that a note mentions; `name` is the name at that time, as `@name` in the text shows it."""

    type: AssigneeType
    id: str
    name: str


class Message(Struct, frozen=True):
    """A message, or with `internal` a note that only agents see.

    Args:
        index: counts the conversation's customer-visible messages from 0; None for a note.
        redacted_at: the time (ms) of the last redaction, if any.
        deleted: whether only the index is left.
        client_id: the id that the contact's client gave it, unique in the conversation; it outlives the text.
        format: the markup that readers may render; None for plain text. The text is stored and sent unchanged in both cases.
        mentions: the users and teams that a note mentions.
        shown_in: the id of the conversation that was split off with this message, and shows it, too.
    """

    id: str
    author: Author
    text: str
    created_at: int
    internal: bool = False
    index: int | None = None
    attachments: tuple[Attachment, ...] = ()
    redacted_at: int | None = None
    deleted: bool = False
    client_id: str | None = None
    format: TextFormat | None = None
    mentions: tuple[Mention, ...] = ()
    shown_in: str | None = None


class Conversation(Struct, frozen=True):
    """A conversation's whole state. Times are milliseconds since the epoch.

    Consumers do not see `waiting_since`, `no_answer_needed_since`, `snoozed_until`, `tags`, `contact_seen_index` and
    `contact_reached_index`. `asked_at`,
    `answered_at`, `opened_at`, `replier_id` and `team_id` are for reports only; the API does not show them.

    Args:
        human: whether an agent ever wrote a message or note, or the conversation was ever assigned: it is not bot-only.
        imported_at: the time of its import, if it was imported.
        contact_messages: the contact's share of `messages`.
        last_turn: the sequence of the newest event that the author of a reply should have seen.
        waiting_since: the time of the contact's first unanswered message.
        no_answer_needed_since: that time, if an agent has marked that no answer is needed; `waiting_since` is None then.
        tags: at most 20.
        contact_seen_index: the index of the newest message when the contact last read.
        contact_reached_index: the index of the newest message that a stream of the contact delivered.
        seen_until: the contact's messages before this time count as seen by every agent; 0 for none.
        asked_at, answered_at: the contact's first message, and an agent's first answer to it.
        opened_at: the last reopening.
        replier_id: the agent who wrote last.
        team_id: the team that it was last assigned to.
        channel: the id of the channel in which the contact began it, also after the channel was removed.
        client_id: the id that the contact's client gave to it.
        merged_into: the id of the conversation that shows this one's messages, if it is merged.
        merged: ids of the conversations whose messages this one shows, at most 20.
        merged_at: the time of the last merge or of its undo; None if it never took part in one.
        split_from: the id of the conversation that it was split off from, and some of whose messages it shows.
        split_into: ids of the conversations that were split off from it, at most 20.
        run: the workflow run; listings leave it out.
    """

    id: str
    project: int
    created_at: int
    updated_at: int
    rowid: int = 0
    revision: int = 0
    title: str | None = None
    status: Status = "OPEN"
    closed_by: Closer | None = None
    closed_at: int | None = None
    unread: bool = False
    archived: bool = False
    assignee: Assignee | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    rating: int | None = None
    rated_at: int | None = None
    rating_comment: str | None = None
    ticket_id: str | None = None
    visible: bool = True
    human: bool = False
    archived_at: int | None = None
    imported_at: int | None = None
    messages: int = 0
    contact_messages: int = 0
    last_message_at: int | None = None
    sequence: int = 0
    last_turn: int = 0
    waiting_since: int | None = None
    snoozed_until: int | None = None
    tags: tuple[str, ...] = ()
    contact_seen_index: int | None = None
    contact_seen_at: int | None = None
    seen_until: int = 0
    network_logs_at: int | None = None
    asked_at: int | None = None
    answered_at: int | None = None
    opened_at: int | None = None
    replier_id: str | None = None
    team_id: str | None = None
    channel: str | None = None
    client_id: str | None = None
    contact_reached_index: int | None = None
    contact_reached_at: int | None = None
    no_answer_needed_since: int | None = None
    merged_into: str | None = None
    merged: tuple[str, ...] = ()
    merged_at: int | None = None
    split_from: str | None = None
    split_into: tuple[str, ...] = ()
    run: WorkflowRun | None = None


def no_such_conversation() -> NotFound:
    """Return the refusal for conversations that are unknown, deleted, or another project's."""
    return NotFound("There is no such conversation.", code="conversation_not_found")


class ConversationMerged(Conflict):
    """The refusal of a change of a merged conversation, with the id of the one that shows its messages."""

    code = "conversation_merged"

    def __init__(self, into: str) -> None:
        super().__init__(
            f"The conversation is merged into {into}; make the change there.", shown={"mergedInto": into}
        )
        self.into = into
