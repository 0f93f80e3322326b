"""Values, and copies of them with some fields changed."""

from __future__ import annotations

from copy import copy

import pytest

from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.values import replace

_BEFORE = Conversation("cnv_1", project=1, created_at=2, updated_at=3, attributes={"plan": "pro"})


def test_copy_has_the_changed_fields_and_the_earlier_others() -> None:
    made = replace(_BEFORE, status="CLOSED", sequence=4)

    assert made == Conversation(
        "cnv_1",
        project=1,
        created_at=2,
        updated_at=3,
        attributes={"plan": "pro"},
        status="CLOSED",
        sequence=4,
    )
    assert type(made) is Conversation
    assert _BEFORE.status == "OPEN"  # it is not changed itself


def test_values_are_immutable_also_for_the_type_checker() -> None:
    with pytest.raises(AttributeError):
        _BEFORE.status = "CLOSED"  # type: ignore[misc]  # an ignore that is not needed is an error


def test_a_copy_without_changes_is_another_object_with_the_same_fields() -> None:
    for again in (replace(_BEFORE), copy(_BEFORE)):
        assert again == _BEFORE
        assert again is not _BEFORE
        assert again.attributes is _BEFORE.attributes


def test_unknown_field_is_refused_by_name_and_by_the_type_checker_too() -> None:
    with pytest.raises(TypeError, match=r"seqence"):
        replace(_BEFORE, seqence=4)  # type: ignore[call-arg]


def test_the_type_checker_knows_the_types_of_fields() -> None:
    assert replace(_BEFORE, sequence="four").sequence == "four"  # type: ignore[arg-type, comparison-overlap]
