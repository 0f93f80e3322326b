"""Tags of conversations, in the one form that they are stored, compared and shown in.

`VIP`, `vip` and ` Vip ` are one tag: letters are small, blanks are single and not at the ends, and what Unicode can write
in several ways is written in one (NFC). What can't be seen has no place in a tag: two that look alike would be two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

TAGS_MAX: Final = 20
"""Tags that a conversation may have."""

LENGTH_MAX: Final = 40
"""Characters of a tag."""

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Categories of what can't be seen: controls, also those that turn the direction of writing, and what means nothing yet."""


def normal_tag(text: str) -> str:
    """Return the tag in its one form. Raises ValueError, with a reason, for what can't be one."""
    tag = " ".join(text.split())
    for _ in range(2):  # small letters can be composed further, and what is composed have small ones
        tag = unicodedata.normalize("NFC", tag.lower())
    if any(unicodedata.category(character) in _UNSEEN for character in tag):
        raise ValueError("A tag has no characters that can't be seen.")
    if "," in tag:
        raise ValueError("A tag has no comma, which stands between the tags of a filter.")
    if not tag:
        raise ValueError("A tag has a character other than a blank.")
    if len(tag) > LENGTH_MAX:
        raise ValueError(f"A tag has at most {LENGTH_MAX} characters.")
    return tag


def normal_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags in their one form and order, each once. Raises as `normal_tag`."""
    return tuple(sorted({normal_tag(tag) for tag in tags}))
