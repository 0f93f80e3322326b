"""The panel follows its conversation into the one that an agent merges it into, at once and after a reload."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.web.harness.widget import HostWindow
from tests.web.widget.test_panel import reply, started


@pytest.mark.journey
def test_panel_shows_both_threads_and_sends_into_the_one_that_remains(window: HostWindow) -> None:
    conversation = started(window, "My lamp is broken")
    stage = window.stage
    contact = conversation["contact"]["userId"]
    other = stage.converse(contact, "Where is my parcel?")
    path = f"/conversations/{conversation['id']}/merge"
    stage.owner.post(path, json={"into": other["id"]}).raise_for_status()
    log = window.log()
    for text in ("My lamp is broken", "Where is my parcel?"):
        expect(log.get_by_text(text)).to_be_visible()
    reply(stage, other, "Both are on their way")
    expect(log.get_by_text("Both are on their way")).to_be_visible()
    window.say("Thank you")
    expect(log.get_by_text("Thank you")).to_be_visible()
    expect(log.get_by_text("Delivered")).to_be_visible()
    assert "Thank you" in stage.messages(other)
    stage.owner.post(f"/conversations/{conversation['id']}/unmerge").raise_for_status()
    expect(log.get_by_text("My lamp is broken")).to_have_count(0)
    expect(log.get_by_text("Where is my parcel?")).to_be_visible()
    window.panel.get_by_role("button", name=re.compile("All conversations")).click()
    separate = window.panel.get_by_role("listitem").filter(has_text="My lamp is broken")
    expect(separate).to_contain_text("You")


def test_panel_that_was_closed_during_the_merge_opens_the_one_that_remains(window: HostWindow) -> None:
    conversation = started(window, "My lamp is broken")
    stage = window.stage
    other = stage.converse(conversation["contact"]["userId"], "Where is my parcel?")
    window.page.goto("about:blank")
    path = f"/conversations/{conversation['id']}/merge"
    stage.owner.post(path, json={"into": other["id"]}).raise_for_status()
    window.page.go_back()
    window.button.click()
    log = window.log()
    if log.count() == 0:
        window.panel.get_by_text("Where is my parcel?").click()
    for text in ("My lamp is broken", "Where is my parcel?"):
        expect(log.get_by_text(text)).to_be_visible()
