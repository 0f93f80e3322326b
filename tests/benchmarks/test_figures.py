"""The figures that docs/performance.md repeats are those of the run in benchmarks/figures.md."""

from __future__ import annotations

import re
from typing import Final

import pytest
from benchmarks.rendering import BEGIN, END, NODES_BEGIN, PICTURES

from tests.support.root import ROOT

PAGE: Final = (ROOT / "docs/performance.md").read_text()
FIGURES: Final = (ROOT / "benchmarks/figures.md").read_text()
FIGURE: Final = re.compile(r"\d[\d,.]*\d|\d")

REPEATED: Final = {
    "POST a message",
    "POST at full load, 64 connections",
    "From POST to",
    "Memory",
    "Engine on each store, without HTTP",
    "Pause",
}
"""The heads of the tables that repeat rows of the run."""


def tables() -> dict[str, list[str]]:
    """Return the rows of each table of the page by its first head."""
    found = re.findall(r"^\| ([^|]+) \|[^\n]*\n\| ---[^\n]*\n((?:\|[^\n]*\n)+)", PAGE, re.MULTILINE)
    return {head: rows.splitlines() for head, rows in found}


def figures(row: str) -> list[str]:
    """Return the figures of a row's cells, its first cell apart."""
    return [each for cell in row.strip("|").split("|")[1:] if FIGURE.fullmatch(each := cell.strip())]


@pytest.mark.parametrize("head", sorted(REPEATED))
def test_each_row_repeats_figures_of_one_row_of_the_run(head: str) -> None:
    measured = [set(map(str.strip, row.split("|"))) for row in FIGURES.splitlines() if row.startswith("|")]
    rows = [wanted for row in tables()[head] if (wanted := figures(row))]
    assert len(rows) > 2
    assert [wanted for wanted in rows if not any(set(wanted) <= cells for cells in measured)] == []


def test_the_page_of_figures_has_its_marks_and_each_plot_exists() -> None:
    assert FIGURES.count(BEGIN) == FIGURES.count(NODES_BEGIN) == 1
    assert FIGURES.count(END) == 2
    for page, folder in ((FIGURES, ROOT / "benchmarks"), (PAGE, ROOT / "docs")):
        plots = re.findall(r"\]\(([^)]*\.svg)\)", page)
        assert plots
        assert [plot for plot in plots if not (folder / plot).is_file() or PICTURES not in plot] == []


def test_the_links_of_the_pages_in_this_folder_lead_somewhere() -> None:
    for page in (ROOT / "benchmarks").glob("*.md"):
        links = re.findall(r"\]\(([^)#\s]+)", page.read_text())
        assert [link for link in links if not (page.parent / link).exists()] == [], page.name
