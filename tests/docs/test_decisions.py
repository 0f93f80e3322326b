"""The records of decisions have one form, a status, and successors that know their predecessors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import prose
from tests.support.root import ROOT

FOLDER: Final = ROOT / "docs/adr"
RECORDS: Final = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
NAME: Final = re.compile(r"(\d{4})-[a-z0-9-]+\.md")
LINKS: Final = r"\[\d{4}\]\(\d{4}-[a-z0-9-]+\.md\)(?:, \[\d{4}\]\(\d{4}-[a-z0-9-]+\.md\))*"
STATUS: Final = re.compile(
    rf"Status: accepted \d{{4}}-\d{{2}}-\d{{2}}"
    rf"(?:; (?:(?P<superseded>superseded by {LINKS})|(?P<amended>amended by {LINKS})))?(?:; (?P<amends>(?:amends|supersedes) {LINKS}))?"
)
SECTIONS: Final = ["## Context", "## Decision", "## Consequences"]
WORDS_MAX: Final = 1100  # two printed pages; most are one


def status(record: Path) -> re.Match[str]:
    """The parts of a record's status, which is its third line."""
    found = STATUS.fullmatch(record.read_text().splitlines()[2])
    assert found, f"{record.name}: the third line is no status"
    return found


def linked(part: str | None) -> set[Path]:
    """The records that a part of a status links to."""
    return {FOLDER / name for name in re.findall(r"\((.*?)\)", part or "")}


def test_the_numbers_have_no_gap() -> None:
    assert all(NAME.fullmatch(path.name) for path in RECORDS)
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_title_status_context_decision_and_consequences(record: Path) -> None:
    lines = record.read_text().splitlines()
    assert re.fullmatch(rf"# {int(record.name[:4])}\. [A-Z].*[^.]", lines[0])
    assert status(record)
    assert re.findall(r"^##? .*$", prose(record), re.MULTILINE)[1:] == SECTIONS
    assert len(prose(record).split()) <= WORDS_MAX


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_change_of_a_decision_is_in_the_status_of_both_records(record: Path) -> None:
    found = status(record)
    later = linked(found["amended"]) | linked(found["superseded"])
    for successor in later:
        assert successor.name > record.name
        assert record in linked(status(successor)["amends"]), f"{successor.name} does not amend {record.name}"
    for former in linked(found["amends"]):
        parts = status(former)
        assert record in linked(parts["amended"]) | linked(parts["superseded"]), former.name


def test_the_index_has_each_title_with_its_status() -> None:
    wanted = []
    for record in RECORDS:
        title = record.read_text().splitlines()[0].partition(". ")[2]
        later = status(record)["superseded"] or status(record)["amended"]
        told = "accepted" if later is None else f"accepted; {re.sub(r'[][]|[(].*?[)]', '', later)}"
        wanted.append(f"- [{record.name[:4]}]({record.name}) {title} ({told})")
    assert re.findall(r"^- .*$", (FOLDER / "README.md").read_text(), re.MULTILINE) == wanted
