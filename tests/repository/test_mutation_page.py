"""The figures of tests/mutation/results.md are of the code as it is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.mutation.page import (
    PAGE,
    UNMEASURED,
    Figures,
    digest,
    figures,
    name_of,
    note,
    with_tables,
    written,
)
from tests.mutation.table import TABLE, Left, Mutated
from tests.support.root import ROOT

NOT_MEASURED_YET: Final = frozenset(
    {
        "engine/conversations/decide.py",
        "engine/core/limits/rate_limit.py",
        "engine/idempotency/idempotent_requests.py",
        "engine/stream/hub.py",
        "engine/stream/subscription.py",
    }
)
"""Modules whose figures are of older code. This may only shrink: `make mutate` with the module's name measures it."""


@pytest.mark.parametrize("row", TABLE, ids=name_of)
def test_the_figures_of_a_module_are_of_its_present_code(row: Mutated) -> None:
    found = figures(PAGE.read_text())[name_of(row)]
    if name_of(row) in NOT_MEASURED_YET:
        assert found.code == UNMEASURED, f"{name_of(row)} is measured: take it from NOT_MEASURED_YET"
    else:
        command = (
            f"make mutate ARGS={row.path.removeprefix('engine/deskwire/').removeprefix('http/deskwire/')}"
        )
        assert found.code == digest(row), (
            f"tests/mutation/results.md has figures of another {row.path}; measure it: {command}"
        )
    assert found.noticed + found.left == found.mutants > 0


def test_the_page_has_every_explained_mutant() -> None:
    page = PAGE.read_text()
    assert with_tables(page, *written(figures(page))) == page, (
        "the page is not that of tests/mutation/table.py: run make mutate with the module's name"
    )


@pytest.mark.parametrize(
    ("edit", "same"),
    [
        (("return 1", "return 1  # why"), True),
        (("return 1", "log.info('one')\n    return 1"), True),
        (('"""One."""', '"""Another text."""'), True),
        (("n: int", "n: float"), True),
        (("def other(): ...", "def other(): return 5"), True),
        (("return 1", "return 2"), False),
        (("return 1", "return n"), False),
        (("return 1", "forget(n)\n    return 1"), False),
    ],
)
def test_digest_changes_only_with_the_mutated_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: tuple[str, str], same: bool
) -> None:
    monkeypatch.setattr("tests.mutation.page.ROOT", tmp_path)
    source = 'def one(n: int) -> int:\n    """One."""\n    return 1\n\ndef other(): ...\n'
    row = Mutated("module.py", (), ("one",))
    (tmp_path / "module.py").write_text(source)
    before = digest(row)
    (tmp_path / "module.py").write_text(source.replace(*edit))
    assert (digest(row) == before) == same


def test_run_replaces_only_the_figures_of_its_modules(tmp_path: Path) -> None:
    page = tmp_path / "mutation.md"
    shutil.copy(ROOT / "tests/mutation/results.md", page)
    row, other = TABLE[0], TABLE[1]
    before = figures(page.read_text())
    note(row, 18, 2, page)
    after = figures(page.read_text())
    assert after[name_of(row)] == Figures(digest(row), 18, 16, 2)
    assert after[name_of(other)] == before[name_of(other)]


def test_only_the_named_change_in_the_named_line_is_explained() -> None:
    row = Mutated("module.py", (), left=(Left("MAX = 3", "3", "4", "a bound"),))
    assert row.explains("MAX = 3  # rows", "3", "4")
    assert not row.explains("MAX = 3", "3", "2")
    assert not row.explains("LEAST = 3", "3", "4")
