"""The sending of held messages: at their time, or earlier at their author's request.

The commit that sends a message also removes it as held. So it is sent once, even if several nodes run the timer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final

import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Assignee, Project
from deskwire.engine.conversations.actors import ActorFailed, ActorRegistry
from deskwire.engine.conversations.commands import Assign, Close, Patch, PostMessage, Reply
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.conversation import (
    UNCLOSED,
    Author,
    Conversation,
    ConversationMerged,
    no_such_conversation,
)
from deskwire.engine.conversations.decide import MovedOn
from deskwire.engine.conversations.held_messages import (
    ATTACHMENT_GONE,
    CLOSED_SINCE,
    CONTACT_REPLIED,
    HeldMessage,
    HoldingTransaction,
    SendingReader,
    SendRefusal,
    no_such_held_message,
    refusal_of,
)
from deskwire.engine.conversations.writing_changes import HeldEnded
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import Clock, milliseconds
from deskwire.engine.core.commits import CommitHook
from deskwire.engine.core.errors import (
    Conflict,
    DomainError,
    Forbidden,
    Invalid,
    NotFound,
    Problem,
    Unavailable,
)
from deskwire.engine.core.store import InlineJob, Store
from deskwire.engine.core.tasks.scheduled import ScheduledTask
from deskwire.engine.core.values import replace

log: Final = structlog.get_logger(__name__)

REPLY: Final = "conversations.reply"
MANAGE: Final = "conversations.manage"
_OWN_MAX: Final = (
    100  # held messages of a user in a project, so at most as many of the author's own come in between
)


class PreparedSend(Struct, frozen=True):
    """A held message and the command that sends it."""

    held: HeldMessage
    project: Project
    command: PostMessage | Reply


def prepare_due(reader: SendingReader, held: HeldMessage, now: int) -> PreparedSend | SendRefusal:
    """Return the command that sends a message at its time, now (ms); or why a scheduled one is not sent.

    A scheduled message is sent with the present sequence: if anything comes in between, the actor refuses it with MovedOn, and it
    is prepared again.

    Raises NotFound for a deleted conversation, and Invalid like `prepare_send`.
    """
    if not held.scheduled:
        return prepare_send(reader, held, now, if_sequence=held.if_sequence)
    found = reader.conversation(held.project, held.conversation_id)
    if found is None:
        raise no_such_conversation()
    state, seen = found[0], held.if_sequence or 0
    if held.unless_replied and reader.contact_wrote_since(held.conversation, seen, held.created_at):
        return CONTACT_REPLIED
    if _closed_since(state, held):
        return CLOSED_SINCE
    return prepare_send(reader, held, now, if_sequence=state.sequence)


def _closed_since(state: Conversation, held: HeldMessage) -> bool:
    """Return whether the conversation is closed and was not when its author scheduled the message.

    The sequence alone can't tell: agents and bots write in a closed conversation, too.
    """
    closed_at = state.closed_at
    turned = state.last_turn > (held.if_sequence or 0) or not state.visible
    return state.status == "CLOSED" and turned and closed_at is not None and closed_at >= held.created_at


def prepare_send(
    reader: SendingReader, held: HeldMessage, now: int, *, if_sequence: int | None
) -> PreparedSend:
    """Return the command that sends a held message now (ms). Raises Invalid if the new assignee no longer exists.

    Args:
        if_sequence: see `Reply`.
    """
    project = reader.project_with(held.project)
    assert project is not None, "a project with a conversation is not removed"
    author = Author("agent", held.author_id, held.author_name)
    message = PostMessage(
        held.id,
        author,
        held.text,
        held.internal,
        held.attachments,
        format=held.format,
        mentions=held.mentions,
    )
    then = follow_up_commands(reader, project, held.then or {}, now)
    if if_sequence is not None:
        if_sequence = seen_by_author(reader, held, if_sequence)
    plain = if_sequence is None and not then
    return PreparedSend(held, project, message if plain else Reply(message, if_sequence, then))


def seen_by_author(reader: SendingReader, held: HeldMessage, sequence: int) -> int:
    """Return the sequence up to which the author knows all messages since `sequence`.

    An author who writes two replies within the hold time of the first knows the first one, even if no page is left open to
    report that.
    """
    place = reader.message_before(held.conversation, sequence)
    since = reader.thread(held.conversation, after=place, before=None, newest_first=False, limit=_OWN_MAX)
    for each in since:
        if not (each.message.internal or each.message.author.id == held.author_id) or each.sequence is None:
            break
        sequence = max(sequence, each.sequence)
    return sequence


def follow_up_commands(
    reader: SendingReader, project: Project, then: Mapping[str, Any], now: int
) -> tuple[Assign | Patch | Close, ...]:
    """Return the commands that follow the message, in order, without a snooze that has already ended."""
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


class HeldSent:
    """A `CommitHook` that removes a held message in the commit that posts it.

    Args:
        refused: whether to send a message that was refused before.
    """

    def __init__(self, prepared: PreparedSend, *, refused: bool = False) -> None:
        self._prepared = prepared
        self._refused = refused
        self._held = prepared.held

    def before(self, tx: HoldingTransaction) -> None:
        """Check that the message is still held, and that its author may send it.

        Raises NotFound (`held_message_not_found`), Forbidden, and Conflict (`attachment_gone`).
        """
        expected = self._prepared.held
        held = tx.claim_held(expected.project, expected.id)
        if held is None or (held.problem is not None and not self._refused):
            raise no_such_held_message()
        self._held = held
        _check_right(tx, self._prepared.project, held)
        if held.attachments != expected.attachments:
            raise Conflict(ATTACHMENT_GONE.detail, code=ATTACHMENT_GONE.code)

    def after(self, tx: HoldingTransaction, receipt: Receipt) -> None:
        """Remove the held message."""
        held = self._held
        tx.delete_held(held)
        tx.note_writing(HeldEnded(held.author, held.project, held.conversation_id, held.id, "sent", None))


def _check_right(tx: HoldingTransaction, project: Project, held: HeldMessage) -> None:
    role = tx.role(project.organisation, held.author)
    if role is None:
        raise Forbidden("You are not a member of this organisation.")
    for permission in (REPLY, MANAGE) if held.then else (REPLY,):
        if permission not in role.permissions:
            raise Forbidden(f"You have lost the permission {permission}.")


async def send_held(
    actors: ActorRegistry,
    prepared: PreparedSend,
    sent: CommitHook[Receipt],
) -> Receipt:
    """Send a held message through its conversation's actor. Raises as `ActorRegistry.ask` and `HeldSent.before`."""
    held = prepared.held
    by = Actor("user", held.author_id, held.author_name)
    return await actors.ask(prepared.project, held.conversation_id, prepared.command, sent, by)


def refuse_held_message(tx: HoldingTransaction, held: HeldMessage, problem: SendRefusal) -> None:
    """Store the reason why a message was not sent, if it is still held."""
    found = tx.claim_held(held.project, held.id)
    if found is None or found.problem is not None:
        return
    tx.refuse_held(found, problem)
    kept = replace(found, problem=problem)
    tx.note_writing(HeldEnded(held.author, held.project, held.conversation_id, held.id, "refused", kept))


_BATCH_SIZE: Final = 64
"""Messages that are sent concurrently; they share commits."""

_FAILED: Final = SendRefusal(
    "internal_error",
    "Something went wrong here, and the message was not sent. Send it again, or take it back.",
)


class HeldSender(ScheduledTask[SendingReader, HoldingTransaction]):
    """A task that sends each held message at its time; a message that can't be sent is kept with the reason."""

    delayed: ClassVar = "conversations.held_messages_delayed"

    def __init__(
        self, store: Store[SendingReader, HoldingTransaction], clock: Clock, actors: ActorRegistry
    ) -> None:
        super().__init__(store, clock)
        self._actors = actors

    @staticmethod
    def next_due(reader: SendingReader) -> int | None:
        """Return the time (ms) of the next message to send."""
        return reader.next_held()

    async def run_batch(self) -> bool:
        """Send a batch of messages, in order within each conversation; see `ScheduledTask.run_batch`."""
        now = self._clock()
        due = await self._store.read(lambda reader: reader.due_held(now, _BATCH_SIZE))
        queues: dict[str, list[HeldMessage]] = {}
        for held in due:
            queues.setdefault(held.conversation_id, []).append(held)
        delayed: list[Unavailable] = []
        async with trio.open_nursery() as nursery:
            for queue in queues.values():
                nursery.start_soon(self._send_all, queue, delayed)
        if delayed:
            raise delayed[0]
        return len(due) == _BATCH_SIZE

    async def _send_all(self, queue: list[HeldMessage], delayed: list[Unavailable]) -> None:
        for held in queue:
            try:
                await self._send(held)
            except Unavailable as error:
                delayed.append(error)
                return

    async def _send(self, held: HeldMessage) -> None:
        """Send a message, or store why it can't be sent. Raises Unavailable if it is to be tried again."""
        try:
            made = await self._store.read(partial(prepare_due, held=held, now=self._clock()))
            if isinstance(made, SendRefusal):
                await self._refuse(held, made)
            else:
                await send_held(self._actors, made, HeldSent(made))
        except Unavailable:
            raise
        except ConversationMerged as error:  # its commit has moved the message to the other conversation
            raise Unavailable("The conversation was merged while its message was sent.") from error
        except MovedOn as error:
            if held.scheduled:  # something came in between
                raise Unavailable("The conversation changed while its scheduled message was sent.") from error
            await self._refuse(held, refusal_of(error))
        except NotFound:  # it was sent or taken back, or its conversation was deleted
            log.debug("held_messages.gone", message=held.id)
        except DomainError as error:
            await self._refuse(held, refusal_of(error))
        except ActorFailed:  # a bug that the actor has logged
            await self._refuse(held, _FAILED)

    async def _refuse(self, held: HeldMessage, problem: SendRefusal) -> None:
        log.info(
            "held_messages.refused", message=held.id, conversation=held.conversation_id, code=problem.code
        )
        await self._store.write(InlineJob(partial(refuse_held_message, held=held, problem=problem)))
