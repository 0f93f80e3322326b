"""The precondition of a change: the object is still what the author of the change has seen (RFC 9110, section 13.1.1; ADR 84)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from deskwire.engine.core.errors import ChangedMeanwhile

_CHARACTERS: Final = 32


def tag_of(view: Mapping[str, Any]) -> str:
    """Return the tag of an object: a digest of what the API shows of it, the same in whatever order its fields are."""
    text = json.dumps(view, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Precondition:
    """The condition that a change sets on the object before it.

    Args:
        tags: those of which the object must have one; None if the change is to be made in any case.
    """

    tags: frozenset[str] | None = None

    def check(self, tag: Callable[[], str]) -> None:
        """Raise ChangedMeanwhile if the object is not what was seen.

        Args:
            tag: makes the tag that the object has now; called if it matters.
        """
        if self.tags is not None and tag() not in self.tags:
            raise ChangedMeanwhile


ANYHOW: Final = Precondition()
"""The precondition of a change that asks for nothing."""
