"""A held message: stored before its author is answered, sent at its time, or kept with the reason for which it can't be.

Rules (ADR 53):

- It is its author's own until it is sent, and has the id that the message will have.
- Held, it is sent at `send_at`, with or without a page of its author. Every check of a message is made then: the
  author's right, the preconditions, the uploads, and the changes that follow it.
- A message that is refused then is kept, with the reason, until its author sends it or takes it back.
- It ends in one commit: with the message that it becomes, or with the draft that has its words again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.conversations.decide import MovedOn
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Conflict, DomainError, Invalid, NotFound
from deskwire.engine.uploads.links import AttachmentsView
from deskwire.engine.uploads.upload import Attachment

HOLD_MAX_S: Final = 60
"""The seconds that a message may be held for."""

HELD_MAX: Final = 100
"""Messages that may be held for a user in a project at once, those that were refused included."""


class Refusal(Struct, frozen=True):
    """The reason for which a held message was not sent: a stable code, and a sentence."""

    code: str
    detail: str


ATTACHMENT_GONE: Final = Refusal("attachment_gone", "A file that was attached to this message was removed.")
RESTORED: Final = Refusal(
    "restored",
    "A backup was restored while this message waited, so it may have been sent before. Look, then send it or take it back.",
)


class HeldMessage(Struct, frozen=True):
    """A held message as it is stored; times in milliseconds.

    Args:
        project, conversation, author: storage keys.
        author_id, author_name: the user's present ones.
        if_sequence: see `Reply`.
        then: the changes that follow it, as the API has them.
        problem: why it was not sent; None while it is held.
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
    problem: Refusal | None = None
    rowid: int = 0


def held_view(held: HeldMessage, show: AttachmentsView) -> dict[str, Any]:
    """Return the held message as its author sees it."""
    problem = held.problem
    return {
        "id": held.id,
        "conversationId": held.conversation_id,
        "text": held.text,
        "attachments": show(held.attachments) if held.attachments else [],
        "internal": held.internal,
        "status": "held" if problem is None else "refused",
        "sendAt": iso(held.send_at),
        "createdAt": iso(held.created_at),
        "then": held.then,
        "problem": problem and {"code": problem.code, "detail": problem.detail},
    }


def refusal_of(error: DomainError) -> Refusal:
    """Return the reason as it is kept."""
    if isinstance(error, MovedOn):
        return Refusal(
            error.reason,
            "The conversation has moved on since you wrote this: look at it, then send it again.",
        )
    if isinstance(error, Invalid) and error.problems:
        first = error.problems[0]
        gone = "assignee_gone" if first.pointer.startswith("/then") else "attachment_gone"
        return Refusal(gone, first.message)
    return Refusal(error.reason, error.detail)


def no_such_held_message() -> NotFound:
    """Return the one refusal for held messages that are unknown, taken back, or another user's."""
    return NotFound("You have no such held message.", code="held_message_not_found")


def already_sent() -> Conflict:
    """Return the refusal to take back what the customer has."""
    return Conflict("The message was sent already, so it can't be taken back.", code="already_sent")


def too_many_held(number: int) -> Conflict:
    """Return the refusal of one more held message."""
    return Conflict(
        f"You have {number} held messages in this project, and {HELD_MAX} are the most. "
        "Take back or send those that were refused, or send this one without holdSeconds.",
        code="held_message_limit_reached",
    )
