"""The conditions that a change sets on the object before it (RFC 9110, section 13.1)."""

from __future__ import annotations

import pytest

from deskwire.engine.core.errors import PreconditionFailed
from deskwire.engine.core.values import ANY_TAG, UNCONDITIONAL, Precondition

ABSENT = None


def fits(condition: Precondition, tag: str | None) -> bool:
    """Return True if the change may be made to an object that has this tag."""
    try:
        condition.check(lambda: tag)
    except PreconditionFailed:
        return False
    return True


def test_refusal_has_the_present_tag() -> None:
    with pytest.raises(PreconditionFailed) as refused:
        Precondition(frozenset("a")).check(lambda: "b")
    assert refused.value.tag == "b"


@pytest.mark.parametrize(
    ("condition", "on"),
    [
        (UNCONDITIONAL, {ABSENT, "a", "b"}),
        (Precondition(frozenset("a")), {"a"}),
        (Precondition(frozenset("ab")), {"a", "b"}),
        (Precondition(frozenset({ANY_TAG})), {"a", "b"}),
        (Precondition(frozenset()), set()),
        (Precondition(None, frozenset({ANY_TAG})), {ABSENT}),
        (Precondition(None, frozenset("a")), {ABSENT, "b"}),
        (Precondition(frozenset({ANY_TAG}), frozenset("a")), {"b"}),
        (Precondition(frozenset("a"), frozenset({ANY_TAG})), set()),
    ],
)
def test_a_condition_fits_these_states_and_no_other(condition: Precondition, on: set[str | None]) -> None:
    assert {tag for tag in (ABSENT, "a", "b") if fits(condition, tag)} == on


def test_without_a_condition_no_tag_is_made() -> None:
    def unwanted() -> str:
        raise AssertionError("nobody asked for a tag")

    UNCONDITIONAL.check(unwanted)
