"""A workflow's definition as typed values: its flows, and the types of their actions (decisions 7).

An action that waits for the contact, `buttons` or `form`, is a step in the API.

`definition_of` reads definitions that `validation.check` has accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from deskwire.engine.accounts.people import AssigneeType

Trigger = Literal["conversation.created", "manual"]
TRIGGERS: Final[tuple[Trigger, ...]] = get_args(Trigger)

FieldType = Literal["text", "email", "number", "boolean", "date"]
FIELD_TYPES: Final[tuple[FieldType, ...]] = get_args(FieldType)

END: Final = "end"
"""The target of a button or branch that ends the workflow."""

ActionPosition = tuple[int, int]
"""The index of a flow, and the index of an action in it."""


class MessageAction(Struct, frozen=True):
    """`message`: the bot posts a message."""

    id: int
    text: str


class Option(Struct, frozen=True):
    """A button; `goto` is a flow's id, END, or None for the next action."""

    id: str
    label: str
    goto: str | None


class Buttons(Struct, frozen=True):
    """`buttons`: waits until the contact picks an option or, with `allow_text`, writes a message."""

    id: int
    text: str
    options: tuple[Option, ...]
    allow_text: bool

    def option(self, option_id: str) -> Option | None:
        """Return the option with this id, None if there is none."""
        return next((each for each in self.options if each.id == option_id), None)


class Field(Struct, frozen=True):
    """A field of a form."""

    id: str
    type: FieldType
    label: str
    required: bool


class Form(Struct, frozen=True):
    """`form`: waits until the contact submits it."""

    id: int
    text: str
    fields: tuple[Field, ...]


class Wait(Struct, frozen=True):
    """`wait`: continues after some time."""

    id: int
    seconds: int


class AssignAction(Struct, frozen=True):
    """`assign`: assigns the conversation to a user or team."""

    id: int
    type: AssigneeType
    assignee_id: str


class SetAttributes(Struct, frozen=True):
    """`set_attributes`: merges attributes into those of the conversation; None removes one."""

    id: int
    attributes: Mapping[str, Any]


class Branch(Struct, frozen=True):
    """`branch`: continues with the flow of the case that equals the value of `on`, or with `default`."""

    id: int
    on: Operand
    cases: Mapping[str, str]
    default: str


class CloseConversation(Struct, frozen=True):
    """`close`: closes the conversation and ends the workflow."""

    id: int


class HandOff(Struct, frozen=True):
    """`hand_off`: ends the workflow, so that an agent takes over."""

    id: int


class AttributeOperand(Struct, frozen=True):
    """A branch on the conversation's attribute with this key."""

    key: str


class AnswerOperand(Struct, frozen=True):
    """A branch on the contact's answer to an action, or to one field of a form."""

    action: int
    field: str | None


Operand = AttributeOperand | AnswerOperand
Action = (
    MessageAction
    | Buttons
    | Form
    | Wait
    | AssignAction
    | SetAttributes
    | Branch
    | CloseConversation
    | HandOff
)


class Flow(Struct, frozen=True):
    """A sequence of actions."""

    id: str
    actions: tuple[Action, ...]


class WorkflowDefinition(Struct, frozen=True):
    """The flows of a workflow; it starts with the first one."""

    flows: tuple[Flow, ...]

    def action(self, place: ActionPosition) -> Action:
        """Return the action at a position."""
        return self.flows[place[0]].actions[place[1]]

    def behind(self, place: ActionPosition) -> ActionPosition | None:
        """Return the next position in the same flow; None at its end, which ends the workflow."""
        flow, action = place
        return (flow, action + 1) if action + 1 < len(self.flows[flow].actions) else None

    def entry(self, target: str) -> ActionPosition | None:
        """Return the first position of a flow; None for END."""
        return next(((index, 0) for index, flow in enumerate(self.flows) if flow.id == target), None)

    def given(self) -> Iterator[AssignAction]:
        """Yield the actions that assign."""
        return (action for flow in self.flows for action in flow.actions if isinstance(action, AssignAction))


def operand_of(text: str) -> Operand | None:
    """Parse `attributes.<key>`, `answers.<actionId>` or `answers.<actionId>.<fieldId>`; None for anything else."""
    area, _, rest = text.partition(".")
    if area == "attributes" and rest:
        return AttributeOperand(rest)
    number, dot, field = rest.partition(".")
    if (
        area == "answers"
        and number.isascii()
        and number.isdigit()
        and len(number) < 10
        and bool(dot) == bool(field)
    ):
        return AnswerOperand(int(number), field or None)
    return None


def definition_of(flows: Sequence[Mapping[str, Any]]) -> WorkflowDefinition:
    """Convert valid flows."""
    return WorkflowDefinition(
        tuple(Flow(flow["id"], tuple(map(action_of, flow["actions"]))) for flow in flows)
    )


def action_of(value: Mapping[str, Any]) -> Action:
    """Convert a valid action."""
    return _READ[value["type"]](value)


def _buttons(value: Mapping[str, Any]) -> Buttons:
    options = tuple(Option(each["id"], each["label"], each.get("goto")) for each in value["options"])
    return Buttons(value["id"], value["text"], options, value.get("allowText", False))


def _form(value: Mapping[str, Any]) -> Form:
    fields = (
        Field(each["id"], each["type"], each["label"], each.get("required", False))
        for each in value["fields"]
    )
    return Form(value["id"], value["text"], tuple(fields))


def _branch(value: Mapping[str, Any]) -> Branch:
    operand = operand_of(value["on"])
    assert operand is not None, "the definition was checked"
    return Branch(value["id"], operand, value["cases"], value["default"])


_READ: Final[Mapping[str, Callable[[Mapping[str, Any]], Action]]] = {
    "message": lambda value: MessageAction(value["id"], value["text"]),
    "buttons": _buttons,
    "form": _form,
    "wait": lambda value: Wait(value["id"], value["seconds"]),
    "assign": lambda value: AssignAction(value["id"], value["assignee"]["type"], value["assignee"]["id"]),
    "set_attributes": lambda value: SetAttributes(value["id"], value["attributes"]),
    "branch": _branch,
    "close": lambda value: CloseConversation(value["id"]),
    "hand_off": lambda value: HandOff(value["id"]),
}

ACTION_TYPES: Final = tuple(_READ)
