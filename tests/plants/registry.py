"""The planted bugs of all tools: each breaks one promise of the service by a likely mistake.

A bug patches one or two functions until its context ends. It names the tools that have to find it; a test of
each tool plants them one by one and fails if the tool passes (docs/testing.md). A patch must take the arguments of the
function that it replaces: a call that fails with a TypeError is a problem that every tool finds, and proves nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, get_args

import pytest
from msgspec import Struct

Tool = Literal["simulation", "nodes", "processes", "model", "crash", "powerloss"]


class Patch:
    """Replaces functions and values until the context of the bug ends."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def setattr(self, target: object, name: str, new: object) -> None:
        """Replace an attribute. Raises TypeError if a function does not take the arguments of the one it replaces."""
        check_arguments(inspect.getattr_static(target, name), new)
        self._patch.setattr(target, name, new)


Bug = Callable[[Patch], None]


class Plant(Struct, frozen=True):
    """A bug, and the tools that have to find it.

    Args:
        thorough: the tools that need more than a few seconds for it.
    """

    bug: Bug
    tools: tuple[Tool, ...]
    thorough: tuple[Tool, ...] = ()


PLANTS: Final[dict[str, Plant]] = {}
TOOLS: Final[tuple[Tool, ...]] = get_args(Tool)


def plant(*tools: Tool, thorough: tuple[Tool, ...] = ()) -> Callable[[Bug], Bug]:
    """Register the bug under the name of its function."""

    def register(bug: Bug) -> Bug:
        assert bug.__name__ not in PLANTS, f"two bugs are named {bug.__name__}"
        PLANTS[bug.__name__] = Plant(bug, tools, thorough)
        return bug

    return register


def check_arguments(old: object, new: object) -> None:
    """Raise TypeError if a function can't be called with all the arguments of the function that it replaces."""
    if not inspect.isfunction(old):
        return
    assert callable(new), f"{new} replaces {old.__qualname__}"
    parameters = inspect.signature(old).parameters.values()
    named = {each.name: None for each in parameters if each.kind is each.KEYWORD_ONLY}
    given = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    inspect.signature(new).bind(*given, **named)


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Return a context in which the service has this bug."""
    with pytest.MonkeyPatch.context() as patch:
        PLANTS[name].bug(Patch(patch))
        yield
