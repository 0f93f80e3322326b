"""The maximum length of a message, and checks for language tags (BCP 47, RFC 5646) and null characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

MESSAGE_TEXT_MAX: Final = 20_000
"""Maximum characters of a message, and of any text that can become one (decisions 4.2)."""

LANGUAGE_TAG_MAX: Final = 35
"""Maximum length of a tag. RFC 5646 section 4.4.1 requires support for 35 characters."""

_TAG: Final = re.compile(
    r"""(?P<language> [a-z]{2,3} (?:-[a-z]{3}){0,3} | [a-z]{4,8} )
        (?:-(?P<script> [a-z]{4} ))?
        (?:-(?P<region> [a-z]{2} | [0-9]{3} ))?
        (?P<rest>
            (?:-(?: [a-z0-9]{5,8} | [0-9][a-z0-9]{3} ))*
            (?:-[0-9a-wy-z](?:-[a-z0-9]{2,8})+)*
            (?:-x(?:-[a-z0-9]{1,8})+)?
        )""",
    re.VERBOSE,
)


def canonical_language_tag(text: str) -> str | None:
    """Return the tag with its parts in their usual case (`en-GB`, `zh-Hant-TW`).

    None if `text` is not well-formed.
    """
    if len(text) > LANGUAGE_TAG_MAX or not text.isascii():
        return None
    match = _TAG.fullmatch(text.lower())
    if match is None:
        return None
    script, region = match["script"], match["region"]
    parts = [match["language"], script and script.title(), region and region.upper()]
    return "-".join(filter(None, parts)) + match["rest"]


NUL: Final = "\0"
NUL_PROBLEM_CODE: Final = "nul_character"
"""Code of the problem of a text with a null character."""

NUL_MESSAGE: Final = "A text has no U+0000."


def nul_paths(value: Any) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each text in a JSON value that contains U+0000: names and indices, outermost first.

    Names of fields are checked, too. U+0000 is refused because databases, logs and clients written in C end a text there and
    would silently lose the rest.
    """
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while waiting:
        path, each = waiting.pop()
        if isinstance(each, str):
            if NUL in each:
                yield path
        elif isinstance(each, dict):
            yield from ((*path, name) for name in each if NUL in name)
            waiting += [((*path, name), inner) for name, inner in reversed(each.items())]
        elif isinstance(each, list):
            waiting += [((*path, index), each[index]) for index in range(len(each) - 1, -1, -1)]
