"""Language tags (BCP 47, RFC 5646): their form, and the case they are usually written in."""

from __future__ import annotations

import re
from typing import Final

TAG_MAX: Final = 35
"""Characters of a tag; RFC 5646, 4.4.1 derives 35 as what must be supported."""

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


def canonical_tag(text: str) -> str | None:
    """The tag with its parts in their usual case (`en-GB`, `zh-Hant-TW`); None if `text` is not well-formed."""
    if len(text) > TAG_MAX or not text.isascii():
        return None
    match = _TAG.fullmatch(text.lower())
    if match is None:
        return None
    script, region = match["script"], match["region"]
    parts = [match["language"], script and script.title(), region and region.upper()]
    return "-".join(filter(None, parts)) + match["rest"]
