"""The decision records have one form, a status, titles of their own, and an index that accounts for every number."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import prose
from tests.support.root import ROOT

FOLDER: Final = ROOT / "docs/adr"
INDEX: Final = (FOLDER / "README.md").read_text()
RECORDS: Final = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
NUMBERS: Final = {int(path.name[:4]): path for path in RECORDS}
NAME: Final = re.compile(r"(\d{4})-[a-z0-9-]+\.md")
DATE: Final = r"\d{4}-\d{2}-\d{2}"
LINKS: Final = r"\[\d{4}\]\(\d{4}-[a-z0-9-]+\.md\)(?:, \[\d{4}\]\(\d{4}-[a-z0-9-]+\.md\))*"
STATUS: Final = re.compile(
    rf"Status: accepted {DATE}(?:, last amended {DATE})?"
    rf"(?:; (?:(?P<superseded>superseded by {LINKS})|(?P<amended>amended by {LINKS})))?(?:; (?P<amends>(?:amends|supersedes) {LINKS}))?"
    rf"(?:; replaces (?P<replaces>\d+(?:, \d+)*))?"
)
SECTIONS: Final = ["## Context", "## Decision", "## Consequences"]
OPTIONAL: Final = ["## Not chosen", "## Sources", "## Measurements"]
VANISHED: Final = [
    (int(number), int(home))
    for number, home in re.findall(r"^\| (\d+) \| \[(\d+)\]\(.*?\) \|$", INDEX, re.MULTILINE)
]
RECORDS_MAX: Final = 45
WORDS_MAX: Final = 900  # two printed pages; most are one
LONGER: Final = {104: 1050, 105: 950}
"""Words of the records that are not shortened yet; these numbers only fall."""


def status(record: Path) -> re.Match[str]:
    """Return the parts of a record's status, which is its third line."""
    found = STATUS.fullmatch(record.read_text().splitlines()[2])
    assert found, f"{record.name}: the third line is no status"
    return found


def linked(part: str | None) -> set[int]:
    """Return the numbers of the records that a part of a status links to."""
    return {int(number) for number in re.findall(r"\[(\d{4})\]", part or "")}


def title(record: Path) -> str:
    """Return a record's title, without its number."""
    return record.read_text().splitlines()[0].partition(". ")[2]


def test_each_missing_number_is_in_the_table_of_vanished_numbers_once() -> None:
    assert all(NAME.fullmatch(path.name) for path in RECORDS)
    assert len(NUMBERS) == len(RECORDS), "two records have one number"
    missing = sorted(set(range(1, max(NUMBERS) + 1)) - NUMBERS.keys())
    assert [number for number, _ in VANISHED] == missing
    assert {home for _, home in VANISHED} <= NUMBERS.keys()


def test_a_merged_record_names_the_numbers_that_it_replaces() -> None:
    named = {
        int(number): home
        for home, record in NUMBERS.items()
        for number in (status(record)["replaces"] or "").split(", ")
        if number
    }
    assert named == dict(VANISHED)
    assert all(home < number for number, home in VANISHED), "a merged record keeps its lowest number"


def test_there_are_few_records() -> None:
    assert len(RECORDS) <= RECORDS_MAX, "merge records that belong together before a new one is added"


def test_no_two_records_have_the_same_title() -> None:
    repeated = [
        name for name, count in Counter(title(path).casefold() for path in RECORDS).items() if count > 1
    ]
    assert repeated == []
    slugs = Counter(path.stem[5:] for path in RECORDS)
    assert max(slugs.values()) == 1


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_title_status_and_sections(record: Path) -> None:
    lines = record.read_text().splitlines()
    assert re.fullmatch(rf"# {int(record.name[:4])}\. [A-Z].*[^.]", lines[0])
    assert status(record)
    headings = re.findall(r"^##? .*$", prose(record), re.MULTILINE)[1:]
    assert headings == SECTIONS + [each for each in OPTIONAL if each in headings]
    assert len(prose(record).split()) <= LONGER.get(int(record.name[:4]), WORDS_MAX)


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_change_of_a_decision_is_in_the_status_of_both_records(record: Path) -> None:
    number, found = int(record.name[:4]), status(record)
    homes = dict(VANISHED)
    for later in linked(found["amended"]) | linked(found["superseded"]):
        assert later > number
        amended = {homes.get(each, each) for each in linked(status(NUMBERS[later])["amends"])}
        assert number in amended, f"{later} does not amend {number}"
    for previous in linked(found["amends"]):
        parts = status(NUMBERS[homes.get(previous, previous)])
        assert number in linked(parts["amended"]) | linked(parts["superseded"]), previous


def test_the_index_has_each_title_once_with_its_subject() -> None:
    lines = re.findall(r"^- \[(\d{4})\]\((.*?)\) (.*)$", INDEX, re.MULTILINE)
    assert sorted(file for _, file, _ in lines) == [path.name for path in RECORDS]
    for number, file, text in lines:
        assert file.startswith(f"{number}-")
        assert re.fullmatch(rf"{re.escape(title(FOLDER / file))}: .+\.", text), file
