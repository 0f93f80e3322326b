"""Ceilings of counts may only fall, and fall with the counts."""

from __future__ import annotations

import itertools

import pytest

from tests.repository import prose, trip
from tests.repository.ceilings import above, committed, loose, lower, raised, read

FILES = [prose.CEILINGS, trip.CEILINGS]


def test_a_count_above_its_ceiling_is_found_and_a_new_count_may_only_be_zero() -> None:
    assert above({"guides": 2, "new": 1, "none": 0}, {"guides": 2}) == {"new": 1}
    assert above({"guides": 5, "new": 1}, {"guides": 2, "new": 1}) == {"guides": 3}


def test_a_ceiling_far_above_its_count_is_found() -> None:
    assert loose({"guides": 100}, {"guides": 103, "empty": 3}) == {}
    assert loose({"guides": 100}, {"guides": 104, "empty": 4}) == {"guides": 100, "empty": 0}
    assert loose({"guides": 1000}, {"guides": 1020}) == {}
    assert loose({"guides": 1000}, {"guides": 1021}) == {"guides": 1000}


def test_a_raised_ceiling_is_found_and_a_new_one_is_not_raised() -> None:
    assert raised({"a": 1, "b": 2, "gone": 3}, {"a": 2, "b": 2, "new": 9}) == {"a": 2}


def test_lowering_writes_lower_and_new_ceilings_and_raises_none(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.repository.ceilings.ROOT", tmp_path_factory.mktemp("root"))
    assert lower("c.json", {"a": 5, "b": 5}) == {}
    assert lower("c.json", {"a": 4, "b": 6, "new": 7}) == {"a": 4}
    assert read("c.json") == {"a": 4, "b": 5, "new": 7}


@pytest.mark.parametrize("file", FILES)
def test_no_ceiling_was_raised(file: str) -> None:
    versions = [read(file), *committed(file)]
    for after, before in itertools.pairwise(versions):
        assert raised(before, after) == {}, f"a ceiling in {file} may only fall"
