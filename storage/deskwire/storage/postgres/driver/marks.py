"""The marks for values: `?`, `?1` and `:name` of the shared statements, `$1` of PostgreSQL's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

_MARK: Final = re.compile(
    r"""'(?:[^']|'')*'      # a text
    | "(?:[^"]|"")*"        # a name
    | ::                    # a cast
    | \?(?P<number>\d+)? | :(?P<name>[a-z_]\w*)""",
    re.VERBOSE | re.IGNORECASE,
)


@lru_cache(maxsize=2_048)
def translated(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return the statement as PostgreSQL takes it, with the names of its values in order; none if they have none."""
    names: dict[str, int] = {}
    count = 0

    def numbered(found: re.Match[str]) -> str:
        nonlocal count
        if found["name"] is not None:
            return f"${names.setdefault(found['name'], len(names) + 1)}"
        if found[0][0] != "?":
            return found[0]
        if found["number"] is not None:
            return f"${found['number']}"
        count += 1
        return f"${count}"

    text = _MARK.sub(numbered, sql)
    return text, tuple(names)


def in_order(names: tuple[str, ...], values: Sequence[Any] | Mapping[str, Any]) -> Sequence[Any]:
    """Return the values in the order of their marks."""
    if isinstance(values, Mapping):
        return [values[name] for name in names]
    return values
