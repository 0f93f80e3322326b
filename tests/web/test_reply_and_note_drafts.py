"""Replies and notes have separate drafts, which are never mixed unless the agent asks."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Locator, expect

from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage

PUBLIC = "Only the customer may read this."
INTERNAL = "internal: the customer is a pain"


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own contact."""
    return shared_stage


@pytest.fixture
def ada(desk: Desk) -> dict[str, Any]:
    """An open conversation with Ada."""
    conversation = desk.stage.converse(f"ada {id(desk)}", "Hello!", name=f"Ada {id(desk)}")
    desk.sign_in()
    desk.converse(f"Ada {id(desk)}")
    expect(desk.said("Hello!")).to_be_visible()
    return conversation


def _mode(desk: Desk, name: str) -> Locator:
    return desk.page.locator(".modes").get_by_role("button", name=re.compile(f"^{name}"))


def _switch(desk: Desk, name: str, how: str) -> None:
    if how == "mouse":
        _mode(desk, name).click()
    else:
        if desk.box.evaluate("element => element === document.activeElement"):
            desk.page.keyboard.press("Escape")
        desk.page.keyboard.press(name[0].lower())
    expect(_mode(desk, name)).to_have_attribute("aria-pressed", "true")
    expect(desk.box).to_be_focused()


def _public(stage: Stage, conversation: dict[str, Any]) -> list[str]:
    path = f"/s2s/conversations/{conversation['id']}/messages"
    return [each["text"] for each in stage.s2s.get(path).raise_for_status().json()["items"]]


@pytest.mark.parametrize("how", ["mouse", "key"])
def test_note_text_never_goes_to_the_customer(desk: Desk, ada: dict[str, Any], how: str) -> None:
    _switch(desk, "Note", how)
    desk.page.keyboard.type(INTERNAL)
    _switch(desk, "Reply", how)
    expect(desk.box).to_have_value("")
    desk.page.keyboard.type("Hello to you!")
    desk.page.keyboard.press("Control+Enter")
    desk.eventually(lambda: _public(desk.stage, ada), ["Hello!", "Hello to you!"])
    _switch(desk, "Note", how)
    expect(desk.box).to_have_value(INTERNAL)


@pytest.mark.parametrize("how", ["mouse", "key"])
def test_reply_text_never_becomes_a_note(desk: Desk, ada: dict[str, Any], how: str) -> None:
    desk.box.fill(PUBLIC)
    _switch(desk, "Note", how)
    expect(desk.box).to_have_value("")
    desk.page.keyboard.type("Asked the carrier.")
    desk.page.keyboard.press("Control+Enter")
    desk.eventually(lambda: desk.stage.messages(ada), ["Hello!", "Asked the carrier."])
    expect(_mode(desk, "Note")).to_have_attribute("aria-pressed", "true")
    _switch(desk, "Reply", how)
    expect(desk.box).to_have_value(PUBLIC)


@pytest.mark.journey
def test_both_drafts_survive_a_reload(desk: Desk, ada: dict[str, Any]) -> None:
    desk.box.fill(PUBLIC)
    _switch(desk, "Note", "key")
    desk.page.keyboard.type(INTERNAL)
    desk.page.reload()
    expect(desk.box).to_have_value(INTERNAL)
    expect(_mode(desk, "Note")).to_have_attribute("aria-pressed", "true")
    _switch(desk, "Reply", "mouse")
    expect(desk.box).to_have_value(PUBLIC)


def test_browser_undo_never_mixes_the_two_drafts(desk: Desk, ada: dict[str, Any]) -> None:
    _switch(desk, "Note", "key")
    desk.page.keyboard.type(INTERNAL)
    _switch(desk, "Reply", "mouse")
    for _ in range(5):
        desk.page.keyboard.press("Control+z")
    expect(desk.box).to_have_value("")


def test_draft_changes_mode_only_on_request(desk: Desk, ada: dict[str, Any]) -> None:
    _switch(desk, "Note", "mouse")
    desk.page.keyboard.type("The parcel is in Oslo.")
    desk.page.get_by_role("button", name="Use as reply").click()
    expect(_mode(desk, "Reply")).to_have_attribute("aria-pressed", "true")
    expect(desk.box).to_have_value("The parcel is in Oslo.")
    desk.page.get_by_role("button", name="More ways to send").click()
    desk.page.get_by_role("menuitem", name="Use as note").click()
    expect(_mode(desk, "Note")).to_have_attribute("aria-pressed", "true")
    expect(desk.box).to_have_value("The parcel is in Oslo.")
    _switch(desk, "Reply", "mouse")
    expect(desk.box).to_have_value("")
    assert _public(desk.stage, ada) == ["Hello!"]


def test_mode_change_keeps_the_existing_draft(desk: Desk, ada: dict[str, Any]) -> None:
    desk.box.fill("Dear Ada,")
    _switch(desk, "Note", "mouse")
    desk.page.keyboard.type("it is in Oslo.")
    desk.page.get_by_role("button", name="Use as reply").click()
    expect(desk.box).to_have_value("Dear Ada,\n\nit is in Oslo.")


def test_files_of_a_note_stay_with_the_note(desk: Desk, ada: dict[str, Any]) -> None:
    _switch(desk, "Note", "mouse")
    secret = FilePayload(name="internal.txt", mimeType="text/plain", buffer=b"margins")
    desk.page.locator(".composer input[type=file]").set_input_files(secret)
    files = desk.page.locator(".composer .files")
    expect(files).to_contain_text("internal.txt")
    _switch(desk, "Reply", "mouse")
    expect(files).to_have_count(0)
    desk.page.keyboard.type("Hello to you!")
    desk.page.keyboard.press("Control+Enter")
    desk.eventually(lambda: _public(desk.stage, ada), ["Hello!", "Hello to you!"])
    found = desk.stage.owner.get(f"/conversations/{ada['id']}/messages").json()["items"]
    assert [each["attachments"] for each in found] == [[], []]
    _switch(desk, "Note", "mouse")
    expect(files).to_contain_text("internal.txt")
    desk.page.reload()
    expect(files).to_contain_text("internal.txt")
    desk.box.fill("The sheet.")
    desk.box.press("Control+Enter")
    desk.eventually(lambda: desk.stage.messages(ada), ["Hello!", "Hello to you!", "The sheet."])
    note = desk.stage.owner.get(f"/conversations/{ada['id']}/messages").json()["items"][-1]
    assert note["internal"]
    assert [each["name"] for each in note["attachments"]] == ["internal.txt"]


def test_snippet_goes_into_the_shown_draft(desk: Desk, ada: dict[str, Any]) -> None:
    body = {"shortcut": f"where{id(desk)}", "title": "Where", "text": "Where is it?"}
    desk.stage.owner.post("/snippets", json=body).raise_for_status()
    _switch(desk, "Note", "key")
    desk.box.press_sequentially(f";where{id(desk)}")
    expect(desk.page.get_by_role("listbox", name="Snippets")).to_contain_text("Where")
    desk.box.press("Enter")
    expect(desk.box).to_have_value("Where is it?")
    _switch(desk, "Reply", "key")
    expect(desk.box).to_have_value("")


def test_draft_of_another_conversation_is_never_shown(desk: Desk, ada: dict[str, Any]) -> None:
    other = f"Bea {id(desk)}"
    desk.stage.converse(f"bea {id(desk)}", "Good day", name=other)
    desk.page.get_by_role("button", name=re.compile("1 new")).click()
    desk.box.fill("For Ada alone")
    desk.row(other).click()
    expect(desk.said("Good day")).to_be_visible()
    expect(desk.box).to_have_value("")
    desk.box.fill("For Bea alone")
    for _ in range(3):
        desk.row(f"Ada {id(desk)}").click()
        expect(desk.box).to_have_value("For Ada alone")
        desk.row(other).click()
        expect(desk.box).to_have_value("For Bea alone")


def test_refused_note_returns_as_a_note(desk: Desk, ada: dict[str, Any]) -> None:
    desk.tolerated.append("Failed to load resource")
    desk.page.route(
        "**/messages", lambda route: route.fulfill(status=422, json={"code": "invalid", "detail": "No."})
    )
    _switch(desk, "Note", "mouse")
    desk.page.keyboard.type(INTERNAL)
    desk.page.keyboard.press("Control+Enter")
    expect(desk.log.locator(".truth").last).to_contain_text("No.")
    _switch(desk, "Reply", "mouse")
    desk.page.keyboard.type("A reply begun")
    desk.log.get_by_role("button", name="Edit").click()
    expect(_mode(desk, "Note")).to_have_attribute("aria-pressed", "true")
    expect(desk.box).to_have_value(INTERNAL)
    _switch(desk, "Reply", "mouse")
    expect(desk.box).to_have_value("A reply begun")
