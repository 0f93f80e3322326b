"""Planted bugs have the signatures of the functions that they replace, because a failing call proves nothing about a tool."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plants.plants import PLANTS, planted
from tests.plants.registry import check_arguments


@pytest.mark.parametrize("bug", PLANTS)
def test_a_planted_bug_takes_the_arguments_of_the_function_it_replaces(bug: str) -> None:
    with planted(bug):
        pass


def test_a_replacement_that_lacks_an_argument_is_refused() -> None:
    def replaced(number: int, *, ticket: str) -> None: ...
    def fitting(*_: Any, **__: Any) -> None: ...
    def without_a_name(number: int) -> None: ...
    def without_a_number(*, ticket: str) -> None: ...

    check_arguments(replaced, fitting)
    for lacking in (without_a_name, without_a_number):
        with pytest.raises(TypeError):
            check_arguments(replaced, lacking)
