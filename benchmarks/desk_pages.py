"""The time that the desk's pages take with much stored data: until the heading appears, and until the first data does.

`python -m benchmarks.desk_pages [DELIVERIES [RESPONSES [FOLDER]]]` fills a data directory by SQL, by default with a million deliveries and 100,000 responses,
and prints medians in a real Chromium. With FOLDER the data is kept and used again by the next run. Requires the same programs as `make web`.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright
from tests.api.description.browser import CHROMIUM
from tests.web.harness.desk import opened
from tests.web.harness.insights import survey
from tests.web.harness.stage import Stage, staged

ROUNDS: Final = 5
DAYS: Final = 6
"""The period over which deliveries are spread; those of 7 days are kept."""
_DAY_MS: Final = 86_400_000

_DELIVERIES: Final = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count),
     one AS (SELECT * FROM deliveries WHERE status = 'delivered' ORDER BY position LIMIT 1)
INSERT INTO deliveries (position, id, endpoint, event, lane, previous, status, attempts, due_at, created_at, ended_at, reason, event_id, type, sequence)
SELECT :first + i, printf('dlv_%026d', i), endpoint, event, NULL, NULL, iif(i % 50 = 0, 'dropped', 'delivered'), 1, :begin + i * :step, :begin + i * :step,
       :begin + i * :step + 30, iif(i % 50 = 0, 'receiver_failed', NULL), event_id, type, NULL
FROM n, one
"""
_ATTEMPTS: Final = """
INSERT INTO attempts (delivery, number, at, latency_ms, status, error, answer)
SELECT position, 1, created_at, 20 + position % 40, iif(status = 'dropped', 400, 204), iif(status = 'dropped', 'answered 400', NULL), x''
FROM deliveries WHERE position > :first
"""
_RESPONSES: Final = f"""
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count),
     one AS (SELECT * FROM survey_responses ORDER BY rowid LIMIT 1)
INSERT INTO survey_responses (id, survey, version, contact, language, answers, created_at)
SELECT printf('rsp_%026d', i), survey, version, NULL, language, replace(answers, '9', i % 11), :now - {60 * _DAY_MS} + i * ({60 * _DAY_MS} / :count)
FROM n, one
"""


def fill(folder: Path, deliveries: int, responses: int) -> None:
    """Store one of each through the API, and the others as copies of it."""
    with staged(folder) as stage:
        stage.endpoint("crm")
        stage.converse("first", "Hello!", name="Ada Lovelace")
        survey(stage, "After the chat", {"score": 9, "why": "Quick", "plan": "pro"})
        path = "/webhooks"
        (endpoint,) = stage.owner.get(path).raise_for_status().json()["items"]
        listed = f"{path}/{endpoint['id']}/deliveries"
        while {each["status"] for each in stage.owner.get(listed).json()["items"]} != {"delivered"}:
            pass
    with closing(sqlite3.connect(folder / "data" / "deskwire.sqlite3")) as store, store:
        (first,) = store.execute("SELECT max(position) FROM deliveries").fetchone()
        (now,) = store.execute("SELECT max(created_at) FROM deliveries").fetchone()
        begin = now - DAYS * _DAY_MS
        store.execute(
            _DELIVERIES,
            {"count": deliveries, "first": first, "begin": begin, "step": DAYS * _DAY_MS // deliveries},
        )
        store.execute(_ATTEMPTS, {"first": first})
        store.execute(_RESPONSES, {"count": responses - 1, "now": now})
        store.execute("UPDATE surveys SET responses = ?", (responses,))


_SEEN: Final = """([selector, text]) => new Promise(done => {
  const there = () => [...document.querySelectorAll(selector)].some(each => each.textContent.includes(text));
  const look = () => (there() ? done(performance.now()) : requestAnimationFrame(look));
  look();
})"""
"""Returns the ms from the start of the navigation until an element with this text exists, checked in each frame."""
_ROW: Final = ".page tbody tr"
_CHART: Final = ".page .plot .drawing"


def pages(stage: Stage) -> Sequence[tuple[str, str, str, tuple[str, str]]]:
    """Return each page with its path, its heading, and its first data."""
    (endpoint,) = stage.owner.get("/webhooks").raise_for_status().json()["items"]
    (one,) = stage.owner.get("/engagement/surveys").raise_for_status().json()["items"]
    return (
        ("webhooks", "webhooks", "Webhooks", (_ROW, "crm")),
        ("delivery log", f"webhooks/{endpoint['id']}", "crm", (_ROW, "delivered")),
        ("its chart, 24 hours", f"webhooks/{endpoint['id']}", "crm", (_CHART, "")),
        ("its chart, 7 days", f"webhooks/{endpoint['id']}?days=7", "crm", (_CHART, "")),
        ("surveys", "surveys", "Surveys", (_ROW, "After the chat")),
        ("one survey", f"surveys/{one['id']}", "After the chat", (_CHART, "")),
        ("its responses", f"surveys/{one['id']}?part=responses", "After the chat", (_ROW, "Quick")),
        ("reports", "reports", "First response", (_CHART, "")),
    )


def taken(page: Page, address: str, heading: str, data: tuple[str, str]) -> tuple[float, float]:
    """Open a page by its address, with a valid session; return the ms to its heading and to its first data."""
    page.goto("about:blank")
    page.goto(address, wait_until="commit")
    to_heading: float = page.evaluate(_SEEN, [".page-head h1", heading])
    to_data: float = page.evaluate(_SEEN, list(data))
    return to_heading, to_data


def measure(browser: Browser, folder: Path) -> None:
    """Print the medians of each page, opened by its address and with cached files."""
    with staged(folder) as stage, opened(browser, stage) as desk:
        desk.sign_in()
        print(f"{'page':20}{'heading ms':>12}{'first data ms':>15}{'slowest':>9}")
        for name, place, heading, data in pages(stage):
            address = f"{stage.url}/desk/{place}"
            rounds = [taken(desk.page, address, heading, data) for _ in range(ROUNDS + 1)][1:]
            headings, firsts = zip(*rounds, strict=True)
            print(
                f"{name:20}{statistics.median(headings):12.0f}{statistics.median(firsts):15.0f}{max(firsts):9.0f}"
            )
        desk.complaints.clear()


def main(deliveries: str = "1000000", responses: str = "100000", where: str | None = None) -> None:
    """Fill the data directory if necessary, and measure."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(where or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "data").exists():
            fill(folder, int(deliveries), int(responses))
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            measure(browser, folder)
            browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:4])
