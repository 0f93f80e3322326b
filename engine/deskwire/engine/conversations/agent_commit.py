"""The part of a commit that is for agents: their events, the events of redactions, and the conversation's activity.

A commit of one message that the customer sees has none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.commit_plan import CommitPlan
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.events import (
    agent_view,
    changed_by,
    changed_for_agents,
    conversation_view,
    dashboard_message_view,
    deleted_view,
    marks_of,
    notes_posted,
    rewritten_ids,
)
from deskwire.engine.conversations.facts import (
    Deleted,
    Fact,
    FollowChanged,
    MessagePosted,
    MessageRewritten,
    MessagesReceived,
)
from deskwire.engine.conversations.mentions import store_mentions
from deskwire.engine.conversations.ports import CommitTransaction
from deskwire.engine.events.project_events import (
    append_internal_event,
    conversation_changed,
    message_received,
    message_removed,
    note_created,
)
from deskwire.engine.uploads.links import AttachmentsView
from deskwire.engine.webhooks.publish import publish_extension


def store_followers(
    tx: CommitTransaction, plan: CommitPlan, state: Conversation, facts: Sequence[Fact]
) -> bool:
    """Store mentions and followers; return whether a `FollowChanged` has changed the followers.

    Raises Invalid if a note mentions a person who can no longer be mentioned.
    """
    followed = False
    for fact in facts:
        if isinstance(fact, MessagePosted) and fact.message.mentions:
            # Its `note.created` shows the new followers.
            store_mentions(tx, plan.project, state.rowid, fact.message, plan.at)
        elif isinstance(fact, FollowChanged):
            project, user = plan.project, fact.user
            if not fact.follows:
                followed |= tx.unfollow(project.rowid, state.rowid, user)
            elif tx.claim_members(project.organisation, [user]):
                since = plan.at if fact.since is None else fact.since
                followed |= tx.follow(project.rowid, state.rowid, [user], since)
    return followed


def append_agent_events(
    tx: CommitTransaction,
    plan: CommitPlan,
    state: Conversation,
    facts: Sequence[Fact],
    contact: Contact,
    show: AttachmentsView,
    *,
    followed: bool,
) -> str | None:
    """Append the events for agents alone; return the id of the `conversation.changed`, if there is one."""
    notes = [*notes_posted(facts, plan.steps)]
    names = changed_for_agents(plan.steps, plan.entries, followed=followed)
    if not notes and not names:
        return None
    gone = Deleted in map(type, facts)
    view = deleted_view(state) if gone else _agent_view(tx, plan, state, contact)
    subject = None if gone else state.rowid
    event_id = None
    if names:
        by = changed_by(plan.by, plan.steps, plan.entries, contact)
        draft = conversation_changed(view, names, by, **rewritten_ids(facts))
        event_id = append_internal_event(tx, plan.project, draft, subject, plan.at).id
    for note in notes:
        shown = dashboard_message_view(note, state.id, show)
        mentioned = tx.mentioned_by(state.rowid, note.id) if note.mentions else ()
        draft = note_created(shown, view, mentioned)
        publish_extension(tx, plan.project, draft, subject, plan.at, lane=state.rowid)
    return event_id


def append_rewrite_events(
    tx: CommitTransaction, plan: CommitPlan, state: Conversation, facts: Sequence[Fact], contact: Contact
) -> None:
    """Append the `message.redacted` and `message.deleted` events; notes have none."""
    for fact in facts:
        if isinstance(fact, MessageRewritten) and not fact.message.internal and state.visible:
            message = fact.message
            by = changed_by(plan.by, plan.steps, plan.entries, contact)
            draft = message_removed(
                "deleted" if message.deleted else "redacted", state.id, message.id, plan.at, by
            )
            publish_extension(tx, plan.project, draft, state.rowid, plan.at, lane=state.rowid)


def append_received_events(
    tx: CommitTransaction, plan: CommitPlan, state: Conversation, facts: Sequence[Fact], contact: Contact
) -> None:
    """Append the `message.reached` and `message.seen` events of the marks that have grown."""
    for fact in facts:
        if not isinstance(fact, MessagesReceived):
            continue
        # The public view, because the agents' has the newest note, which is confidential.
        view = conversation_view(state, contact, plan.project.id)
        for what, index in marks_of(fact):
            draft = message_received(what, view, tx.message_id_at(state.rowid, index), index, fact.at)
            publish_extension(tx, plan.project, draft, state.rowid, plan.at, lane=state.rowid)


def _agent_view(
    tx: CommitTransaction, plan: CommitPlan, state: Conversation, contact: Contact
) -> dict[str, Any]:
    """Return the conversation as agents see it after this transaction."""
    details = tx.agent_details([state.rowid])[state.rowid]
    last, workflow = details.last_message, details.workflow
    return agent_view(state, contact, plan.project.id, last, workflow, details.followers)


def store_activity(
    tx: CommitTransaction,
    plan: CommitPlan,
    state: Conversation,
    events: Mapping[int | None, str],
    agent_event: str | None,
) -> None:
    """Add the plan's entries to the conversation's activity.

    Args:
        events: ids of public events by their sequence.
        agent_event: the id of the event for agents, for entries without a public one.
    """
    for entry, (before, _, after) in zip(plan.entries, plan.steps, strict=True):
        if entry is not None:
            first = (0 if before is None else before.sequence) + 1
            event = events[first] if after.sequence >= first else agent_event
            tx.insert_conversation_activity(state.rowid, entry, plan.at, event)
