"""Accessibility of the inbox (WCAG 2.2 AA), in each state, in light, dark and narrow windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from playwright.sync_api import expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import Stage

WINDOWS: Final[Mapping[str, Mapping[str, Any]]] = {
    "wide": {},
    "narrow": {"viewport": {"width": 390, "height": 800}},
}


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service with conversations of every kind."""
    shared_stage.endpoint("crm")
    shared_stage.endpoint("search", status=503)
    for number in range(12):
        conversation = shared_stage.converse(f"u{number}", "Hello!", "Are you there?", name=f"Ada {number}")
        path = f"/conversations/{conversation['id']}"
        shared_stage.owner.post(f"{path}/messages", json={"text": "I am."}).raise_for_status()
        note = {"text": "Carrier asked, see https://carrier.example/1Z", "internal": True}
        shared_stage.owner.post(f"{path}/messages", json=note).raise_for_status()
        shared_stage.owner.patch(path, json={"tags": ["returns", "vip"]}).raise_for_status()
    snippet = {"shortcut": "refund", "title": "Refund", "text": "It is on its way."}
    shared_stage.owner.post("/snippets", json=snippet).raise_for_status()
    return shared_stage


@pytest.fixture(params=list(WINDOWS))
def desk(request: pytest.FixtureRequest, window: Callable[..., Desk], stage: Stage) -> Desk:
    """A window in each colour scheme and size."""
    return window(stage, reduced_motion="reduce", **WINDOWS[request.param])


@pytest.mark.journey
def test_axe_finds_nothing_in_the_inbox(desk: Desk) -> None:
    problems: dict[str, list[str]] = {}

    def look(where: str) -> None:
        if found := findings(desk.page):
            problems[where] = found

    page, keyboard = desk.page, desk.page.keyboard
    desk.open()
    expect(page.get_by_label("Email")).to_be_visible()
    look("sign-in")
    desk.sign_in()
    keyboard.press("g")
    keyboard.press("a")
    expect(page.get_by_role("option").first).to_be_visible()
    look("list")
    page.get_by_role("option").filter(has_text="Ada 3").click()
    expect(desk.said("Are you there?")).to_be_visible()
    look("thread")
    desk.box.fill(";re")
    desk.box.press("End")
    expect(page.get_by_role("listbox", name="Snippets")).to_be_visible()
    look("composer with snippets")
    desk.box.fill(";no-such-snippet")
    desk.box.press("End")
    expect(page.get_by_role("listbox", name="Snippets")).to_have_count(0)
    look("composer with a word that no snippet fits")
    desk.box.fill("")
    keyboard.press("Escape")
    for name, key in (
        ("palette", "Control+k"),
        ("help", "?"),
        ("assign", "Shift+A"),
        ("snooze", "z"),
        ("tags", "t"),
    ):
        keyboard.press(key)
        expect(page.get_by_role("dialog")).to_be_visible()
        look(name)
        keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    keyboard.press("c")
    expect(page.get_by_role("dialog")).to_be_visible()
    look("new conversation")
    keyboard.press("Escape")
    desk.tolerated.append(NETWORK)
    desk.context.set_offline(True)
    desk.box.fill("Kept.")
    desk.box.press("Control+Enter")
    expect(desk.log.locator(".truth").last).to_contain_text("Will send when you're back online")
    look("offline")
    desk.context.set_offline(False)
    assert problems == {}


def test_inbox_fits_320_pixels(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, viewport={"width": 320, "height": 640})
    desk.sign_in()
    wide = "() => document.documentElement.scrollWidth - innerWidth"
    desk.page.keyboard.press("g")
    desk.page.keyboard.press("a")
    expect(desk.page.get_by_role("option").first).to_be_visible()
    assert desk.page.evaluate(wide) <= 0
    desk.page.get_by_role("option").first.click()
    expect(desk.said("Are you there?")).to_be_visible()
    assert desk.page.evaluate(wide) <= 0
