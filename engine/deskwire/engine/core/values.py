"""Small values that many domains use: copies of Structs, preconditions, sort orders, percentiles, progress reports.

Structs are never changed once they are made: `replace` returns a changed copy (ADR 29).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.core.errors import PreconditionFailed

if TYPE_CHECKING:
    # mypy knows this equivalent function and checks names and types of the fields.
    from dataclasses import replace
else:
    from msgspec.structs import replace


__all__ = ["replace"]


_CHARACTERS: Final = 32


def entity_tag(view: Mapping[str, Any]) -> str:
    """Return the entity tag of an object: a digest of its API view, independent of the order of its fields."""
    text = json.dumps(view, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_CHARACTERS]


_EXISTS: Final = "It is there already, so nothing is changed now. Read it, and decide what to keep."

ANY_TAG: Final = "*"
"""Matches every tag, so that the condition only asks whether the object exists."""


class Precondition(Struct, frozen=True):
    """The conditions of a change on the current object (RFC 9110, section 13.1, ADR 56).

    Args:
        tags: tags of `If-Match`. The object must have one of them. None for no condition.
        but_not: tags of `If-None-Match`. The object must have none of them. None for no condition.
    """

    tags: frozenset[str] | None = None
    but_not: frozenset[str] | None = None

    def check(self, tag: Callable[[], str | None]) -> None:
        """Raise PreconditionFailed, with the current tag, if a condition does not hold.

        Args:
            tag: returns the current tag of the object, None if it does not exist. Called only if there is a condition.
        """
        if self.tags is None and self.but_not is None:
            return
        now = tag()
        if self.tags is not None and not _among(self.tags, now):
            raise PreconditionFailed(now)
        if self.excludes(now):
            raise PreconditionFailed(now, _EXISTS)

    def excludes(self, tag: str | None) -> bool:
        """Return whether `but_not` has the current tag of the object."""
        return self.but_not is not None and _among(self.but_not, tag)


def _among(tags: frozenset[str], now: str | None) -> bool:
    return now is not None and (ANY_TAG in tags or now in tags)


UNCONDITIONAL: Final = Precondition()
"""The precondition of a change without conditions."""


SortOrder = Literal["asc", "desc"]


def nearest_rank(count: int, percent: int) -> int:
    """Return the index of a percentile among `count` sorted values, by the nearest-rank method.

    The result is always the index of an existing value, so that nothing is interpolated.

    Args:
        count: at least 1.
        percent: 1 to 100.
    """
    return -(-count * percent // 100) - 1


class ProgressReporter(Protocol):
    """A callback that receives the progress of a long operation."""

    def __call__(self, name: str, done: int = 0, total: int | None = None) -> None:
        """Report progress.

        Args:
            name: the current step, as text for people.
            done, total: amounts in any unit. `total` is None if it is unknown.
        """


def no_progress(name: str, done: int = 0, total: int | None = None) -> None:
    """Ignore the progress."""
