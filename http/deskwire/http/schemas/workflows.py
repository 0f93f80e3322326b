"""Workflows and their steps as the API shows them (contract 2.5, decisions 7)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from deskwire.engine.workflows.definition import FieldType, Trigger
from deskwire.http.schemas.base import Moment, Shape, WorkflowId

ActionId = Annotated[int, Field(ge=0, le=999_999_999, examples=[1])]
PartId = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,64}$", examples=["main"])]
Label = Annotated[str, Field(min_length=1, max_length=200, examples=["My order"])]
Text = Annotated[str, Field(min_length=1, examples=["What is it about?"])]


class MessageAction(Shape):
    """The bot writes."""

    id: ActionId
    type: Literal["message"]
    text: Text


class OptionLabel(Shape):
    """A button as the contact sees it."""

    id: PartId
    label: Label


class Option(OptionLabel):
    """A button; `goto` is a flow's id, or `end`, and without it the next action comes."""

    goto: PartId | None = None


class ButtonsAction(Shape):
    """Waits until the contact picks an option, or with `allowText` writes something."""

    id: ActionId
    type: Literal["buttons"]
    text: Text
    options: Annotated[list[Option], Field(min_length=1, max_length=20)]
    allow_text: bool | None = None


class ShownButtons(Shape):
    """Buttons as the contact sees them, without where they lead."""

    id: ActionId
    type: Literal["buttons"]
    text: Text
    options: list[OptionLabel]
    allow_text: bool


class FormField(Shape):
    """One thing that a form asks for."""

    id: PartId
    type: FieldType
    label: Label
    required: bool | None = None


class FormAction(Shape):
    """Waits until the contact has filled it in."""

    id: ActionId
    type: Literal["form"]
    text: Text
    fields_: Annotated[list[FormField], Field(alias="fields", min_length=1, max_length=20)]


class WaitAction(Shape):
    """Goes on after some time."""

    id: ActionId
    type: Literal["wait"]
    seconds: Annotated[int, Field(ge=1, le=31_536_000, examples=[60])]


class Recipient(Shape):
    """A user or team, by id."""

    type: Literal["user", "team"]
    id: Annotated[str, Field(min_length=1, max_length=64, examples=["usr_01KZ0000000000000000AGENT1"])]


class AssignAction(Shape):
    """Gives the conversation to a user or team."""

    id: ActionId
    type: Literal["assign"]
    assignee: Recipient


class AttributesAction(Shape):
    """Merges attributes into the conversation's; null removes one."""

    id: ActionId
    type: Literal["set_attributes"]
    attributes: Annotated[dict[str, Any], Field(min_length=1, examples=[{"topic": "order"}])]


class BranchAction(Shape):
    """Goes on in the flow of the case that the value of `on` is, or in `default`."""

    id: ActionId
    type: Literal["branch"]
    on: Annotated[str, Field(examples=["attributes.plan"])]
    cases: Annotated[dict[str, PartId], Field(min_length=1, max_length=50, examples=[{"pro": "main"}])]
    default: PartId


class CloseAction(Shape):
    """Closes the conversation, and ends."""

    id: ActionId
    type: Literal["close"]


class HandOffAction(Shape):
    """Ends, so that an agent takes over."""

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
    Field(discriminator="type"),
]


class WorkflowFlow(Shape):
    """Actions, one after the other."""

    id: PartId
    actions: Annotated[list[Action], Field(min_length=1, max_length=200)]


class WorkflowTrigger(Shape):
    """When a workflow starts."""

    type: Trigger


class WorkflowSummary(Shape):
    """A workflow without its flows; `version` grows with each change of them."""

    id: WorkflowId
    name: Annotated[str, Field(examples=["Orders"])]
    trigger: WorkflowTrigger
    version: Annotated[int, Field(ge=1, examples=[1])]
    created_at: Moment
    updated_at: Moment


class Workflow(WorkflowSummary):
    """A workflow."""

    flows: list[WorkflowFlow]


class WorkflowStep(Shape):
    """A step that waits for the contact."""

    workflow_id: WorkflowId
    step_type: Literal["buttons", "form"]
    action_flow_id: PartId
    action_id: ActionId
    action: Annotated[ShownButtons | FormAction, Field(discriminator="type")]


class PendingStep(Shape):
    """The workflow step that waits for the contact, null if none does."""

    step: WorkflowStep | None
