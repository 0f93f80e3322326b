"""A list of values is written once, and a table by its values has an entry for each of them."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Final, get_args

import pytest

from deskwire.commands.convert import command as convert_command
from deskwire.commands.convert.run import SOURCES
from deskwire.commands.deliveries import command as deliveries_command
from deskwire.engine.surveys.definition import QuestionType
from deskwire.engine.surveys.question_types import TYPES
from deskwire.engine.webhooks.delivery import DeliveryStatus
from deskwire.engine.webhooks.endpoint import ENDPOINTS_MAX
from deskwire.engine.workflows.definition import ACTION_TYPES
from deskwire.engine.workflows.validation.shape import _MEMBERS
from tests.repository.definitions import Values, incomplete, modules, written_twice
from tests.support.root import ROOT

APART: Final[dict[Values, str]] = {
    frozenset(
        {"delivered", "dropped", "skipped"}
    ): "the end of a delivery, in the engine and as an event shows it",
}
"""Values that are written twice, with the reason."""

PARTIAL: Final = {
    "engine/deskwire/engine/conversations/bulk_jobs.py: WAITING": "the others are not in progress",
    "engine/deskwire/engine/conversations/bulk_jobs.py: REFUSED": "the others are not in progress",
    "engine/deskwire/engine/conversations/bulk_jobs.py: DONE": "the others are not in progress",
    "http/deskwire/http/resources/conversations/bulk_jobs.py: _FIELDS": "the others have no fields",
    "http/deskwire/http/resources/conversations/bulk_jobs.py: _REQUIRED": "the others need no field",
    "storage/deskwire/storage/tables/tickets/lists.py: _COLUMNS": "creation is the order of the rows",
    "engine/deskwire/engine/surveys/logic.py: _COMPARE": "the other operators compare no two values",
    "storage/deskwire/storage/postgres/admin/installation.py: _OTHER": "SQLite has the other reasons",
    "storage/deskwire/storage/postgres/driver/blocking.py: _ROLE_TIMEOUT_S": "_STATEMENT_TIMEOUT_S for the others",
    "storage/deskwire/storage/postgres/driver/session.py: _LATER": "the others need no such setting",
    "http/deskwire/http/description/openapi/document.py: _SECURITY": "all others require a user's credentials",
}
"""Tables without an entry for each value, with the reason."""


@pytest.mark.thorough
def test_no_list_of_values_is_written_twice() -> None:
    assert {
        values: places for values, places in written_twice(modules()).items() if values not in APART
    } == {}


@pytest.mark.thorough
def test_every_table_by_values_has_all_values() -> None:
    assert {name: values for name, values in incomplete(modules()).items() if name not in PARTIAL} == {}


@pytest.mark.thorough
def test_every_exception_is_still_needed() -> None:
    assert written_twice(modules()).keys() == APART.keys()
    assert incomplete(modules()).keys() == PARTIAL.keys()


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (convert_command.SOURCES, SOURCES),  # the command's module loads no converter
        (deliveries_command.STATUSES, get_args(DeliveryStatus)),  # nor does this one load the engine
        (_MEMBERS, ACTION_TYPES),
        (TYPES, get_args(QuestionType)),
    ],
)
def test_lists_that_stay_apart_are_the_same(names: Collection[str], values: Collection[str]) -> None:
    assert sorted(names) == sorted(values)


def _trees(**sources: str) -> dict[str, ast.Module]:
    return {f"engine/deskwire/{name}.py": ast.parse(source) for name, source in sources.items()}


def test_planted_second_list_is_found_in_any_order() -> None:
    trees = _trees(
        one='Kind = Literal["a", "b"]\nOne = Literal["c"]\n',
        two='def f(kind: typing.Literal["b", "a"], one: Literal["c"]) -> None: ...\n',
    )
    assert written_twice(trees) == {
        frozenset({"a", "b"}): ["engine/deskwire/one.py:1", "engine/deskwire/two.py:1"]
    }


def test_a_planted_value_is_missed_in_tables_of_its_own_and_of_other_modules() -> None:
    trees = _trees(
        one='Kind = Literal["a", "b"]\nOwn: Final[dict[Kind, int]] = {"a": 1, "b": 2}\nMore = Literal[Kind, "new"]\n',
        two='from deskwire.one import More as Any\nTHEIRS: Mapping[Any, int] = {"a": 1, "b": 2}\n'
        'SPREAD: Mapping[Any, int] = {"a": 1, **REST}\nOTHER: Mapping[str, int] = {"a": 1}\n',
    )
    assert incomplete(trees) == {"engine/deskwire/two.py: THEIRS": frozenset({"new"})}


def test_the_guide_names_the_bound_of_a_projects_endpoints() -> None:
    number = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")[
        ENDPOINTS_MAX
    ]
    assert f"A project has at most {number}." in (ROOT / "docs/guide/webhooks.md").read_text()
