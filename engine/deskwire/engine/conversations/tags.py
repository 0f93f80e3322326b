"""Tags of conversations and contacts: their normal form, and the key by which they are compared.

A tag is stored and shown in lower case, with single blanks and in NFC: `VIP` and ` Vip ` become `vip`. Otherwise it keeps
its spelling, with accents, joiners and elongation. Two tags are the same if their keys are equal (`core.folding`), so
a filter by `arger` finds `ärger`. Invisible characters are refused, except the joiners that Persian, Indic scripts
and emoji need.
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

_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories of invisible characters: controls, including those of text direction, and unassigned characters."""

_JOINED: Final = re.compile("(?<=\\S)[\u200c\u200d](?=\\S)")
"""A zero width joiner or non-joiner inside a word. Some words of Persian and some emoji are wrong without it."""


def normal_tag(text: str) -> str:
    """Return the tag in its normal form. Raises ValueError with a reason if it is no valid tag."""
    tag = " ".join(text.split())
    for _ in range(2):  # lower case letters may compose further, and composed ones may have a lower case
        tag = unicodedata.normalize("NFC", tag.lower())
    if any(unicodedata.category(each) in _INVISIBLE for each in _JOINED.sub("", tag)):
        raise ValueError("A tag has no characters that can't be seen.")
    if "," in tag:
        raise ValueError("A tag has no comma, which stands between the tags of a filter.")
    if not tag:
        raise ValueError("A tag has a character other than a blank.")
    if len(tag) > LENGTH_MAX:
        raise ValueError(f"A tag has at most {LENGTH_MAX} characters.")
    return tag


def normal_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return normal tags, sorted; of several with the same key the first. Raises as `normal_tag`."""
    return distinct_tags(map(normal_tag, tags))


def distinct_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return stored tags, sorted; of several with the same key the first."""
    first: dict[str, str] = {}
    for tag in tags:
        first.setdefault(tag_key(tag), tag)
    return tuple(sorted(first.values()))


def tag_key(tag: str) -> str:
    """Return the key by which a tag is compared and found; tickets use it too."""
    return fold_name(tag)
