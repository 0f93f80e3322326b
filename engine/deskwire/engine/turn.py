"""One command's commit: its rows, its events and their deliveries in one transaction.

This is the middle of the path from request to event: `decide` has said what follows, and what is
written here is what every channel will read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from deskwire.engine.announce import (
    announce,
    announce_contact,
    conversation_view,
    dashboard_message_view,
    message_view,
)
from deskwire.engine.commands import ContactRef
from deskwire.engine.contact import NOBODY, Contact, identify
from deskwire.engine.conversation import Author, Conversation, Message
from deskwire.engine.decide import Step
from deskwire.engine.endpoint import disabled_reason
from deskwire.engine.errors import Invalid
from deskwire.engine.events import Draft, contact_lane, matches
from deskwire.engine.facts import Deleted, Fact, MessagePosted, NetworkLogsReplaced, Revealed
from deskwire.engine.ids import new_id
from deskwire.engine.people import Project
from deskwire.engine.ports import Transaction
from deskwire.engine.tickets.change import note_message, unlink_deleted
from deskwire.engine.tickets.ticket import Ticket
from deskwire.engine.uploads.links import Links, Shown, nowhere
from deskwire.engine.uploads.upload import unknown_upload
from deskwire.engine.value import changed, value


@value
class Receipt:
    """What a committed command leaves: the new state, and what the API answers with.

    `state` is None after a deletion; `message` is the message object if the command posted one (what a workflow
    says to it comes behind), `ticket` the ticket if it linked one or cut its link. `after` is the last state, of
    what was deleted, too, and `contact` whose conversation it is.
    """

    state: Conversation | None
    after: Conversation
    contact: Contact
    project: Project
    message: Mapping[str, Any] | None = None
    ticket: Ticket | None = None

    @property
    def conversation(self) -> Mapping[str, Any]:
        """The conversation object."""
        return conversation_view(self.after, self.contact, self.project.id)


def commit_turn(
    tx: Transaction,
    project: Project,
    before: Conversation | None,
    steps: Sequence[Step],
    at: int,
    contact_ref: ContactRef | None = None,
    links: Links | None = None,
) -> Receipt:
    """Write what `steps` mean for the conversation `before` (None for a new one).

    Args:
        steps: what `fold` makes of `before` and the facts.
        links: give attachments their URLs; None for who serves no files.

    Raises StaleState if `before` is not what is stored, Invalid if an attachment is no longer there.
    """
    show = partial((links or nowhere()).shown, now=at)
    if before is None:
        assert contact_ref is not None, "a new conversation needs its contact"
        contact, routed = put_contact(tx, project, contact_ref, at), dict[int, int]()
    else:
        claimed = tx.claim(before)
        contact, routed = claimed.contact, dict(claimed.routed)
    if not steps:
        assert before is not None, "creation is a fact"
        return Receipt(before, before, contact, project)
    steps = [(earlier, _signed(fact, contact), after) for earlier, fact, after in steps]

    drafts: list[Draft] = []
    for _, fact, after in steps:
        known = tx.messages(after.rowid, internal=False) if isinstance(fact, Revealed) else ()
        drafts.extend(announce(fact, after, contact, project.id, known, show))
    plan = [(draft, route(tx, project, draft, routed)) for draft in drafts]
    state, posted, gone = _store(tx, steps, contact, routed, at)
    for draft, targets in plan:
        subject = None if draft.type == "conversation.deleted" else state.rowid
        append(tx, project, draft, subject, targets, at, lane=state.rowid)
    message = None if posted is None else _answered(posted, state, drafts, show)
    return Receipt(None if gone else state, state, contact, project, message)


def _answered(message: Message, state: Conversation, drafts: list[Draft], show: Shown) -> Mapping[str, Any]:
    """The message object; the very one of its event if there is one."""
    if message.internal:
        return dashboard_message_view(message, state.id, show)
    for draft in drafts:
        announced: Mapping[str, Any] | None = draft.data.get("message")
        if announced is not None and announced["id"] == message.id:
            return announced
    return message_view(message, state.id, show)


def _signed(fact: Fact, contact: Contact) -> Fact:
    """A contact's message with the contact's id and name as they are now, which the state does not tell."""
    if isinstance(fact, MessagePosted) and fact.message.author.type == "contact":
        author = Author("contact", contact.id, contact.name)
        return MessagePosted(changed(fact.message, author=author))
    return fact


@value
class Target:
    """An endpoint that an event is for, the sequence it was sent before, and why it is not sent this one."""

    endpoint: int
    previous: int | None
    skipped: str | None


def route(tx: Transaction, project: Project, draft: Draft, routed: dict[int, int]) -> list[Target]:
    """Which endpoints an event is for; notes in `routed` what they were sent last.

    What a disabled one is not sent counts, too: once it is enabled it can tell that something is missing.
    """
    targets: list[Target] = []
    for endpoint in tx.routed_endpoints(project.rowid):
        if not matches(endpoint.events, draft.type):
            continue
        skipped = None if endpoint.status == "enabled" else disabled_reason(endpoint.status_reason)
        if draft.sequence is None:
            targets.append(Target(endpoint.rowid, None, skipped))
        else:
            targets.append(Target(endpoint.rowid, routed.get(endpoint.rowid, 0), skipped))
            routed[endpoint.rowid] = draft.sequence
    return targets


def append(
    tx: Transaction,
    project: Project,
    draft: Draft,
    conversation: int | None,
    targets: Sequence[Target],
    at: int,
    *,
    lane: int | None,
) -> None:
    """Put an event into the log, with its deliveries to where it was routed, in this lane."""
    event = tx.append_event(project, draft, conversation, at)
    for target in targets:
        tx.insert_delivery(target.endpoint, event, lane, target.previous, at, skipped=target.skipped)


def _store(
    tx: Transaction, steps: Sequence[Step], contact: Contact, routed: Mapping[int, int], at: int
) -> tuple[Conversation, Message | None, bool]:
    """Write the rows; the last state, the first message that was posted, and whether the conversation was deleted."""
    before, state = steps[0][0], steps[-1][2]
    if any(isinstance(fact, Deleted) for _, fact, _ in steps):
        unlink_deleted(tx, state, at)
        tx.erase_conversation(state)
        return state, None, True
    if before is None:
        state = tx.insert_conversation(state, contact.rowid, routed)
    else:
        tx.save_conversation(before, state, routed)
    if state.run is not (None if before is None else before.run):
        tx.save_run(state.rowid, state.run)
    posted: Message | None = None
    for _, fact, _ in steps:
        match fact:
            case MessagePosted(message):
                posted = posted or message
                tx.insert_message(state.rowid, message)
                _attach(tx, state, message)
                if state.ticket_id is not None:
                    note_message(tx, state.ticket_id, message.author, at)
            case NetworkLogsReplaced(snapshot):
                tx.put_network_logs(state.rowid, snapshot, at)
            case _:
                pass
    return state, posted, False


def _attach(tx: Transaction, state: Conversation, message: Message) -> None:
    """Note what the message refers to. Raises Invalid if something of it was removed meanwhile."""
    if not message.attachments:
        return
    ids = [each.id for each in message.attachments]
    missing = tx.attach_uploads(state.project, state.rowid, ids)
    if missing:
        raise Invalid(*(unknown_upload(f"/attachments/{ids.index(each)}", each) for each in missing))


def put_contact(tx: Transaction, project: Project, ref: ContactRef, at: int) -> Contact:
    """The contact of `ref`, made or changed as its identity says; a change of one that was known is announced.

    Ours: a new contact is announced by what it is made for (ADR 5).
    """
    known = tx.contact(project.rowid, ref.user_id)
    if known is None:
        blank = Contact(0, new_id("con", at), ref.user_id, at, at)
        return tx.insert_contact(project.rowid, identify(blank, ref.identity, at))
    contact = identify(known, ref.identity, at)
    if contact is not known:
        tx.save_contact(contact)
        _announce_contact(tx, project, contact, at, contact_lane(contact.rowid))
    return contact


def erase_contact(tx: Transaction, project: Project, contact: Contact, at: int) -> None:
    """Remove a contact that has nothing left, and announce that it has no identity any more (ADR 21).

    This event outlives its subject, as that of a conversation's deletion does.
    """
    tx.erase_contact(contact.rowid)
    _announce_contact(tx, project, identify(contact, NOBODY, at), at, None)


def _announce_contact(
    tx: Transaction, project: Project, contact: Contact, at: int, subject: int | None
) -> None:
    draft = announce_contact(contact)
    lane = contact_lane(contact.rowid)
    append(tx, project, draft, subject, route(tx, project, draft, {}), at, lane=lane)
