"""Small values that every domain uses: copies, preconditions, sort orders, percentiles, progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.core.errors import PreconditionFailed

if TYPE_CHECKING:
    # The same function for mypy, which then checks names and types of the fields.
    from dataclasses import replace
else:
    from msgspec.structs import replace


__all__ = ["replace"]


_CHARACTERS: Final = 32


def entity_tag(view: Mapping[str, Any]) -> str:
    """Return the tag of an object: a digest of what the API shows of it, the same in whatever order its fields are."""
    text = json.dumps(view, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_CHARACTERS]


_THERE: Final = "It is there already, so nothing is changed now. Read it, and decide what to keep."

ANY_TAG: Final = "*"
"""Stands for every tag: the condition is then about whether the object is there."""


class Precondition(Struct, frozen=True):
    """The conditions that a change sets on the object before it.

    Args:
        tags: those of which the object must have one; None if the change is to be made in any case.
        but_not: those of which it must have none; None if that is no matter.
    """

    tags: frozenset[str] | None = None
    but_not: frozenset[str] | None = None

    def check(self, tag: Callable[[], str | None]) -> None:
        """Raise ChangedMeanwhile, with the present tag, if the object is not what was seen.

        Args:
            tag: makes the tag that the object has now, None if it is not there; called if it matters.
        """
        if self.tags is None and self.but_not is None:
            return
        now = tag()
        if self.tags is not None and not _among(self.tags, now):
            raise PreconditionFailed(now)
        if self.but_not is not None and _among(self.but_not, now):
            raise PreconditionFailed(now, _THERE)


def _among(tags: frozenset[str], now: str | None) -> bool:
    return now is not None and (ANY_TAG in tags or now in tags)


UNCONDITIONAL: Final = Precondition()
"""The precondition of a change that asks for nothing."""


SortOrder = Literal["asc", "desc"]


def nearest_rank(count: int, percent: int) -> int:
    """Return the place, among so many sorted values, of the least one that `percent` of a hundred do not exceed.

    Args:
        count: at least 1.
        percent: 1 to 100.
    """
    return -(-count * percent // 100) - 1


class ProgressReporter(Protocol):
    """Takes the name of the step that is under way, as words for people."""

    def __call__(self, name: str, done: int = 0, total: int | None = None) -> None:
        """Take how much of the step is done.

        Args:
            done, total: in any unit; a `total` of None is not known.
        """


def no_progress(name: str, done: int = 0, total: int | None = None) -> None:
    """Tell nobody."""
