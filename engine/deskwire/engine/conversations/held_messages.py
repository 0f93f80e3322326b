"""Held messages: stored before their author is answered, and sent some seconds or days later (ADR 53).

- A held message is private to its author until it is sent, and has the id that the message will have.
- It is sent at `send_at`, whether or not its author has a page open. All checks are made then: the author's permissions, the
  preconditions, the uploads, and the changes that follow the message.
- A scheduled message is one whose author chose the time. It is sent also if the conversation has changed since, but a close
  refuses it, and with `unless_replied` a message of the contact.
- A message that is refused then is kept with the reason, until its author sends it or takes it back.
- It ends in one commit, which either posts the message or puts its text back into a draft.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.teams import TeamReader
from deskwire.engine.conversations.conversation import (
    ConversationMerged,
    Mention,
    Message,
    TextFormat,
    no_such_conversation,
)
from deskwire.engine.conversations.decide import MovedOn, require_seen
from deskwire.engine.conversations.drafts import (
    Draft,
    DraftWrite,
    SavingTransaction,
    draft_key,
    remove_draft_version,
    write_draft,
)
from deskwire.engine.conversations.mentions import mention_view
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.conversations.writing_changes import HeldEnded, MessageHeld
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Conflict, DomainError, Invalid, NotFound
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.links import AttachmentsView
from deskwire.engine.uploads.upload import Attachment, unknown_upload

HOLD_MAX_S: Final = 60
"""Seconds for which a message may be held."""

SCHEDULE_MAX_S: Final = 366 * 86_400
"""Seconds from now to the latest time that an author can choose: a year."""

HELD_MAX: Final = 100
"""Held messages that a user may have in a project, including refused ones; and as many scheduled ones."""


class SendRefusal(Struct, frozen=True):
    """The reason why a held message was not sent: a stable code, and a sentence."""

    code: str
    detail: str


ATTACHMENT_GONE: Final = SendRefusal(
    "attachment_gone", "A file that was attached to this message was removed."
)
CONTACT_REPLIED: Final = SendRefusal(
    "contact_replied",
    "The customer has written since you scheduled this message, so it was not sent. Look, then send it or take it back.",
)
CLOSED_SINCE: Final = SendRefusal(
    "conversation_closed",
    "The conversation was closed after you scheduled this message, so it was not sent. Look, then send it or take it back.",
)
RESTORED: Final = SendRefusal(
    "restored",
    "A backup was restored while this message waited, so it may have been sent before. Look, then send it or take it back.",
)


class HeldMessage(Struct, frozen=True):
    """A stored held message; times in milliseconds.

    Args:
        project, conversation, author: storage keys.
        author_id, author_name: the user's present id and name.
        if_sequence: see `Reply`. Of a scheduled message: the sequence up to which the author knew the conversation.
        then: the changes that follow the message, in the form of the API.
        problem: why the message was not sent; None while it is held.
        format: see `Message`.
        scheduled: whether the author chose the time; if not, the message only waits for an undo.
        unless_replied: whether a later message of the contact refuses a scheduled message.
    """

    id: str
    project: int
    conversation: int
    conversation_id: str
    author: int
    author_id: str
    author_name: str
    internal: bool
    text: str
    attachments: tuple[Attachment, ...]
    if_sequence: int | None
    then: Mapping[str, Any] | None
    send_at: int
    created_at: int
    problem: SendRefusal | None = None
    rowid: int = 0
    format: TextFormat | None = None
    mentions: tuple[Mention, ...] = ()
    scheduled: bool = False
    unless_replied: bool = False


def held_view(held: HeldMessage, show: AttachmentsView) -> dict[str, Any]:
    """Return the held message as its author sees it."""
    problem = held.problem
    view = {
        "id": held.id,
        "conversationId": held.conversation_id,
        "text": held.text,
        "attachments": show(held.attachments) if held.attachments else [],
        "internal": held.internal,
        "mentions": [mention_view(each) for each in held.mentions],
        "status": "held" if problem is None else "refused",
        "scheduled": held.scheduled,
        "unlessReplied": held.unless_replied,
        "sendAt": iso(held.send_at),
        "createdAt": iso(held.created_at),
        "then": held.then,
        "problem": problem and {"code": problem.code, "detail": problem.detail},
    }
    if held.format is not None:
        view["format"] = held.format
    return view


_GONE: Final[Mapping[str, str]] = {"/then": "assignee_gone", "/mentions": "mention_gone"}
"""The code of a refusal by the part of the message that no longer exists; attachments for all others."""


def refusal_of(error: DomainError) -> SendRefusal:
    """Return the reason that is stored for a refusal."""
    if isinstance(error, MovedOn):
        return SendRefusal(
            error.reason,
            "The conversation has moved on since you wrote this: look at it, then send it again.",
        )
    if isinstance(error, Invalid) and error.problems:
        first = error.problems[0]
        gone = next(
            (code for part, code in _GONE.items() if first.pointer.startswith(part)), "attachment_gone"
        )
        return SendRefusal(gone, first.message)
    return SendRefusal(error.reason, error.detail)


def no_such_held_message() -> NotFound:
    """Return the refusal for held messages that are unknown, taken back, or another user's."""
    return NotFound("You have no such held message.", code="held_message_not_found")


def already_sent() -> Conflict:
    """Return the refusal to take back a message that was sent."""
    return Conflict("The message was sent already, so it can't be taken back.", code="already_sent")


def too_many_held(number: int, *, scheduled: bool) -> Conflict:
    """Return the refusal to hold or schedule another message."""
    kind, way_out = (
        ("scheduled", "Take back or send some, or send this one without sendAt.")
        if scheduled
        else ("held", "Take back or send those that were refused, or send this one without holdSeconds.")
    )
    return Conflict(
        f"You have {number} {kind} messages in this project, and {HELD_MAX} are the most. {way_out}",
        code="held_message_limit_reached",
    )


class HeldReader(Protocol):
    """Queries on held messages. Users and projects are storage keys."""

    def held_message(self, project: int, message_id: str) -> HeldMessage | None:
        """Return the held message with this id; None if there is none."""

    def held_messages(self, author: int, project: int, conversation: int | None) -> Sequence[HeldMessage]:
        """Return a user's held messages in a project, or in one of its conversations, the oldest first."""

    def held_in(self, conversation: int) -> Sequence[HeldMessage]:
        """Return all users' held messages in a conversation, the oldest first."""

    def count_held(self, author: int, project: int, *, scheduled: bool) -> int:
        """Return the number of scheduled, or of other held messages that a user has in a project."""

    def next_held(self) -> int | None:
        """Return the time (ms) of the next message to send in any project; None if none is held."""

    def due_held(self, until: int, limit: int) -> Sequence[HeldMessage]:
        """Return the messages to send by `until` (ms), the earliest first, without refused ones."""

    def contact_wrote_since(self, conversation: int, sequence: int, at: int) -> bool:
        """Return whether the contact has a message after this sequence; one without sequence counts after the time `at` (ms)."""

    def message_by(self, project: int, author_id: str, message_id: str) -> tuple[str, Message] | None:
        """Return an agent's message or note with the id of its conversation; None if it was deleted."""


class HeldTransaction(HeldReader, Protocol):
    """Changes of held messages."""

    def claim_held(self, project: int, message_id: str) -> HeldMessage | None:
        """Return the held message, locked against other nodes until this commit."""

    def insert_held(self, held: HeldMessage) -> None:
        """Store a held message; the commit schedules its timer."""

    def refuse_held(self, held: HeldMessage, problem: SendRefusal) -> None:
        """Store the reason why a message was not sent."""

    def move_held(self, held: HeldMessage) -> None:
        """Store the conversation of a held message, and the sequence that its author has seen there."""

    def delete_held(self, held: HeldMessage) -> None:
        """Remove a held message; its references to uploads stay for the message or draft that replaces it."""


class SendingReader(HeldReader, ConversationReader, AccountReader, TeamReader, Protocol):
    """Queries for the checks that are made when a held message is sent."""


class HoldingTransaction(HeldTransaction, SavingTransaction, ConversationReader, AccountReader, Protocol):
    """Changes of held messages, and of drafts."""


def hold_message(
    tx: HoldingTransaction, project: Project, message: HeldMessage, draft_version: int | None
) -> HeldMessage:
    """Store a message that is sent later; return it as stored.

    Args:
        draft_version: the version of its draft, which is removed in this commit; None to leave the draft.

    Raises NotFound (`conversation_not_found`), ConversationMerged, Conflict (`held_message_limit_reached`), Invalid for an upload that is gone, and
    MovedOn if the message is to be scheduled and its author has not seen the conversation's present state.
    """
    found = tx.conversation(project.rowid, message.conversation_id)
    if found is None:
        raise no_such_conversation()
    if found[0].merged_into is not None:
        raise ConversationMerged(found[0].merged_into)
    number = tx.count_held(message.author, project.rowid, scheduled=message.scheduled)
    if number >= HELD_MAX:
        raise too_many_held(number, scheduled=message.scheduled)
    state = found[0]
    held = replace(message, conversation=state.rowid)
    if held.scheduled and held.if_sequence is None:
        held = replace(held, if_sequence=state.sequence)
    elif held.scheduled and held.if_sequence is not None:
        require_seen(state, held.if_sequence)
    ids = [each.id for each in held.attachments]
    missing = tx.attach_uploads(project.rowid, state.rowid, ids) if ids else ()
    if missing:
        raise Invalid(*(unknown_upload(f"/attachments/{ids.index(each)}", each) for each in missing))
    tx.insert_held(held)
    if draft_version is not None:
        remove_draft_version(tx, draft_key(state, held.author, internal=held.internal), draft_version)
    tx.note_writing(MessageHeld(held.author, held.project, held.conversation_id, held))
    return held


def take_back(
    tx: HoldingTransaction,
    project: Project,
    author: tuple[int, str],
    message_id: str,
    at: int,
    *,
    discard: bool = False,
) -> Draft | None:
    """Remove a held message, merge its text and attachments into its author's draft, and return the draft.

    Args:
        author: storage key and id of the user who takes it back.
        at: the time, in milliseconds.
        discard: whether to leave the draft as it is, and return None.

    Raises NotFound (`held_message_not_found`), and Conflict (`already_sent`).
    """
    held = tx.claim_held(project.rowid, message_id)
    if held is None or held.author != author[0]:
        if tx.message_by(project.rowid, author[1], message_id) is not None:
            raise already_sent()
        raise no_such_held_message()
    found = tx.conversation(project.rowid, held.conversation_id)
    assert found is not None, "a held message is deleted with its conversation"
    tx.delete_held(held)
    draft = None
    if discard:
        tx.release_uploads(held.conversation, [each.id for each in held.attachments])
    else:
        written = DraftWrite(held.text, held.attachments, None, None, held.if_sequence, held.mentions)
        key = draft_key(found[0], held.author, internal=held.internal)
        draft = write_draft(tx, key, written, at, bounded=False).draft
        assert draft is not None, "a message has a text or an attachment"
    tx.note_writing(HeldEnded(held.author, held.project, held.conversation_id, held.id, "taken_back", None))
    return draft
