"""Converts texts of exports to plain text without markup and invalid characters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from deskwire.commands.convert.markup import MarkupKind, tokens

_SKIPPED: Final = frozenset({"head", "title", "template"})
"""Elements with invisible text; the tokenizer skips scripts and styles."""
_PARAGRAPHS: Final = frozenset(
    {"p", "blockquote", "ul", "ol", "table", "pre", "h1", "h2", "h3", "h4", "h5", "h6"}
)
_LINES: Final = frozenset({"div", "li", "tr", "hr", "section", "article", "header", "footer", "dt", "dd"})
_VERBATIM: Final = frozenset({"pre", "textarea", "listing", "xmp"})
_VOID: Final = frozenset(
    {"br", "hr", "img", "input", "meta", "link", "wbr", "source", "embed", "area", "col"}
)
_MEDIA: Final = {
    "img": "image",
    "video": "video",
    "audio": "audio",
    "source": "file",
    "iframe": "page",
    "embed": "file",
}
_KEPT_WHITE_SPACE: Final = re.compile(r"white-space\s*:\s*(?:pre|break-spaces)", re.IGNORECASE)
_BLANKS: Final = re.compile(r"[ \t\r\n\f]+")
_NO_ADDRESS: Final = ("#", "javascript:", "data:")
_LINE_END: Final = "\0"
"""Marks the end of a preformatted line until blank lines of other text are joined: no text has U+0000."""
_NO_BREAK: Final = "\xa0"


def clean(text: str) -> str:
    """Return a text without U+0000 and lone surrogates, which no text may have."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def trimmed(text: str) -> str:
    """Return a text without trailing blanks and leading blank lines; the first line keeps its indentation."""
    shown = text.lstrip()
    indentation = text[: len(text) - len(shown)]
    return (indentation[indentation.rfind("\n") + 1 :] + shown).rstrip() if shown else ""


def plain(markup: str) -> str:
    """Return the text of an HTML fragment: paragraphs and lines, list items with a dash, links with their address.

    The time is linear in the fragment's length. A tag or comment that never ends becomes text.
    """
    reader = _Reader()
    for token in tokens(markup.replace("\0", "")):
        match token.kind:
            case MarkupKind.text:
                reader.add_text(token.value)
            case MarkupKind.start:
                reader.start(token.value, token.attributes)
            case MarkupKind.end:
                reader.end(token.value)
            case MarkupKind.hidden:
                pass
    return clean(reader.text())


class _Reader:
    """Collects the text of a fragment, in constant time per token."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._line_ends = 2
        """Line ends at the end of the text so far; initially as many as after a paragraph."""
        self._after_blank = False
        self._after_bullet = False
        self._skipping: dict[str, int] = {}
        self._verbatim: list[tuple[str, int]] = []
        """Enclosing elements with significant white space, and how many nested ones have the same name."""
        self._after_pre = False
        self._link: tuple[str, int] | None = None

    def text(self) -> str:
        """Return the text, with at most one consecutive blank line outside of preformatted text."""
        self._end_link()
        lines, blank = [], 0
        for line in "".join(self._pieces).replace(_NO_BREAK, " ").split("\n"):
            shown = "\n".join(part.rstrip(" ") for part in line.split(_LINE_END))
            blank = 0 if _LINE_END in line or shown else blank + 1
            if blank < 2:
                lines.append(shown)
        return trimmed("\n".join(lines))

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Process a start tag."""
        if tag in _SKIPPED:
            self._skipping[tag] = self._skipping.get(tag, 0) + 1
        elif tag == "body":
            self._skipping.pop("head", None)
        self._open(tag)
        if tag not in _VOID:
            self._enter(tag, attributes)
        if tag == "br":
            self._line_break()
        elif tag == "li":
            self._add("- ")
            self._after_bullet = self._after_blank = True
        elif tag in ("td", "th"):
            self.add_text(" ")
        elif tag == "a":
            self._end_link()  # a nested link ends the outer one
            self._link = (attributes.get("href") or "", len(self._pieces))
        elif tag in _MEDIA:
            self._show(_MEDIA[tag], attributes)

    def end(self, tag: str) -> None:
        """Process an end tag."""
        if self._skipping.get(tag):
            self._skipping[tag] -= 1
        if tag == "a":
            self._end_link()
        if self._verbatim and self._verbatim[-1][0] == tag:
            _, within = self._verbatim.pop()
            if within:
                self._verbatim.append((tag, within - 1))
        self._open(tag)

    def add_text(self, data: str) -> None:
        """Add text; outside of preformatted text, white space collapses as in a browser."""
        if any(self._skipping.values()):
            return
        if self._verbatim:
            data = data.replace("\r\n", "\n").replace("\r", "\n")
            if self._after_pre and data.startswith("\n"):
                data = data[1:]
            self._add(data.replace("\n", _LINE_END))
            return
        shown = _BLANKS.sub(" ", data)
        if shown.startswith(" ") and (self._after_blank or self._line_ends):
            shown = shown[1:]
        self._add(shown)

    def _enter(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in _VERBATIM or _KEPT_WHITE_SPACE.search(attributes.get("style", "")[:1000]):
            self._verbatim.append((tag, 0))
            self._after_pre = tag in _VERBATIM
        elif self._verbatim and self._verbatim[-1][0] == tag:
            _, within = self._verbatim.pop()
            self._verbatim.append((tag, within + 1))

    def _add(self, piece: str) -> None:
        if not piece:
            return
        self._pieces.append(piece)
        self._line_ends = 1 if piece.endswith(_LINE_END) else 0
        self._after_blank = piece.endswith(" ")
        self._after_bullet = self._after_pre = False

    def _open(self, tag: str) -> None:
        """Start a new line or paragraph, unless one has just started."""
        wanted = 2 if tag in _PARAGRAPHS else 1 if tag in _LINES else 0
        if wanted > self._line_ends and not self._after_bullet:
            self._pieces.append("\n" * (wanted - self._line_ends))
            self._line_ends, self._after_blank = wanted, False

    def _line_break(self) -> None:
        if any(self._skipping.values()):
            return
        ends = self._line_ends
        self._add(_LINE_END if self._verbatim else "\n")
        self._line_ends = ends + 1

    def _show(self, kind: str, attributes: Mapping[str, str]) -> None:
        address = attributes.get("src") or ""
        words = [attributes.get("alt") or "", "" if address.startswith("data:") else address]
        if any(words) and not any(self._skipping.values()):
            self._add(f"[{kind}: {' '.join(filter(None, words))}]")

    def _end_link(self) -> None:
        if self._link is None:
            return
        (address, begin), self._link = self._link, None
        shown = "".join(self._pieces[begin:]).strip()
        bare = address.strip().removeprefix("mailto:").removeprefix("tel:")
        if bare and not bare.startswith(_NO_ADDRESS) and bare.rstrip("/") != shown.rstrip("/"):
            self._add(f" ({bare})" if shown else bare)
