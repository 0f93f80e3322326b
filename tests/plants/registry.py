"""The planted bugs of all tools: each breaks one promise of the service, in a way that a developer might.

A bug patches one or two functions for as long as its context lasts. It names the tools that have to find it; a test of
each tool plants them one by one and fails if the tool passes (docs/testing.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, get_args

import pytest
from msgspec import Struct

Tool = Literal["simulation", "nodes", "processes", "model", "crash", "powerloss"]
Patch = pytest.MonkeyPatch
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


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Return a context in which the service has this bug."""
    with pytest.MonkeyPatch.context() as patch:
        PLANTS[name].bug(patch)
        yield
