"""The table of tests/mutation/results.md: figures of each mutated module, with a digest of its code.

`make mutate` writes it; a test fails if a module has changed since its figures were written.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.mutation.mutants import is_silent
from tests.mutation.table import TABLE, Mutated
from tests.support.root import ROOT

PAGE: Final = ROOT / "tests/mutation/results.md"
UNMEASURED: Final = "-"
"""Replaces the digest of a module that was not run since its last change."""
_FIGURES: Final = (
    "| module | code | mutants | noticed | left, explained |\n| --- | --- | ---: | ---: | ---: |\n"
)
_LEFT: Final = "| module | mutant | why no test notices |\n| --- | --- | --- |\n"
_ROW: Final = re.compile(
    r"^\| `(?P<module>[^`]+)`[^|]*\| `?(?P<code>[^`| ]+)`? \| (?P<mutants>\d+) \| (?P<noticed>\d+) \| (?P<left>\d+) \|$"
)
_IGNORED: Final = {
    "annotation", "ctx", "decorator_list", "kind", "returns", "type_comment", "type_ignores", "type_params",
}  # fmt: skip


class Figures(Struct, frozen=True):
    """One row of the page.

    Args:
        code: the digest of the module at its last run, `UNMEASURED` if it has changed since then.
    """

    code: str
    mutants: int
    noticed: int
    left: int


def digest(row: Mutated) -> str:
    """Return a digest of the mutated code, without comments, docstrings, types and log calls."""
    module = ast.parse((ROOT / row.path).read_text())
    body = [each for each in module.body if not row.only or getattr(each, "name", None) in row.only]
    return hashlib.sha256(repr([list(_flat(each)) for each in body]).encode()).hexdigest()[:8]


def _flat(node: ast.AST) -> Iterator[object]:
    """Yield the parts of a node, the same on every version of Python."""
    if is_silent(node):
        return
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
        if name in _IGNORED or value in (None, []):
            continue
        yield name
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _flat(each)
            else:
                yield each


def name_of(row: Mutated) -> str:
    """Return a module's name on the page: its path in the package."""
    return row.path.split("deskwire/", 1)[1]


def figures(page: str) -> dict[str, Figures]:
    """Return the rows of a page, by module."""
    found = (_ROW.match(line) for line in page.splitlines())
    return {
        match["module"]: Figures(
            match["code"], int(match["mutants"]), int(match["noticed"]), int(match["left"])
        )
        for match in found
        if match is not None
    }


def written(known: dict[str, Figures], rows: Sequence[Mutated] = TABLE) -> tuple[str, str]:
    """Return the page's two tables: the figures, and the mutants left with their reasons."""
    lines = []
    for row in rows:
        each = known.get(name_of(row), Figures(UNMEASURED, 0, 0, 0))
        part = f", {' and '.join(f'`{name}`' for name in row.only)}" if row.only else ""
        code = each.code if each.code == UNMEASURED else f"`{each.code}`"
        lines.append(f"| `{name_of(row)}`{part} | {code} | {each.mutants} | {each.noticed} | {each.left} |\n")
    left = [
        f"| `{name_of(row).rsplit('/', 1)[1]}` | `{mutant.was}` → `{mutant.became}` in `{mutant.within}` | {mutant.why} |\n"
        for row in rows
        for mutant in row.left
    ]
    return _FIGURES + "".join(lines), _LEFT + "".join(left)


def note(row: Mutated, made: int, survived: int, page: Path = PAGE) -> None:
    """Write a module's new figures, and the reasons of the table, to the page."""
    text = page.read_text()
    known = figures(text) | {name_of(row): Figures(digest(row), made, made - survived, survived)}
    page.write_text(with_tables(text, *written(known)))


def with_tables(page: str, *tables: str) -> str:
    """Return the page with its tables replaced by those with the same heads."""
    for table in tables:
        head = "".join(table.splitlines(keepends=True)[:2])
        if found := re.search(rf"{re.escape(head)}(?:\|.*\n)*", page):
            page = page[: found.start()] + table + page[found.end() :]
    return page
