"""The commit of a plan: its rows, its events and their deliveries in one transaction.

This is the middle of the path from request to event: `decide` has said what follows, and what is
written here is what every channel will read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, assert_never

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.agents_events import (
    changes_to_tell,
    doer_of,
    notes_of,
    removed,
    rewritten_ids,
)
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.conversations.conversation import Author, Conversation, Message
from deskwire.engine.conversations.emit import agent_view, announce, dashboard_message_view, message_view
from deskwire.engine.conversations.facts import (
    Assigned,
    Closed,
    Created,
    Deleted,
    Fact,
    Filed,
    MessagePosted,
    MessageRewritten,
    Moved,
    NetworkLogsReplaced,
    Reopened,
    Revealed,
    Updated,
    WorkflowCompleted,
    WorkflowWaits,
)
from deskwire.engine.conversations.milestones import milestones_of
from deskwire.engine.conversations.plan import Plan, Receipt
from deskwire.engine.conversations.ports import CommitTransaction
from deskwire.engine.conversations.redaction import rewritten
from deskwire.engine.core.errors import Conflict, Invalid
from deskwire.engine.core.values import replace
from deskwire.engine.events.extensions import message_gone
from deskwire.engine.events.internal import conversation_changed, note_created, tell_agents
from deskwire.engine.events.types import Draft
from deskwire.engine.uploads.links import AttachmentsView, no_links
from deskwire.engine.uploads.upload import unknown_upload
from deskwire.engine.webhooks.publish import publish_event, publish_extension, recipients


def carry_out(plan: Plan, tx: CommitTransaction) -> Receipt:
    """Write a plan with what its wrappers add, and return what came of it.

    Raises StaleState if what is stored is not what the plan expects, Invalid if an attachment is no longer there, and
    what the wrappers raise.
    """
    for wrapper in plan.wrappers:
        wrapper.before(tx)
    receipt = _written(plan, tx)
    for wrapper in plan.wrappers:
        wrapper.after(tx, receipt)
    return receipt


def reads_first(plan: Plan) -> Iterator[Callable[[CommitTransaction], object]]:
    """Yield the reads that `carry_out` begins with, each by itself."""
    for wrapper in plan.wrappers:
        yield wrapper.before
    if plan.before is not None:
        yield partial(_expected, plan)


def _written(plan: Plan, tx: CommitTransaction) -> Receipt:
    project, after, at = plan.project, plan.after, plan.at
    contact, sent = _expected(plan, tx)
    show = partial((plan.links or no_links()).shown, now=at)
    if after is None:
        assert plan.before is not None, "creation is a fact"
        found = None if plan.found is None else dashboard_message_view(plan.found, plan.before.id, show)
        return Receipt(plan.before, plan.before, contact, project, message=found)
    former, contact = contact, contact if plan.plain else _owner(tx, plan, contact)
    facts = tuple([_signed(fact, contact) for _, fact, _ in plan.steps])
    drafts = _drafts(plan, tx, facts, contact, show)
    addressed = [(draft, recipients(tx, project, draft, sent)) for draft in drafts]
    events: dict[int | None, str] = {}

    gone = Deleted in map(type, facts)
    if gone:
        state = after
        tx.erase_conversation(state)
    else:
        state = _store(tx, plan, after, facts, contact, sent)
    for draft, each in addressed:
        subject = None if draft.type == "conversation.deleted" else state.rowid
        event = publish_event(tx, project, draft, subject, each, at, lane=state.rowid)
        if contact is not former:
            tx.note_moved(state.rowid, former.rowid, event.id)
        if plan.entries:
            events[draft.sequence] = event.id
    if not plan.plain:
        told = _tell_agents(tx, plan, state, facts, contact, show)
        _tell_of_rewriting(tx, plan, state, facts, contact)
        if plan.entries and not gone:
            _note(tx, plan, state, events, told)
    message = _posted(facts, state, drafts, show)
    return Receipt(None if gone else state, state, contact, project, facts, message)


def _expected(plan: Plan, tx: CommitTransaction) -> tuple[Contact, dict[int, int]]:
    """Return the contact, and the sequence that each endpoint was sent last. Raises StaleState if `before` is not what is stored."""
    if plan.before is None:
        assert plan.contact is not None, "a new conversation needs its contact"
        return put_contact(tx, plan.project, plan.contact, plan.at), {}
    claimed = tx.claim(plan.before)
    return claimed.contact, dict(claimed.routed)


def _owner(tx: CommitTransaction, plan: Plan, contact: Contact) -> Contact:
    """Return the contact whose conversation it is from now on. Raises Conflict if it can't be moved to that one."""
    for _, fact, _ in plan.steps:
        if isinstance(fact, Moved):
            target = tx.survivor(fact.target)
            if target is None or contact.rowid != fact.source:
                raise Conflict("The conversation is another contact's, or the contact to be is gone.")
            return target
    return contact


def _signed(fact: Fact, contact: Contact) -> Fact:
    """Fill in the id and name of the contact who wrote a message, as they are now; the state does not have them."""
    if isinstance(fact, MessagePosted) and fact.message.author.type == "contact":
        author = Author("contact", contact.id, contact.name)
        return MessagePosted(replace(fact.message, author=author))
    return fact


def _drafts(
    plan: Plan, tx: CommitTransaction, facts: Sequence[Fact], contact: Contact, show: AttachmentsView
) -> list[Draft]:
    """Return the events of the facts, in order."""
    drafts: list[Draft] = []
    for fact, (_, _, after) in zip(facts, plan.steps, strict=True):
        revealed = isinstance(fact, Revealed)
        known = tx.messages(after.rowid, internal=False, deleted=True) if revealed else ()
        drafts += announce(fact, after, contact, plan.project.id, known, show)
    return drafts


def _store(
    tx: CommitTransaction,
    plan: Plan,
    state: Conversation,
    facts: Sequence[Fact],
    contact: Contact,
    sent: Mapping[int, int],
) -> Conversation:
    """Write the rows; return the state with its `rowid`."""
    before = plan.before
    if before is None:
        state = tx.insert_conversation(state, contact.rowid, sent)
    else:
        tx.save_conversation(before, state, sent)
    if state.run is not (None if before is None else before.run):
        tx.save_run(state.rowid, state.run, plan.at)
    for fact, (earlier, _, after) in zip(facts, plan.steps, strict=True):
        _store_beside(tx, plan.project, state, fact, after, plan.at)
        for milestone in milestones_of(earlier, fact, after, plan.at):
            tx.put_milestone(state, milestone)
    return state


def _store_beside(
    tx: CommitTransaction, project: Project, state: Conversation, fact: Fact, after: Conversation, at: int
) -> None:
    """Write what a fact brings that is not in the conversation's own row.

    Args:
        after: the state after the fact; its sequence is that of the fact's last event.
    """
    match fact:
        case MessagePosted(message):
            told = after.visible and not message.internal
            tx.insert_message(state.rowid, message, after.sequence if told else None)
            if message.attachments:
                _attach(tx, state, message)
        case MessageRewritten():
            _rewrite(tx, project, state, fact, at)
        case NetworkLogsReplaced(snapshot):
            tx.put_network_logs(state.rowid, snapshot, at)
        case Revealed():
            last = after.sequence - (after.status == "CLOSED")  # its closing is the last event
            tx.number_messages(state.rowid, last - after.messages + 1)
        case Moved(source, target):
            tx.move_conversation(state.rowid, source, target)
        case Filed(changes):
            _file(tx, state, changes)
        case Created() | Closed() | Reopened() | Assigned() | Updated() | Deleted():
            pass
        case WorkflowCompleted():
            tx.put_workflow_end(state.rowid, fact, at)
        case WorkflowWaits():
            pass
        case _:
            assert_never(fact)


def _tell_agents(
    tx: CommitTransaction,
    plan: Plan,
    state: Conversation,
    facts: Sequence[Fact],
    contact: Contact,
    show: AttachmentsView,
) -> str | None:
    """Put into the log what agents alone are told; return the id of the event of what changed, if there is one."""
    notes, names = [*notes_of(facts, plan.steps)], changes_to_tell(plan.steps, plan.entries)
    if not notes and not names:
        return None
    gone = Deleted in map(type, facts)
    view = removed(state) if gone else _seen_by_agents(tx, plan, state, contact)
    subject = None if gone else state.rowid
    told = None
    if names:
        by = doer_of(plan.by, plan.steps, plan.entries, contact)
        told = tell_agents(
            tx, plan.project, conversation_changed(view, names, by, **rewritten_ids(facts)), subject, plan.at
        ).id
    for note in notes:
        shown = dashboard_message_view(note, state.id, show)
        publish_extension(tx, plan.project, note_created(shown, view), subject, plan.at, lane=state.rowid)
    return told


def _tell_of_rewriting(
    tx: CommitTransaction, plan: Plan, state: Conversation, facts: Sequence[Fact], contact: Contact
) -> None:
    """Put into the log the events beyond the contract of messages that were redacted or deleted; of notes there are none."""
    for fact in facts:
        if isinstance(fact, MessageRewritten) and not fact.message.internal and state.visible:
            message = fact.message
            by = doer_of(plan.by, plan.steps, plan.entries, contact)
            draft = message_gone(
                "deleted" if message.deleted else "redacted", state.id, message.id, plan.at, by
            )
            publish_extension(tx, plan.project, draft, state.rowid, plan.at, lane=state.rowid)


def _seen_by_agents(
    tx: CommitTransaction, plan: Plan, state: Conversation, contact: Contact
) -> dict[str, Any]:
    """Return the conversation as agents see it, as this transaction leaves it."""
    beside = tx.beside([state.rowid])[state.rowid]
    return agent_view(state, contact, plan.project.id, beside.last_message, beside.workflow)


def _note(
    tx: CommitTransaction,
    plan: Plan,
    state: Conversation,
    events: Mapping[int | None, str],
    told: str | None,
) -> None:
    """Add to the conversation's activity what the plan says.

    Args:
        events: ids of public events by their sequence.
        told: the id of the event that agents alone are told, for what has no public one.
    """
    for entry, (before, _, after) in zip(plan.entries, plan.steps, strict=True):
        if entry is not None:
            first = (0 if before is None else before.sequence) + 1
            event = events[first] if after.sequence >= first else told
            tx.insert_conversation_activity(state.rowid, entry, plan.at, event)


def _file(tx: CommitTransaction, state: Conversation, changes: Mapping[str, Any]) -> None:
    """Write what finds the conversation by what was filed."""
    if "tags" in changes:
        tx.put_conversation_tags(state)
    if changes.get("snoozed_until") is not None:
        tx.note_waking(changes["snoozed_until"])


def _rewrite(
    tx: CommitTransaction, project: Project, state: Conversation, fact: MessageRewritten, at: int
) -> None:
    """Take out of everything that is stored what was taken out of a message."""
    message = fact.message
    tx.rewrite_message(state.rowid, message, at)
    gone = {each.id for each in fact.before.attachments} - {each.id for each in message.attachments}
    if gone:
        tx.detach_from_message(state.rowid, gone)
    tx.rewrite_events(project, state.rowid, message.id, partial(rewritten, message=message))


def _attach(tx: CommitTransaction, state: Conversation, message: Message) -> None:
    """Note what the message refers to. Raises Invalid if something of it was removed meanwhile."""
    ids = [each.id for each in message.attachments]
    missing = tx.attach_uploads(state.project, state.rowid, ids)
    if missing:
        raise Invalid(*(unknown_upload(f"/attachments/{ids.index(each)}", each) for each in missing))


def _posted(
    facts: Sequence[Fact], state: Conversation, drafts: Sequence[Draft], show: AttachmentsView
) -> Mapping[str, Any] | None:
    """Return the object of the first message that was posted, or of the one that was rewritten; None if none was."""
    for fact in facts:
        if isinstance(fact, MessagePosted):
            return _object_of(fact.message, state, drafts, show)
        if isinstance(fact, MessageRewritten):
            return dashboard_message_view(fact.message, state.id, show)
    return None


def _object_of(
    message: Message, state: Conversation, drafts: Sequence[Draft], show: AttachmentsView
) -> Mapping[str, Any]:
    """Return the message object; the very one of its event if there is one."""
    if message.internal:
        return dashboard_message_view(message, state.id, show)
    for draft in drafts:
        announced: Mapping[str, Any] | None = draft.data.get("message")
        if announced is not None and announced["id"] == message.id:
            return announced
    return message_view(message, state.id, show)
