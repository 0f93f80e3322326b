"""A workflow's definition as typed values (decisions 7).

`definition_of` reads what `check.definition_errors` finds nothing wrong with.
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

TEXT_MAX: Final = 20_000
"""Characters of a message (decisions 4), and so of an answer as a whole."""

ActionPosition = tuple[int, int]
"""The place of an action: the position of its flow, and its position in that."""


class MessageAction(Struct, frozen=True):
    """`message`: the bot writes."""

    id: int
    text: str


class Option(Struct, frozen=True):
    """A button; `goto` is a flow's id, END, or None for the next action."""

    id: str
    label: str
    goto: str | None


class Buttons(Struct, frozen=True):
    """`buttons`: waits until the contact picks one, or with `allow_text` writes something."""

    id: int
    text: str
    options: tuple[Option, ...]
    allow_text: bool

    def option(self, option_id: str) -> Option | None:
        """Return the option with this id, None if there is none."""
        return next((each for each in self.options if each.id == option_id), None)


class Field(Struct, frozen=True):
    """A field that a form asks for."""

    id: str
    type: FieldType
    label: str
    required: bool


class Form(Struct, frozen=True):
    """`form`: waits until the contact has filled it in."""

    id: int
    text: str
    fields: tuple[Field, ...]


class Wait(Struct, frozen=True):
    """`wait`: continues after some time."""

    id: int
    seconds: int


class AssignAction(Struct, frozen=True):
    """`assign`: gives the conversation to a user or team, by id."""

    id: int
    type: AssigneeType
    assignee_id: str


class SetAttributes(Struct, frozen=True):
    """`set_attributes`: merges them into the conversation's; None removes one."""

    id: int
    attributes: Mapping[str, Any]


class Branch(Struct, frozen=True):
    """`branch`: continues in the flow of the case that the value of `on` is, or in `default`."""

    id: int
    on: Operand
    cases: Mapping[str, str]
    default: str


class CloseConversation(Struct, frozen=True):
    """`close`: closes the conversation, and ends."""

    id: int


class HandOff(Struct, frozen=True):
    """`hand_off`: ends, so that an agent takes over."""

    id: int


class AttributeOperand(Struct, frozen=True):
    """The conversation's attribute with this key, as what a branch looks at."""

    key: str


class AnswerOperand(Struct, frozen=True):
    """The contact's answer to an action, or to one field of a form, as what a branch looks at."""

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
    """Actions that are carried out in order."""

    id: str
    actions: tuple[Action, ...]


class WorkflowDefinition(Struct, frozen=True):
    """The flows of a workflow, which begins with the first one."""

    flows: tuple[Flow, ...]

    def action(self, place: ActionPosition) -> Action:
        """Return the action at a place."""
        return self.flows[place[0]].actions[place[1]]

    def behind(self, place: ActionPosition) -> ActionPosition | None:
        """Return the next place in the same flow; None at its end, which ends the workflow."""
        flow, action = place
        return (flow, action + 1) if action + 1 < len(self.flows[flow].actions) else None

    def entry(self, target: str) -> ActionPosition | None:
        """Return the first place of a flow; None for END."""
        return next(((index, 0) for index, flow in enumerate(self.flows) if flow.id == target), None)

    def given(self) -> Iterator[AssignAction]:
        """Yield the actions that assign."""
        return (action for flow in self.flows for action in flow.actions if isinstance(action, AssignAction))


def operand_of(text: str) -> Operand | None:
    """Read `attributes.<key>`, `answers.<actionId>` or `answers.<actionId>.<fieldId>`; None for anything else."""
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
    """Read flows that are known to be valid."""
    return WorkflowDefinition(
        tuple(Flow(flow["id"], tuple(map(action_of, flow["actions"]))) for flow in flows)
    )


def action_of(value: Mapping[str, Any]) -> Action:
    """Read an action that is known to be valid."""
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
