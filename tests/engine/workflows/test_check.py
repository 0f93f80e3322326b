"""A workflow's check: every problem at once, each with a pointer to where it is (decisions 7)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from random import Random
from typing import Any, Final

import orjson
import pytest
from hypothesis import given, settings

from deskwire.engine.workflows.validation.check import workflow_errors
from deskwire.engine.workflows.validation.rules import RULES
from deskwire.engine.workflows.validation.shape import ACTIONS_MAX
from tests.engine.workflows.building import (
    BRANCH,
    FORM,
    LUCK,
    MENU,
    SUPPORT,
    branch,
    buttons,
    random_workflow,
    send,
    wait,
    workflow,
)
from tests.support.root import ROOT

END = {"id": 900, "type": "hand_off"}
DEEP: Final = orjson.loads("[" * 250 + "]" * 250)


def found(value: Any) -> list[tuple[str, str]]:
    """Path and code of each problem."""
    return [(error.path, error.code) for error in workflow_errors(value)]


def test_a_workflow_with_every_type_of_action_is_sound() -> None:
    assert found(SUPPORT) == []


def only(action: Mapping[str, Any], *after: Mapping[str, Any]) -> dict[str, Any]:
    return workflow([action, *after])


BROKEN: list[tuple[Any, list[tuple[str, str]]]] = [
    ([], [("", "wrong_type")]),
    ({}, [("/name", "required"), ("/trigger", "required"), ("/flows", "required")]),
    ({**SUPPORT, "colour": 1}, [("/colour", "unknown_field")]),
    ({**SUPPORT, "name": ""}, [("/name", "empty")]),
    ({**SUPPORT, "name": "x" * 201}, [("/name", "too_long")]),
    ({**SUPPORT, "trigger": "manual"}, [("/trigger", "wrong_type")]),
    ({**SUPPORT, "trigger": {"type": "daily"}}, [("/trigger/type", "unknown_trigger")]),
    ({**SUPPORT, "flows": []}, [("/flows", "empty")]),
    (workflow([]), [("/flows/0/actions", "empty")]),
    (workflow(*([send(n)] for n in range(51)))["flows"], [("", "wrong_type")]),
    (workflow([send(n) for n in range(ACTIONS_MAX)], [send(ACTIONS_MAX)]), [("/flows", "too_many")]),
    (workflow(end=[send(1)]), [("/flows/0/id", "bad_id")]),
    (only({"id": "1", "type": "message", "text": "x"}), [("/flows/0/actions/0/id", "bad_id")]),
    (only({"id": 1, "type": "dance"}), [("/flows/0/actions/0/type", "unknown_action")]),
    (only({"type": "hand_off"}), [("/flows/0/actions/0/id", "required")]),
    (only(send(1), send(1)), [("/flows/0/actions/1/id", "duplicate_id")]),
    (only({**send(1), "goto": "x"}), [("/flows/0/actions/0/goto", "unknown_field")]),
    (only(send(1, "x" * 20_001)), [("/flows/0/actions/0/text", "too_long")]),
    (only(send(1, "a\0b")), [("/flows/0/actions/0/text", "nul_character")]),
    (only(wait(1, 0)), [("/flows/0/actions/0/seconds", "bad_wait")]),
    (only({**wait(1), "seconds": 1.5}), [("/flows/0/actions/0/seconds", "bad_wait")]),
    (only({**buttons(1), "options": []}), [("/flows/0/actions/0/options", "empty")]),
    (only(buttons(1, "nowhere")), [("/flows/0/actions/0/options/0/goto", "unknown_flow")]),
    (only({"id": 1, "type": "assign", "assignee": {"type": "robot", "id": "x"}}), [("/flows/0/actions/0/assignee/type", "unknown_type")]),
    (only({"id": 1, "type": "set_attributes", "attributes": {}}), [("/flows/0/actions/0/attributes", "empty")]),
    (only({"id": 1, "type": "set_attributes", "attributes": {"a": "x" * 20_000}}), [("/flows/0/actions/0/attributes", "too_long")]),
    (only({"id": 1, "type": "set_attributes", "attributes": {"a": DEEP}}), [("/flows/0/actions/0/attributes", "too_deep")]),
    (only(branch(1, "end", on="contact.name")), [("/flows/0/actions/0/on", "bad_operand")]),
    (only(branch(1, "end", on="answers.7")), [("/flows/0/actions/0/on", "unknown_answer")]),
    (only(FORM, {**BRANCH, "on": "answers.10.age", "cases": {"x": "end"}}), [("/flows/0/actions/1/on", "unknown_answer")]),
    (only(buttons(1, None), branch(2, "end", on="answers.1", b7="end")), [("/flows/0/actions/1/cases/b7", "impossible_case")]),
    (only({"id": 1, "type": "branch", "on": "attributes.a", "cases": {"x": "end"}}), [("/flows/0/actions/0/default", "required")]),
    (workflow([send(1)], [send(2)]), [("/flows/1", "unreachable_flow")]),
    (only(END, send(1), send(2)), [("/flows/0/actions/1", "unreachable_action")]),
    (only(buttons(1, "end"), send(2)), [("/flows/0/actions/1", "unreachable_action")]),
    (only(send(1), branch(2, "f0")), [("/flows/0/actions/1", "endless_loop")]),
    (only(wait(1), branch(2, "f0")), [("/flows/0/actions/0", "endless")]),
    (only(buttons(1, "f0", "f0")), [("/flows/0/actions/0", "endless")]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "problems"), BROKEN)
def test_violated_rule_is_named_with_its_place(value: Any, problems: list[tuple[str, str]]) -> None:
    assert found(value) == problems


def test_every_rule_but_the_one_for_the_store_has_an_example_here() -> None:
    assert {code for _, problems in BROKEN for _, code in problems} | {"unknown_assignee"} == set(RULES)


def test_every_rule_is_in_the_guide() -> None:
    guide = (ROOT / "docs/guide/workflows.md").read_text()
    assert [code for code in RULES if f"`{code}`" not in guide] == []


def test_every_problem_is_found_at_once() -> None:
    value = workflow(
        [{"id": 1, "type": "dance"}, {"id": 1, "type": "wait", "seconds": -1}, buttons(2, "nowhere")],
        [branch(3, "f1")],
        trigger="daily",
    )
    assert found({**value, "name": 7}) == [
        ("/name", "wrong_type"),
        ("/trigger/type", "unknown_trigger"),
        ("/flows/0/actions/0/type", "unknown_action"),
        ("/flows/0/actions/1/id", "duplicate_id"),
        ("/flows/0/actions/1/seconds", "bad_wait"),
        ("/flows/0/actions/2/options/0/goto", "unknown_flow"),
        ("/flows/1/actions/0", "endless_loop"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        workflow([wait(1), branch(2, "f0", paid="end")]),  # poll: until something has happened
        workflow([buttons(1, "f0", "end")]),
        workflow([buttons(1, "end", free=True), send(2)]),  # a text goes on to the next action
        workflow([{**MENU, "options": [{"id": "a", "label": "A", "goto": "end"}]}]),
    ],
)
def test_a_loop_that_waits_and_can_end_is_sound(value: Any) -> None:
    assert found(value) == []


def resolves(value: Any, pointer: str) -> bool:
    """Return whether a pointer names a value in the document, or a missing member of an object in it."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for index, part in enumerate(parts):
        if isinstance(value, dict):
            if part not in value:
                return index == len(parts) - 1
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return True


JSON: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    2,
    1.5,
    "",
    "end",
    "f0",
    "f9",
    "buttons",
    [],
    [[]],
    {},
    {"id": "f0"},
    {"a/b~": ["x"]},
    "x" * 99,
)
"""Values that replace a place in a workflow."""


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Yield every place in a document: its parent, and its key there."""
    keys = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    return [(value, key) for key in keys] + [spot for key in keys for spot in spots(value[key])]


def spoiled(luck: Random) -> Any:
    """Draw a workflow with a few places of it replaced or removed."""
    value = copy.deepcopy(luck.choice((dict(SUPPORT), random_workflow(luck))))
    for _ in range(luck.randint(0, 3)):
        inside, key = luck.choice(spots(value))
        if luck.random() < 0.7:
            inside[key] = copy.deepcopy(luck.choice(JSON))
        elif len(value) > 1:
            del inside[key]
    return value


@settings(max_examples=500)
@given(LUCK)
def test_every_problem_has_a_pointer_that_leads_to_it(luck: Random) -> None:
    value = spoiled(luck)
    for error in workflow_errors(value):
        assert error.code in RULES
        assert error.message
        assert resolves(value, error.path), error


@pytest.mark.parametrize("value", JSON)
def test_check_accepts_any_json(value: Any) -> None:
    for document in (
        value,
        {"flows": value},
        {"flows": [value]},
        {"flows": [{"actions": [value], "id": "f0"}]},
    ):
        assert all(resolves(document, error.path) for error in workflow_errors(document))
