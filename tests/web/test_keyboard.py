"""A shift without a mouse: each step by a keyboard shortcut."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own contact."""
    return shared_stage


@pytest.mark.journey
def test_keyboard_alone_closes_a_conversation(desk: Desk) -> None:
    conversation = desk.stage.converse("u1", "Where is my order?", name="Ada")
    user = desk.stage.demo["user"]
    desk.open()
    keyboard = desk.page.keyboard
    expect(desk.page.get_by_label("Email")).to_be_focused()
    keyboard.type(user["email"])
    keyboard.press("Tab")
    keyboard.type(user["password"])
    keyboard.press("Enter")
    expect(desk.page.get_by_role("navigation", name="Views")).to_be_visible()
    keyboard.press("g")
    keyboard.press("a")
    expect(desk.row("Ada")).to_be_visible()
    keyboard.press("j")
    expect(desk.page.locator("[role=option].active")).to_have_count(1)
    keyboard.press("Enter")
    expect(desk.said("Where is my order?")).to_be_visible()
    keyboard.press("a")
    expect(desk.page.locator(".thread-head")).to_contain_text("Demo owner")
    keyboard.press("r")
    expect(desk.box).to_be_focused()
    keyboard.type("It left us today.")
    keyboard.press("Control+Enter")
    expect(desk.log.locator(".truth").last).to_contain_text("Saved")
    keyboard.press("Escape")
    keyboard.press("n")
    expect(desk.box).to_be_focused()
    keyboard.type("Carrier asked.")
    keyboard.press("Control+Enter")
    expect(desk.page.get_by_role("article", name=re.compile("Note"))).to_contain_text("Carrier asked.")
    keyboard.press("Escape")
    keyboard.press("e")
    expect(desk.page.locator(".thread-head")).to_contain_text("closed")
    keyboard.press("o")
    expect(desk.page.locator(".thread-head")).to_contain_text("open")
    said = ["Where is my order?", "It left us today.", "Carrier asked."]
    desk.eventually(lambda: desk.stage.messages(conversation), said)


def test_letter_in_a_field_is_no_command(desk: Desk) -> None:
    desk.stage.converse("u2", "Hello!", name="Bea")
    desk.sign_in()
    desk.converse("Bea")
    desk.box.press_sequentially("ear jokes xz [")
    expect(desk.box).to_have_value("ear jokes xz [")
    expect(desk.page.locator(".thread-head")).to_contain_text("open")


def test_palette_runs_every_command(desk: Desk) -> None:
    desk.stage.converse("u3", "Hello!", name="Cleo")
    desk.sign_in()
    desk.converse("Cleo")
    desk.page.keyboard.press("Control+k")
    field = desk.page.get_by_role("combobox")
    expect(field).to_be_focused()
    field.fill("assign to me")
    desk.page.keyboard.press("Enter")
    expect(desk.page.locator(".thread-head")).to_contain_text("Demo owner")


def test_help_lists_keys_and_closes_with_escape(desk: Desk) -> None:
    desk.sign_in()
    desk.page.keyboard.press("?")
    help_ = desk.page.get_by_role("dialog", name="Keyboard shortcuts")
    for words in ("Assign to me", "Snooze", "Send and close"):
        expect(help_).to_contain_text(words)
    desk.page.keyboard.press("Escape")
    expect(help_).to_have_count(0)


def test_keys_tag_and_snooze(desk: Desk) -> None:
    conversation = desk.stage.converse("u4", "Hello!", name="Dora")
    desk.sign_in()
    desk.converse("Dora")
    keyboard = desk.page.keyboard
    keyboard.press("Escape")
    keyboard.press("Enter")
    expect(desk.said("Hello!")).to_be_visible()
    keyboard.press("t")
    keyboard.type("returns")
    expect(desk.page.get_by_role("dialog").get_by_role("combobox")).to_have_value("returns")
    keyboard.press("Enter")
    desk.page.get_by_role("dialog").get_by_role("button", name=re.compile("Save|Tag")).first.click()
    expect(desk.page.locator(".context")).to_contain_text("returns")
    keyboard.press("z")
    expect(desk.page.get_by_role("dialog")).to_contain_text("Tomorrow")
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    expect(desk.page.locator(".thread-head")).to_contain_text("snoozed")
    path = f"/conversations/{conversation['id']}"
    desk.eventually(lambda: desk.stage.owner.get(path, params={"view": "agent"}).json()["tags"], ["returns"])
