"""Copies with some fields changed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from deskwire.engine.conversation import Conversation
from deskwire.engine.copying import changed

_BEFORE = Conversation("cnv_1", project=1, created_at=2, updated_at=3, attributes={"plan": "pro"})


def test_a_copy_is_as_the_standard_library_makes_it() -> None:
    copy = changed(_BEFORE, status="CLOSED", sequence=4)

    assert copy == replace(_BEFORE, status="CLOSED", sequence=4)
    assert changed(_BEFORE) == _BEFORE
    assert _BEFORE.status == "OPEN"  # it is not changed itself


def test_a_copy_is_as_frozen_as_what_it_was_made_of() -> None:
    copy = changed(_BEFORE, sequence=4)

    with pytest.raises(FrozenInstanceError):
        copy.sequence = 5  # type: ignore[misc]


def test_a_field_that_is_not_there_is_refused_and_named() -> None:
    with pytest.raises(TypeError, match=r"Conversation.*seqence"):
        changed(_BEFORE, seqence=4)


def test_a_class_with_slots_can_not_be_copied_so() -> None:
    @dataclass(frozen=True, slots=True)
    class Slotted:
        field: int

    with pytest.raises(AttributeError):
        changed(Slotted(1), field=2)
