"""The guide to backups names each problem that `deskwire check` finds."""

from __future__ import annotations

import re

from deskwire.storage.check.rules import RULES
from tests.support.root import ROOT

GUIDE = (ROOT / "docs/guide/backup.md").read_text()
STORAGE = ROOT / "storage/deskwire/storage"
CHECKS = (
    *sorted((STORAGE / "check").glob("*.py")),
    STORAGE / "sqlite/check.py",
    STORAGE / "postgres/admin/check.py",
)


def test_the_table_of_checks_has_the_codes_of_the_program() -> None:
    _, _, table = GUIDE.partition("| Checked | Codes |\n| --- | --- |\n")
    named = re.findall(r"`([a-z_]+)`", table.partition("\n\n")[0])
    written = {
        code for path in CHECKS for code in re.findall(r'\bCheckProblem\(\s*"([a-z_]+)"', path.read_text())
    }
    assert {"database_damaged", "delivery_day", "secret_wrong", "search_index_stray"} <= written
    assert sorted(named) == sorted({rule.code for rule in RULES} | written)
