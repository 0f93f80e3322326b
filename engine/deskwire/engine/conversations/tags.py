"""Tags of conversations and contacts: the form in which they are stored and shown, and the key by which they are compared.

A tag is shown in small letters, with single blanks and in NFC: `VIP` and ` Vip ` are stored as `vip`. Apart from that it
keeps its spelling, with accents, joiners and elongation. Two tags are the same if their keys are (`core.folding`), so
a filter by `arger` finds `ärger`. Characters that can't be seen are refused, except the joiners that Persian, Indic scripts
and emoji are written with.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from deskwire.engine.core.folding import fold_name

TAGS_MAX: Final = 20
"""Tags that a conversation may have."""

LENGTH_MAX: Final = 40
"""Characters of a tag."""

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Categories of what can't be seen: controls, also those that turn the direction of writing, and what means nothing yet."""

_JOINED: Final = re.compile("(?<=\\S)[\u200c\u200d](?=\\S)")
"""A zero width non-joiner or joiner inside a word: without them some words of Persian and some emoji are written wrong."""


def normal_tag(text: str) -> str:
    """Return the tag in its one form. Raises ValueError, with a reason, for what can't be one."""
    tag = " ".join(text.split())
    for _ in range(2):  # small letters can be composed further, and what is composed have small ones
        tag = unicodedata.normalize("NFC", tag.lower())
    if any(unicodedata.category(each) in _UNSEEN for each in _JOINED.sub("", tag)):
        raise ValueError("A tag has no characters that can't be seen.")
    if "," in tag:
        raise ValueError("A tag has no comma, which stands between the tags of a filter.")
    if not tag:
        raise ValueError("A tag has a character other than a blank.")
    if len(tag) > LENGTH_MAX:
        raise ValueError(f"A tag has at most {LENGTH_MAX} characters.")
    return tag


def normal_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags as they are stored, in order; of several with one key the first. Raises as `normal_tag`."""
    return distinct_tags(map(normal_tag, tags))


def distinct_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return stored tags in order; of several with one key the first."""
    first: dict[str, str] = {}
    for tag in tags:
        first.setdefault(tag_key(tag), tag)
    return tuple(sorted(first.values()))


def tag_key(tag: str) -> str:
    """Return the key by which a tag is compared and found, also a ticket's."""
    return fold_name(tag)
