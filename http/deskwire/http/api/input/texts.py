"""The rules that every text of an input is held to: it shows something, and has no U+0000.

A form that a text must have is said in a sentence; the pattern is for the description of the API.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from deskwire.engine.core.errors import PROBLEMS_MAX, Problem
from deskwire.engine.core.folding import BLANKS
from deskwire.engine.core.text import NUL, NUL_MESSAGE, NUL_PROBLEM_CODE, nul_paths
from deskwire.http.api.input.decoding import escaped

_ESCAPED_NUL: Final = b"\\u0000"
"""U+0000 as it stands in JSON, where no text has it in any other way (RFC 8259 7)."""


def is_blank(text: str) -> bool:
    """Return whether a text has characters, and none of them shows anything."""
    return bool(text) and all(unicodedata.category(character) in BLANKS for character in text)


def _showing(text: str) -> str:
    if is_blank(text):
        raise PydanticCustomError("blank", "This must not be blank.")
    return text


SHOWING: Final = AfterValidator(_showing)
"""The mark of a text that must not consist of blanks only; an empty one is for its length to refuse."""


def _whole(text: str) -> str:
    if NUL in text:
        raise PydanticCustomError(NUL_PROBLEM_CODE, NUL_MESSAGE)
    return text


PlainText = Annotated[str, AfterValidator(_whole)]
"""A text without U+0000, in a body that is kept as it was sent and may have some elsewhere."""


def in_form(pattern: str, sentence: str, described: str | None = None) -> tuple[Any, ...]:
    """Return the marks of a text that fully matches a pattern.

    Args:
        sentence: what a caller is told whose text does not.
        described: the pattern as ECMA 262 writes it, if it is another one.
    """
    matches = re.compile(pattern).fullmatch

    def check(text: str) -> str:
        if text and matches(text) is None:
            raise PydanticCustomError("form", "{sentence}", {"sentence": sentence})
        return text

    return AfterValidator(check), Field(json_schema_extra={"pattern": described or f"^(?:{pattern})$"})


def nul_problems(value: Any, raw: bytes) -> tuple[Problem, ...]:
    """Return a problem for each of the first texts of a JSON value that have U+0000.

    Args:
        raw: what the value was read from; without an escape in it there is nothing to look for.
    """
    if _ESCAPED_NUL not in raw:
        return ()
    ways = islice(nul_paths(value), PROBLEMS_MAX)
    return tuple(
        Problem("".join(f"/{escaped(str(part))}" for part in way), NUL_PROBLEM_CODE, NUL_MESSAGE)
        for way in ways
    )


def nul_parameters(pairs: dict[str, list[str]]) -> tuple[Problem, ...]:
    """Return a problem for each query parameter whose value has U+0000."""
    return tuple(
        Problem(f"?{name}", NUL_PROBLEM_CODE, NUL_MESSAGE)
        for name, values in pairs.items()
        if any(NUL in v for v in values)
    )
