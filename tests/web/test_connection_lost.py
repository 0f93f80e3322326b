"""An outage is detected within three seconds, and unsent changes are not shown as saved."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import NETWORK, Desk

KNOWN_MS = 3_000
SLOW_MS = 1_500
"""Extra time to render the page under load."""
BACK = "until you're back online"


@pytest.fixture
def ada(desk: Desk) -> Desk:
    """The desk with Ada's conversation open and live."""
    desk.stage.converse("ada", "I am Ada", name="Ada")
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    desk.converse("Ada")
    expect(desk.said("I am Ada")).to_be_visible()
    expect(desk.page.get_by_role("button", name=re.compile("Connection: Live"))).to_be_visible()
    desk.page.locator(".log").focus()
    return desk


def lose(desk: Desk, how: str) -> None:
    """Cause one kind of outage."""
    if how == "killed":
        desk.stage.kill()
    elif how == "hung":
        os.kill(desk.stage.server.pid, signal.SIGSTOP)
    else:
        desk.stage.freeze_road()


def regain(desk: Desk, how: str) -> None:
    if how == "killed":
        desk.stage.start()
    elif how == "hung":
        os.kill(desk.stage.server.pid, signal.SIGCONT)
    else:
        desk.stage.thaw_road()


@pytest.mark.parametrize("how", ["killed", "hung", "cut"])
def test_dead_connection_is_detected_within_three_seconds(ada: Desk, how: str) -> None:
    lose(ada, how)
    try:
        expect(ada.page.locator(".banner[role=alert]")).to_be_visible(timeout=KNOWN_MS + SLOW_MS)
        expect(ada.page.locator(".banner")).to_contain_text("No connection to the service")
        expect(ada.page.get_by_role("button", name=re.compile("Connection: Live"))).to_have_count(0)
        for key, words in (("e", "Close Ada"), ("a", "Assign Ada to you")):
            ada.page.keyboard.press(key)
            notice = ada.page.locator(".toast").filter(has_text=words)
            expect(notice).to_contain_text(BACK)
        expect(ada.page.locator(".thread-head")).to_contain_text("Not saved yet")
        expect(ada.page.locator(".toast").filter(has_text=re.compile("Ada: "))).to_have_count(0)
    finally:
        regain(ada, how)
    expect(ada.page.get_by_role("button", name=re.compile("Connection: Live"))).to_be_visible(timeout=40_000)
    expect(ada.page.locator(".banner[role=alert]")).to_have_count(0)
    expect(ada.page.locator(".toast").filter(has_text="Ada: closed")).to_be_visible(timeout=60_000)
    expect(ada.page.locator(".thread-head")).not_to_contain_text("Not saved yet", timeout=60_000)


@pytest.mark.parametrize("how", ["killed", "hung", "cut"])
def test_change_during_an_outage_is_not_shown_as_saved(ada: Desk, how: str) -> None:
    lose(ada, how)
    try:
        began = time.monotonic()
        ada.page.keyboard.press("e")
        expect(ada.page.locator(".toast").filter(has_text="Close Ada")).to_contain_text(BACK)
        assert (time.monotonic() - began) * 1000 < KNOWN_MS + SLOW_MS
        expect(ada.page.locator(".toast").filter(has_text="Ada: closed")).to_have_count(0)
    finally:
        regain(ada, how)


@pytest.mark.journey
def test_short_interruption_shows_no_banner(ada: Desk) -> None:
    ada.page.evaluate(
        "() => { window.alarms = 0; new MutationObserver(() => document.querySelector('.banner[role=alert]') && (window.alarms += 1))"
        ".observe(document.body, {subtree: true, childList: true}); }"
    )
    ada.stage.cut()
    expect(ada.page.get_by_role("button", name=re.compile("Connection: Live"))).to_be_visible()
    ada.stage.freeze_road()
    ada.page.wait_for_timeout(1_000)
    ada.stage.thaw_road()
    ada.page.wait_for_timeout(1_500)
    assert ada.page.evaluate("window.alarms") == 0


def test_connection_state_stays_visible(ada: Desk) -> None:
    ada.page.get_by_text("Settings", exact=True).click()
    foot = ada.page.get_by_role("button", name=re.compile("Connection:"))
    expect(foot).to_be_in_viewport()
    expect(ada.page.get_by_role("button", name=re.compile("You and your settings"))).to_be_in_viewport()
