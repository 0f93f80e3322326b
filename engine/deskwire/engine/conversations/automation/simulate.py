"""The simulation of a workflow with a contact's answers, without a conversation (ADR 20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from msgspec import Struct

from deskwire.engine.conversations.automation.answers import answer_problems, answer_text
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
from deskwire.engine.conversations.commands import Assign, Close, Patch
from deskwire.engine.core.errors import Invalid
from deskwire.engine.core.values import replace
from deskwire.engine.definitions.attributes import merged
from deskwire.engine.workflows.definition import ActionPosition, Buttons, Form, Wait, WorkflowDefinition
from deskwire.engine.workflows.runs import WorkflowRun
from deskwire.engine.workflows.workflow import Published


class Simulation(Struct, frozen=True):
    """The result of a simulation.

    Args:
        events: the effects, answers and waits in order, in the form of the API.
        waits: the step that waits for a further answer; None if the workflow has ended.
        ended: how the workflow ended; None if it waits.
        attributes: the conversation's attributes at the end.
        answers: the number of answers used.
        path: the actions that were carried out, in order, in the form of the API.
    """

    events: Sequence[Mapping[str, Any]]
    waits: Mapping[str, Any] | None
    ended: WorkflowEnded | None
    attributes: Mapping[str, Any]
    answers: int
    path: Sequence[Mapping[str, Any]]


def simulate(workflow: Published, attributes: Mapping[str, Any], answers: Sequence[Any]) -> Simulation:
    """Run a workflow from its beginning until it ends or needs a further answer.

    A wait for a time passes at once. A run has at most `STEPS_MAX` actions, so the simulation ends. Raises Invalid for an
    answer that does not fit its step.
    """
    definition = workflow.definition
    events: list[Mapping[str, Any]] = []
    visited: list[ActionPosition] = []
    run, used = WorkflowRun(workflow.workflow_id, workflow.version), 0
    upcoming: WorkflowInput = WorkflowStarted()
    while True:
        effects, rest = advance(
            definition, run, upcoming, RunContext(0, attributes, workflow.assignees), visited
        )
        for effect in effects:
            if isinstance(effect, WorkflowEnded):
                return Simulation(events, None, effect, attributes, used, _path(definition, visited))
            if isinstance(effect, RunCommand) and isinstance(effect.command, Patch):
                attributes = merged(attributes, effect.command.given["attributes"])
            events.append(_event(effect))
        assert rest is not None, "a workflow that has not ended waits"
        run, action = rest, definition.action((rest.flow, rest.action))
        if isinstance(action, Wait):
            events.append({"type": "waited", "actionId": action.id, "seconds": action.seconds})
            upcoming = Elapsed()
            continue
        assert isinstance(action, Buttons | Form), "only these wait for the contact"
        if used == len(answers):
            return Simulation(events, _shown(rest), None, attributes, used, _path(definition, visited))
        value = answers[used]
        _check(action, value, used)
        events.append({"type": "answer", "actionId": action.id, "text": answer_text(action, value)})
        upcoming, used = Answered(value), used + 1


def _path(definition: WorkflowDefinition, visited: Sequence[ActionPosition]) -> Sequence[Mapping[str, Any]]:
    return [
        {"flowId": definition.flows[place[0]].id, "actionId": definition.action(place).id}
        for place in visited
    ]


def _check(action: Buttons | Form, value: Any, place: int) -> None:
    problems = answer_problems(action, value)
    if problems:
        raise Invalid(
            *(
                replace(each, pointer=f"/answers/{place}{each.pointer.removeprefix('/value')}")
                for each in problems
            )
        )


def _shown(rest: WorkflowRun) -> Mapping[str, Any]:
    """Return the waiting step without the workflow's id, which is empty."""
    return {name: value for name, value in (rest.step or {}).items() if name != "workflowId"}


def _event(effect: Effect) -> Mapping[str, Any]:
    match effect:
        case SendMessage(text):
            return {"type": "message", "text": text}
        case RunCommand(command):
            return _done(command)
        case WorkflowEnded():
            raise AssertionError("the caller handles the end")
        case _:
            assert_never(effect)


def _done(command: Assign | Patch | Close) -> Mapping[str, Any]:
    match command:
        case Assign(assignee):
            assert assignee is not None, "a workflow never unassigns"
            return {
                "type": "assigned",
                "assignee": {"type": assignee.type, "id": assignee.id, "name": assignee.name},
            }
        case Patch(given):
            return {"type": "attributes", "attributes": given["attributes"]}
        case Close():
            return {"type": "closed"}
        case _:
            assert_never(command)
