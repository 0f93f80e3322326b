"""Texts that people read, in the files of the repository: docstrings, comments, messages, pages, and the desk's texts.

A text keeps the line ends of its file, so that a place in it has a line; code in it is replaced by `x`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final, Literal, NamedTuple

Kind = Literal["docstring", "comment", "message", "page"]


class Text(NamedTuple):
    """A paragraph, comment or string: its kind, its first line, and its words."""

    kind: Kind
    line: int
    words: str


_CODE: Final = re.compile(r"``[^`]*``|`[^`]*`")
_FENCE: Final = re.compile(r"^( *)(```+|~~~+).*?^\1\2[ ]*$", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"\]\([^)\s]*\)|<https?://[^>]*>|^\[[^\]]+\]: .*$", re.MULTILINE)
_HTML_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_ITEM: Final = re.compile(r"\s*(?:[-*+] |\d+[.)] |#+ |\||>)")
_TABLE_RULE: Final = re.compile(r"\s*\|[\s:|-]+\|\s*")

_PYTHON: Final = re.compile(
    r"#[^\n]*"
    r"|'''(?:[^\\']|\\.|'(?!''))*'''|\"\"\"(?:[^\\\"]|\\.|\"(?!\"\"))*\"\"\""
    r"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"",
    re.DOTALL,
)
"""The comments and strings of Python up to 3.11. `ast` and `tokenize` need ten times as long for the whole repository;
a test compares their results."""

_OPENED: Final = "([{"
_CLOSED: Final = ")]}"
_PREFIXES: Final = frozenset({"", "r", "b", "f", "u", "rb", "br", "fr", "rf"})

_SCRIPT: Final = re.compile(
    r"//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/"
    r"|(?<=[(,=:\[!&|?{};\n])\s*/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/"
    r"|`(?P<template>(?:\\.|\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}|[^`\\])*)`"
    r"|'(?P<a>(?:[^'\\\n]|\\.)*)'|\"(?P<b>(?:[^\"\\\n]|\\.)*)\"",
    re.DOTALL,
)
"""The comments, regular expressions (to pass them over), templates and strings of JavaScript."""

_TYPE: Final = re.compile(r"@\w+(?: \{[^\n]*?\}(?: \[?\w+\]?)?(?=\s|$))?|\{[^\n{}]*\}")
_TAG: Final = re.compile(r"</?[a-zA-Z$][^<>]*>")
_PLACEHOLDER: Final = re.compile(r"\$?\{[^{}]*\}")


def texts(name: str, source: str) -> Iterator[Text]:
    """Yield the texts of a file, which its name says how to read; no text for a file of another kind."""
    match PurePosixPath(name).suffix:
        case ".py":
            yield from python_texts(source)
        case ".md":
            yield from page_texts(source)
        case ".js":
            yield from script_texts(source)


def python_texts(source: str) -> Iterator[Text]:
    """Yield the docstrings and comments of Python code, and its other strings of three words and more as messages.

    A string that is a statement is a docstring, also after an assignment.
    """
    comments: list[tuple[int, str]] = []
    for kind, line, words in python_parts(source):
        if kind == "comment":
            comments.append((line, words))
        elif kind == "docstring" or len(words.split(None, 3)) > 2:
            yield from _paragraphs(kind, line, words)
    for line, words in _joined(comments):
        yield from _paragraphs("comment", line, words)


def python_parts(source: str) -> Iterator[Text]:
    """Yield each line of comment, with a negative number after code, and each string with those that it is joined to."""
    end, line, depth = 0, 1, 0
    held: Text | None = None
    for found in _PYTHON.finditer(source):
        start = found.start()
        gap = source[end:start]
        end = found.end()
        code = gap.strip()
        depth += sum(map(code.count, _OPENED)) - sum(map(code.count, _CLOSED)) if code else 0
        line += gap.count("\n")
        words = found.group()
        if words[0] == "#":
            alone = not source[source.rfind("\n", 0, start) + 1 : start].strip()
            yield Text("comment", line if alone else -line, words.lstrip("#!: "))
            continue
        words = words[3:-3] if words[:3] in ('"""', "'''") else words[1:-1]
        if "f" in code[-2:].lower():
            words = _PLACEHOLDER.sub(_crossed, words)
        joined = depth or "\n" not in gap or _continues(source, start)
        if held and joined and code.lower() in _PREFIXES:
            gone = line - held.line - held.words.count("\n")
            held = held._replace(words=held.words + "\n" * gone + words)
        else:
            if held:
                yield held
            before = source[source.rfind("\n", 0, start) + 1 : start].strip()
            statement = not depth and before.lower() in _PREFIXES and not _continues(source, start)
            held = Text("docstring" if statement else "message", line, words)
        line += found.group().count("\n")
    if held:
        yield held


def _continues(source: str, place: int) -> bool:
    """Return whether the line before this place's line ends with a backslash."""
    return source[: source.rfind("\n", 0, place) + 1].endswith("\\\n")


def page_texts(source: str) -> Iterator[Text]:
    """Yield the paragraphs and cells of a Markdown page, without code, addresses and the heads of tables."""
    for pattern in (_FENCE, _HTML_COMMENT):
        source = pattern.sub(_spaced, source)
    source = _LINK.sub(_spaced, _CODE.sub(_crossed, source))
    heads = {number for number, each in enumerate(source.split("\n")) if _TABLE_RULE.fullmatch(each)}
    for text in _paragraphs("page", 1, source):
        row = text.words.lstrip().startswith("|")
        if not row:
            yield text
        elif text.line not in heads:
            yield from (Text("page", text.line, cell) for cell in text.words.split("|"))


def script_texts(source: str) -> Iterator[Text]:
    """Yield the comments of JavaScript, and its strings and templates of three words and more as messages."""
    comments: list[tuple[int, str]] = []
    for found in _SCRIPT.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        part = found.lastgroup
        words = found.group(part) if part else ""
        if part in ("line", "block"):
            alone = not source[source.rfind("\n", 0, found.start()) + 1 : found.start()].strip()
            comments.append((line if alone else -line, _TYPE.sub(_spaced, words).replace("*", " ")))
        elif len(words.split(None, 3)) > 2:
            yield from _paragraphs("message", line, _TAG.sub(_spaced, _PLACEHOLDER.sub(_crossed, words)))
    for line, words in _joined(comments):
        yield from _paragraphs("comment", line, words)


def _joined(comments: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Join comments on lines that follow each other; a negative line is that of a comment after code."""
    held: list[str] = []
    first = after = 0
    for line, words in comments:
        if held and line != after:
            yield first, "\n".join(held)
            held = []
        first = first if held else abs(line)
        held.append(words)
        after = line + words.count("\n") + 1 if line > 0 else 0
    if held:
        yield first, "\n".join(held)


def _paragraphs(kind: Kind, line: int, words: str) -> Iterator[Text]:
    """Split a text at empty lines, list items, headings and rows; cross out what is code in it."""
    held: list[str] = []
    first = line
    for number, each in enumerate(_CODE.sub(_crossed, words).split("\n"), line):
        if held and (not each.strip() or _ITEM.match(each)):
            yield Text(kind, first, "\n".join(held))
            held = []
        if each.strip():
            first = first if held else number
            held.append(each)
    if held:
        yield Text(kind, first, "\n".join(held))


def _crossed(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "x", found.group())


def _spaced(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found.group())
