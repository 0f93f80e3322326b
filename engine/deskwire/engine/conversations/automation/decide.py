"""The decision on a command together with the running workflow (decisions 7; ADR 20).

- A conversation that becomes visible starts the project's workflow for that, unless an agent was there before.
- An agent's reply, and a close that is not the workflow's own, end it as handed off.
- A message of the contact answers a step only if the step accepts free text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, assert_never

from deskwire.engine.conversations.automation.answers import answer_problems, answer_text, text_answer
from deskwire.engine.conversations.automation.interpreter import (
    Answered,
    Effect,
    Elapsed,
    RunCommand,
    RunContext,
    SendMessage,
    WorkflowEnded,
    WorkflowInput,
    WorkflowStarted,
    advance,
)
from deskwire.engine.conversations.commands import (
    Absorb,
    AnswerStep,
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
    StartWorkflow,
    Unmerge,
    WaitAgain,
    WakeSnoozed,
    WakeWorkflow,
    WorkflowCommand,
)
from deskwire.engine.conversations.conversation import Author, Conversation
from deskwire.engine.conversations.decide import after, decide
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
    WorkflowStep,
    WorkflowWaits,
    by_step,
)
from deskwire.engine.core.errors import Conflict, Invalid
from deskwire.engine.workflows.definition import ActionPosition, Buttons, Form
from deskwire.engine.workflows.runs import WorkflowRun
from deskwire.engine.workflows.workflow import Published

TRIGGERED: Final = "triggered"


def workflow_needed(state: Conversation | None, command: Command | WorkflowCommand) -> str | int | None:
    """Return the workflow that `decide_with_workflow` needs.

    It is "triggered", the id of a workflow, the storage key of a version, or None.
    """
    run = None if state is None else state.run
    match command:
        case PostMessage():
            return run.version if run is not None and _answers_step(run, command) else None
        case Create():
            starts = command.visible and command.split is None
            return (command.workflow_id or TRIGGERED) if starts else None
        case Patch(given):
            hidden = state is not None and not state.visible
            return TRIGGERED if hidden and given.get("visible") else None
        case AnswerStep() | WakeWorkflow():
            return None if run is None else run.version
        case (
            Close() | Reopen() | Assign() | MarkRead() | Rate() | LinkTicket() | ReplaceNetworkLogs() | Move()
        ):
            return None
        case MergeInto() | Absorb() | Unmerge() | Release() | SplitOff() | EndSplit():
            return None
        case (
            Reply()
            | Retag()
            | Restore()
            | WakeSnoozed()
            | MarkNoAnswerNeeded()
            | WaitAgain()
            | Expire()
            | Delete()
            | StartWorkflow()
            | RedactMessage()
            | DeleteMessage()
            | MarkReceived()
            | Follow()
            | ChangeReadPosition()
        ):
            return None
        case _:
            assert_never(command)


def decide_with_workflow(
    state: Conversation | None,
    command: Command | WorkflowCommand,
    at: int,
    workflow: Published | None,
    ids: Iterator[str],
) -> tuple[Fact, ...]:
    """Return the facts of `command` at time `at` (ms), including those of its workflow. Pure.

    Args:
        workflow: the workflow that `workflow_needed` names.
        ids: new ids for messages.

    Raises as `decide`, Conflict if the step is not pending, and Invalid for an answer that does not fit it.
    """
    match command:
        case StartWorkflow(started):
            return tuple(_start(_existing(state), started, at, ids))
        case AnswerStep(action_id, value):
            return tuple(_answer_step(_existing(state), action_id, value, at, workflow, ids))
        case WakeWorkflow():
            return tuple(_resumed(_existing(state), at, workflow, ids))
        case _:
            facts = decide(state, command, at)
            return (*facts, *_consequences(state, command, facts, at, workflow, ids))


def count_own_facts(
    state: Conversation | None, command: Command | WorkflowCommand, at: int, facts: Sequence[Fact]
) -> int:
    """Return how many of a command's facts are its own; the workflow's facts follow them."""
    match command:
        case StartWorkflow() | WakeWorkflow():
            return 0
        case AnswerStep():
            from_contact = (
                isinstance(fact, MessagePosted) and fact.message.author.type == "contact" for fact in facts
            )
            return next((at + 1 for at, contact in enumerate(from_contact) if contact), 0)
        case _:
            return len(decide(state, command, at))


def _existing(state: Conversation | None) -> Conversation:
    assert state is not None, "only Create may start a conversation"
    return state


def _start(state: Conversation, workflow: Published, at: int, ids: Iterator[str]) -> Iterator[Fact]:
    if state.run is not None:
        raise Conflict("A workflow runs in the conversation already.", code="workflow_running")
    if state.status == "CLOSED":
        raise Conflict("The conversation is closed; reopen it first.", code="conversation_closed")
    if not state.visible:
        raise Conflict("The conversation is hidden; make it visible first.", code="conversation_hidden")
    yield from _advance(
        state, workflow, WorkflowRun(workflow.workflow_id, workflow.version), WorkflowStarted(), at, ids
    )


def _answer_step(
    state: Conversation, action_id: int, value: Any, at: int, workflow: Published | None, ids: Iterator[str]
) -> Iterator[Fact]:
    run = state.run
    if run is None or run.action_id != action_id or workflow is None:
        raise Conflict("This step is not pending, or is no longer pending.", code="step_not_pending")
    action = workflow.definition.action((run.flow, run.action))
    assert isinstance(action, Buttons | Form), "only these wait for the contact"
    problems = answer_problems(action, value)
    if problems:
        raise Invalid(*problems)
    facts: tuple[Fact, ...] = ()
    if text := answer_text(action, value):
        facts = decide(state, PostMessage(next(ids), Author("contact"), text), at)
    yield from facts
    yield from _advance(after(state, facts), workflow, run, Answered(value), at, ids)


def _resumed(state: Conversation, at: int, workflow: Published | None, ids: Iterator[str]) -> Iterator[Fact]:
    run = state.run
    if run is not None and run.due_at is not None and run.due_at <= at and workflow is not None:
        yield from _advance(state, workflow, run, Elapsed(), at, ids)


def _consequences(
    before: Conversation | None,
    command: Command,
    facts: tuple[Fact, ...],
    at: int,
    workflow: Published | None,
    ids: Iterator[str],
) -> Iterator[Fact]:
    """Yield the facts of the workflow that a conversation command continues, ends or starts."""
    if not facts or any(isinstance(fact, Deleted) for fact in facts):
        return
    state = after(before, facts)
    run = state.run
    if run is None:
        if workflow is not None and _becomes_visible(facts) and state.status != "CLOSED" and not state.human:
            yield from _advance(
                state,
                workflow,
                WorkflowRun(workflow.workflow_id, workflow.version),
                WorkflowStarted(),
                at,
                ids,
            )
    elif any(map(_takes_over, facts)):
        yield WorkflowCompleted(
            run.workflow_id, "handed_off", version=run.version, place=(run.flow, run.action)
        )
    elif workflow is not None and isinstance(command, PostMessage) and _answers_step(run, command):
        action = workflow.definition.action((run.flow, run.action))
        assert isinstance(action, Buttons), "only buttons take free text"
        yield from _advance(state, workflow, run, Answered(text_answer(action, command.text)), at, ids)


def _becomes_visible(facts: Sequence[Fact]) -> bool:
    return any(
        isinstance(fact, Revealed) or (isinstance(fact, Created) and fact.conversation.visible)
        for fact in facts
    )


def _takes_over(fact: Fact) -> bool:
    match fact:
        case Closed():
            return True
        case MessagePosted(message):
            return message.author.type == "agent" and not message.internal
        case Created() | Revealed() | Reopened() | Assigned() | Updated() | NetworkLogsReplaced():
            return False
        case (
            AgentFieldsUpdated()
            | WorkflowWaits()
            | WorkflowCompleted()
            | Moved()
            | Deleted()
            | MessageRewritten()
            | MessagesReceived()
            | FollowChanged()
        ):
            return False
        case _:
            assert_never(fact)


def _answers_step(run: WorkflowRun, command: PostMessage) -> bool:
    return (
        run.takes_text
        and command.author.type == "contact"
        and not command.internal
        and bool(command.text.strip())
    )


def _advance(
    state: Conversation,
    workflow: Published,
    run: WorkflowRun,
    input_: WorkflowInput,
    at: int,
    ids: Iterator[str],
) -> Iterator[Fact]:
    """Yield the facts of the workflow until it waits or ends."""
    around = RunContext(at, state.attributes, workflow.assignees)
    effects, rest = advance(workflow.definition, run, input_, around)
    for effect in effects:
        facts = _facts_of(effect, state, workflow, at, ids)
        yield from facts
        state = after(state, facts)
    if rest is not None:
        yield WorkflowWaits(rest)


def _facts_of(
    effect: Effect, state: Conversation, workflow: Published, at: int, ids: Iterator[str]
) -> tuple[Fact, ...]:
    match effect:
        case WorkflowEnded(reason, stopped, place):
            return (WorkflowCompleted(workflow.workflow_id, reason, stopped, workflow.version, place),)
        case SendMessage(text):
            # no author name, because the workflow's name is not for customers (ADR 20)
            return decide(state, PostMessage(next(ids), Author("bot", workflow.workflow_id), text), at)
        case RunCommand(command, place):
            assert place is not None, "the interpreter sets the place"
            return tuple(by_step(fact, _step_at(workflow, place)) for fact in decide(state, command, at))
        case _:
            assert_never(effect)


def _step_at(workflow: Published, place: ActionPosition) -> WorkflowStep:
    flow = workflow.definition.flows[place[0]]
    return WorkflowStep(workflow.workflow_id, workflow.version, flow.id, flow.actions[place[1]].id)
