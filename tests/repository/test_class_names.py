"""A class name has one meaning in the whole tree."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.support.root import ROOT

SHARED: Final = {
    "LogReads": "the queries on the event log, for each database",
    "LogWrites": "the changes of the event log, for each database",
    "Writer": "the writer of each database",
}
"""Names of several classes with the same meaning."""

_SCHEMAS: Final = "http/deskwire/http/schemas/"  # a schema may have the name of the value that it shows
_RELEASED: Final = "/migrations/m0"


def public_classes(source: str) -> Iterator[str]:
    """Yield the names of a module's public classes."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
            yield statement.name


def ambiguous(modules: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the class names with several meanings, and their modules.

    Args:
        modules: path and source of each module.
    """
    found: dict[str, list[str]] = defaultdict(list)
    shown: dict[str, list[str]] = defaultdict(list)
    for path, source in modules:
        for name in public_classes(source):
            (shown if path.startswith(_SCHEMAS) else found)[name].append(path)
    return {
        name: [*found[name], *shown[name]]
        for name in sorted({*found, *shown})
        if name not in SHARED and (len(found[name]) > 1 or len(shown[name]) > 1)
    }


def product_modules() -> Iterator[tuple[str, str]]:
    """Yield path and source of every module of the product, except for released migrations."""
    for root in ("engine", "http", "storage"):
        for path in sorted(Path(ROOT, root).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if _RELEASED not in name:
                yield name, path.read_text()


def test_a_class_name_has_one_meaning() -> None:
    assert ambiguous(product_modules()) == {}


def test_every_shared_name_is_shared() -> None:
    names = [name for _, source in product_modules() for name in public_classes(source)]
    assert {name for name in SHARED if names.count(name) < 2} == set()


def test_a_second_meaning_is_found_and_a_schema_of_the_same_value_is_not() -> None:
    modules = [
        ("engine/deskwire/engine/contacts/contact.py", "class Contact: ..."),
        (f"{_SCHEMAS}conversations.py", "class Contact: ...\nclass Person: ..."),
        ("engine/deskwire/engine/accounts/people.py", "class Person: ...\nclass _Row: ..."),
        ("http/deskwire/http/stream/people.py", "class Person: ...\nclass _Row: ..."),
    ]
    assert ambiguous(modules) == {
        "Person": [
            "engine/deskwire/engine/accounts/people.py",
            "http/deskwire/http/stream/people.py",
            f"{_SCHEMAS}conversations.py",
        ]
    }
