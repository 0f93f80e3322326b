"""Tests that the documentation names exist."""

from __future__ import annotations

import re

from tests.support.root import ROOT

NAMED = re.compile(r"`(tests/[\w/]+(?:\.py)?)(?:::(\w+))?`")


def test_tests_named_as_evidence_exist() -> None:
    named = NAMED.findall((ROOT / "docs/guarantees.md").read_text())
    assert len(named) > 20
    for path, test in named:
        place = ROOT / path
        assert place.exists(), path
        assert not test or re.search(rf"def {test}\w*\(", place.read_text()), f"{path}::{test}"
