"""Tests that the documentation names exist."""

from __future__ import annotations

import re

from tests.support.root import ROOT

NAMED = re.compile(r"`(tests/[\w/]+(?:\.py)?)(?:::(\w+))?`")


def test_what_is_said_to_hold_something_is_there() -> None:
    named = NAMED.findall((ROOT / "docs/guarantees.md").read_text())
    assert len(named) > 20
    for path, test in named:
        place = ROOT / path
        assert place.exists(), path
        assert not test or re.search(rf"def {test}\w*\(", place.read_text()), f"{path}::{test}"
