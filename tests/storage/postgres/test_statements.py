"""The migrated schema accepts each complete SQL text of the program.

Statements that are assembled at run time are not covered here; the tests of the stores run them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import pq

from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.driver.codec import translate_placeholders
from tests.support.root import ROOT

SOURCE: Final = ROOT / "storage"
STORAGE: Final = SOURCE / "deskwire" / "storage"
WHOLE: Final = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s")
PSYCOPGS_MARK: Final = re.compile(r"%(?:s|\((\w+)\)s)")
FOR_SQLITE: Final = {
    "deskwire.storage.copying.source",  # reads the directory that is copied
    "deskwire.storage.postgres.search.tickets",  # splits words as SQLite does, in memory
}
# Texts that look like statements, and are part of others that name their tables.
PARTS: Final = {
    "deskwire.storage.tables.translations._LANGUAGES",
    "deskwire.storage.tables.webhooks.deliveries._SELECTED",
}


def name_of(path: Path) -> str:
    """Return a module's name."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def constants(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the statements among the constants of a module."""
    for name, value in vars(import_module(name_of(path))).items():
        found: Any = value.get(POSTGRES) if isinstance(value, Mapping) else value
        if isinstance(found, str) and WHOLE.match(found):
            yield f"{name_of(path)}.{name}", found


def literals(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the statements that are literals in calls."""
    for call in ast.walk(ast.parse(path.read_text())):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
            said = call.args[0]
            if call.func.attr.startswith("execute") and isinstance(said, ast.Constant):
                yield f"{name_of(path)}:{call.lineno}", str(said.value)


def whole_statements() -> dict[str, str]:
    """Return the texts, each with its place in the code."""
    paths = [
        path
        for place in ("tables", "postgres")
        for path in sorted((STORAGE / place).rglob("*.py"))
        if path.name != "__init__.py" and name_of(path) not in FOR_SQLITE
    ]
    found = (each for path in paths for of in (constants, literals) for each in of(path))
    return {text: name for name, text in found if name not in PARTS and "{" not in text}


def numbered(text: str) -> bytes:
    """Return a statement with `$1` in place of its placeholders."""
    numbers = count(1)
    named: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        if found[1] is None:
            return f"${next(numbers)}"
        if found[1] not in named:
            named[found[1]] = next(numbers)
        return f"${named[found[1]]}"

    if PSYCOPGS_MARK.search(text):
        return PSYCOPGS_MARK.sub(number, text).encode()
    return translate_placeholders(text)[0].encode()


def test_migrated_schema_accepts_each_statement(postgres_url: str) -> None:
    texts, refused = whole_statements(), []
    with psycopg.connect(postgres_url, autocommit=True) as session:
        for text, name in texts.items():
            answer = session.pgconn.prepare(b"", numbered(text))
            if answer.status != pq.ExecStatus.COMMAND_OK:
                refused.append((name, answer.get_error_message(), text))
    assert refused == []
    assert len(texts) > 300, "they are looked for where they are"
