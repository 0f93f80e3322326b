"""The interpreter: a running workflow and an input in, effects and where it rests out (decisions 7).

Rules:

- Actions are carried out in order until one waits or the workflow ends; the end of a flow is its end.
- What asks the contact says its text as a message of the bot first.
- Whoever can't go on ends as handed off, so that an agent takes over: at the step limit, with attributes that
  would be too many, with an assignee who is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

import orjson

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.commands import Assign, Close, Patch
from deskwire.engine.definitions.attributes import merged, overfull
from deskwire.engine.workflows.definition import (
    Action,
    Attribute,
    Branch,
    Buttons,
    CloseConversation,
    Definition,
    Form,
    Give,
    HandOff,
    Operand,
    Place,
    Send,
    SetAttributes,
    Wait,
)
from deskwire.engine.workflows.run import Ending, Run, Stop

STEPS_MAX: Final = 1_000
"""Actions that one run carries out; more is an endless loop, or as good as one."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The workflow starts."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The contact has answered the pending step with a value that fits it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The time it waited for has come."""


Input = Begin | Answered | Elapsed


@dataclass(frozen=True, slots=True)
class Say:
    """The bot writes a message."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The workflow is over; `stopped` says why if it could not go on."""

    reason: Ending
    stopped: Stop | None = None


Effect = Say | Assign | Patch | Close | Ended
"""What a workflow does to its conversation, in order."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a workflow looks at: the time (ms), the conversation's attributes, and assignees by type and id."""

    at: int
    attributes: Mapping[str, Any]
    assignees: Mapping[tuple[str, str], Assignee]


def advance(
    definition: Definition, run: Run, given: Input, around: Surroundings
) -> tuple[tuple[Effect, ...], Run | None]:
    """What the workflow does on `given`, and where it rests then; None if it has ended (the last effect)."""
    place, run = _onwards(definition, run, given)
    effects: list[Effect] = []
    while place is not None:
        if run.steps >= STEPS_MAX:
            return (*effects, Ended("handed_off", "step_limit")), None
        run = replace(run, steps=run.steps + 1, flow=place[0], action=place[1])
        action = definition.action(place)
        if isinstance(action, Buttons | Form):
            return (*effects, Say(action.text)), replace(run, step=_step(definition, run, action))
        if isinstance(action, Wait):
            return tuple(effects), replace(run, due_at=around.at + action.seconds * 1000)
        done = _done(action, around)
        effects += done
        if done and isinstance(done[-1], Ended):
            return tuple(effects), None
        if isinstance(action, SetAttributes):
            around = replace(around, attributes=merged(around.attributes, action.attributes))
        place = _next(definition, place, action, run, around)
    return (*effects, Ended("completed")), None


def _onwards(definition: Definition, run: Run, given: Input) -> tuple[Place | None, Run]:
    """Where it goes on, with the answer taken down and nothing waited for any more."""
    here = (run.flow, run.action)
    awake = replace(run, step=None, due_at=None)
    match given:
        case Begin():
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
            assert_never(given)


def _done(action: Action, around: Surroundings) -> tuple[Effect, ...]:
    match action:
        case Send(_, text):
            return (Say(text),)
        case Give(_, kind, assignee_id):
            assignee = around.assignees.get((kind, assignee_id))
            return (Ended("handed_off", "assignee_gone") if assignee is None else Assign(assignee),)
        case SetAttributes(_, attributes):
            if overfull(merged(around.attributes, attributes)) is not None:
                return (Ended("handed_off", "attributes_full"),)
            return (Patch({"attributes": attributes}),)
        case CloseConversation():
            return (Close("bot"), Ended("completed"))
        case HandOff():
            return (Ended("handed_off"),)
        case Branch() | Buttons() | Form() | Wait():
            return ()
        case _:
            assert_never(action)


def _next(
    definition: Definition, place: Place, action: Action, run: Run, around: Surroundings
) -> Place | None:
    if not isinstance(action, Branch):
        return definition.behind(place)
    case = _as_case(_value(action.on, run, around))
    target = action.default if case is None else action.cases.get(case, action.default)
    return definition.entry(target)


def _value(operand: Operand, run: Run, around: Surroundings) -> Any:
    if isinstance(operand, Attribute):
        return around.attributes.get(operand.key)
    answer = run.answers.get(str(operand.action))
    if operand.field is None:
        return answer
    return answer.get(operand.field) if isinstance(answer, Mapping) else None


def _as_case(value: Any) -> str | None:
    """The case that a value is: a text is itself, a number or boolean is its JSON; else there is none."""
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode() if isinstance(value, bool | int | float) else None


def _step(definition: Definition, run: Run, action: Buttons | Form) -> Mapping[str, Any]:
    """The pending step (contract 2.5), without where its options lead."""
    return {
        "workflowId": run.workflow_id,
        "stepType": "buttons" if isinstance(action, Buttons) else "form",
        "actionFlowId": definition.flows[run.flow].id,
        "actionId": action.id,
        "action": _shown(action),
    }


def _shown(action: Buttons | Form) -> Mapping[str, Any]:
    if isinstance(action, Buttons):
        options = [{"id": each.id, "label": each.label} for each in action.options]
        return {
            "id": action.id,
            "type": "buttons",
            "text": action.text,
            "options": options,
            "allowText": action.allow_text,
        }
    fields = [
        {"id": each.id, "type": each.type, "label": each.label, "required": each.required}
        for each in action.fields
    ]
    return {"id": action.id, "type": "form", "text": action.text, "fields": fields}
