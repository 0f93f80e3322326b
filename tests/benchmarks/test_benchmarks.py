"""The benchmarks run and leave figures for everything; how large those are is nothing that a test can say."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.__main__ import BENCHMARKS
from benchmarks.filling import fill
from benchmarks.job import Call, Job, full_size
from benchmarks.load import response_of_http, response_of_nats
from benchmarks.nats_wire import messages
from benchmarks.rendering import BEGIN, END, NODES_BEGIN, newest, render
from benchmarks.report import machine

from deskwire.engine.core.secret import Secrets
from deskwire.storage.sqlite.check import check
from tests.support.root import ROOT

pytestmark = pytest.mark.long

SECTIONS = {
    "post": ["route", "post"],
    "deliver": ["maximum", "latency"],
    "read": ["read"],
    "tail": ["tail"],
    "chats": ["chats"],
    "idempotency": ["idempotency"],
    "crowded": ["crowded"],
    "growth": ["growth"],
    "start": ["start", "recovery"],
    "memory": ["memory"],
    "fan-out": ["fan-out-1", "fan-out-100", "consumer"],
    "drain": ["drain"],
    "isolation": ["isolation"],
    "backlog": ["backlog"],
    "catching-up": ["catching-up"],
    "engine": ["engine"],
    "nodes": [
        *("stores", "nodes", "alternating", "added"),
        *("spread", "hot", "endpoint"),
        *("following", "primary", "pauses"),
    ],
    "days": ["day-end", "day-costs"],
    "delivery-days": ["delivery-day-end", "delivery-day-costs"],
    "tickets": ["tickets", "bulk"],
    "search": ["search", "index"],
    "inbox": ["inbox"],
    "busy-hour": ["busy-hour"],
    "long-threads": ["long-threads"],
    "import": ["import", "import-beside"],
    "agents": ["agents", "agents-away"],
    "quiet": ["quiet"],
    "panels": ["panels", "panels-return", "customer-post"],
    "attacks": ["attacks"],
    "large": ["large", *(f"large-lists{of}" for of in ("", "-p50", "-worst")), "large-costs", "large-jobs"],
    "peers": ["peers", "peers-state", "peers-about"],
}
"""The sections of results that each benchmark writes."""

CHOSEN = list(SECTIONS) if os.environ.get("BENCHMARKS_LONG") else ["deliver", "engine"]
"""All of them take minutes; `BENCHMARKS_LONG=1` tries them all."""

EXPECTED = [section for name in CHOSEN for section in SECTIONS[name]]
ANSWER = b"HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\n{}"
PAGE = f"# Performance\n\nBefore.\n\n{BEGIN}\nold\n{END}\n\nBehind.\n"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a quick run has left its results."""
    folder = tmp_path_factory.mktemp("results")
    only = [argument for name in CHOSEN for argument in ("--only", name)]
    command = [sys.executable, "-m", "benchmarks", "--quick", *only, "--out", str(folder)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    answer = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=500
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return folder


def test_every_benchmark_is_known_here() -> None:
    assert list(BENCHMARKS) == list(SECTIONS)


def test_a_quick_run_saves_figures_for_every_benchmark_as_json(saved: Path) -> None:
    (path,) = saved.glob("*.json")
    document = json.loads(path.read_text())
    assert [section["name"] for section in document["sections"]] == EXPECTED
    assert document["failed"] == []
    for section in document["sections"]:
        for row in section["rows"]:
            assert len(row) == len(section["columns"])
            assert all(math.isfinite(cell) for cell in row if isinstance(cell, int | float)), row


def test_a_quick_run_sees_every_message_at_the_consumer_and_at_the_webhook(saved: Path) -> None:
    (path,) = saved.glob("*.json")
    sections = {section["name"]: section["rows"] for section in json.loads(path.read_text())["sections"]}
    rows = {row[0]: row[2] for row in sections["latency"]}
    label = "Deskwire, one consumer and one webhook"
    posted, at_the_consumer, at_the_webhook = (
        rows[f"its {way}; {label}"] for way in ("answer", "frame", "webhook")
    )
    assert posted == at_the_consumer == at_the_webhook > 0


def test_a_quick_run_saves_the_same_tables_for_the_documentation(saved: Path) -> None:
    (path,) = saved.glob("*.md")
    assert path.read_text().count("\n### ") == len(EXPECTED)


def test_a_saved_run_becomes_tables_and_plots_between_the_marks_of_a_page(
    saved: Path, tmp_path: Path
) -> None:
    page = tmp_path / "performance.md"
    page.write_text(PAGE)
    (tmp_path / "performance").mkdir()
    (tmp_path / "performance/gone.svg").write_text("of an older run")
    path = newest(saved)
    assert path is not None
    render(path, page)
    first = page.read_text()
    render(path, page)
    assert page.read_text() == first
    assert first.startswith("# Performance\n\nBefore.\n")
    assert first.endswith("\n\nBehind.\n")
    assert "\nold\n" not in first
    assert "| its webhook; Deskwire, one consumer and one webhook |" in first
    plots = sorted(each.name for each in (tmp_path / "performance").iterdir())
    assert plots == ["latency.svg", "maximum.svg"]
    for plot in plots:
        assert f"(performance/{plot})" in first
        text = (tmp_path / "performance" / plot).read_text()
        assert "<title" in text
        assert ElementTree.fromstring(text).get("viewBox", "").startswith("0 0 700 ")


def test_a_run_of_large_installations_becomes_plots_alone(tmp_path: Path) -> None:
    sizes = ["10,000 conversations", "1,000,000 conversations"]
    sections = [
        {"name": "large", "title": "", "columns": [], "rows": [], "note": ""},
        {
            "name": "large-lists",
            "title": "",
            "columns": ["what", *sizes],
            "rows": [["inbox: all", 9.0, 14.0]],
            "note": "",
        },
        {
            "name": "large-jobs",
            "title": "",
            "columns": ["what", *sizes],
            "rows": [["a backup", 4.0, 100.0]],
            "note": "",
        },
    ]
    (run := tmp_path / "run.json").write_text(json.dumps({"sections": sections}))
    (page := tmp_path / "performance.md").write_text(PAGE)
    (folder := tmp_path / "performance").mkdir()
    for name in ("large-gone", "post"):
        (folder / f"{name}.svg").write_text("of an older run")

    written = render(run, page)

    assert page.read_text() == PAGE
    assert sorted(written) == [folder / "large-jobs.svg", folder / "large-lists.svg"]
    assert sorted(folder.iterdir()) == [*sorted(written), folder / "post.svg"]  # of other runs
    lists, jobs = ((folder / f"{name}.svg").read_text() for name in ("large-lists", "large-jobs"))
    assert ">all</text>" in lists
    assert ">1,000,000</text>" in lists
    assert (
        "540.0 48.0" not in jobs.partition("line s0")[2].partition("/>")[0]
    )  # a quarter of it for each conversation


def test_a_run_of_several_nodes_becomes_tables_in_a_place_of_their_own(tmp_path: Path) -> None:
    sections = [
        {"name": "stores", "title": "On each store", "columns": ["store"], "rows": [["SQLite"]], "note": ""}
    ]
    document = {
        "sections": sections,
        "at": "2026-11-25T18:00:00Z",
        "machine": {**machine(), "load": "x", "load before": 0.5},
        "failed": [],
    }
    (run := tmp_path / "run.json").write_text(json.dumps(document))
    page = tmp_path / "performance.md"
    page.write_text(f"{PAGE}{NODES_BEGIN}\nold\n{END}\nEnd.\n")

    assert render(run, page) == [page]

    text = page.read_text()
    assert text.startswith(PAGE)
    assert "### On each store" in text
    assert text.endswith(f"{END}\nEnd.\n")
    assert not (tmp_path / "performance").exists()


@pytest.mark.parametrize("name", [each for only in ("days", "delivery-days") for each in SECTIONS[only]])
def test_a_run_of_days_alone_leaves_the_page_and_its_plots(tmp_path: Path, name: str) -> None:
    sections = [{"name": name, "title": "A day", "columns": ["a day is"], "rows": [["dropped"]], "note": ""}]
    document = {
        "sections": sections,
        "at": "2026-11-28T10:00:00Z",
        "machine": {**machine(), "load": "x", "load before": 0.5},
        "failed": [],
    }
    (run := tmp_path / "run.json").write_text(json.dumps(document))
    page, folder = tmp_path / "performance.md", tmp_path / "performance"
    page.write_text(PAGE)
    folder.mkdir()
    (folder / "post.svg").write_text("<svg/>")

    assert render(run, page) == []

    assert page.read_text() == PAGE
    assert [each.name for each in folder.iterdir()] == ["post.svg"]


def test_a_page_without_marks_is_left_as_it_is(saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("# Performance\n")
    path = newest(saved)
    assert path is not None
    with pytest.raises(ValueError, match="no figures to replace"):
        render(path, page)
    assert page.read_text() == "# Performance\n"


def test_there_is_no_newest_run_where_none_was_saved(tmp_path: Path) -> None:
    assert newest(tmp_path) is None


async def test_what_is_filled_in_bulk_passes_the_programs_own_check(tmp_path: Path) -> None:
    ids = await fill(tmp_path, 7, 100)
    report = check(tmp_path, Secrets.read((tmp_path / "secret").read_text()), contents=True)
    assert (len(ids), report.problems) == (7, [])
    assert 95 <= report.rows["messages"] <= 105


def test_a_job_is_the_same_behind_the_pipe() -> None:
    job = Job(8080, calls=[Call("GET", "/a"), Call("POST", "/b", "{}")], headers={"A": "b"}, rate=2.5)
    assert Job.decode(job.encode()) == job


def test_the_size_of_a_body_counts_what_its_marks_become() -> None:
    assert full_size('{"é": "@sent@ @number@"}') == len('{"é": " "}'.encode()) + 19 + 8


@pytest.mark.parametrize("size", range(len(ANSWER)))
def test_an_answer_is_none_until_its_last_byte_has_come(size: int) -> None:
    assert response_of_http(ANSWER[:size]) is None


def test_an_answer_says_whether_it_is_a_success_and_ends_the_connection() -> None:
    assert response_of_http(ANSWER) == (True, False, b"{}")
    assert response_of_http(b"HTTP/1.1 204 \r\nConnection: close\r\n\r\n") == (True, True, b"")
    refused = ANSWER.replace(b"200", b"503")
    assert response_of_http(refused) == (False, False, refused)


def test_an_acknowledgement_of_nats_is_whole_or_an_error() -> None:
    whole = b'MSG inbox.1 1 9\r\n{"seq":1}\r\n'
    assert response_of_nats(whole[:-1]) is None
    assert response_of_nats(whole) == (True, False, b'{"seq":1}')
    assert response_of_nats(b'MSG inbox.1 1 11\r\n{"error":1}\r\n') == (False, False, b'{"error":1}')
    assert response_of_nats(b"-ERR 'Permissions Violation'\r\n") == (
        False,
        True,
        b"-ERR 'Permissions Violation'\r\n",
    )


def test_messages_of_nats_are_told_apart_wherever_they_are_cut() -> None:
    data = b"MSG a 1 2\r\nhi\r\nPING\r\nMSG a 1 reply.to 5\r\nthere\r\n"
    for cut in range(len(data)):
        first, rest = messages(data[:cut])
        second, rest = messages(rest + data[cut:])
        assert (first + second, rest) == ([b"hi", b"there"], b"")
