"""The conversation as a state machine: commands in, facts out, without side effects.

`decide` returns the facts of a command, `evolve` applies one fact, `events.public_events` returns its events. Rules
(contract 3, decisions 4):

- A hidden conversation has no events; `Revealed` starts its sequence at 1.
- OPEN and PENDING conversations are open; a message of the contact changes PENDING and CLOSED to OPEN.
- A command that changes nothing has no facts.
- A note is a fact without a public event and without a sequence number, and so is a follower who comes or goes.
- The contact waits from its first message until an agent or a bot answers, an agent marks that no answer is needed, or the
  conversation is closed. That mark ends with the next message that is a question or an answer.
- A snooze ends at its time, with a message of the contact, and when the conversation is closed or reopened.
- A conversation is bot-only if no agent ever wrote in it and it was never assigned. Bot-only conversations expire some time
  after their creation or import, archived ones some time after archiving, which each project chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Final, TypeAlias, assert_never

import orjson

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.client_ids import require_same_message
from deskwire.engine.conversations.commands import (
    Absorb,
    Assign,
    ChangeReadPosition,
    Close,
    Command,
    Create,
    Delete,
    DeleteMessage,
    EndSplit,
    Expire,
    Follow,
    LinkTicket,
    MarkNoAnswerNeeded,
    MarkRead,
    MarkReceived,
    MergeInto,
    Move,
    Patch,
    PostMessage,
    Rate,
    RedactMessage,
    Release,
    Reopen,
    ReplaceNetworkLogs,
    Reply,
    Restore,
    Retag,
    SplitOff,
    Unmerge,
    WaitAgain,
    WakeSnoozed,
)
from deskwire.engine.conversations.conversation import Author, AuthorType, Conversation, Message
from deskwire.engine.conversations.expiry import expiry_reason
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
)
from deskwire.engine.conversations.merge_decisions import NotMergedHere, decide_merge
from deskwire.engine.conversations.redaction import erased_message, redacted_message
from deskwire.engine.conversations.split_decisions import decide_split, split_off
from deskwire.engine.conversations.tags import TAGS_MAX, distinct_tags, tag_key
from deskwire.engine.core.errors import Conflict, Invalid, Problem
from deskwire.engine.core.values import replace
from deskwire.engine.definitions.attributes import merged, overfull

_SORTED: Final = orjson.OPT_SORT_KEYS

PUBLIC_NAMES: Final[Mapping[str, str | None]] = {
    "title": "title",
    "status": "status",
    "attributes": "attributes",
    "archived": "archived",
    "unread": "unread",
    "rating": "rating",
    "ticket_id": "ticketId",
    "rating_comment": "ratingComment",
    "rated_at": None,  # carried by the two
    "archived_at": None,  # carried by `archived`
    "contact_seen_index": None,  # carried by `unread`
    "contact_seen_at": None,
    "merged_into": "mergedInto",
    "merged": "merged",
    "merged_at": None,  # carried by the two
    "split_from": "splitFrom",
    "split_into": "splitInto",
    "human": None,  # the API does not show it
}
"""The name of each changed field in `data.changed`; None for a field that another name covers."""


_AGENT_FIELDS: Final = ("tags", "snoozed_until")
"""The fields that only agents see."""


def decide(state: Conversation | None, command: Command, at: int) -> tuple[Fact, ...]:
    """Return the facts of `command` at time `at` (ms). Pure.

    Raises:
        Conflict: the present state does not allow the command.
        Invalid: the command does not fit this conversation.
    """
    if isinstance(command, Create):
        return _create(command, at)
    assert state is not None, "only Create may start a conversation"
    match command:
        case PostMessage():
            return _post(state, command, at)
        case Reply():
            return _reply(state, command, at)
        case Close(by):
            return () if state.status == "CLOSED" else (Closed(by, at),)
        case Reopen(waiting_since=since):
            return (Reopened(since),) if state.status == "CLOSED" else ()
        case Assign(assignee):
            return () if state.assignee == assignee else (Assigned(assignee),)
        case MarkRead():
            return _read(state, at)
        case MarkReceived():
            return _received(state, command, at)
        case Rate():
            return _rate(state, command, at)
        case Patch(given):
            return _patch(state, given, at)
        case Retag():
            return _retag(state, command)
        case Restore():
            return _restore(state, command, at)
        case WakeSnoozed():
            return _wake(state, at)
        case MarkNoAnswerNeeded(index):
            return _mark_no_answer_needed(state, index)
        case WaitAgain():
            return _wait_again(state)
        case LinkTicket():
            return _link(state, command)
        case ReplaceNetworkLogs(snapshot):
            return (NetworkLogsReplaced(snapshot, at),)
        case RedactMessage():
            before, message = redacted_message(command, at)
            return () if message == before else (MessageRewritten(before, message),)
        case DeleteMessage():
            return (MessageRewritten(*erased_message(command, at)),)
        case Follow(user, follows, since):
            # Followers are rows of their own, so only the commit knows whether this changes anything.
            return (FollowChanged(user, follows, since),)
        case ChangeReadPosition():
            return ()
        case Move(source, target):
            return (Moved(source, target),)
        case MergeInto() | Absorb() | Unmerge() | Release():
            return decide_merge(state, command, at)
        case SplitOff() | EndSplit():
            return decide_split(state, command)
        case Expire(periods):
            return (Deleted("retention"),) if expiry_reason(state, periods, at) else ()
        case Delete(reason):
            return (Deleted(reason),)
        case _:
            assert_never(command)


def _create(command: Create, at: int) -> tuple[Fact, ...]:
    created = Created(
        Conversation(
            id=command.conversation_id,
            project=command.project,
            created_at=at,
            updated_at=at,
            title=command.title,
            attributes=merged({}, command.attributes or {}),
            visible=command.visible,
            human=command.by_agent,
            channel=command.channel,
            client_id=command.client_id,
        )
    )
    if command.split is not None:
        return split_off(created.conversation, command.split, command.assignee)
    assigned = () if command.assignee is None else (Assigned(command.assignee),)
    posted = () if command.message is None else _post(evolve(None, created), command.message, at)
    return (created, *assigned, *posted)


def _post(state: Conversation, command: PostMessage, at: int) -> tuple[Fact, ...]:
    if command.found is not None:
        require_same_message(command, command.found)
        return ()
    if command.via is not None and command.via not in state.merged:
        raise NotMergedHere
    index = None if command.internal else state.messages
    posted = MessagePosted(
        Message(
            command.message_id,
            command.author,
            command.text,
            at,
            command.internal,
            index,
            command.attachments,
            client_id=command.client_id,
            format=command.format,
            mentions=command.mentions,
        )
    )
    if command.internal or command.author.type != "contact":
        return (posted,)
    before: list[Fact] = []
    if state.status == "CLOSED":
        before.append(Reopened())
    elif state.status == "PENDING":
        before.append(Updated({"status": "OPEN"}))
    return (*before, posted)


def _reply(state: Conversation, command: Reply, at: int) -> tuple[Fact, ...]:
    if command.if_sequence is not None:
        require_seen(state, command.if_sequence)
    return _in_turn(state, (command.message, *command.then), at)


def _in_turn(state: Conversation, commands: Iterable[Command], at: int) -> tuple[Fact, ...]:
    """Return the facts of several commands, each decided on the state after the one before."""
    facts: list[Fact] = []
    for each in commands:
        following = decide(state, each, at)
        facts += following
        state = after(state, following)
    return tuple(facts)


def _retag(state: Conversation, command: Retag) -> tuple[Fact, ...]:
    removed = {tag_key(each) for each in command.remove}
    tags = distinct_tags([*(each for each in state.tags if tag_key(each) not in removed), *command.add])
    if len(tags) > TAGS_MAX:
        message = f"A conversation has at most {TAGS_MAX} tags."
        raise Conflict(message, code="tag_limit_reached")
    return () if tags == state.tags else (AgentFieldsUpdated({"tags": tags}),)


def _restore(state: Conversation, command: Restore, at: int) -> tuple[Fact, ...]:
    if any(restorable(state, name) != value for name, value in command.left.items()):
        message = "The conversation was changed since."
        raise Conflict(message, code="changed_since")
    return _in_turn(state, command.then, at)


def restorable(state: Conversation, name: str) -> Any:
    """Return a field in the form in which a change is stored until it can no longer be undone."""
    value = getattr(state, name)
    return [value.type, value.id] if isinstance(value, Assignee) else value


def require_seen(state: Conversation, sequence: int) -> None:
    """Raise MovedOn if the conversation had a message, a close or a reveal after this sequence, the last one that an author saw."""
    if not state.last_turn <= sequence <= state.sequence:
        raise MovedOn


class MovedOn(Conflict):
    """The refusal of a reply because the conversation has new messages or was closed."""

    code = "conversation_moved_on"

    def __init__(self, shown: Mapping[str, Any] | None = None) -> None:
        super().__init__("The conversation has moved on since that sequence; read it again.", shown=shown)


def _wake(state: Conversation, at: int) -> tuple[Fact, ...]:
    due = state.snoozed_until is not None and state.snoozed_until <= at
    return (AgentFieldsUpdated({"snoozed_until": None}),) if due else ()


def _mark_no_answer_needed(state: Conversation, index: int) -> tuple[Fact, ...]:
    _require_open(state)
    newest = state.messages - 1
    if index > newest:
        raise Invalid(Problem("/index", "too_large", f"The newest message has index {newest}."))
    if state.waiting_since is None:
        return ()
    if index < newest:
        raise Conflict(
            f"The newest message has index {newest}; read it before you mark that no answer is needed.",
            code="newer_message",
        )
    return (AgentFieldsUpdated({"waiting_since": None, "no_answer_needed_since": state.waiting_since}),)


def _wait_again(state: Conversation) -> tuple[Fact, ...]:
    _require_open(state)
    since = state.no_answer_needed_since
    if since is None:
        return ()
    return (AgentFieldsUpdated({"waiting_since": since, "no_answer_needed_since": None}),)


def _require_open(state: Conversation) -> None:
    """Raise Conflict if the conversation is closed."""
    if state.status == "CLOSED":
        raise Conflict("The conversation is closed; reopen it first.", code="conversation_closed")


def _rate(state: Conversation, command: Rate, at: int) -> tuple[Fact, ...]:
    comment = command.comment
    if command.keeps_comment and state.rating == command.rating:
        comment = state.rating_comment
    given = {"rating": command.rating, "rating_comment": comment}
    changes = {name: new for name, new in given.items() if getattr(state, name) != new}
    return (Updated({**changes, "rated_at": at}),) if changes else ()


def _read(state: Conversation, at: int) -> tuple[Fact, ...]:
    if not state.unread:
        return ()
    seen = {"contact_seen_index": state.messages - 1, "contact_seen_at": at}
    return (Updated({"unread": False, **seen}),)


def _received(state: Conversation, command: MarkReceived, at: int) -> tuple[Fact, ...]:
    newest = state.messages - 1
    seen = newest if command.everything else command.seen
    reached = max((mark for mark in (command.reached, seen) if mark is not None), default=None)
    facts: list[Fact] = []
    grown = MessagesReceived(
        at, _grown(state.contact_reached_index, reached), _grown(state.contact_seen_index, seen)
    )
    if (grown.reached, grown.seen) != (None, None):
        facts.append(grown)
    if state.unread and seen is not None and seen >= newest:
        facts.append(Updated({"unread": False}))
    return tuple(facts)


def _grown(before: int | None, now: int | None) -> int | None:
    """Return the mark if it has grown."""
    return now if now is not None and now > (-1 if before is None else before) else None


def _patch(state: Conversation, given: Mapping[str, Any], at: int) -> tuple[Fact, ...]:
    wanted = {name: value for name, value in given.items() if name != "visible"}
    if "attributes" in given:
        wanted["attributes"] = _merged(state.attributes, given["attributes"])
    if "status" in wanted or wanted.get("snoozed_until") is not None:
        _require_open(state)
    if given.get("visible") is False and state.visible:
        message = "A conversation that the customer has seen can't be hidden again."
        raise Invalid(Problem("/visible", "not_reversible", message))
    changes = {name: value for name, value in wanted.items() if not _same(getattr(state, name), value)}
    if "archived" in changes:
        changes["archived_at"] = at if changes["archived"] else None
    for_agents: dict[str, Any] = {name: changes.pop(name) for name in _AGENT_FIELDS if name in changes}
    updated: tuple[Fact, ...] = (
        *((Updated(changes),) if changes else ()),
        *((AgentFieldsUpdated(for_agents),) if for_agents else ()),
    )
    revealed = (Revealed(),) if given.get("visible") and not state.visible else ()
    # The change first, so that the event of creation shows the conversation as it is revealed.
    return (*updated, *revealed)


def _link(state: Conversation, command: LinkTicket) -> tuple[Fact, ...]:
    if not command.linked:
        return (Updated({"ticket_id": None}),) if state.ticket_id == command.ticket_id else ()
    if state.ticket_id is None:
        return (Updated({"ticket_id": command.ticket_id}),)
    if state.ticket_id != command.ticket_id:
        raise already_linked()
    return ()


def already_linked() -> Conflict:
    """Return the refusal to link a conversation that another ticket has."""
    return Conflict("The conversation is linked to another ticket.", code="conversation_linked")


def _same(one: Any, other: Any) -> bool:
    """Return whether both values are the same JSON. In Python, 1 equals true."""
    return orjson.dumps(one, option=_SORTED) == orjson.dumps(other, option=_SORTED)


def _merged(attributes: Mapping[str, Any], patch: Mapping[str, Any]) -> Mapping[str, Any]:
    after = merged(attributes, patch)
    problem = overfull(after)
    if problem is not None:
        raise Invalid(problem)
    return after


def evolve(state: Conversation | None, fact: Fact, at: int | None = None) -> Conversation:
    """Return the state after `fact`. Never raises, because facts have already happened.

    Args:
        at: the time of the fact in milliseconds, if the state will be stored. It gets a new `revision` then, and a new
            `updated_at` if the customer can see the change.
    """
    if isinstance(fact, Created):
        created, first = fact.conversation, 1 if fact.conversation.visible else 0
        return replace(created, sequence=first, updated_at=created.updated_at if at is None else at)
    assert state is not None, "only Created starts a conversation"
    changes = _changes(state, fact)
    changes["sequence"] = state.sequence + events_of(state, fact)
    if at is not None:
        if isinstance(fact, Reopened):
            changes["opened_at"] = at
        changes["revision"] = state.revision + 1
        if touches(fact):
            changes["updated_at"] = at
    return replace(state, **changes)


def after(state: Conversation | None, facts: Iterable[Fact]) -> Conversation:
    """Return the state after facts, for a decision; it is not stored."""
    state = reduce(evolve, facts, state)
    assert state is not None, "only Create may start a conversation"
    return state


def events_of(state: Conversation, fact: Fact) -> int:
    """Return the number of public events of `fact` in `state`."""
    shown = 1 if state.visible else 0
    match fact:
        case MessagePosted(message) | MessageRewritten(_, message):
            return 0 if message.internal else shown
        case NetworkLogsReplaced() | AgentFieldsUpdated() | MessagesReceived() | FollowChanged():
            return 0
        case WorkflowWaits(run):
            return 0 if run.step is None else shown
        case Revealed():
            return 1 + state.messages + (state.status == "CLOSED")
        case Created() | Closed() | Reopened() | Assigned() | Updated() | WorkflowCompleted():
            return shown
        case Moved() | Deleted():
            return shown
        case _:
            assert_never(fact)


def _changes(state: Conversation, fact: Fact) -> dict[str, Any]:
    """Return the fields that `fact` changes, with their new values."""
    match fact:
        case MessagePosted(message):
            return _with_message(state, message)
        case Revealed():
            return {"visible": True, "last_turn": state.sequence + events_of(state, fact)}
        case Closed(by, at):
            over = {"waiting_since": None, "snoozed_until": None, "last_turn": state.sequence + state.visible}
            return {"status": "CLOSED", "closed_by": by, "closed_at": at, **over}
        case Reopened(waiting):
            opened = {"status": "OPEN", "closed_by": None, "closed_at": None, "snoozed_until": None}
            waits = {"waiting_since": waiting, "no_answer_needed_since": None}
            return opened if waiting is None else {**opened, **waits}
        case Assigned(assignee):
            team = assignee.id if assignee is not None and assignee.type == "team" else state.team_id
            return {"assignee": assignee, "human": state.human or assignee is not None, "team_id": team}
        case Updated(changes) | AgentFieldsUpdated(changes):
            return dict(changes)
        case NetworkLogsReplaced(_, at):
            return {"network_logs_at": at}
        case MessagesReceived(at, reached, seen):
            marks = {"contact_reached": reached, "contact_seen": seen}
            return {
                f"{name}_{part}": value
                for name, index in marks.items()
                if index is not None
                for part, value in (("index", index), ("at", at))
            }
        case WorkflowWaits(run):
            return {"run": run}
        case WorkflowCompleted():
            return {"run": None}
        case Deleted() | Created() | MessageRewritten() | Moved() | FollowChanged():
            return {}
        case _:
            assert_never(fact)


def _with_message(state: Conversation, message: Message) -> dict[str, Any]:
    """Return the fields that a message changes, with their new values."""
    # Fields that keep their values are left out: each would cost time in the most frequent command.
    author, changes = message.author.type, dict[str, Any]()
    if author == "agent" and not state.human:
        changes["human"] = True
    if message.internal:
        return changes
    changes["messages"] = state.messages + 1
    changes["last_message_at"] = message.created_at
    if author == "contact":
        changes["unread"] = False
        changes["contact_messages"] = state.contact_messages + 1
        if state.snoozed_until is not None:
            changes["snoozed_until"] = None
    else:
        changes["unread"] = True
    changes.update(report_fields(state, message.author, message.created_at))
    if author != "system":
        changes["last_turn"] = state.sequence + state.visible
        waiting = waiting_since(state.waiting_since, author, message.created_at)
        if waiting is not state.waiting_since:
            changes["waiting_since"] = waiting
        if state.no_answer_needed_since is not None:
            changes["no_answer_needed_since"] = None
    return changes


def report_fields(state: Conversation, author: Author, at: int) -> dict[str, Any]:
    """Return the fields for reports that a message of this author changes; it is no note. Most messages change none."""
    if author.type == "contact":
        return {"asked_at": at} if state.asked_at is None else {}
    if author.type != "agent":
        return {}
    changes: dict[str, Any] = {}
    if state.answered_at is None and state.asked_at is not None:
        changes["answered_at"] = at
    if author.id != state.replier_id:
        changes["replier_id"] = author.id
    return changes


def waiting_since(before: int | None, author: AuthorType, at: int) -> int | None:
    """Return since when (ms) the contact waits, after a message of this author at this time; it is no note.

    A message of the system is neither a question nor an answer.
    """
    match author:
        case "contact":
            return at if before is None else before
        case "agent" | "bot":
            return None
        case "system":
            return before
        case _:
            assert_never(author)


def touches(fact: Fact) -> bool:
    """Return whether the customer can see the change of `fact`, so that it changes `updatedAt`."""
    match fact:
        case MessagePosted(message) | MessageRewritten(_, message):
            return not message.internal
        case NetworkLogsReplaced() | AgentFieldsUpdated() | MessagesReceived() | FollowChanged():
            return False
        case WorkflowWaits(run):
            return run.step is not None
        case Created() | Revealed() | Closed() | Reopened() | Assigned() | Updated():
            return True
        case WorkflowCompleted() | Moved() | Deleted():
            return True
        case _:
            assert_never(fact)


Transition: TypeAlias = tuple[Conversation | None, Fact, Conversation]
"""A fact with the states before and after it."""


def fold(state: Conversation | None, facts: Iterable[Fact], at: int) -> list[Transition]:
    """Return the steps of facts from a state, with new `updated_at` and `revision`."""
    steps: list[Transition] = []
    for fact in facts:
        after = evolve(state, fact, at)
        steps.append((state, fact, after))
        state = after
    return steps
