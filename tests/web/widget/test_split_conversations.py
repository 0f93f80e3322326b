"""The panel shows a conversation that an agent starts with messages of another one, and leaves the other one as it is."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web.harness.widget import HostWindow
from tests.web.widget.test_panel import reply, started


def split(window: HostWindow, conversation: dict[str, Any], text: str) -> dict[str, Any]:
    """Start a conversation with the message that has this text, as an agent does."""
    owner, path = window.stage.owner, f"/conversations/{conversation['id']}"
    messages = owner.get(f"{path}/messages").raise_for_status().json()["items"]
    (chosen,) = (each["id"] for each in messages if each["text"] == text)
    body = {"messageIds": [chosen], "title": "A late parcel"}
    made: dict[str, Any] = owner.post(f"{path}/split", json=body).raise_for_status().json()
    return made


def deliver(window: HostWindow, text: str) -> None:
    """Write a message in the panel, and wait until it is stored."""
    window.say(text)
    expect(window.log().locator("article").filter(has_text=text)).to_contain_text("Delivered")


def both(window: HostWindow) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write about a lamp and a parcel in the panel; the parcel is split off. The lamp stays open."""
    lamp = started(window, "My lamp is broken")
    deliver(window, "Where is my parcel?")
    return lamp, split(window, lamp, "Where is my parcel?")


def rows(window: HostWindow) -> Locator:
    """Return to the list, and return its rows, which are those of both conversations."""
    window.panel.get_by_role("button", name=re.compile("All conversations")).click()
    found = window.panel.get_by_role("listitem")
    expect(found).to_have_count(2)
    return found


@pytest.mark.journey
def test_row_of_the_new_conversation_has_its_newest_message_at_once(window: HostWindow) -> None:
    lamp, parcel = both(window)
    row = rows(window).first
    expect(row).to_contain_text("You")
    expect(row).to_contain_text("Where is my parcel?")
    expect(row).not_to_contain_text("A late parcel")
    messages = window.stage.owner.get(f"/conversations/{lamp['id']}/messages").raise_for_status().json()
    path = f"/conversations/{lamp['id']}/messages/{messages['items'][1]['id']}/redact"
    window.stage.owner.post(path, json={"text": True}).raise_for_status()
    expect(row).to_contain_text("This message was removed.")
    reply(window.stage, parcel, "It comes today")
    expect(row).to_contain_text("It comes today")


def test_open_conversation_stays_and_the_new_one_is_in_the_list(window: HostWindow) -> None:
    lamp, parcel = both(window)
    log = window.log()
    reply(window.stage, lamp, "We send a new lamp")
    expect(log.get_by_text("We send a new lamp")).to_be_visible()
    expect(log.locator("article")).to_have_count(3)
    expect(log.get_by_text("Where is my parcel?")).to_have_count(1)
    split_off = rows(window).filter(has_text="Where is my parcel?")
    expect(split_off).to_have_count(1)  # once the event of the reply has changed the other row, too
    split_off.get_by_role("button").click()
    expect(log.get_by_text("Where is my parcel?")).to_be_visible()
    expect(log.locator("article")).to_have_count(1)
    reply(window.stage, parcel, "It comes today")
    expect(log.get_by_text("It comes today")).to_be_visible()
    deliver(window, "Thank you")
    assert "Thank you" in window.stage.messages(parcel)
    assert "Thank you" not in window.stage.messages(lamp)


def test_new_conversation_has_its_messages_after_a_reload(window: HostWindow) -> None:
    _, parcel = both(window)
    window.page.goto("about:blank")
    reply(window.stage, parcel, "It comes today")
    window.page.go_back()
    window.button.click()
    log = window.log()
    if log.count() == 0:
        window.panel.get_by_role("button", name=re.compile("It comes today")).click()
    for text in ("Where is my parcel?", "It comes today"):
        expect(log.get_by_text(text)).to_be_visible()
    expect(log.get_by_text("My lamp is broken")).to_have_count(0)


def test_redacted_message_changes_in_both_conversations(window: HostWindow) -> None:
    lamp, _ = both(window)
    rows(window).first.get_by_role("button").click()
    log = window.log()
    expect(log.get_by_text("Where is my parcel?")).to_be_visible()
    messages = window.stage.owner.get(f"/conversations/{lamp['id']}/messages").raise_for_status().json()
    path = f"/conversations/{lamp['id']}/messages/{messages['items'][1]['id']}/redact"
    window.stage.owner.post(path, json={"text": True}).raise_for_status()
    expect(log.get_by_text("Where is my parcel?")).to_have_count(0)
    expect(log.locator("article")).to_have_count(1)


def test_undo_shows_all_messages_once_in_the_first_conversation(window: HostWindow) -> None:
    lamp, parcel = both(window)
    rows(window).first.get_by_role("button").click()
    deliver(window, "Any news?")
    log = window.log()
    path = f"/conversations/{parcel['id']}/merge"
    window.stage.owner.post(path, json={"into": lamp["id"]}).raise_for_status()
    for text in ("My lamp is broken", "Where is my parcel?", "Any news?"):
        expect(log.get_by_text(text)).to_have_count(1)
