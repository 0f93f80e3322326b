"""Sending held messages: at their time, or when their author asks for it. Each is sent once, by the commit that removes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import structlog
from msgspec import Struct

from deskwire.engine.accounts.people import PERMISSIONS, Assignee, Project
from deskwire.engine.conversations.commands import Assign, Close, Patch, PostMessage, Reply
from deskwire.engine.conversations.conversation import UNCLOSED, Author
from deskwire.engine.conversations.held.held import (
    ATTACHMENT_GONE,
    HeldMessage,
    Refusal,
    no_such_held_message,
)
from deskwire.engine.conversations.held.ports import HoldingTransaction, SendingReader
from deskwire.engine.conversations.plan import Receipt
from deskwire.engine.conversations.registry import ActorRegistry
from deskwire.engine.conversations.writing_changes import HeldEnded
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import milliseconds
from deskwire.engine.core.commits import CommitHook
from deskwire.engine.core.errors import Conflict, Forbidden, Invalid, Problem
from deskwire.engine.core.values import replace

log: Final = structlog.get_logger(__name__)

REPLY: Final = "conversations.reply"
MANAGE: Final = "conversations.manage"
_OWN_MAX: Final = 100  # a user's held messages in a project; more of the author's own can't have come within the time of one


class Ready(Struct, frozen=True):
    """A held message with the command that sends it."""

    held: HeldMessage
    project: Project
    command: PostMessage | Reply


def ready(reader: SendingReader, held: HeldMessage, now: int, *, if_sequence: int | None) -> Ready:
    """Return the command that sends a held message now (ms). Raises Invalid if the assignee to be is gone.

    Args:
        if_sequence: see `Reply`.
    """
    project = reader.project_with(held.project)
    assert project is not None, "a project with a conversation is not removed"
    author = Author("agent", held.author_id, held.author_name)
    message = PostMessage(held.id, author, held.text, held.internal, held.attachments)
    then = following(reader, project, held.then or {}, now)
    if if_sequence is not None:
        if_sequence = seen_by_author(reader, held, if_sequence)
    plain = if_sequence is None and not then
    return Ready(held, project, message if plain else Reply(message, if_sequence, then))


def seen_by_author(reader: SendingReader, held: HeldMessage, sequence: int) -> int:
    """Return the sequence up to which nothing came since `sequence` that is news to the author.

    An author who sends two replies within the time of the first has seen the first one, and no page may be left to say so.
    """
    place = reader.message_before(held.conversation, sequence)
    since = reader.thread(held.conversation, after=place, before=None, newest_first=False, limit=_OWN_MAX)
    for each in since:
        if not (each.message.internal or each.message.author.id == held.author_id) or each.sequence is None:
            break
        sequence = max(sequence, each.sequence)
    return sequence


def following(
    reader: SendingReader, project: Project, then: Mapping[str, Any], now: int
) -> tuple[Assign | Patch | Close, ...]:
    """Return the commands that follow the message, in order. A snooze that would have ended by now is left out."""
    found: list[Assign | Patch | Close] = []
    if "assignee" in then:
        found.append(Assign(_assignee(reader, project, then["assignee"])))
    changes: dict[str, Any] = {}
    if then.get("status") in UNCLOSED:
        changes["status"] = then["status"]
    if "snoozedUntil" in then:
        until = None if then["snoozedUntil"] is None else milliseconds(then["snoozedUntil"])
        if until is None or until > now:
            changes["snoozed_until"] = until
    if changes:
        found.append(Patch(changes))
    if then.get("close") or then.get("status") == "CLOSED":
        found.append(Close("agent"))
    return tuple(found)


def _assignee(reader: SendingReader, project: Project, given: Mapping[str, Any] | None) -> Assignee | None:
    if given is None:
        return None
    if given["type"] == "user":
        name = reader.member_name(project.organisation, given["id"])
    else:
        name = reader.team_name(project.rowid, given["id"])
    if name is None:
        message = f"The {given['type']} that the conversation was to be assigned to is gone."
        raise Invalid(Problem("/then/assignee/id", "unknown", message))
    return Assignee(given["type"], given["id"], name)


class Sent:
    """A `CommitHook` that removes a held message in the commit of the message that it becomes.

    Args:
        refused: whether one that was refused before is sent as well.
    """

    def __init__(self, ready: Ready, *, refused: bool = False) -> None:
        self._ready = ready
        self._refused = refused
        self._held = ready.held

    def before(self, tx: HoldingTransaction) -> None:
        """Check that it is still held, and that its author may send it.

        Raises NotFound (`held_message_not_found`), Forbidden, and Conflict (`attachment_gone`).
        """
        expected = self._ready.held
        held = tx.claim_held(expected.project, expected.id)
        if held is None or (held.problem is not None and not self._refused):
            raise no_such_held_message()
        self._held = held
        _check_right(tx, self._ready.project, held)
        if held.attachments != expected.attachments:
            raise Conflict(ATTACHMENT_GONE.detail, code=ATTACHMENT_GONE.code)

    def after(self, tx: HoldingTransaction, receipt: Receipt) -> None:
        """Remove it."""
        held = self._held
        tx.delete_held(held)
        tx.note_writing(HeldEnded(held.author, held.project, held.conversation_id, held.id, "sent", None))


def _check_right(tx: HoldingTransaction, project: Project, held: HeldMessage) -> None:
    role = tx.role(project.organisation, held.author)
    if role is None:
        raise Forbidden("You are not a member of this organisation.")
    for permission in (REPLY, MANAGE) if held.then else (REPLY,):
        if permission not in PERMISSIONS[role]:
            raise Forbidden(f"You have lost the permission {permission}.")


async def send(
    actors: ActorRegistry,
    ready: Ready,
    sent: CommitHook[Receipt],
) -> Receipt:
    """Have the conversation's actor send a held message. Raises as `ActorRegistry.ask`, and as `Sent.before`."""
    held = ready.held
    by = Actor("user", held.author_id, held.author_name)
    return await actors.ask(ready.project, held.conversation_id, ready.command, sent, by)


def refuse(tx: HoldingTransaction, held: HeldMessage, problem: Refusal) -> None:
    """Note why a message was not sent, if it is still held."""
    found = tx.claim_held(held.project, held.id)
    if found is None or found.problem is not None:
        return
    tx.refuse_held(found, problem)
    kept = replace(found, problem=problem)
    tx.note_writing(HeldEnded(held.author, held.project, held.conversation_id, held.id, "refused", kept))
