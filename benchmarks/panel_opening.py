"""The time from a click on the widget's button to the list of conversations, in a real Chromium with a host's page on another site.

`python -m benchmarks.panel_opening [ROUNDS]` prints the median and the 95th of 100, for a frame that is made at the click, with files from the cache, and
for one that the page has loaded before, as pages do for a customer who has written. The customer is signed in and has 20 conversations. Requires the same
programs as `make web`. The mouse comes to the button at the click, so nothing is loaded before.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright
from tests.api.description.browser import CHROMIUM
from tests.web.harness.host_site import HostSite, hosting
from tests.web.harness.panel_tab import Computer, computer
from tests.web.harness.stage import staged

from benchmarks.report import median, percentile

_CONVERSATIONS: Final = 20
_TIMES: Final = """
if (parent === window) addEventListener("click", () => (window.clicked = performance.timeOrigin + performance.now()), {capture: true});
else {
  const look = () => document.querySelector("li .row") ? (window.listed = performance.timeOrigin + performance.now()) : requestAnimationFrame(look);
  addEventListener("DOMContentLoaded", look);
}
"""
"""Notes the time of the click in the page, and in the panel that of the first frame with a conversation of the list; hidden frames draw none."""


def prepared(one: Computer, site: HostSite) -> None:
    """Store the conversations of a customer, whom the site's pages sign in."""
    for number in range(_CONVERSATIONS):
        body = {"contact": {"userId": "ada"}, "message": {"text": f"Where is my order {number}?"}}
        one.stage.s2s.post("/s2s/conversations", json=body).raise_for_status()
    site.first = f"window.Deskwire = [['identify', async () => '{one.identity('ada')}']];"
    site.loader = f"{one.stage.url}/widget/{one.channel['id']}.js"


def taken(page: Page, site: HostSite, *, loaded: bool) -> float:
    """Load the page, click, and return the ms from the click to the list."""
    page.goto(site.url)
    page.evaluate(f"key => localStorage.{'setItem(key, 0)' if loaded else 'removeItem(key)'}", _key(site))
    page.reload()
    if loaded:
        page.wait_for_function(
            "() => document.querySelector('deskwire-widget').shadowRoot.querySelector('iframe')"
        )
        page.wait_for_timeout(1_500)  # until the hidden panel has its number
    page.evaluate("document.querySelector('deskwire-widget').shadowRoot.querySelector('button').click()")
    while not (panel := next((each for each in page.frames if "/widget/" in each.url), None)):
        page.wait_for_timeout(10)
    while not (
        listed := panel.evaluate("window.listed ?? 0")
    ):  # the panel's policy forbids `wait_for_function`
        page.wait_for_timeout(20)
    return float(listed) - float(page.evaluate("window.clicked"))


def _key(site: HostSite) -> str:
    return f"deskwire.{site.loader.rpartition('/')[2].removesuffix('.js')}"


def main(rounds: int = 50) -> None:
    """Measure both ways in turn."""
    with (
        tempfile.TemporaryDirectory() as folder,
        staged(Path(folder)) as stage,
        hosting() as site,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with computer(browser, stage, site, "another site") as one:
            prepared(one, site)
            one.context.add_init_script(_TIMES)
            page = one.context.new_page()
            times: dict[bool, list[float]] = {False: [], True: []}
            for number in range(rounds + 1):
                for loaded, found in times.items():
                    found += [taken(page, site, loaded=loaded)][
                        : number and 1
                    ]  # the first round fills the cache
        browser.close()
    print(f"{'frame':24}{'median ms':>10}{'p95 ms':>8}   load {os.getloadavg()[0]:.1f}")
    for loaded, found in times.items():
        print(
            f"{'loaded before' if loaded else 'made at the click':24}{median(found):10.0f}{percentile(sorted(found), 0.95):8.0f}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
