"""Workflows and their steps in the API (contract 2.5, decisions 7)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from deskwire.engine.accounts.people import AssigneeType
from deskwire.engine.workflows.definition import FieldType, Trigger
from deskwire.engine.workflows.runs import Ending, RunState, Stop
from deskwire.engine.workflows.validation.shape import ACTION_ID_MAX
from deskwire.http.schemas.base import ConversationId, Count, Moment, Shape, WorkflowId
from deskwire.http.schemas.conversations import Assignee

ActionId = Annotated[int, Field(ge=0, le=ACTION_ID_MAX, examples=[1])]
PartId = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,64}$", examples=["main"])]
Label = Annotated[str, Field(min_length=1, max_length=200, examples=["My order"])]
Text = Annotated[str, Field(min_length=1, examples=["What is it about?"])]


class MessageAction(Shape):
    """An action that sends a message of the bot."""

    id: ActionId
    type: Literal["message"]
    text: Text


class ButtonLabel(Shape):
    """A button as shown to the contact."""

    id: PartId
    label: Label


class ButtonOption(ButtonLabel):
    """A button. `goto` is the id of a flow, or `end`; without it, the next action follows."""

    goto: PartId | None = None


class ButtonsAction(Shape):
    """An action that waits until the contact picks an option, or with `allowText` writes a message."""

    id: ActionId
    type: Literal["buttons"]
    text: Text
    options: Annotated[list[ButtonOption], Field(min_length=1, max_length=20)]
    allow_text: bool | None = None


class ShownButtons(Shape):
    """Buttons as shown to the contact, without `goto`."""

    id: ActionId
    type: Literal["buttons"]
    text: Text
    options: list[ButtonLabel]
    allow_text: bool


class FormField(Shape):
    """A field of a form."""

    id: PartId
    type: FieldType
    label: Label
    required: bool | None = None


class FormAction(Shape):
    """An action that waits until the contact has filled in a form."""

    id: ActionId
    type: Literal["form"]
    text: Text
    fields_: Annotated[list[FormField], Field(alias="fields", min_length=1, max_length=20)]


class WaitAction(Shape):
    """An action that waits for a time."""

    id: ActionId
    type: Literal["wait"]
    seconds: Annotated[int, Field(ge=1, le=31_536_000, examples=[60])]


class AssigneeTarget(Shape):
    """A user or team, by id."""

    type: AssigneeType
    id: Annotated[str, Field(min_length=1, max_length=64, examples=["usr_01KZ0000000000000000AGENT1"])]


class AssignAction(Shape):
    """An action that assigns the conversation to a user or team."""

    id: ActionId
    type: Literal["assign"]
    assignee: AssigneeTarget


class AttributesAction(Shape):
    """An action that merges attributes into those of the conversation. Null removes an attribute."""

    id: ActionId
    type: Literal["set_attributes"]
    attributes: Annotated[dict[str, Any], Field(min_length=1, examples=[{"topic": "order"}])]


class BranchAction(Shape):
    """An action that continues in the flow of the case that equals the value of `on`, or in `default`."""

    id: ActionId
    type: Literal["branch"]
    on: Annotated[str, Field(examples=["attributes.plan"])]
    cases: Annotated[dict[str, PartId], Field(min_length=1, max_length=50, examples=[{"pro": "main"}])]
    default: PartId


class CloseAction(Shape):
    """An action that closes the conversation and ends the workflow."""

    id: ActionId
    type: Literal["close"]


class HandOffAction(Shape):
    """An action that ends the workflow, for an agent to take over."""

    id: ActionId
    type: Literal["hand_off"]


Action = Annotated[
    MessageAction
    | ButtonsAction
    | FormAction
    | WaitAction
    | AssignAction
    | AttributesAction
    | BranchAction
    | CloseAction
    | HandOffAction,
    Field(
        discriminator="type",
        description="An action of a workflow.",
        json_schema_extra={"x-union": "WorkflowAction"},
    ),
]


class WorkflowFlow(Shape):
    """A sequence of actions."""

    id: PartId
    actions: Annotated[list[Action], Field(min_length=1, max_length=200)]


class WorkflowTrigger(Shape):
    """The trigger that starts a workflow."""

    type: Trigger


class WorkflowSummary(Shape):
    """A workflow without its flows. `version` increases with each change of the flows."""

    id: WorkflowId
    name: Annotated[str, Field(examples=["Orders"])]
    trigger: WorkflowTrigger
    version: Annotated[int, Field(ge=1, examples=[1])]
    created_at: Moment
    updated_at: Moment


class Workflow(WorkflowSummary):
    """A workflow with its flows."""

    flows: list[WorkflowFlow]


WaitingAction = Literal["buttons", "form"]


class WorkflowStep(Shape):
    """A workflow step that waits for the contact."""

    workflow_id: WorkflowId
    step_type: WaitingAction
    action_flow_id: PartId
    action_id: ActionId
    action: Annotated[
        ShownButtons | FormAction,
        Field(
            discriminator="type",
            description="Buttons or a form as shown to the contact.",
            json_schema_extra={"x-union": "PresentedAction"},
        ),
    ]


class PendingStep(Shape):
    """The pending workflow step, which waits for the contact; null without one."""

    step: WorkflowStep | None


class WorkflowVersionSummary(Shape):
    """A version of a workflow, without its flows. `createdAt` is null for a version from before times were recorded."""

    workflow_id: WorkflowId
    version: Annotated[int, Field(ge=1, examples=[1])]
    published: bool
    created_at: Moment | None


class WorkflowVersion(WorkflowVersionSummary):
    """A version of a workflow."""

    flows: list[WorkflowFlow]


class WorkflowPlace(Shape):
    """An action of a workflow version. The ids are null if the version is no longer stored, or at the end of a flow."""

    version: Annotated[int, Field(ge=1, examples=[1])]
    flow_id: PartId | None
    action_id: ActionId | None


class WorkflowRun(WorkflowPlace):
    """A run of a workflow in one conversation, and the action at which it waits or has ended.

    `since` is when its wait started, or when it ended; null for a wait from before times were recorded. `dueAt` is when it continues
    automatically. A run that could not continue is `stopped`: its `reason` is `handed_off`, and `stopped` gives the cause.
    """

    conversation_id: ConversationId
    state: RunState
    since: Moment | None
    due_at: Moment | None
    reason: Ending | None
    stopped: Stop | None


class WaitingRuns(WorkflowPlace):
    """The number of runs that wait at an action, and the start of the longest wait."""

    runs: Count
    since: Moment | None


class StoppedRuns(Shape):
    """The number of runs that could not continue for one cause."""

    reason: Stop
    runs: Count


class WorkflowFigures(Shape):
    """The runs of a workflow: where they wait, and how many have ended. `handedOff` excludes runs that could not continue."""

    waiting: list[WaitingRuns]
    completed: Count
    handed_off: Count
    stopped: list[StoppedRuns]


class SimulatedMessage(Shape):
    """A message that the bot would send."""

    type: Literal["message"]
    text: Text


class SimulatedAnswer(Shape):
    """An answer of the contact, as the message it would be."""

    type: Literal["answer"]
    action_id: ActionId
    text: Annotated[str, Field(examples=["My order"])]


class SimulatedWait(Shape):
    """A wait for a time, which a simulation skips."""

    type: Literal["waited"]
    action_id: ActionId
    seconds: Annotated[int, Field(ge=0, examples=[60])]


class SimulatedAssignment(Shape):
    """An assignment to a user or a team."""

    type: Literal["assigned"]
    assignee: Assignee


class SimulatedAttributes(Shape):
    """Attributes that would be merged into the conversation's. Null removes one."""

    type: Literal["attributes"]
    attributes: Annotated[dict[str, Any], Field(examples=[{"topic": "order"}])]


class SimulatedClose(Shape):
    """The closing of the conversation."""

    type: Literal["closed"]


SimulationEvent = Annotated[
    SimulatedMessage
    | SimulatedAnswer
    | SimulatedWait
    | SimulatedAssignment
    | SimulatedAttributes
    | SimulatedClose,
    Field(
        discriminator="type",
        description="An action that the simulation has carried out, or an answer to it.",
        json_schema_extra={"x-union": "SimulationEvent"},
    ),
]


class SimulationEnd(Shape):
    """The end of a simulation; `stopped` gives the cause if the workflow could not continue."""

    reason: Ending
    stopped: Stop | None


class SimulatedStep(Shape):
    """The step at which a simulation waits for an answer, as shown to the contact."""

    step_type: WaitingAction
    action_flow_id: PartId
    action_id: ActionId
    action: Annotated[
        ShownButtons | FormAction,
        Field(
            discriminator="type",
            description="Buttons or a form as shown to the contact.",
            json_schema_extra={"x-union": "PresentedAction"},
        ),
    ]


class SimulatedPlace(Shape):
    """An action that a simulation has carried out."""

    flow_id: PartId
    action_id: ActionId


class Simulation(Shape):
    """The course of a simulation: the actions, and where it waits or how it ended. One of `waits` and `ended` is null.

    `attributes` are the conversation's at the end, `answersUsed` is the number of answers used. `path` has the
    actions in order, a repeated one each time.
    """

    events: list[SimulationEvent]
    waits: SimulatedStep | None
    ended: SimulationEnd | None
    attributes: Annotated[dict[str, Any], Field(examples=[{"topic": "order"}])]
    answers_used: Count
    path: list[SimulatedPlace]
