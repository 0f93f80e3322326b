"""The commands that a conversation takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.conversation import (
    Author,
    Closer,
    Conversation,
    Mention,
    Message,
    Reason,
    Status,
    TextFormat,
)
from deskwire.engine.uploads.upload import Attachment
from deskwire.engine.workflows.workflow import Published


class ContactRef(Struct, frozen=True):
    """The contact of a new conversation, with the given identity fields.

    Args:
        id: of an existing contact; None if a new one may be created.
        may_change: whether the caller may change an existing contact.
        visitor: whether a new contact is a channel's visitor, to whom ids are reserved.
        pointer: JSON pointer to the user id in the request.
    """

    user_id: str
    identity: Mapping[str, str | None]
    id: str | None = None
    may_change: bool = True
    visitor: bool = False
    pointer: str = "/contact/userId"


class SplitOrigin(Struct, frozen=True):
    """The conversation that a new one is split off from, and the values that the new one takes over.

    Args:
        conversation: its id.
        messages: ids of the messages that the new one shows, without notes.
        waiting_since: the time (ms) of the first of them that waits for an answer.
    """

    conversation: str
    messages: tuple[str, ...]
    tags: tuple[str, ...] = ()
    team_id: str | None = None
    waiting_since: int | None = None


class Create(Struct, frozen=True):
    """Create a conversation, which may be hidden.

    Args:
        message: the first message.
        by_agent: whether an agent creates it.
        channel: the id of the channel in which the contact starts it.
        client_id: the id that the contact's client gives it; refused if the contact has a conversation with it.
        workflow_id: of the workflow that it starts, in place of the one that new conversations start; None for that one.
        split: the conversation that it is split off from. It starts no workflow then.
    """

    conversation_id: str
    project: int
    contact: ContactRef
    title: str | None = None
    attributes: Mapping[str, Any] | None = None
    visible: bool = True
    message: PostMessage | None = None
    assignee: Assignee | None = None
    by_agent: bool = False
    channel: str | None = None
    client_id: str | None = None
    workflow_id: str | None = None
    split: SplitOrigin | None = None


class PostMessage(Struct, frozen=True):
    """Add a message, or an internal note.

    Args:
        client_id: the id that the contact's client gives it. If the conversation has a message with it, nothing is added.
        found: that message, which the commit adds.
        format: see `Message`.
        mentions: the users and teams that a note mentions.
        of_contact: the storage key of the only contact in whose visible conversation the message may be stored.
        via: the id of the merged conversation to which the message was sent; refused if it is no longer merged into this one.
        found_in: the id of the conversation that has `found`, if it is another one.
    """

    message_id: str
    author: Author
    text: str
    internal: bool = False
    attachments: tuple[Attachment, ...] = ()
    client_id: str | None = None
    found: Message | None = None
    format: TextFormat | None = None
    mentions: tuple[Mention, ...] = ()
    of_contact: int | None = None
    via: str | None = None
    found_in: str | None = None


class Reply(Struct, frozen=True):
    """Add an agent's message or note, and carry out further commands in the same commit.

    Args:
        if_sequence: the sequence of the conversation that the agent has seen; refused if the conversation has moved on.
        then: the further commands, in order.
    """

    message: PostMessage
    if_sequence: int | None = None
    then: tuple[Assign | Patch | Close, ...] = ()


class Close(Struct, frozen=True):
    """Close the conversation for the customer."""

    by: Closer


class Reopen(Struct, frozen=True):
    """Reopen a closed conversation.

    Args:
        waiting_since: when (ms) the contact began to wait for an answer, if this undoes the closing. The closing has ended
            the wait, and the messages do not show whether it should continue.
    """

    waiting_since: int | None = None


class Assign(Struct, frozen=True):
    """Assign the conversation to a user or team; None unassigns it."""

    assignee: Assignee | None


class MarkRead(Struct, frozen=True):
    """Mark the conversation as read by the contact."""


class MarkReceived(Struct, frozen=True):
    """Record the newest messages that a client of the contact has received and shown.

    Both marks only grow. A message that was shown was received, too. Once the newest message was shown, the contact has read
    the conversation.

    Args:
        reached: the index of the newest message that was received; None leaves that mark.
        seen: the index of the newest message that was shown; None leaves that mark.
        everything: whether all messages of the conversation were shown; it overrides `seen`.
    """

    reached: int | None = None
    seen: int | None = None
    everything: bool = False


class Rate(Struct, frozen=True):
    """Record the contact's rating, 0 to 10 (contract 8)."""

    rating: int
    comment: str | None = None
    keeps_comment: bool = False


class Patch(Struct, frozen=True):
    """Change the fields named in `given`.

    `attributes` are merged key by key, None removes a key. `visible` can only become true. Only agents set `tags` and
    `snoozed_until`.
    """

    given: Mapping[str, Any]


class Retag(Struct, frozen=True):
    """Add and remove tags, both in their normal form; the other tags stay."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class Restore(Struct, frozen=True):
    """Undo a change by these commands in one commit; refused if the conversation was changed since.

    Args:
        left: fields with the values that the change left, in the form of `decide.restorable`.
    """

    left: Mapping[str, Any]
    then: tuple[Reopen | Close | Assign | Patch | Retag | MarkNoAnswerNeeded | WaitAgain | Follow, ...]


class WakeSnoozed(Struct, frozen=True):
    """End the conversation's snooze if it is due."""


class MarkNoAnswerNeeded(Struct, frozen=True):
    """Mark that the contact's messages need no answer, so that the contact does not wait until the next one.

    Args:
        index: of the newest message that the agent has seen; refused if the contact waits and there is a newer one.
    """

    index: int


class WaitAgain(Struct, frozen=True):
    """Take that mark back: the contact waits again since the same time as before."""


class LinkTicket(Struct, frozen=True):
    """Link the conversation to a ticket, or unlink it. The command's wrapper changes the ticket."""

    ticket_id: str
    linked: bool


class ReplaceNetworkLogs(Struct, frozen=True):
    """Replace the network log snapshot, stored as sent (contract 4.3)."""

    snapshot: bytes


class RedactMessage(Struct, frozen=True):
    """Redact a message: all or parts of its text, and attachments.

    Args:
        internal: whether the message may be a note.
        text: whether all of the text is redacted; otherwise `ranges` of characters, with the end excluded.
        attachments: ids of the uploads to remove; all with `all_attachments`.
        found: the stored message, which the pipeline adds.
    """

    message_id: str
    internal: bool
    text: bool = False
    ranges: tuple[tuple[int, int], ...] = ()
    attachments: tuple[str, ...] = ()
    all_attachments: bool = False
    found: Message | None = None


class DeleteMessage(Struct, frozen=True):
    """Delete a message; its index stays taken. `internal` and `found` are as for `RedactMessage`."""

    message_id: str
    internal: bool
    found: Message | None = None


class Follow(Struct, frozen=True):
    """Let a user follow the conversation, or no longer.

    Args:
        user: storage key.
        since: the start (ms) of a follow that is restored; None for the time of the command.
    """

    user: int
    follows: bool
    since: int | None = None


class ChangeReadPosition(Struct, frozen=True):
    """Change an agent's read position in the conversation. The command's hook changes it, because it is a row of its own."""


class Move(Struct, frozen=True):
    """Move the conversation to the contact that its own one is merged into; both are storage keys."""

    source: int
    target: int


class MergeInto(Struct, frozen=True):
    """Merge the conversation into another one, which shows its messages from then on. `Absorb` is the other half.

    Args:
        target: the id of the other conversation.
        ticket: whether the other conversation takes over the ticket.
    """

    target: str
    ticket: bool = False


class Absorb(Struct, frozen=True):
    """Show the messages of another conversation, and take over what agents need of it.

    Args:
        source: its state before the merge.
        followers: storage keys of the users to add as followers.
        ticket: whether to take over its ticket.
    """

    source: Conversation
    followers: tuple[int, ...] = ()
    ticket: bool = False


class Unmerge(Struct, frozen=True):
    """Undo a merge: the conversation has its own thread again. `Release` is the other half.

    Args:
        closed: whether the merge had closed it.
        status, snoozed_until, waiting_since: its values before the merge, if the merge had closed it.
        ticket_id: the ticket that it gets back.
    """

    closed: bool
    status: Status = "OPEN"
    snoozed_until: int | None = None
    waiting_since: int | None = None
    ticket_id: str | None = None


class Release(Struct, frozen=True):
    """Show the messages of a merged conversation no longer, and give back what was taken over.

    Args:
        source: the id of that conversation.
        tags: the tags to remove.
        followers: storage keys of the users to remove from the followers.
        ticket_id: the ticket to unlink.
        waiting: the start (ms) of the contact's wait that was taken over.
        waiting_since: since when the contact waits without that conversation.
        close: whether to close this conversation, because only the merge had reopened it.
    """

    source: str
    tags: tuple[str, ...] = ()
    followers: tuple[int, ...] = ()
    ticket_id: str | None = None
    waiting: int | None = None
    waiting_since: int | None = None
    close: bool = False


class SplitOff(Struct, frozen=True):
    """Record that a new conversation was split off, which shows some of the messages, too.

    Args:
        into: the id of the new conversation.
        waiting_since: since when (ms) the contact waits without those messages.
        no_answer_needed_since: that time, if an agent has marked that no answer is needed.
    """

    into: str
    waiting_since: int | None = None
    no_answer_needed_since: int | None = None


class EndSplit(Struct, frozen=True):
    """Forget a conversation that is deleted: the one split off from this one, or the one that this one was split off from.

    Args:
        other: its id.
        waiting_since, no_answer_needed_since: as for `SplitOff`, without the messages of the deleted conversation.
    """

    other: str
    waiting_since: int | None = None
    no_answer_needed_since: int | None = None


class ConversationRetention(Struct, frozen=True):
    """The times for which conversations are kept, in milliseconds; `archived` is None if they never expire."""

    bot_only: int
    archived: int | None


class Expire(Struct, frozen=True):
    """Delete the conversation if it has passed its retention period."""

    windows: ConversationRetention


class Delete(Struct, frozen=True):
    """Delete the conversation with all of its rows permanently."""

    reason: Reason


Command = (
    Create
    | PostMessage
    | Reply
    | Close
    | Reopen
    | Assign
    | MarkRead
    | MarkReceived
    | Rate
    | Patch
    | Retag
    | Restore
    | WakeSnoozed
    | MarkNoAnswerNeeded
    | WaitAgain
    | LinkTicket
    | ReplaceNetworkLogs
    | RedactMessage
    | DeleteMessage
    | Follow
    | ChangeReadPosition
    | Move
    | MergeInto
    | Absorb
    | Unmerge
    | Release
    | SplitOff
    | EndSplit
    | Expire
    | Delete
)


class StartWorkflow(Struct, frozen=True):
    """Start a workflow in the conversation."""

    workflow: Published


class AnswerStep(Struct, frozen=True):
    """Answer the pending step, which is named by its action."""

    action_id: int
    value: Any


class WakeWorkflow(Struct, frozen=True):
    """Resume a workflow whose wait is over."""


WorkflowCommand = StartWorkflow | AnswerStep | WakeWorkflow
"""The commands to the workflow of a conversation; `decide_with_workflow` decides them."""
