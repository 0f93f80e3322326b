"""The interpreter of workflows: takes a run and an input, returns the effects of actions and the waiting run (decisions 7).

Rules:

- Actions are carried out in order until one waits or the workflow ends; the end of a flow is its end.
- An action that asks the contact first writes its text as a message of the bot.
- A workflow that can't go on ends as handed off, so that an agent takes over: at the step limit, when the
  conversation would have too many attributes, and when an assignee no longer exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

import orjson
from msgspec import Struct

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.commands import Assign, Close, Patch
from deskwire.engine.core.values import replace
from deskwire.engine.definitions.attributes import merged, overfull
from deskwire.engine.workflows.definition import (
    ActionPosition,
    AnswerOperand,
    AssignAction,
    AttributeOperand,
    Branch,
    Buttons,
    CloseConversation,
    Form,
    HandOff,
    MessageAction,
    Operand,
    SetAttributes,
    Wait,
    WorkflowDefinition,
)
from deskwire.engine.workflows.runs import Ending, Stop, WorkflowRun

_Immediate = MessageAction | AssignAction | SetAttributes | CloseConversation | HandOff
"""Actions that are carried out at once, and are followed by the next action or the end."""

STEPS_MAX: Final = 1_000
"""Maximum actions of a run; more are taken for an endless loop."""


class WorkflowStarted(Struct, frozen=True):
    """The workflow starts."""


class Answered(Struct, frozen=True):
    """The contact has answered the pending step with a value that fits it."""

    value: Any


class Elapsed(Struct, frozen=True):
    """The workflow's wait is over."""


WorkflowInput = WorkflowStarted | Answered | Elapsed


class SendMessage(Struct, frozen=True):
    """The bot writes a message."""

    text: str


@dataclass(frozen=True, slots=True)
class WorkflowEnded:
    """The workflow has ended.

    Args:
        stopped: the reason if it could not go on.
        place: the action at which it ended, None after the last one.
    """

    reason: Ending
    stopped: Stop | None = None
    place: ActionPosition | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RunCommand:
    """The workflow carries out a command, for the action at `place`."""

    command: Assign | Patch | Close
    place: ActionPosition | None = field(default=None, compare=False)


Effect = SendMessage | RunCommand | WorkflowEnded
"""An effect of a workflow on its conversation."""


class RunContext(Struct, frozen=True):
    """The data around a run: the time (ms), the conversation's attributes, and assignees by type and id."""

    at: int
    attributes: Mapping[str, Any]
    assignees: Mapping[tuple[str, str], Assignee]


def advance(
    definition: WorkflowDefinition,
    run: WorkflowRun,
    input_: WorkflowInput,
    around: RunContext,
    visited: list[ActionPosition] | None = None,
) -> tuple[tuple[Effect, ...], WorkflowRun | None]:
    """Return the effects of an input, and the waiting run; None if the workflow has ended, which is the last effect.

    Args:
        visited: gets the positions of the actions that are carried out, in order.
    """
    place, run = _resumed(definition, run, input_)
    effects: list[Effect] = []
    while place is not None:
        if run.steps >= STEPS_MAX:
            return (*effects, WorkflowEnded("handed_off", "step_limit", place)), None
        run = replace(run, steps=run.steps + 1, flow=place[0], action=place[1])
        if visited is not None:
            visited.append(place)
        action = definition.action(place)
        match action:
            case Buttons() | Form():
                return (*effects, SendMessage(action.text)), replace(run, step=_step(definition, run, action))
            case Wait(_, seconds):
                return tuple(effects), replace(run, due_at=around.at + seconds * 1000)
            case Branch():
                place = _branched(definition, action, run, around)
            case MessageAction() | AssignAction() | SetAttributes() | CloseConversation() | HandOff():
                done = _done(action, around, place)
                match done:
                    case (*first, WorkflowEnded() as end):
                        return (*effects, *first, WorkflowEnded(end.reason, end.stopped, place)), None
                effects += done
                if isinstance(action, SetAttributes):
                    around = replace(around, attributes=merged(around.attributes, action.attributes))
                place = definition.behind(place)
            case _:
                assert_never(action)
    return (*effects, WorkflowEnded("completed")), None


def _resumed(
    definition: WorkflowDefinition, run: WorkflowRun, input_: WorkflowInput
) -> tuple[ActionPosition | None, WorkflowRun]:
    """Return the action at which the run continues, and the run with the answer and without a wait."""
    here = (run.flow, run.action)
    awake = replace(run, step=None, due_at=None)
    match input_:
        case WorkflowStarted():
            return (0, 0), awake
        case Elapsed():
            return definition.behind(here), awake
        case Answered(value):
            action = definition.action(here)
            awake = replace(awake, answers={**run.answers, str(action.id): value})
            option = action.option(value) if isinstance(action, Buttons) else None
            if option is not None and option.goto is not None:
                return definition.entry(option.goto), awake
            return definition.behind(here), awake
        case _:
            assert_never(input_)


def _done(action: _Immediate, around: RunContext, place: ActionPosition) -> tuple[Effect, ...]:
    match action:
        case MessageAction(_, text):
            return (SendMessage(text),)
        case AssignAction(_, kind, assignee_id):
            assignee = around.assignees.get((kind, assignee_id))
            return (
                WorkflowEnded("handed_off", "assignee_gone")
                if assignee is None
                else RunCommand(Assign(assignee), place),
            )
        case SetAttributes(_, attributes):
            if overfull(merged(around.attributes, attributes)) is not None:
                return (WorkflowEnded("handed_off", "attributes_full"),)
            return (RunCommand(Patch({"attributes": attributes}), place),)
        case CloseConversation():
            return (RunCommand(Close("bot"), place), WorkflowEnded("completed"))
        case HandOff():
            return (WorkflowEnded("handed_off"),)
        case _:
            assert_never(action)


def _branched(
    definition: WorkflowDefinition, action: Branch, run: WorkflowRun, around: RunContext
) -> ActionPosition | None:
    case = _as_case(_value(action.on, run, around))
    target = action.default if case is None else action.cases.get(case, action.default)
    return definition.entry(target)


def _value(operand: Operand, run: WorkflowRun, around: RunContext) -> Any:
    match operand:
        case AttributeOperand(key):
            return around.attributes.get(key)
        case AnswerOperand(action_id, field):
            answer = run.answers.get(str(action_id))
            if field is None:
                return answer
            return answer.get(field) if isinstance(answer, Mapping) else None
        case _:
            assert_never(operand)


def _as_case(value: Any) -> str | None:
    """Return the case of a value: a text itself, a number or boolean as JSON; None for any other value."""
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode() if isinstance(value, bool | int | float) else None


def _step(definition: WorkflowDefinition, run: WorkflowRun, action: Buttons | Form) -> Mapping[str, Any]:
    """Return the pending step in the form of the API (contract 2.5), without the targets of its options."""
    shown = _shown(action)
    return {
        "workflowId": run.workflow_id,
        "stepType": shown["type"],
        "actionFlowId": definition.flows[run.flow].id,
        "actionId": action.id,
        "action": shown,
    }


def _shown(action: Buttons | Form) -> Mapping[str, Any]:
    match action:
        case Buttons():
            options = [{"id": option.id, "label": option.label} for option in action.options]
            return {
                "id": action.id,
                "type": "buttons",
                "text": action.text,
                "options": options,
                "allowText": action.allow_text,
            }
        case Form():
            fields = [
                {"id": field.id, "type": field.type, "label": field.label, "required": field.required}
                for field in action.fields
            ]
            return {"id": action.id, "type": "form", "text": action.text, "fields": fields}
        case _:
            assert_never(action)
