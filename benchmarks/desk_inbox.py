"""The desk's inbox with many conversations: its first list, keys, threads and scrolling, in a real Chromium.

`python -m benchmarks.desk_inbox [CONVERSATIONS [FOLDER]]` fills a data directory as `--only inbox` does, by default with 100,000 conversations, and
prints times and the budget of each. With FOLDER the data is kept and used again by the next run. Requires the same programs as `make web`. Times end
with the frame after which the change is in the document.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.api.description.browser import CHROMIUM
from tests.web.harness.desk import Desk, opened
from tests.web.harness.stage import Stage, staged

from benchmarks import processes
from benchmarks.report import median, percentile

_OPENINGS: Final = 9
_STEPS: Final = 200
_THREADS: Final = 60
_FRAMES: Final = 600
_SLOW_FRAME_MS: Final = 34

_LISTED: Final = """() => new Promise(done => {
  const look = () => document.querySelector('.rows .row:not(.grey)') ? done(performance.now()) : requestAnimationFrame(look);
  look();
})"""
"""Returns the ms from the start of the navigation until a conversation is listed, checked in each frame."""
_PRESSED: Final = """([key, selector]) => new Promise(done => {
  const id = () => document.querySelector(selector)?.id;
  const before = id(), began = performance.now();
  document.querySelector('.rows').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  const look = () => { const now = id(); now && now !== before ? done(performance.now() - began) : requestAnimationFrame(look); };
  requestAnimationFrame(look);
})"""
"""Returns the ms from a key until another element is the first with this selector."""
_SCROLLED: Final = """count => new Promise(done => {
  const rows = document.querySelector('.rows'), times = [];
  let last = 0;
  const step = now => {
    if (last) times.push(now - last);
    last = now;
    rows.scrollTop += times.length % 200 < 150 ? 120 : -120;
    if (times.length < count) requestAnimationFrame(step); else done(times);
  };
  requestAnimationFrame(step);
})"""
"""Scrolls the list in each frame, and returns the ms between frames."""
_MESSAGE: Final = ".log .message"
_ACTIVE: Final = ".rows .row.active"


def _wait_for_index(stage: Stage) -> None:
    """Wait until the search index is complete, because its making would take the first lists' time."""
    while stage.owner.get("/search", params={"q": "x"}).raise_for_status().json()["behind"] is not None:
        time.sleep(0.5)


def first_lists(browser: Browser, stage: Stage) -> tuple[list[float], list[float], float]:
    """Return the ms to the first list without and with cached files, and the KB that the first opening received."""
    cold, warm, received = list[float](), list[float](), list[float]()
    for _ in range(_OPENINGS):
        with opened(browser, stage) as desk:
            desk.start_session()
            protocol = desk.context.new_cdp_session(desk.page)
            protocol.send("Network.enable")
            sizes = list[float]()
            protocol.on(
                "Network.loadingFinished", lambda event, found=sizes: found.append(event["encodedDataLength"])
            )
            cold.append(_opened(desk))
            received.append(sum(sizes) / 1000)
            warm.append(_opened(desk))
    return cold, warm, median(received)


def _opened(desk: Desk) -> float:
    desk.page.goto("about:blank")
    desk.page.goto(f"{desk.stage.url}/desk/inbox/all", wait_until="commit")
    found: float = desk.page.evaluate(_LISTED)
    return found


def steps(page: Page) -> list[float]:
    """Return the ms of each `j`."""
    return [page.evaluate(_PRESSED, ["j", _ACTIVE]) for _ in range(_STEPS)]


def threads(page: Page) -> list[float]:
    """Return the ms from each `Enter` until the first message of the next conversation is shown."""
    found = list[float]()
    for _ in range(_THREADS):
        page.evaluate(_PRESSED, ["j", _ACTIVE])
        found.append(page.evaluate(_PRESSED, ["Enter", _MESSAGE]))
    return found


def measure(browser: Browser, folder: Path) -> None:
    """Print all figures, each beside its budget."""
    with staged(folder) as stage:
        _wait_for_index(stage)
        cold, warm, received = first_lists(browser, stage)
        with opened(browser, stage) as desk:
            desk.sign_in()
            desk.view()
            expect(desk.page.locator(".rows .row:not(.grey)").first).to_be_visible()
            stepped = steps(desk.page)
            scrolled: list[float] = desk.page.evaluate(_SCROLLED, _FRAMES)
            read = threads(desk.page)
    slow = sum(each > _SLOW_FRAME_MS for each in scrolled) / len(scrolled)
    print(f"load {os.getloadavg()[0]:.1f}")
    print(f"{'':34}{'median':>8}{'p95':>8}  budget")
    _line("first list, nothing cached, ms", cold, "600")
    _line("first list, files cached, ms", warm, "")
    print(f"{'received by the first opening, KB':34}{received:8.0f}{'':8}  190")
    _line("j, ms", stepped, "p95 50")
    _line("thread, ms", read, "p95 100")
    print(f"{f'frames over {_SLOW_FRAME_MS} ms, %':34}{100 * slow:8.1f}{'':8}  2")


def _line(name: str, taken: Sequence[float], budget: str) -> None:
    print(f"{name:34}{median(taken):8.0f}{percentile(sorted(taken), 0.95):8.0f}  {budget}")


def main(conversations: str = "100000", where: str | None = None) -> None:
    """Fill the data directory if necessary, and measure."""
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(where or temporary) / "data"
        if not data.exists():
            data.mkdir(parents=True)
            processes.answer(
                "benchmarks.inboxing", json.dumps([str(data), int(conversations)]), core=processes.SERVER
            )
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            measure(browser, data.parent)
            browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:3])
