"""Replies held by the service: sent even if the page closes, and cancellable until then."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import Stage


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


@pytest.mark.parametrize("text", ["ok done", "a long reply " * 30])
def test_held_reply_is_sent_after_its_tab_closes(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any], text: str
) -> None:
    desk = _shown(window(stage, hold_s=None), ada)
    desk.reply(text)
    expect(desk.page.locator(".undo")).to_contain_text(re.compile(r"Sending in \d s"))
    assert stage.messages(ada) == ["Hello!"]
    desk.page.goto("about:blank")
    desk.eventually(lambda: stage.messages(ada), ["Hello!", text.strip()])


@pytest.mark.journey
def test_held_reply_is_cancelled_by_key_and_elsewhere(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    here, there = (_shown(window(stage, hold_s=30), ada) for _ in range(2))
    here.reply("Too early")
    expect(there.page.locator(".undo")).to_contain_text("Sending in")
    there.page.locator(".undo").get_by_role("button", name="Undo").click()
    for desk in (here, there):
        expect(desk.box).to_have_value("Too early")
        expect(desk.page.locator(".undo")).to_have_count(0)
    here.box.press("Control+Enter")
    expect(here.page.locator(".undo")).to_contain_text("Sending in")
    here.box.press("Control+z")
    expect(here.box).to_have_value("Too early")
    here.box.press("Control+Enter")
    expect(here.page.locator(".undo")).to_contain_text("Sending in")
    here.box.press("Escape")
    here.page.keyboard.press("u")
    expect(here.box).to_have_value("Too early")
    assert stage.messages(ada) == ["Hello!"]


def test_send_now_ends_the_hold(window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]) -> None:
    desk = _shown(window(stage, hold_s=30), ada)
    desk.reply("At once")
    desk.page.locator(".undo").get_by_role("button", name="Send now").click()
    desk.eventually(lambda: stage.messages(ada), ["Hello!", "At once"])
    expect(desk.page.locator(".undo")).to_have_count(0)
    expect(desk.said("At once")).to_have_count(1)


def test_consecutive_held_replies_are_all_sent(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    desk = _shown(window(stage, hold_s=5), ada)
    for text in ("First.", "Second.", "Third."):
        desk.reply(text)
    desk.eventually(lambda: stage.messages(ada), ["Hello!", "First.", "Second.", "Third."])
    expect(desk.page.locator(".moved")).to_have_count(0)


def test_close_waits_for_the_held_reply(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    desk = _shown(window(stage, hold_s=30), ada)
    desk.reply("Goodbye.")
    expect(desk.page.locator(".undo")).to_contain_text("Sending in")
    desk.page.locator(".thread-head").get_by_role("button", name="Close").click()
    expect(desk.page.locator(".thread-head")).to_contain_text("closed")
    desk.eventually(lambda: stage.messages(ada), ["Hello!", "Goodbye."])
    path = f"/conversations/{ada['id']}"
    desk.eventually(lambda: stage.owner.get(path).json()["status"], "CLOSED")


def test_refused_held_reply_can_be_sent_anyway(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    desk = _shown(window(stage, hold_s=5), ada)
    desk.reply("It left today.")
    expect(desk.page.locator(".undo")).to_contain_text("Sending in")
    stage.say(ada, "Never mind, it came.")
    refused = desk.page.locator(".moved")
    expect(refused).to_contain_text("Ada wrote before you")
    expect(refused).to_contain_text("Never mind, it came.")
    desk.page.reload()
    expect(refused).to_contain_text("It left today.")
    refused.get_by_role("button", name="Edit").click()
    expect(desk.box).to_have_value("It left today.")
    desk.reply("Good to hear.")
    stage.say(ada, "Thanks")
    refused.get_by_role("button", name="Send anyway").click()
    desk.eventually(
        lambda: stage.messages(ada), ["Hello!", "Never mind, it came.", "Thanks", "Good to hear."]
    )
    expect(refused).to_have_count(0)


def test_offline_reply_keeps_its_hold(window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]) -> None:
    desk = _shown(window(stage, hold_s=5), ada)
    desk.tolerated.append(NETWORK)
    desk.context.set_offline(True)
    desk.reply("Written offline")
    expect(desk.log.locator(".truth").last).to_contain_text("Will send when you're back online")
    desk.context.set_offline(False)
    expect(desk.page.locator(".undo")).to_contain_text("Sending in")
    desk.page.goto("about:blank")
    desk.eventually(lambda: stage.messages(ada), ["Hello!", "Written offline"])
