"""Tests that the documentation names exist."""

from __future__ import annotations

import re

import pytest

from tests.support.root import ROOT

NAMED = re.compile(r"`(tests/[\w/]+(?:\.py)?)(?:::(\w+))?`")


@pytest.mark.parametrize("page", ["guarantees", "bugs-found"])
def test_what_is_said_to_hold_something_is_there(page: str) -> None:
    named = NAMED.findall((ROOT / f"docs/{page}.md").read_text())
    assert len(named) > 20
    for path, test in named:
        place = ROOT / path
        assert place.exists(), path
        assert not test or re.search(rf"def {test}\w*\(", place.read_text()), f"{path}::{test}"
