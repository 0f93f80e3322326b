"""Values, and copies of them with some fields changed."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import field, replace

import pytest

from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.record import changed, value

_BEFORE = Conversation("cnv_1", project=1, created_at=2, updated_at=3, attributes={"plan": "pro"})


@value
class _Point:
    x: int
    y: int = 0
    marks: Mapping[str, str] = field(default_factory=dict, compare=False)


def test_a_copy_is_as_the_standard_library_makes_it() -> None:
    made = changed(_BEFORE, status="CLOSED", sequence=4)

    assert made == replace(_BEFORE, status="CLOSED", sequence=4)
    assert type(made) is Conversation
    assert _BEFORE.status == "OPEN"  # it is not changed itself


def test_that_nothing_changes_a_value_is_the_type_checkers_to_say() -> None:
    point = _Point(1)

    point.x = 2  # type: ignore[misc]  # an ignore that is not needed is an error, too


def test_a_copy_has_fields_that_are_not_compared() -> None:
    marks = {"a": "b"}

    assert changed(_Point(1, marks=marks), y=2).marks is marks


def test_a_copy_without_changes_is_another_object_with_the_same_fields() -> None:
    for again in (changed(_BEFORE), copy(_BEFORE)):
        assert again == _BEFORE
        assert again is not _BEFORE
        assert again.attributes is _BEFORE.attributes


def test_a_field_that_is_not_there_is_refused_and_named() -> None:
    with pytest.raises(AttributeError, match=r"seqence"):
        changed(_BEFORE, seqence=4)


def test_a_value_takes_no_field_beside_its_own() -> None:
    with pytest.raises(AttributeError):
        _Point(1).z = 2  # type: ignore[attr-defined]


def test_values_are_compared_and_hashed_by_their_fields() -> None:
    assert _Point(1, marks={"a": "b"}) == _Point(1)
    assert {_Point(1), _Point(1, 0), _Point(1, 2)} == {_Point(1), _Point(1, 2)}
    assert repr(_Point(1, 2)) == "_Point(x=1, y=2, marks={})"
