"""The plan of a commit, and the job that writes it: rows, events and deliveries in one transaction.

`make_plan` decides a command and writes nothing. The writer calls the plan's `CommitJob` in a transaction, which adds what
only the transaction knows: the contact's present name, and the webhook endpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, assert_never

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.blocks import ContactBlocked
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.activity import ACTIONS, ActivityEntry, Milestone, entry_of, milestones_of
from deskwire.engine.conversations.agent_commit import (
    append_agent_events,
    append_received_events,
    append_rewrite_events,
    store_activity,
    store_followers,
)
from deskwire.engine.conversations.automation.decide import (
    count_own_facts,
    decide_with_workflow,
    workflow_needed,
)
from deskwire.engine.conversations.automation.lookup import workflow_for
from deskwire.engine.conversations.client_ids import (
    ConversationAlreadyStored,
    MessageAlreadyStored,
    stored_message,
)
from deskwire.engine.conversations.commands import (
    Command,
    Create,
    DeleteMessage,
    PostMessage,
    RedactMessage,
    WorkflowCommand,
)
from deskwire.engine.conversations.commit_plan import CommandRequest, CommitFollower, CommitPlan, Receipt
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.conversations.conversation import Author, Conversation, Message, no_such_conversation
from deskwire.engine.conversations.decide import Transition, decide, fold
from deskwire.engine.conversations.deletion import end_relations
from deskwire.engine.conversations.events import (
    dashboard_message_view,
    message_view,
    public_events,
)
from deskwire.engine.conversations.facts import (
    AgentFieldsUpdated,
    Assigned,
    Closed,
    Created,
    Deleted,
    Fact,
    FollowChanged,
    MessagePosted,
    MessageRewritten,
    MessagesReceived,
    Moved,
    NetworkLogsReplaced,
    Reopened,
    Revealed,
    Updated,
    WorkflowCompleted,
    WorkflowWaits,
    is_written_by_contact,
)
from deskwire.engine.conversations.merge_decisions import require_not_merged
from deskwire.engine.conversations.ports import CommitTransaction, ConversationReader
from deskwire.engine.conversations.redaction import rewritten
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.commits import CommitHook
from deskwire.engine.core.errors import Conflict, Invalid, StaleState
from deskwire.engine.core.ids import IdGenerator
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EventDraft
from deskwire.engine.uploads.links import AttachmentsView, Links, no_links
from deskwire.engine.uploads.upload import unknown_upload
from deskwire.engine.webhooks.publish import deliver, recipients
from deskwire.engine.workflows.workflow import Published

_WITH_ACTIVITY: Final = frozenset(ACTIONS)
# These facts write rows in proportion to the conversation's size, or must not share a transaction.
_LONG: Final = frozenset({Deleted, Revealed, NetworkLogsReplaced, MessageRewritten, Moved})

MESSAGE_COMMANDS: Final = (RedactMessage, DeleteMessage)
"""The commands that are decided on a stored message."""


class CommitJob(Struct, eq=False):
    """The writer's job for a plan: a `Revisable`, decided again if the stored state is not the expected one.

    The plans of later jobs expect the state that this one leads to. Decided again, it may lead to another state with the same
    revision and time, so the later jobs are then decided again as well.

    Args:
        first: the earliest of the jobs that are in flight together; None if it is this one.
        revised: of the first job: the earliest job that was decided again since.
    """

    plan: CommitPlan
    conversation_id: str
    request: CommandRequest
    first: CommitJob | None = None
    revised: CommitJob | None = None

    @property
    def order(self) -> str:
        """See `Revisable.order`."""
        return self.conversation_id

    @property
    def log(self) -> int | None:
        """See `Revisable.log`. A new conversation may wait for another transaction that creates the same contact."""
        return None if isinstance(self.request.command, Create) else self.plan.project.rowid

    def __call__(self, tx: CommitTransaction) -> Receipt:
        """See `Revisable`."""
        first = self.first or self
        if first.revised is self:  # its transaction was rolled back
            first.revised = None
        if first.revised is not None:
            raise StaleState("a commit before this one was decided again")
        return carry_out(self.plan, tx)

    def again(self, tx: CommitTransaction) -> Receipt:
        """See `Revisable.again`. A new conversation is not decided again, because no other node knows its id."""
        if isinstance(self.request.command, Create):
            raise StaleState("a new conversation has no other state")
        first = self.first or self
        if first.revised is None:
            first.revised = self
        return self.decide_again(self.plan.at, tx)

    def decide_again(self, at: int, tx: CommitTransaction) -> Receipt:
        """Decide on the stored state in the transaction that commits it, so that no change comes in between."""
        row = self.stored(tx)
        if row is None:
            raise no_such_conversation()
        plan, request, state = self.plan, self.request, row[0]
        command = request.command
        workflow = workflow_for(tx, plan.project, workflow_needed(state, command))
        command = with_message(command, state, tx)
        revised = make_plan(
            plan.project,
            state,
            command,
            at,
            workflow,
            plan.links,
            plan.wrapper,
            plan.ticket_follower,
            request.by,
        )
        return carry_out(revised, tx)

    def stored(self, tx: CommitTransaction) -> tuple[Conversation, Contact] | None:
        """Return the stored state; None if the conversation is gone."""
        return tx.conversation(self.plan.project.rowid, self.conversation_id)

    def needs(self, *, again: bool) -> Iterator[Callable[[CommitTransaction], object]]:
        """See `Revisable.needs`."""
        yield from leading_reads(self.plan)
        if again and self.log is not None:
            yield self.stored


def with_message(
    command: Command | WorkflowCommand, state: Conversation, reader: ConversationReader
) -> Command | WorkflowCommand:
    """Return a command about a message with that message, if the conversation has it; other commands unchanged."""
    if isinstance(command, MESSAGE_COMMANDS):
        return replace(
            command, found=reader.message(state.rowid, command.message_id, internal=command.internal)
        )
    if isinstance(command, PostMessage) and command.client_id is not None:
        found, found_in = stored_message(reader, state, command)
        return replace(command, found=found, found_in=found_in)
    return command


# The plan


def make_plan(
    project: Project,
    state: Conversation | None,
    command: Command | WorkflowCommand,
    at: int,
    workflow: Published | None,
    links: Links | None = None,
    wrapper: CommitHook[Receipt] | None = None,
    ticket_follower: CommitFollower | None = None,
    by: Actor | None = None,
) -> CommitPlan:
    """Decide a command at time `at` (ms). Pure; raises as `decide_with_workflow`.

    Args:
        workflow: the result of `workflow_for`.
        by: the actor who gave the command, if that is recorded.
    """
    if state is not None and state.merged_into is not None:
        require_not_merged(state, command)
    if workflow is None and (state is None or state.run is None) and not isinstance(command, WorkflowCommand):
        facts = decide(state, command, at)
    else:
        facts = decide_with_workflow(state, command, at, workflow, _message_ids(at))
    contact = command.contact if isinstance(command, Create) else None
    post = command if isinstance(command, PostMessage) else None
    steps = fold(state, facts, at)
    if is_single_public_message(facts, state):
        first_answer = steps[0][2].answered_at is not None and state is not None and state.answered_at is None
        return CommitPlan(
            project,
            state,
            steps,
            at,
            contact,
            links,
            wrapper,
            ticket_follower,
            milestones=_milestones(steps, at) if first_answer else (),
            single=True,
            post=post,
        )
    kinds = {*map(type, facts)}
    return CommitPlan(
        project,
        state,
        steps,
        at,
        contact,
        links,
        wrapper,
        ticket_follower,
        long=not _LONG.isdisjoint(kinds),
        entries=() if _WITH_ACTIVITY.isdisjoint(kinds) else _entries(state, command, at, steps, by),
        milestones=_milestones(steps, at),
        by=by,
        found=command.found if isinstance(command, RedactMessage | DeleteMessage | PostMessage) else None,
        post=post,
    )


def is_single_public_message(facts: Sequence[Fact], state: Conversation | None) -> bool:
    """Return whether the facts are one message that the customer sees, with no other event, entry or fact."""
    if len(facts) != 1 or state is None:
        return False
    fact = facts[0]
    return isinstance(fact, MessagePosted) and not fact.message.internal and state.visible


def _milestones(steps: Sequence[Transition], at: int) -> Sequence[Milestone]:
    return [each for before, fact, after in steps for each in milestones_of(before, fact, after, at)]


def _entries(
    state: Conversation | None,
    command: Command | WorkflowCommand,
    at: int,
    steps: Sequence[Transition],
    by: Actor | None,
) -> Sequence[ActivityEntry | None]:
    """Return the activity's entry of each step. The workflow is the actor of its own steps."""
    bot = _workflow_of(steps)
    if by is None and bot is None:
        return ()
    own = count_own_facts(state, command, at, [fact for _, fact, _ in steps])
    entries = [
        entry_of(before, fact, after, by if place < own else bot)
        for place, (before, fact, after) in enumerate(steps)
    ]
    return entries if any(entries) else ()


def _workflow_of(steps: Sequence[Transition]) -> Actor | None:
    """Return the workflow that runs in one of the states, as an actor."""
    for before, fact, after in steps:
        if isinstance(fact, WorkflowCompleted):
            return Actor("bot", fact.workflow_id)
        for state in (after, before):
            if state is not None and state.run is not None:
                return Actor("bot", state.run.workflow_id)
    return None


def _message_ids(at: int) -> Iterator[str]:
    """Yield ids for a workflow's messages, in increasing order."""
    mint = IdGenerator()
    while True:
        yield mint.new("msg", at)


# The transaction


def carry_out(plan: CommitPlan, tx: CommitTransaction) -> Receipt:
    """Write a plan and the additions of its wrapper, and return the receipt.

    Raises StaleState if the stored state is not the expected one, Invalid if an attachment no longer exists, and the
    refusals of the wrapper.
    """
    wrapper = plan.wrapper
    if wrapper is not None:
        wrapper.before(tx)
    receipt = _write(plan, tx)
    if wrapper is not None:
        wrapper.after(tx, receipt)
    if plan.ticket_follower is not None and receipt.after.ticket_id is not None:
        plan.ticket_follower.after(tx, receipt)
    return receipt


def leading_reads(plan: CommitPlan) -> Iterator[Callable[[CommitTransaction], object]]:
    """Yield the reads that `carry_out` begins with, each on its own."""
    if plan.wrapper is not None:
        yield plan.wrapper.before
    if plan.before is not None:
        yield partial(_claim, plan)
        if plan.post is not None and plan.post.client_id is not None:
            yield partial(_require_new, plan)


def _write(plan: CommitPlan, tx: CommitTransaction) -> Receipt:
    project, at, steps = plan.project, plan.at, plan.steps
    contact, sent = _claim(plan, tx)
    if plan.post is not None and plan.post.client_id is not None:
        _require_new(plan, tx)
    # After the check for a repeated message, whose answer is the stored one even if its sender was blocked since.
    if contact.blocked is not None and is_written_by_contact([fact for _, fact, _ in steps]):
        raise ContactBlocked
    show = partial((plan.links or no_links()).shown, now=at)
    if not steps:
        assert plan.before is not None, "creation is a fact"
        return _unchanged(plan, plan.before, contact, show)
    after = steps[-1][2]
    endpoints = (
        tx.routed_endpoints(project.rowid) if after.visible else ()
    )  # a hidden one has no public events
    previous, contact = contact, contact if plan.single else _new_contact(tx, plan, contact)
    facts = tuple([_with_author(fact, contact) for _, fact, _ in steps])
    drafts = _drafts(plan, tx, facts, contact, show)
    addressed = [(draft, recipients(endpoints, draft, sent) if endpoints else ()) for draft in drafts]
    events: dict[int | None, str] = {}

    gone = Deleted in map(type, facts)
    if gone:
        state = after
        _end_relations(plan, tx, state)
        tx.erase_conversation(state)
    else:
        state = _store(tx, plan, after, facts, contact, sent)
    for draft, each in addressed:
        subject = None if draft.type == "conversation.deleted" else state.rowid
        event = tx.append_event(project, draft, subject, at)
        if each:
            deliver(tx, event, each, at, lane=state.rowid)
        if contact is not previous:
            tx.note_moved(state.rowid, previous.rowid, event.id)
        if plan.entries:
            events[draft.sequence] = event.id
    if not plan.single:
        followed = store_followers(tx, plan, state, facts)
        event_id = append_agent_events(tx, plan, state, facts, contact, show, followed=followed)
        append_rewrite_events(tx, plan, state, facts, contact)
        append_received_events(tx, plan, state, facts, contact)
        if plan.entries and not gone:
            store_activity(tx, plan, state, events, event_id)
    message = _answered_message(facts, state, drafts, show)
    return Receipt(None if gone else state, state, contact, project, facts, message, before=plan.before)


def _end_relations(plan: CommitPlan, tx: CommitTransaction, gone: Conversation) -> None:
    """Change the conversations that name a deleted one, in the same commit."""
    if gone.merged or gone.merged_into or gone.split_from or gone.split_into:
        reason = next(fact.reason for _, fact, _ in plan.steps if isinstance(fact, Deleted))
        end_relations(
            tx, gone, reason, lambda other, command: carry_out(_further_plan(plan, other, command), tx)
        )


def _further_plan(plan: CommitPlan, state: Conversation, command: Command) -> CommitPlan:
    """Return the plan of another conversation's change in the same commit."""
    return make_plan(
        plan.project, state, command, plan.at, None, plan.links, None, plan.ticket_follower, plan.by
    )


def _claim(plan: CommitPlan, tx: CommitTransaction) -> tuple[Contact, dict[int, int]]:
    """Return the contact, and the last sequence sent to each endpoint.

    Raises StaleState if `before` is not stored, and NotFound if the conversation is not one of the contact who posts.
    """
    if plan.before is None:
        assert plan.contact is not None, "a new conversation needs its contact"
        contact = put_contact(tx, plan.project, plan.contact, plan.at)
        _require_new_conversation(plan, tx, contact)
        return contact, {}
    claimed = tx.claim(plan.before)
    owner = None if plan.post is None else plan.post.of_contact
    if owner is not None and not (claimed.contact.rowid == owner and plan.before.visible):
        raise no_such_conversation()
    return claimed.contact, dict(claimed.routed)


def _require_new(plan: CommitPlan, tx: CommitTransaction) -> None:
    """Raise MessageAlreadyStored if a message was stored under the client id of the one to post."""
    assert plan.before is not None, "a new conversation has no messages"
    assert plan.post is not None, "only a message may be stored already"
    if plan.steps and stored_message(tx, plan.before, plan.post)[0] is not None:
        raise MessageAlreadyStored("a message has this client id")


def _require_new_conversation(plan: CommitPlan, tx: CommitTransaction, contact: Contact) -> None:
    """Raise ConversationAlreadyStored if the contact has a conversation with the client id of the new one."""
    client_id = plan.steps[-1][2].client_id
    if client_id is not None:
        known = tx.conversation_by_client_id(contact.rowid, client_id)
        if known is not None:
            raise ConversationAlreadyStored(known)


def _unchanged(plan: CommitPlan, state: Conversation, contact: Contact, show: AttachmentsView) -> Receipt:
    """Return the receipt of a command that changes nothing, with the message that it is about."""
    if plan.found is None:
        return Receipt(state, state, contact, plan.project)
    if plan.post is None:
        message = dashboard_message_view(plan.found, state.id, show)
        return Receipt(state, state, contact, plan.project, message=message)
    message = message_view(plan.found, plan.post.found_in or state.id, show)
    return Receipt(state, state, contact, plan.project, message=message, replayed=True)


def _new_contact(tx: CommitTransaction, plan: CommitPlan, contact: Contact) -> Contact:
    """Return the contact after the plan. Raises Conflict if the conversation can't be moved to that contact."""
    for _, fact, _ in plan.steps:
        if isinstance(fact, Moved):
            target = tx.survivor(fact.target)
            if target is None or contact.rowid != fact.source:
                raise Conflict("The conversation is another contact's, or the contact to be is gone.")
            return target
    return contact


def _with_author(fact: Fact, contact: Contact) -> Fact:
    """Return the fact with the id and name of a contact who wrote its message; the state does not hold them."""
    if isinstance(fact, MessagePosted) and fact.message.author.type == "contact":
        author = Author("contact", contact.id, contact.name)
        return MessagePosted(replace(fact.message, author=author))
    return fact


def _drafts(
    plan: CommitPlan, tx: CommitTransaction, facts: Sequence[Fact], contact: Contact, show: AttachmentsView
) -> list[EventDraft]:
    """Return the public events of the facts, in order."""
    drafts: list[EventDraft] = []
    for fact, (_, _, after) in zip(facts, plan.steps, strict=True):
        revealed = isinstance(fact, Revealed)
        known = tx.messages(after.rowid, internal=False, deleted=True) if revealed else ()
        drafts += public_events(fact, after, contact, plan.project.id, known, show)
    return drafts


def _store(
    tx: CommitTransaction,
    plan: CommitPlan,
    state: Conversation,
    facts: Sequence[Fact],
    contact: Contact,
    sent: Mapping[int, int],
) -> Conversation:
    """Write the rows; return the state with its `rowid`."""
    before = plan.before
    if before is None:
        state = tx.insert_conversation(state, contact.rowid, sent)
        if state.client_id is not None:
            tx.insert_conversation_client_id(contact.rowid, state.client_id, state)
    else:
        tx.save_conversation(before, state, sent)
    if state.run is not (None if before is None else before.run):
        tx.save_run(state.rowid, state.run, plan.at)
    for fact, (_, _, after) in zip(facts, plan.steps, strict=True):
        if isinstance(fact, MessagePosted):
            message = fact.message
            public = after.visible and not message.internal
            tx.insert_message(state.rowid, message, after.sequence if public else None)
            if message.attachments:
                _attach(tx, state, message)
            if plan.post is not None and plan.post.via is not None and message.client_id is not None:
                tx.note_passed_on(state.project, plan.post.via, message)
        else:
            _store_fact(tx, plan.project, state, fact, after, plan.at)
    for milestone in plan.milestones:
        tx.put_milestone(state, milestone)
    return state


def _store_fact(
    tx: CommitTransaction, project: Project, state: Conversation, fact: Fact, after: Conversation, at: int
) -> None:
    """Write the parts of a fact that are not in the conversation's own row; messages are written before.

    Args:
        after: the state after the fact; its sequence is that of the fact's last event.
    """
    match fact:
        case MessageRewritten():
            _rewrite(tx, project, state, fact, at)
        case NetworkLogsReplaced(snapshot):
            tx.put_network_logs(state.rowid, snapshot, at)
        case Revealed():
            last = after.sequence - (after.status == "CLOSED")  # its closing is the last event
            tx.number_messages(state.rowid, last - after.messages + 1)
        case Moved(source, target):
            tx.move_conversation(state.rowid, source, target)
            if state.client_id is not None:
                tx.move_conversation_client_id(state.rowid, source, target)
        case AgentFieldsUpdated(changes):
            _store_agent_fields(tx, state, changes)
        case MessagePosted() | Created() | Closed() | Reopened() | Assigned() | Updated() | Deleted():
            pass
        case WorkflowCompleted():
            tx.put_workflow_end(state.rowid, fact, at)
        case WorkflowWaits() | MessagesReceived() | FollowChanged():
            pass
        case _:
            assert_never(fact)


def _store_agent_fields(tx: CommitTransaction, state: Conversation, changes: Mapping[str, Any]) -> None:
    """Write the rows by which tags and snoozes are found."""
    if "tags" in changes:
        tx.put_conversation_tags(state)
    if changes.get("snoozed_until") is not None:
        tx.schedule_snooze_end(changes["snoozed_until"])


def _rewrite(
    tx: CommitTransaction, project: Project, state: Conversation, fact: MessageRewritten, at: int
) -> None:
    """Remove the redacted content from every place where it is stored."""
    message = fact.message
    tx.rewrite_message(state.rowid, message, at)
    if message.deleted and message.internal:
        tx.delete_mentions(state.rowid, message.id)
    gone = {each.id for each in fact.before.attachments} - {each.id for each in message.attachments}
    if gone:
        tx.detach_from_message(state.rowid, gone)
    tx.rewrite_events(project, state.rowid, message.id, partial(rewritten, message=message))


def _attach(tx: CommitTransaction, state: Conversation, message: Message) -> None:
    """Store the references of a message to its uploads. Raises Invalid for uploads that no longer exist."""
    ids = [each.id for each in message.attachments]
    missing = tx.attach_uploads(state.project, state.rowid, ids)
    if missing:
        raise Invalid(*(unknown_upload(f"/attachments/{ids.index(each)}", each) for each in missing))


def _answered_message(
    facts: Sequence[Fact], state: Conversation, drafts: Sequence[EventDraft], show: AttachmentsView
) -> Mapping[str, Any] | None:
    """Return the object of the first message that was posted or rewritten; None if none was."""
    for fact in facts:
        if isinstance(fact, MessagePosted):
            return _message_object(fact.message, state, drafts, show)
        if isinstance(fact, MessageRewritten):
            return dashboard_message_view(fact.message, state.id, show)
    return None


def _message_object(
    message: Message, state: Conversation, drafts: Sequence[EventDraft], show: AttachmentsView
) -> Mapping[str, Any]:
    """Return the message object; if the message has an event, the same object as in the event."""
    if message.internal:
        return dashboard_message_view(message, state.id, show)
    for draft in drafts:
        announced: Mapping[str, Any] | None = draft.data.get("message")
        if announced is not None and announced["id"] == message.id:
            return announced
    return message_view(message, state.id, show)
