"""Texts of exports as an import takes them: plain, without markup, and without characters that are none."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

_SKIPPED: Final = frozenset({"script", "style", "head", "title", "template"})
_PARAGRAPHS: Final = frozenset(
    {"p", "blockquote", "ul", "ol", "table", "pre", "h1", "h2", "h3", "h4", "h5", "h6"}
)
_LINES: Final = frozenset({"div", "li", "tr", "hr", "section", "article", "header", "footer", "dt", "dd"})
_BLANKS: Final = re.compile(r"[ \t\r\n\f\xa0]+")
_MARKUP: Final = re.compile(
    r"<(?:[a-zA-Z][^<>]*|/[a-zA-Z][^<>]*|!--.*?--)>|&(?:#\d+|#x[0-9a-fA-F]+|[a-zA-Z]+\d*);", re.DOTALL
)


def clean(text: str) -> str:
    """Return a text without U+0000 and halves of surrogate pairs, which no text may have."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def plain(markup: str) -> str:
    """Return the text of an HTML fragment: its paragraphs and lines, list items with a dash, links with their address."""
    if not _MARKUP.search(markup):
        return clean(markup).strip()
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return clean(reader.text())


class _Reader(HTMLParser):
    """Collects the text of a fragment. What a browser would not show is left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._pieces: list[str] = []
        self._skipping = 0
        self._as_it_is = 0
        self._links: list[tuple[str, int]] = []

    def text(self) -> str:
        """Return what was collected, with at most one blank line in a row."""
        lines = [line.strip(" ") if line.strip() else "" for line in "".join(self._pieces).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in the begin of an element."""
        self._skipping += tag in _SKIPPED
        self._as_it_is += tag == "pre"
        given = dict(attrs)
        if tag == "br":
            self._pieces.append("\n")
        elif tag in _PARAGRAPHS:
            self._break("\n\n")
        elif tag in _LINES:
            self._break("\n")
        if tag == "li":
            self._pieces.append("- ")
        elif tag in ("td", "th"):
            self._pieces.append(" ")
        elif tag == "a":
            self._links.append((given.get("href") or "", len(self._pieces)))
        elif tag == "img":
            self._image(given)

    def handle_endtag(self, tag: str) -> None:
        """Take in the end of an element."""
        if tag in _SKIPPED:
            self._skipping = max(0, self._skipping - 1)
        elif tag == "pre":
            self._as_it_is = max(0, self._as_it_is - 1)
        elif tag == "a" and self._links:
            self._end_link(*self._links.pop())
        if tag in _PARAGRAPHS:
            self._break("\n\n")
        elif tag in _LINES:
            self._break("\n")

    def handle_data(self, data: str) -> None:
        """Take in text; blanks are one, as in a browser."""
        if self._skipping:
            return
        if self._as_it_is:
            self._pieces.append(data)
            return
        shown = _BLANKS.sub(" ", data)
        if shown.startswith(" ") and (not self._pieces or self._pieces[-1].endswith((" ", "\n"))):
            shown = shown[1:]
        self._pieces.append(shown)

    def _image(self, given: dict[str, str | None]) -> None:
        words = [
            word for word in (given.get("alt"), given.get("src")) if word and not word.startswith("data:")
        ]
        if words:
            self._pieces.append(f"[image: {' '.join(words)}]")

    def _end_link(self, address: str, begin: int) -> None:
        shown = "".join(self._pieces[begin:]).strip()
        bare = address.removeprefix("mailto:").removeprefix("tel:")
        if address and not address.startswith("#") and bare.rstrip("/") != shown.rstrip("/"):
            self._pieces.append(f" ({bare})" if shown else bare)

    def _break(self, ends: str) -> None:
        """Begin a new line, or a paragraph, unless there is one."""
        if not self._pieces:
            return
        tail = "".join(self._pieces[-4:])
        if tail.endswith("- ") or not ends.startswith("\n"):
            return
        there = len(tail) - len(tail.rstrip("\n"))
        self._pieces.append("\n" * max(0, len(ends) - there))
