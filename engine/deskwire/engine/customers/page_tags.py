"""The tags of a page that the check of a site looks at: scripts, and policies in `meta` tags.

The patterns never cross a `<`, so their time is linear in the length of a page, which a stranger may have written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Final

_TAG_LENGTH_MAX: Final = 4_096  # characters of a tag that is looked at
_TAGS_MAX: Final = 2_000  # tags of a page
_TAG: Final = re.compile(rf"<(script|meta)(?=[\s/>])([^<>]{{0,{_TAG_LENGTH_MAX}}})>", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r"""([^\s=/"'>]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++)))?""")
_COMMENT, _COMMENT_END = "<!--", "-->"
_POLICY: Final = "content-security-policy"

Attributes = Mapping[str, str]


def script_tags(html: str) -> list[Attributes]:
    """Return the attributes of each script that is loaded from a URL."""
    return [found for name, found in _tags(html) if name == "script" and found.get("src", "").strip()]


def meta_policies(html: str) -> list[str]:
    """Return the policies that the page sets by `meta` tags."""
    return [
        found["content"]
        for name, found in _tags(html)
        if name == "meta" and found.get("http-equiv", "").strip().lower() == _POLICY and "content" in found
    ]


def _tags(html: str) -> Iterator[tuple[str, Attributes]]:
    for number, match in enumerate(_TAG.finditer(_without_comments(html))):
        if number >= _TAGS_MAX:
            return
        attributes: dict[str, str] = {}
        for name, *values in _ATTRIBUTE.findall(match[2]):
            attributes.setdefault(name.lower(), unescape(next(filter(None, values), "")))
        yield match[1].lower(), attributes


def _without_comments(html: str) -> str:
    kept, at = [], 0
    while (begin := html.find(_COMMENT, at)) >= 0:
        kept.append(html[at:begin])
        end = html.find(_COMMENT_END, begin)
        if end < 0:
            return "".join(kept)
        at = end + len(_COMMENT_END)
    return "".join((*kept, html[at:]))
