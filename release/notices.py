"""The third-party notices: every third-party part of a release, with its full licence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from release.parts import Part

RULE: Final = "=" * 100
HEAD: Final = """\
Deskwire is under the Apache License 2.0, which is in the file LICENSE. What is listed here is made by others, and goes
with Deskwire under the licence that is given: the libraries that it is installed with, those for PostgreSQL and for
uploads in a bucket, what its pages and its analysis of sentiment have in them, and what the single executable has in it
besides.
"""


def notices(parts: Sequence[Part]) -> str:
    """Return the text: a list, then the licences in the same order; a text that several share is printed once."""
    listed = "".join(f"  {_title(part)}: {part.licence}\n" for part in parts)
    sharing: dict[tuple[str, ...], list[Part]] = {}
    for part in parts:
        sharing.setdefault(part.texts, []).append(part)
    blocks = [
        f"{RULE}\n{', '.join(map(_title, those))}\n{RULE}\n\n" + "\n\n".join(told) + "\n"
        for told, those in sharing.items()
    ]
    return "\n".join([HEAD, listed, *blocks])


def _title(part: Part) -> str:
    return part.name if part.version is None else f"{part.name} {part.version}"
