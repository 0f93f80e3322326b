"""The texts of the shared statements: words that PostgreSQL would silently misinterpret."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from deskwire.storage.dialect import POSTGRES
from deskwire.storage.postgres.driver.codec import translate_placeholders
from tests.support.root import ROOT

TABLES = ROOT / "storage" / "deskwire" / "storage" / "tables"
STATEMENT = re.compile(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE|VALUES|ON CONFLICT|ORDER BY)\b")
USER_ALONE = re.compile(r"(?<![\w.\":])user(?![\w\"])")
"""In PostgreSQL `user` is the session's role, not a column."""
pytestmark = pytest.mark.sqlite  # about texts alone: once is enough


def texts(path: Path) -> list[str]:
    """Return the literals of a module that contain a part of a statement."""
    tree = ast.parse(path.read_text())
    found = [each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)]
    return [each for each in found if isinstance(each, str) and STATEMENT.search(each)]


def test_the_column_user_is_quoted_or_named_with_its_table() -> None:
    wrong = [
        (path.name, text)
        for path in sorted(TABLES.rglob("*.py"))
        for text in texts(path)
        if USER_ALONE.search(text)
    ]
    assert wrong == []


def test_such_a_column_would_be_found() -> None:
    assert USER_ALONE.search("SELECT a FROM memberships WHERE user = ?")
    assert USER_ALONE.search("INSERT INTO t (id, user) VALUES (?, ?)")
    for fine in ('("user")', "m.user = ?", ":user", "users", "agent_seen.user"):
        assert not USER_ALONE.search(fine)


def test_marks_of_all_kinds_become_numbers() -> None:
    for text, expected, names in (
        ("a = ? AND b = ?", "a = $1 AND b = $2", ()),
        ("a = ?2 AND b = ?1 OR c = ?2", "a = $2 AND b = $1 OR c = $2", ()),
        ("a = :one AND b = :two OR c = :one", "a = $1 AND b = $2 OR c = $1", ("one", "two")),
        ("a = '? :no' AND \"b?\" = CAST(? AS text)", "a = '? :no' AND \"b?\" = CAST($1 AS text)", ()),
        (POSTGRES.text("SELECT 1 {of_project}"), None, ("project",)),
    ):
        found, named = translate_placeholders(text)
        assert expected in (None, found)
        assert named == names
