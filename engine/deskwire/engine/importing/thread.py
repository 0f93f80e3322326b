"""A conversation while a batch of records is added to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.activity import (
    Milestone,
    answered_milestone,
    closed_milestone,
    rated_milestone,
)
from deskwire.engine.conversations.conversation import Author, Conversation, Message
from deskwire.engine.conversations.decide import report_fields, waiting_since
from deskwire.engine.core.values import replace
from deskwire.engine.importing.records import MessageRecord
from deskwire.engine.uploads.upload import Attachment

_LEAP: Final = 1 << 32
"""The step by which an import moves a revision on: more than the commits of an actor that are under way meanwhile can do,
so that none of them takes the imported state for the one that its predecessor was to leave."""


class Addition(NamedTuple):
    """A message to be added, with its author in this service, its new id and its index (None for a note).

    `sequence` is that of its event, if it gets one."""

    id: str
    number: int | None
    record: MessageRecord
    author_id: str | None
    author_name: str | None
    attachments: Sequence[Attachment]
    fingerprint: int
    sequence: int | None = None

    def message(self) -> Message:
        """Return the message that it becomes."""
        record = self.record
        author = Author(record.author_type, self.author_id, self.author_name)
        return Message(
            self.id,
            author,
            record.text,
            record.created_at,
            record.internal,
            self.number,
            tuple(self.attachments),
        )


class Thread(Struct, eq=False):
    """A conversation of the batch.

    Args:
        before: the stored state, None for a new conversation.
        state: the state to store, without what `additions` add.
        routed: what each endpoint was sent last.
        fingerprint: that of a new conversation's record.
        duration_known: whether the record of a new one tells how long it was open until its closing.
    """

    external_id: str
    contact: Contact
    before: Conversation | None
    state: Conversation
    routed: dict[int, int] = field(default_factory=dict)
    fingerprint: int = 0
    duration_known: bool = True
    shown: int = 0
    additions: list[Addition] = field(default_factory=list)

    def add(
        self,
        message_id: str,
        record: MessageRecord,
        author: tuple[str | None, str | None],
        attachments: Sequence[Attachment],
        fingerprint: int,
    ) -> None:
        """Add a message behind the others."""
        index = None
        if not record.internal:
            index = self.state.messages + self.shown
            self.shown += 1
        self.additions.append(Addition(message_id, index, record, *author, attachments, fingerprint))


def with_messages(state: Conversation, added: Sequence[MessageRecord]) -> Conversation:
    """Return the conversation with messages of its past.

    They count, and move its dates; its status and its `unread` come from its own record. An open conversation waits if the
    last one of them does.
    """
    shown = [record.created_at for record in added if not record.internal]
    by_contact = sum(record.author_type == "contact" for record in added if not record.internal)
    human = state.human or any(record.author_type == "agent" for record in added)
    revision = state.revision + _LEAP
    if not shown:
        return replace(state, human=human, revision=revision)
    last, waiting = max(shown), state.waiting_since
    for record in added:
        if not record.internal:
            waiting = waiting_since(waiting, record.author_type, record.created_at)
            if notes := report_fields(state, author_of(record), record.created_at):
                state = replace(state, **notes)
    return replace(
        state,
        human=human,
        revision=revision,
        messages=state.messages + len(shown),
        contact_messages=state.contact_messages + by_contact,
        last_message_at=max(last, state.last_message_at or last),
        waiting_since=None if state.status == "CLOSED" else waiting,
        seen_until=max(state.seen_until, last + 1) if state.status == "CLOSED" else state.seen_until,
        updated_at=max(last, state.updated_at),
    )


def author_of(record: MessageRecord) -> Author:
    """Return the author of a message as its record names it."""
    return Author(record.author_type, record.author_id, record.author_name)


def milestones(thread: Thread) -> Iterator[Milestone]:
    """Yield what has happened in a thread's past, as far as the records tell; of closings the last one.

    A milestone whose duration can't be has no begin: reports count it, and its duration as unknown.
    """
    before, state = thread.before, thread.state
    if state.answered_at is not None and (before is None or before.answered_at is None):
        yield _dated(answered_milestone(state, _first_answer(thread), state.answered_at))
    if before is None and state.status == "CLOSED":
        at = state.updated_at if state.closed_at is None else state.closed_at
        yield _dated(closed_milestone(state, at), duration_known=thread.duration_known)
    if before is None and state.rating is not None:
        yield rated_milestone(state, state.updated_at if state.rated_at is None else state.rated_at)


def _dated(milestone: Milestone, *, duration_known: bool = True) -> Milestone:
    is_known = duration_known and milestone.since is not None and milestone.since <= milestone.at
    return milestone if is_known else replace(milestone, since=None)


def _first_answer(thread: Thread) -> str | None:
    """Return the id of the agent with the first message behind one of the contact, of those that are added."""
    asked = thread.before is not None and thread.before.asked_at is not None
    for addition in thread.additions:
        record = addition.record
        if record.internal:
            continue
        if asked and record.author_type == "agent":
            return addition.author_id
        asked = asked or record.author_type == "contact"
    raise AssertionError("a conversation that was answered has an answer")
