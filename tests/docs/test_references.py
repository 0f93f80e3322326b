"""References in code, tests and documents lead to a clause, a decision record or a file that exists.

Their forms: `contract 6.4`, `decisions 5.4`, `Pusher protocol, messages`, `ADR 41`, and paths that begin with `docs/`.
"""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import documents, name, named_anchors, promises
from tests.support.root import ROOT

FOLDERS: Final = ("engine", "http", "storage", "tests", "benchmarks", "docs", "binary")
TEXTS: Final = {".py", ".md", ".mjs", ".toml", ".yml", ".conf", ".env", ".service", ".socket"}
SERVED: Final = {"docs/asset"}
"""Paths of the service's own explorer, which look like files of ours."""

ANCHORS: Final = tuple(chain.from_iterable(map(named_anchors, promises())))
RECORDS: Final = {int(path.name[:4]) for path in (ROOT / "docs/adr").glob("0*.md")}
TOPICS: Final = [
    anchor.removeprefix("pusher-").replace("-", " ") for anchor in ANCHORS if anchor.startswith("pusher-")
]

_NUMBER: Final = r"\d+(?:\.\d+)*"
_NUMBERS: Final = rf"({_NUMBER}(?:(?:,| and|, and| to) {_NUMBER})*)"
CLAUSE: Final = re.compile(rf"\b(contract|decisions) {_NUMBERS}", re.IGNORECASE)
RECORD: Final = re.compile(rf"\bADRs? {_NUMBERS}|\bdocs/adr/(\d{{4}})")
PUSHER: Final = re.compile(rf"(?<!the )\bPusher protocol(?!, (?:{'|'.join(TOPICS)})\b)[^\n]{{0,20}}")
FILE: Final = re.compile(r"(?<![\w/.-])docs/[\w./-]*\w")
STRAY: Final = re.compile(r"\b(?:spec|decision|records?) \d+", re.IGNORECASE)
"""Forms from which a reader cannot identify a page."""

RECORD_LINK: Final = re.compile(r"\[(?:ADR )?(\d{1,4})\]\((?:[\w./]*/)?(\d{4})-[\w-]+\.md")


def dangling(text: str) -> Iterator[str]:
    """Yield each reference in a text that leads nowhere."""
    for page, numbers in CLAUSE.findall(text):
        for number in re.findall(_NUMBER, numbers):
            if f"{page.lower()}-{number}" not in ANCHORS:
                yield f"{page} {number}"
    for numbers, file in RECORD.findall(text):
        for number in re.findall(r"\d+", numbers or file):
            if int(number) not in RECORDS:
                yield f"ADR {number}"
    for path in FILE.findall(text):
        if path not in SERVED and not re.fullmatch(r"docs/adr/\d{4}", path) and not (ROOT / path).exists():
            yield path
    yield from PUSHER.findall(text)
    yield from STRAY.findall(text)


@cache
def prose_of(path: Path) -> str:
    """Return the human-readable texts of a file, each comment, string or paragraph in one line."""
    if path.suffix != ".py":
        paragraphs = re.split(r"\n\s*\n", path.read_text())
        return "\n".join(re.sub(r"\s*\n[\s#]*", " ", paragraph) for paragraph in paragraphs)
    return "\n".join(re.sub(r"\s+", " ", text) for text in _spoken(path))


def _spoken(path: Path) -> Iterator[str]:
    """Yield the strings and comments of a module; a comment on its own line is joined with the line above."""
    comments: list[str] = []
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.COMMENT:
                alone = token.line.lstrip().startswith("#")
                if not alone:
                    comments.append("\n")
                comments.append(token.string.lstrip("#:"))
            elif token.type == tokenize.STRING:
                yield token.string
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                yield "".join(comments)
                comments.clear()


def sources() -> list[Path]:
    """Return every file of the project that may refer to something."""
    found = [ROOT / "Makefile", ROOT / "pyproject.toml", *ROOT.glob("*.md")]
    for folder in FOLDERS:
        found += [
            path
            for path in (ROOT / folder).rglob("*")
            if path.suffix in TEXTS and "node_modules" not in path.parts
        ]
    return sorted(path for path in found if path != Path(__file__))


def test_every_reference_leads_somewhere() -> None:
    lost = {name(path): broken for path in sources() if (broken := list(dangling(prose_of(path))))}
    assert lost == {}


def test_references_are_found_at_all() -> None:
    text = "\n".join(prose_of(path) for path in sources())
    assert len(CLAUSE.findall(text)) > 250
    assert len(RECORD.findall(text)) > 150
    assert text.count("Pusher protocol, ") > 20


@pytest.mark.parametrize(
    "text",
    [
        "contract 6.9",
        "Contract 6.4, 6.9",
        "contract 6.2 to 6.9",
        "decisions 4 and 9",
        "decisions 5.40",
        "Pusher protocol, colours",
        "Pusher protocol: messages",
        "ADR 999",
        "ADR 17, 999",
        "docs/adr/0999",
        "docs/guide/nothing.md",
        "spec 6.4",
        "decision 34",
    ],
)
def test_a_reference_that_leads_nowhere_is_found(text: str) -> None:
    assert len(list(dangling(f"As said ({text}; RFC 9110, section 8)."))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Contract 6.4.1.",
        "contract 2.1, 4.1; decisions 7",
        "decisions 5.4, ADR 8",
        "Pusher protocol, close codes 4000 to 4099",
        "It speaks the Pusher protocol, too",
        "docs/adr/0041",
        "/docs/explorer.js",
    ],
)
def test_a_reference_that_leads_somewhere_is_left_alone(text: str) -> None:
    assert list(dangling(text)) == []


def test_a_reference_across_lines_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""Text (contract\n6.9)."""\nX = 1  # as in contract\n# a line (decisions\n# 9).\n20\n'
    )
    assert list(dangling(prose_of(module))) == ["contract 6.9", "decisions 9"]
    page = tmp_path / "page.md"
    page.write_text("Text (contract\n6.9).\n")
    assert list(dangling(prose_of(page))) == ["contract 6.9"]


def test_no_clause_has_the_number_of_another() -> None:
    assert len(set(ANCHORS)) == len(ANCHORS)


@pytest.mark.parametrize("page", documents(), ids=name)
def test_a_link_to_a_decision_record_has_its_number(page: Path) -> None:
    assert all(int(said) == int(file) for said, file in RECORD_LINK.findall(page.read_text()))
