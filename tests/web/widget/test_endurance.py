"""A message that the panel shows as kept is delivered once, in order, whatever happens to page, network and service."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from tests.web.harness.host_site import HostSite
from tests.web.harness.panel_tab import DAY_MS, Computer, PanelTab, computer
from tests.web.harness.stage import Stage

FEW: Final = 20
MANY: Final = 200
LATEST_S: Final = 150
"""Longer than the pause of a minute after the 30 messages that a session may send in one, and the retry delay of half a minute."""
TABS_MAX: Final = 3
PLACES: Final = {
    "host's storage, clock a day behind": ("another site", -DAY_MS),
    "own storage, clock a day ahead": ("own page", DAY_MS),
    "own storage in a frame": ("same site", 0),
}


class Life:
    """A customer who writes in several tabs while page, network and service fail at random."""

    def __init__(self, one: Computer, seed: int) -> None:
        self.computer = one
        self.stage = one.stage
        self.chance = random.Random(seed)
        self.tabs = [one.tab()]
        self.written: list[str] = []
        self.happened: list[str] = []
        self.dead = self.cut_off = False

    def run(self, count: int) -> None:
        """Write this many messages, and repair everything at the end."""
        for number in range(count):
            text = f"Message {number}"
            self.chance.choice(self.tabs).say(text)
            self.written.append(text)
            self._happen(self.chance.random())
        self._repair()

    def _happen(self, step: float) -> None:
        reachable = not (self.dead or self.cut_off)
        if step < 0.12:
            self._note("start" if self.dead else "kill")
            (self.stage.start if self.dead else self.stage.kill)()
            self.dead = not self.dead
        elif step < 0.22:
            self._note("network back" if self.cut_off else "network lost")
            (self.stage.open_road if self.cut_off else self.stage.close_road)()
            self.cut_off = not self.cut_off
        elif step < 0.3:
            self._note("cut")
            self.stage.cut()
        elif step < 0.4 and reachable:
            self._note("reload")
            self.chance.choice(self.tabs).visit()
        elif step < 0.48 and reachable:
            self._change_tabs()
        elif step < 0.56 and not self.dead:
            self._reply()
        elif step < 0.7:
            self._repair()

    def _change_tabs(self) -> None:
        """Open another tab, or close one."""
        self._note("tab")
        if len(self.tabs) < TABS_MAX:
            self.tabs.append(self.computer.tab())
        else:
            self.tabs.pop(self.chance.randrange(TABS_MAX)).page.close()

    def _reply(self) -> None:
        """Post a message of an agent, if the conversation is stored already."""
        for each in self.computer.conversations():
            path = f"/conversations/{each['id']}/messages"
            self.stage.owner.post(path, json={"text": f"Reply {len(self.happened)}"}).raise_for_status()
            self._note("reply")

    def _repair(self) -> None:
        if self.dead:
            self.stage.start()
        if self.cut_off:
            self.stage.open_road()
        self.dead = self.cut_off = False

    def _note(self, event: str) -> None:
        self.happened.append(event)


def eventually(tab: PanelTab, look: Callable[[], object], value: object) -> None:
    """Poll until it returns this value: the panel sends on its own."""
    seen, end = look(), time.monotonic() + LATEST_S
    while seen != value and time.monotonic() < end:
        tab.page.wait_for_timeout(200)
        seen = look()
    assert seen == value


def live(one: Computer, count: int, seed: int) -> None:
    """Live a life, and compare the desk's API, the feed and each tab."""
    life = Life(one, seed)
    life.run(count)
    last = life.tabs[-1]
    eventually(
        last, lambda: sorted(each for each in one.thread() if each in life.written), sorted(life.written)
    )
    thread = one.thread()
    own = [each for each in thread if not each.startswith("Reply")]
    assert own == life.written, life.happened
    assert one.feed() == thread
    for tab in life.tabs:
        expect(tab.view.locator(".waiting")).to_have_count(0, timeout=LATEST_S * 1000)
        eventually(tab, tab.shown, thread)
    fresh = one.tab()
    eventually(fresh, fresh.shown, thread)
    assert "message:" not in fresh.stored()


@pytest.fixture(params=list(PLACES.values()), ids=list(PLACES))
def ada(request: pytest.FixtureRequest, browser: Browser, stage: Stage, host: HostSite) -> Iterator[Computer]:
    """The computer of a customer."""
    place, shift_ms = request.param
    with computer(browser, stage, host, place, shift_ms=shift_ms) as one:
        yield one


def test_few_kept_messages_arrive_once_and_in_order(ada: Computer) -> None:
    live(ada, FEW, 1)


@pytest.mark.long
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("seed", [1, 2])
def test_many_kept_messages_arrive_once_and_in_order(ada: Computer, seed: int) -> None:
    live(ada, MANY, seed)
