"""The guide to machine credentials lists the scope of every permission, and all permissions of calls that need several (ADR 70)."""

from __future__ import annotations

import re

from deskwire.engine.accounts.machines import EVERY_PERMISSION
from deskwire.http.app import ROUTES
from tests.support.api.scope_walls import SEES
from tests.support.root import ROOT

GUIDE = (ROOT / "docs" / "guide" / "credentials.md").read_text()
ROWS = [line for line in GUIDE.splitlines() if line.startswith("| ")]


def shows() -> dict[str, str]:
    """Return the data that each permission shows, from the table of the guide."""
    part = GUIDE.partition("## Data that a permission shows")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z]+\.[a-z]+)` \| ([^|]*) \|", part, re.MULTILINE)
    assert len(rows) == len(dict(rows)), "each permission has one row"
    return dict(rows)


def test_guide_lists_every_permission() -> None:
    assert shows().keys() == EVERY_PERMISSION


def test_guide_omits_permissions_that_show_nothing() -> None:
    silent = {name for name, text in shows().items() if text == "nothing"}
    assert silent == {name for name, areas in SEES.items() if not areas} - {"translations.manage"}


def test_the_guide_names_all_permissions_of_calls_that_need_several() -> None:
    for route in ROUTES:
        for also in route.access.also:
            named = [
                row
                for row in ROWS
                if f"`{also}`" in row and set(re.findall(r"`([a-z]+\.[a-z]+)`", row)) > {also}
            ]
            assert named, (route.operation_id, also)
        if route.access.also:
            assert any(all(f"`{each}`" in row for each in route.access.also) for row in ROWS), (
                route.operation_id
            )
