"""Workflows for tests, and ways to run them through the pure functions alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from random import Random
from typing import Any, Final

from hypothesis import strategies as st

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.workflows.definition import END, definition_of
from deskwire.engine.workflows.validation.check import workflow_errors
from deskwire.engine.workflows.workflow import Published

WORKFLOW: Final = "wfl_01M3250V000000000000000WFL"
TEAM: Final = Assignee("team", "team_1", "Support")

MENU: Final[Mapping[str, Any]] = {
    "id": 2,
    "type": "buttons",
    "text": "What is it about?",
    "options": [
        {"id": "order", "label": "My order", "goto": "order"},
        {"id": "other", "label": "Something else"},
    ],
}
FORM: Final[Mapping[str, Any]] = {
    "id": 10,
    "type": "form",
    "text": "Which one?",
    "fields": [
        {"id": "number", "type": "text", "label": "Order number", "required": True},
        {"id": "paid", "type": "boolean", "label": "Paid already"},
    ],
}
BRANCH: Final[Mapping[str, Any]] = {
    "id": 11,
    "type": "branch",
    "on": "answers.10.paid",
    "cases": {"true": "paid"},
    "default": "end",
}


def workflow(
    *flows: Sequence[Mapping[str, Any]], trigger: str = "manual", **named: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a workflow of these flows; the first ones are called f0, f1 …, the others by their names."""
    ids = {**{f"f{index}": flow for index, flow in enumerate(flows)}, **named}
    return {
        "name": "Welcome",
        "trigger": {"type": trigger},
        "flows": [{"id": flow_id, "actions": list(actions)} for flow_id, actions in ids.items()],
    }


SUPPORT: Final = workflow(
    main=[{"id": 1, "type": "message", "text": "Hello!"}, MENU, {"id": 3, "type": "hand_off"}],
    order=[FORM, BRANCH],
    paid=[
        {"id": 20, "type": "set_attributes", "attributes": {"paid": True}},
        {"id": 21, "type": "assign", "assignee": {"type": "team", "id": "team_1"}},
        {"id": 22, "type": "wait", "seconds": 60},
        {"id": 23, "type": "message", "text": "Thank you."},
        {"id": 24, "type": "close"},
    ],
)
"""A workflow with every type of action."""


def send(action_id: int, text: str = "Hi") -> dict[str, Any]:
    """Return an action that writes."""
    return {"id": action_id, "type": "message", "text": text}


def wait(action_id: int, seconds: int = 60) -> dict[str, Any]:
    """Return an action that waits for a time."""
    return {"id": action_id, "type": "wait", "seconds": seconds}


def branch(action_id: int, default: str, on: str = "attributes.plan", **cases: str) -> dict[str, Any]:
    """Return an action that leads to another flow."""
    return {
        "id": action_id,
        "type": "branch",
        "on": on,
        "cases": cases or {"pro": default},
        "default": default,
    }


def buttons(action_id: int, *gotos: str | None, free: bool = False) -> dict[str, Any]:
    """Return an action with an option b0, b1 … for each of these targets; None is the next action."""
    options = [
        {"id": f"b{index}", "label": f"Button {index}"} | ({} if goto is None else {"goto": goto})
        for index, goto in enumerate(gotos)
    ]
    return {"id": action_id, "type": "buttons", "text": "Choose", "options": options, "allowText": free}


def published(document: Mapping[str, Any] = SUPPORT, version: int = 1) -> Published:
    """Return a workflow as a conversation runs it; it can assign to TEAM."""
    return Published(WORKFLOW, version, definition_of(document["flows"]), {("team", "team_1"): TEAM})


def message_ids() -> Iterator[str]:
    """Ids that are easy to tell."""
    return (f"msg_{number}" for number in range(1 << 30))


def random_workflow(luck: Random) -> dict[str, Any]:
    """Draw a workflow whose members are all right, and whose flows lead anywhere."""
    ids = [f"f{index}" for index in range(luck.randint(1, 4))]
    numbers = count()
    return workflow(
        *([_action(luck, next(numbers), [*ids, END]) for _ in range(luck.randint(1, 4))] for _ in ids)
    )


def sound_workflow(luck: Random) -> dict[str, Any]:
    """Draw a workflow as `random_workflow` does, one that the check accepts."""
    while workflow_errors(document := random_workflow(luck)):
        pass
    return document


def _action(luck: Random, action_id: int, targets: Sequence[str]) -> dict[str, Any]:
    """Draw an action of any type."""
    gotos = [luck.choice([None, *targets]) for _ in range(luck.randint(1, 3))]
    cases = {plan: luck.choice(targets) for plan in luck.choice((("pro",), ("free",), ("pro", "free")))}
    plan = {"plan": luck.choice(("pro", "free"))}
    kinds: Sequence[dict[str, Any]] = (
        send(action_id),
        buttons(action_id, *gotos, free=luck.random() < 0.5),
        {**FORM, "id": action_id},
        wait(action_id),
        {"id": action_id, "type": "assign", "assignee": {"type": "team", "id": "team_1"}},
        {"id": action_id, "type": "set_attributes", "attributes": plan},
        branch(action_id, luck.choice(targets), **cases),
        {"id": action_id, "type": luck.choice(("close", "hand_off"))},
    )
    return luck.choice(kinds)


LUCK: Final = st.integers(0, (1 << 64) - 1).map(Random)
"""A cheap source of whole workflows; drawing them part by part takes hypothesis too long."""
