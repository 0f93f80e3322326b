"""A conversation of an import, while a batch adds records to it."""

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
"""The step by which an import raises a revision: more than all commits of an actor that can be in flight, so that none of
them mistakes the imported state for the result of the commit before it."""


class Addition(NamedTuple):
    """A message to add, with its author here, its new id and its index (None for a note).

    `sequence` is the number of its event, if it gets one."""

    id: str
    number: int | None
    record: MessageRecord
    author_id: str | None
    author_name: str | None
    attachments: Sequence[Attachment]
    fingerprint: int
    sequence: int | None = None

    def message(self) -> Message:
        """Return the message to store."""
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
            client_id=record.client_id,
            format=record.format,
        )


class ConversationImport(Struct, eq=False):
    """A conversation of the batch.

    Args:
        before: the stored state, None for a new conversation.
        state: the state to store, before `additions` are applied.
        routed: the last delivery to each endpoint.
        fingerprint: of a new conversation's record.
        duration_known: whether the record of a new conversation gives the time from creation to closing.
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

    def adds(self, client_id: str) -> bool:
        """Return whether a message with this client id is to be added."""
        return any(addition.record.client_id == client_id for addition in self.additions)

    def add(
        self,
        message_id: str,
        record: MessageRecord,
        author: tuple[str | None, str | None],
        attachments: Sequence[Attachment],
        fingerprint: int,
    ) -> None:
        """Append a message."""
        index = None
        if not record.internal:
            index = self.state.messages + self.shown
            self.shown += 1
        self.additions.append(Addition(message_id, index, record, *author, attachments, fingerprint))


def with_messages(state: Conversation, added: Sequence[MessageRecord]) -> Conversation:
    """Return the conversation with imported messages.

    The messages change its counters and dates. Its status and `unread` come from its own record. An open conversation is
    waiting if its last message is from the contact.
    """
    shown = [record.created_at for record in added if not record.internal]
    by_contact = sum(record.author_type == "contact" for record in added if not record.internal)
    human = state.human or any(record.author_type == "agent" for record in added)
    revision = state.revision + _LEAP
    if not shown:
        return replace(state, human=human, revision=revision)
    last, waiting, unneeded = max(shown), state.waiting_since, state.no_answer_needed_since
    for record in added:
        if not record.internal:
            waiting = waiting_since(waiting, record.author_type, record.created_at)
            if record.author_type != "system":
                unneeded = None
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
        no_answer_needed_since=unneeded,
        seen_until=max(state.seen_until, last + 1) if state.status == "CLOSED" else state.seen_until,
        updated_at=max(last, state.updated_at),
    )


def author_of(record: MessageRecord) -> Author:
    """Return the author that the record of a message gives."""
    return Author(record.author_type, record.author_id, record.author_name)


def milestones(thread: ConversationImport) -> Iterator[Milestone]:
    """Yield the milestones that the records show, and only the last closing.

    A milestone with an impossible duration has no start: reports count it with an unknown duration.
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


def _first_answer(thread: ConversationImport) -> str | None:
    """Return the id of the first agent who answers the contact among the added messages."""
    asked = thread.before is not None and thread.before.asked_at is not None
    for addition in thread.additions:
        record = addition.record
        if record.internal:
            continue
        if asked and record.author_type == "agent":
            return addition.author_id
        asked = asked or record.author_type == "contact"
    raise AssertionError("a conversation that was answered has an answer")
