"""The state of a conversation, its messages and their authors (decisions 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct, field

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.core.errors import NotFound
from deskwire.engine.uploads.upload import Attachment
from deskwire.engine.workflows.runs import WorkflowRun

Unclosed = Literal["OPEN", "PENDING"]
UNCLOSED: Final[tuple[Unclosed, ...]] = get_args(Unclosed)
"""The statuses of conversations that still have to be worked on."""
Status = Literal[Unclosed, "CLOSED"]
AuthorType = Literal["contact", "agent", "bot", "system"]
AUTHOR_TYPES: Final[tuple[AuthorType, ...]] = get_args(AuthorType)
"""All author types; SQLite stores their places here in `message_times`, so a new one goes last."""
Closer = Literal["agent", "bot", "system"]
Reason = Literal["retention", "gdpr", "manual"]


class Author(Struct, frozen=True):
    """The author of a message; a contact's id and name are filled in when it is committed."""

    type: AuthorType
    id: str | None = None
    name: str | None = None


class Message(Struct, frozen=True):
    """A message, or with `internal` a note that only agents see.

    `index` counts the customer-visible messages of the conversation from 0; None for a note. `redacted_at` is when
    something of it was redacted last, if ever (ms). One that is `deleted` is nothing but its place.
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


class Conversation(Struct, frozen=True):
    """A conversation's whole state. Times are milliseconds since the epoch.

    `human` says that an agent ever wrote, a note included, or that it was ever assigned: it is not bot-only.
    `run` is the workflow that runs in it; listings leave it out. `imported_at` is when it came here from elsewhere, if it did.
    `contact_messages` of the `messages` are the contact's.
    `waiting_since` is when the contact wrote what nobody has answered yet. Of `tags` there are at most 20. `contact_seen_index`
    is the index of the newest message when the contact last read. Consumers see none of these three, nor `snoozed_until`.
    What the contact wrote up to `seen_until` counts as seen by every agent; 0 for nothing.
    `last_turn` is the sequence of the newest event that a reply in preparation should know of.

    Reports go by the rest, which nobody is shown: the contact first wrote at `asked_at`, an agent first answered that at
    `answered_at`, `opened_at` is when it was last reopened, `replier_id` is the agent who wrote last, and `team_id` the team that
    it was last assigned to.
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
    run: WorkflowRun | None = None


def no_such_conversation() -> NotFound:
    """The one refusal for conversations that are unknown, deleted, or another project's."""
    return NotFound("There is no such conversation.", code="conversation_not_found")
