"""A tokenizer for HTML in linear time, for any input.

The scanner never goes back: each search starts where the previous one ended, and the first construct that never ends turns
the remaining markup into text. The standard library's parser is quadratic, because it searches again from each `<` of an
unterminated tag or comment. Source: WHATWG HTML 13.2.5 (tokenization), without its error reports.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple

_NAME: Final = re.compile(r"[a-zA-Z][^ \t\n\r\f/>]*+")
_GAP: Final = re.compile(r"[ \t\n\r\f/]*+")
_ATTRIBUTE: Final = re.compile(r"=?[^ \t\n\r\f/>=]*+")
_EQUALS: Final = re.compile(r"[ \t\n\r\f]*+=[ \t\n\r\f]*+")
_UNQUOTED: Final = re.compile(r"[^ \t\n\r\f>]*+")
_RAW: Final = {name: re.compile(rf"</{name}(?=[ \t\n\r\f/>])", re.IGNORECASE) for name in ("script", "style")}
"""Elements whose content is not markup, with their end tags."""

# `html.unescape` converts all digits to a number, which Python refuses beyond 4,300 digits.
_LONG_REFERENCE: Final = re.compile(r"&#(?:0*+[0-9]{8,}+|[xX]0*+[0-9a-fA-F]{7,}+);?")
_ZEROS: Final = re.compile(r"(?<=&#)0++(?=[0-9])|(?<=&#[xX])0++(?=[0-9a-fA-F])")


class MarkupKind(Enum):
    """A kind of token."""

    text = "text"
    start = "start tag"
    end = "end tag"
    hidden = "comment, declaration, script or style"


class Token(NamedTuple):
    """A token: `markup[start:end]`.

    Args:
        value: the decoded text, or an element's name in lower case.
        attributes: of a start tag; the first of several with the same name counts.
    """

    kind: MarkupKind
    start: int
    end: int
    value: str = ""
    attributes: Mapping[str, str] = {}


def tokens(markup: str) -> Iterator[Token]:
    """Yield the tokens of a fragment, which cover all of it."""
    at = 0
    while at < len(markup):
        begin = markup.find("<", at)
        if begin != at:
            end = len(markup) if begin < 0 else begin
            yield Token(MarkupKind.text, at, end, decoded(markup[at:end]))
            at = end
            continue
        token = _after_bracket(markup, at)
        if token is None:
            yield Token(MarkupKind.text, at, len(markup), decoded(markup[at:]))
            return
        yield token
        at = token.end
        if token.kind is MarkupKind.start and token.value in _RAW:
            raw = _RAW[token.value].search(markup, at)
            end = len(markup) if raw is None else raw.start()
            yield Token(MarkupKind.hidden, at, end)
            at = end


def _after_bracket(markup: str, at: int) -> Token | None:
    """Return the token that starts with the `<` at this index; None if it never ends."""
    following = markup[at + 1 : at + 2]
    if following.isascii() and following.isalpha():
        return _tag(markup, at, at + 1, MarkupKind.start)
    if following == "/":
        third = markup[at + 2 : at + 3]
        if third.isascii() and third.isalpha():
            return _tag(markup, at, at + 2, MarkupKind.end)
    if following not in ("!", "?", "/"):
        return Token(MarkupKind.text, at, at + 1, "<")
    if markup.startswith("<!--", at):
        closing, length = markup.find("-->", at + 2), 3
    else:
        closing, length = markup.find(">", at + 1), 1
    return None if closing < 0 else Token(MarkupKind.hidden, at, closing + length)


def _tag(markup: str, start: int, at: int, kind: MarkupKind) -> Token | None:
    named = _NAME.match(markup, at)
    assert named is not None, "a letter stands here"
    attributes: dict[str, str] = {}
    at = named.end()
    while True:
        at = _end_of(_GAP, markup, at)
        if at == len(markup):
            return None
        if markup[at] == ">":
            return Token(kind, start, at + 1, named[0].lower(), attributes)
        begin, at = at, _end_of(_ATTRIBUTE, markup, at)
        name, value = markup[begin:at].lower(), ""
        if (equals := _EQUALS.match(markup, at)) is not None:
            begin = at = equals.end()
            if (quote := markup[at : at + 1]) in ('"', "'"):
                at = markup.find(quote, at + 1)
                if at < 0:
                    return None
                value, at = markup[begin + 1 : at], at + 1
            else:
                at = _end_of(_UNQUOTED, markup, at)
                value = markup[begin:at]
        attributes.setdefault(name, decoded(value))


def _end_of(pattern: re.Pattern[str], markup: str, at: int) -> int:
    """Return the end of the match of a pattern that also matches the empty text."""
    found = pattern.match(markup, at)
    assert found is not None, "the pattern matches the empty text"
    return found.end()


def decoded(text: str) -> str:
    """Return a text with its character references decoded; numbers beyond Unicode become U+FFFD."""
    if "&" not in text:
        return text
    if "&#" in text:
        text = _LONG_REFERENCE.sub("\ufffd", _ZEROS.sub("", text))
    return html.unescape(text)
