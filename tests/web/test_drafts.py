"""Drafts shared by tabs and computers, without a lost word."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import Stage

LONG = "A long careful draft in tab one"


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own contact."""
    return shared_stage


@pytest.fixture
def ada(stage: Stage, request: pytest.FixtureRequest) -> dict[str, Any]:
    """A conversation with a contact of this test."""
    return stage.converse(request.node.name, "Hello!", name="Ada")


def _shown(desk: Desk, conversation: dict[str, Any]) -> Desk:
    desk.sign_in()
    desk.open(f"/desk/c/{conversation['id']}")
    expect(desk.said("Hello!")).to_be_visible()
    return desk


def _tab(desk: Desk) -> Desk:
    tab = Desk(desk.stage, desk.context, desk.context.new_page(), desk.tolerated, desk.complaints)
    tab.watch(tab.page)
    tab.page.goto(desk.page.url)
    expect(tab.said("Hello!")).to_be_visible()
    return tab


def _stored(stage: Stage, conversation: dict[str, Any], mode: str = "reply") -> str | None:
    found = stage.owner.get(f"/conversations/{conversation['id']}/drafts").raise_for_status().json()[mode]
    return None if found is None else str(found["text"])


@pytest.mark.journey
def test_tabs_and_reload_show_the_whole_draft(desk: Desk, ada: dict[str, Any]) -> None:
    tabs = [_shown(desk, ada), _tab(desk), _tab(desk)]
    desk.box.fill(LONG)
    for tab in tabs:
        expect(tab.box).to_have_value(LONG)
    tabs[1].box.press("End")
    tabs[1].box.press_sequentially(" x")
    for tab in tabs:
        expect(tab.box).to_have_value(f"{LONG} x")
        tab.page.reload()
        expect(tab.box).to_have_value(f"{LONG} x")
    desk.eventually(lambda: _stored(desk.stage, ada), f"{LONG} x")
    expect(desk.page.locator("#composer-hint")).to_contain_text("Draft saved")


def test_drafts_of_two_unconnected_tabs_are_merged(desk: Desk, ada: dict[str, Any]) -> None:
    one, two = _shown(desk, ada), _tab(desk)
    two.page.evaluate("BroadcastChannel.prototype.postMessage = () => {}")
    one.page.evaluate("BroadcastChannel.prototype.postMessage = () => {}")
    one.box.fill(LONG)
    two.box.fill("Something else")
    for tab in (one, two):
        expect(tab.box).to_have_value(f"{LONG}\n\nSomething else")
    two.page.reload()
    expect(two.box).to_have_value(f"{LONG}\n\nSomething else")


def test_sending_removes_only_its_own_draft(desk: Desk, ada: dict[str, Any]) -> None:
    one, two = _shown(desk, ada), _tab(desk)
    one.box.fill("Sent in one.")
    expect(two.box).to_have_value("Sent in one.")
    two.page.keyboard.press("n")
    two.box.fill("A note in two")
    one.box.press("Control+Enter")
    desk.eventually(lambda: desk.stage.messages(ada), ["Hello!", "Sent in one."])
    desk.eventually(lambda: _stored(desk.stage, ada), None)
    desk.eventually(lambda: _stored(desk.stage, ada, "note"), "A note in two")
    for tab in (one, two):
        tab.page.reload()
        expect(tab.box).to_have_value("A note in two")
        tab.page.locator(".mode").first.click()
        expect(tab.box).to_have_value("")


def test_typing_in_one_tab_survives_sending_in_another(desk: Desk, ada: dict[str, Any]) -> None:
    one, two = _shown(desk, ada), _tab(desk)
    one.box.fill("It left today.")
    expect(two.box).to_have_value("It left today.")
    two.page.evaluate("BroadcastChannel.prototype.postMessage = () => {}")
    two.box.press("End")
    two.box.press_sequentially(" And more")
    one.box.press("Control+Enter")
    desk.eventually(lambda: desk.stage.messages(ada)[1:2], ["It left today."])
    expect(two.box).to_have_value("And more")
    desk.eventually(lambda: _stored(desk.stage, ada), "And more")


def test_closing_or_reloading_a_tab_keeps_the_draft(desk: Desk, ada: dict[str, Any]) -> None:
    one = _shown(desk, ada)
    tab = _tab(desk)
    tab.box.press_sequentially("Half a sen")
    tab.page.close()
    expect(one.box).to_have_value("Half a sen")
    one.box.press("End")
    one.box.press_sequentially("tence and")
    one.page.reload()
    expect(one.box).to_have_value("Half a sentence and")
    desk.eventually(lambda: _stored(desk.stage, ada), "Half a sentence and")
    expect(one.box).to_have_value("Half a sentence and")


def test_another_computer_shows_the_draft_and_its_changes(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    here, there = _shown(window(stage), ada), _shown(window(stage), ada)
    here.box.fill("Begun at work")
    expect(there.box).to_have_value("Begun at work")
    there.box.press("End")
    there.box.press_sequentially(", ended at home")
    expect(here.box).to_have_value("Begun at work, ended at home")
    there.box.press("Control+Enter")
    expect(here.box).to_have_value("")
    here.page.reload()
    expect(here.box).to_have_value("")


@pytest.mark.journey
def test_offline_drafts_of_two_computers_are_merged(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    here, there = _shown(window(stage), ada), _shown(window(stage), ada)
    for desk in (here, there):
        desk.tolerated.append(NETWORK)
        desk.context.set_offline(True)
    here.box.fill("Words from here")
    there.box.fill("Other words from there")
    for desk in (here, there):
        expect(desk.page.locator("#composer-hint")).to_contain_text("on this device only")
        desk.context.set_offline(False)
    for desk in (here, there):
        for words in ("Words from here", "Other words from there"):
            expect(desk.box).to_have_value(re.compile(words))
        expect(desk.page.locator("#composer-hint")).to_contain_text("Draft saved")
    assert here.box.input_value() == there.box.input_value() == _stored(stage, ada)


def test_draft_is_saved_once_the_service_is_back(desk: Desk, ada: dict[str, Any]) -> None:
    desk.tolerated.append(NETWORK)
    _shown(desk, ada)
    desk.stage.close_road()
    desk.box.fill("Over a dead service")
    expect(desk.page.locator("#composer-hint")).to_contain_text("on this device only")
    desk.page.wait_for_timeout(1500)
    expect(desk.page.locator("#composer-hint")).to_contain_text("on this device only")
    desk.stage.open_road()
    expect(desk.page.locator("#composer-hint")).to_contain_text("Draft saved")
    assert _stored(desk.stage, ada) == "Over a dead service"


def test_draft_of_an_older_version_is_converted(desk: Desk, ada: dict[str, Any]) -> None:
    _shown(desk, ada)
    user = desk.stage.owner.get("/users/me").raise_for_status().json()["id"]
    project = desk.stage.demo["projectId"]
    key = f"deskwire.draft.{user}.{project}.{ada['id']}"
    desk.page.evaluate(
        "([key, draft]) => localStorage.setItem(key, JSON.stringify(draft))",
        [key, {"text": "An old note", "internal": True, "files": [], "baseSequence": 1, "at": 1}],
    )
    desk.page.reload()
    expect(desk.box).to_have_value("An old note")
    expect(desk.page.get_by_text("Only agents will see this")).to_be_visible()
    desk.eventually(lambda: _stored(desk.stage, ada, "note"), "An old note")


def test_caret_keeps_its_place_during_remote_changes(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    here, there = _shown(window(stage), ada), _shown(window(stage), ada)
    here.box.fill("first last")
    expect(there.box).to_have_value("first last")
    for _ in range(4):
        here.box.press("ArrowLeft")
    there.box.press("Home")
    there.box.press_sequentially("The ")
    expect(here.box).to_have_value("The first last")
    here.page.keyboard.type("and ")
    expect(there.box).to_have_value("The first and last")
