"""The documents and their contents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.root import ROOT

_ANCHOR: Final = re.compile(r'<a id="([^"]+)"></a>')
_FENCE: Final = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the words of its info string, and its text."""

    words: tuple[str, ...]
    text: str


def documents() -> list[Path]:
    """Return every Markdown file for readers: the README, the changelog, and all of `docs/`."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def guides() -> list[Path]:
    """Return the hand-written pages that describe the product."""
    begin = [
        ROOT / "docs" / f"{name}.md" for name in ("index", "quickstart", "tutorial", "concepts", "security")
    ]
    return [ROOT / "README.md", *begin, *sorted((ROOT / "docs/guide").glob("*.md"))]


def promises() -> list[Path]:
    """Return the pages whose clauses code and tests refer to by their numbers."""
    return [ROOT / "docs" / f"{name}.md" for name in ("contract", "decisions", "stream-protocol")]


def named_anchors(page: Path) -> list[str]:
    """Return the explicit anchors of a page, in order."""
    return _ANCHOR.findall(page.read_text())


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return [Block(tuple(words.split()), text) for words, text in _FENCE.findall(page.read_text())]


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def name(page: Path) -> str:
    """Return a page's name for a test's id."""
    return str(page.relative_to(ROOT))
