"""The mutants, and what the run over them rests on."""

from __future__ import annotations

import pytest

from tests.mutation.mutants import mutants
from tests.mutation.table import TABLE, Mutated
from tests.support.root import ROOT

SOURCE = '''
"""Text."""
LIMIT: int | None = 3

class Taken(Struct, frozen=True):
    """Text."""

def taken(count, log):
    """Text."""
    assert count > 0
    log.info("taken")
    if count < LIMIT and not full():
        return count
    return None
'''


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.path)
def test_every_mutated_module_and_the_tests_that_hold_it_exist(row: Mutated) -> None:
    assert all((ROOT / path).is_file() for path in (row.path, *row.tests))
    source = (ROOT / row.path).read_text()
    assert next(mutants(source, row.path, row.only))
    assert all(f"def {name}(" in source or f"class {name}" in source for name in row.only)


def test_the_page_on_mutation_names_every_module_of_the_table() -> None:
    page = (ROOT / "tests/mutation/results.md").read_text()
    assert [row.path for row in TABLE if f"`{row.path.split('deskwire/', 1)[1]}`" not in page] == []


def test_mutants_differ_in_one_step_each_and_leave_texts_types_and_assertions_alone() -> None:
    made = [(mutant.line, mutant.was, mutant.became) for mutant in mutants(SOURCE, "source.py")]
    assert made == [
        (3, "3", "4"),
        (3, "3", "2"),
        (12, "count < LIMIT and (not full())", "count < LIMIT or not full()"),
        (12, "count < LIMIT", "count <= LIMIT"),
        (12, "count < LIMIT", "count >= LIMIT"),
        (12, "not full()", "full()"),
        (13, "return count", "return None"),
    ]


def test_imports_for_types_alone_are_not_mutated() -> None:
    source = "if TYPE_CHECKING:\n    from module import Type\nif checked:\n    LIMIT = 3\n"
    assert {mutant.line for mutant in mutants(source, "source.py")} == {3, 4}


def test_mutant_applies_only_its_own_change() -> None:
    values = []
    for mutant in mutants("def half(n):\n    return n // 2\n", "source.py"):
        names: dict[str, object] = {}
        exec(mutant.code, names)  # noqa: S102  # it is the module above, and nothing else
        half = names["half"]
        assert callable(half)
        values.append(half(8))
    assert values == [None, 16, 2, 8]


def test_only_requested_functions_are_mutated() -> None:
    source = "LIMIT = 3\n\ndef one():\n    return 1\n\ndef two():\n    return 2\n"
    assert {mutant.line for mutant in mutants(source, "source.py", ("two",))} == {7}
