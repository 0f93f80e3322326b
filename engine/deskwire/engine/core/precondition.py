"""The preconditions of a change: the object is still what its author has seen, or not there yet (RFC 9110, section 13.1; ADR 56)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.core.errors import ChangedMeanwhile

_CHARACTERS: Final = 32


def tag_of(view: Mapping[str, Any]) -> str:
    """Return the tag of an object: a digest of what the API shows of it, the same in whatever order its fields are."""
    text = json.dumps(view, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_CHARACTERS]


_THERE: Final = "It is there already, so nothing is changed now. Read it, and decide what to keep."

ANY: Final = "*"
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
            raise ChangedMeanwhile(now)
        if self.but_not is not None and _among(self.but_not, now):
            raise ChangedMeanwhile(now, _THERE)


def _among(tags: frozenset[str], now: str | None) -> bool:
    return now is not None and (ANY in tags or now in tags)


ANYHOW: Final = Precondition()
"""The precondition of a change that asks for nothing."""
