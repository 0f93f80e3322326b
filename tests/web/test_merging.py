"""Merges of conversations in the desk: chosen by keyboard, shown as one thread, undone, and links that lead on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage


def conversations(stage: Stage) -> tuple[dict[str, Any], dict[str, Any]]:
    """Start two conversations of Ada, each with a subject."""
    lamp = stage.converse("ada", "My lamp is broken", name="Ada")
    parcel = stage.converse("ada", "Where is my parcel?")
    for each, subject in ((lamp, "A broken lamp"), (parcel, "A late parcel")):
        stage.owner.patch(f"/conversations/{each['id']}", json={"title": subject}).raise_for_status()
    return lamp, parcel


@pytest.fixture
def two(desk: Desk) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two conversations of Ada; the first one is open."""
    stage = desk.stage
    lamp, parcel = conversations(stage)
    stage.say(lamp, "It flickers")
    desk.sign_in()
    desk.converse("A broken lamp")
    expect(desk.said("It flickers")).to_be_visible()
    return lamp, parcel


def merged_into(stage: Stage, conversation: dict[str, Any]) -> str | None:
    found = stage.owner.get(f"/conversations/{conversation['id']}").raise_for_status().json()
    into: str | None = found.get("mergedInto")
    return into


def merge(stage: Stage, source: dict[str, Any], target: dict[str, Any]) -> None:
    path = f"/conversations/{source['id']}/merge"
    stage.owner.post(path, json={"into": target["id"]}).raise_for_status()


@pytest.mark.journey
def test_conversation_is_merged_by_keyboard_alone_and_the_merge_is_undone(
    desk: Desk, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    lamp, parcel = two
    page = desk.page
    page.locator(".log").focus()
    desk.run_command("Merge into…", "merge into")
    dialog = page.get_by_role("dialog", name="Merge into another conversation")
    expect(dialog.get_by_role("option")).to_have_count(1)
    expect(dialog.get_by_role("option")).to_contain_text("A late parcel")
    expect(dialog.get_by_role("option")).to_contain_text("Where is my parcel?")
    assert findings(page) == []
    page.keyboard.type("nothing like it")
    expect(dialog).to_contain_text("No conversation matches")
    for _ in range(len("nothing like it")):
        page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    desk.eventually(lambda: merged_into(desk.stage, lamp), parcel["id"])
    for text in ("My lamp is broken", "Where is my parcel?", "It flickers"):
        expect(desk.said(text)).to_be_visible()
    expect(page.locator(".run .from").first).to_have_text("from “A broken lamp”")
    expect(desk.row("A broken lamp")).to_have_count(0)
    expect(page.get_by_role("button", name="1 merged conversation")).to_be_visible()
    assert findings(page) == []
    page.locator(".log").focus()
    page.keyboard.press("u")
    desk.eventually(lambda: merged_into(desk.stage, lamp), None)
    expect(desk.said("My lamp is broken")).to_have_count(0)
    expect(desk.said("Where is my parcel?")).to_be_visible()
    expect(desk.row("A broken lamp")).to_be_visible()


def test_timelines_of_both_conversations_say_who_merged_them_and_undid_it(
    desk: Desk, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    lamp, parcel = two
    stage, page = desk.stage, desk.page
    merge(stage, lamp, parcel)
    stage.owner.post(f"/conversations/{lamp['id']}/unmerge").raise_for_status()
    timeline = page.locator("#timeline")
    for each, subject, merged, undone in (
        (lamp, "A broken lamp", "merged it into another conversation", "undid its merge"),
        (
            parcel,
            "A late parcel",
            "merged another conversation into it",
            "separated a merged conversation from it",
        ),
    ):
        desk.open(f"/desk/{stage.demo['projectId']}/c/{each['id']}")
        expect(page.get_by_role("heading", name=subject)).to_be_visible()
        if not timeline.get_attribute("open"):
            timeline.locator("summary").click()
        expect(timeline.locator("li", has_text=merged)).to_have_count(1)
        expect(timeline.locator("li", has_text=undone)).to_have_count(1)


def test_merged_conversation_says_so_and_leads_to_the_other_one(
    desk: Desk, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    """A colleague merges it while it is open here."""
    lamp, parcel = two
    merge(desk.stage, lamp, parcel)
    page = desk.page
    banner = page.locator(".banner.merged")
    expect(banner).to_contain_text("was merged on")
    expect(page.locator(".composer")).to_have_count(0)
    assert findings(page) == []
    banner.get_by_role("button", name="Open the other conversation").click()
    expect(desk.said("Where is my parcel?")).to_be_visible()
    expect(desk.said("It flickers")).to_be_visible()
    page.get_by_role("button", name="1 merged conversation").click()
    page.get_by_role("menuitem", name="A broken lamp").click()
    banner.get_by_role("button", name="Undo the merge").click()
    desk.eventually(lambda: merged_into(desk.stage, lamp), None)
    expect(banner).to_have_count(0)
    expect(page.locator(".composer")).to_be_visible()


def test_link_to_a_message_of_a_merged_conversation_leads_into_the_other_thread(
    desk: Desk, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    lamp, parcel = two
    messages = desk.stage.owner.get(f"/conversations/{lamp['id']}/messages").raise_for_status().json()
    first = messages["items"][0]["id"]
    merge(desk.stage, lamp, parcel)
    project = desk.stage.demo["projectId"]
    desk.page.goto(f"{desk.stage.url}/desk/{project}/c/{lamp['id']}/m/{first}")
    said = desk.said("My lamp is broken")
    expect(said).to_have_attribute("aria-current", "true")
    expect(desk.said("Where is my parcel?")).to_be_visible()
    assert f"/c/{parcel['id']}/m/{first}" in desk.page.url


def test_redacted_message_of_a_merged_conversation_disappears_from_the_thread(
    desk: Desk, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    lamp, parcel = two
    messages = desk.stage.owner.get(f"/conversations/{lamp['id']}/messages").raise_for_status().json()
    merge(desk.stage, lamp, parcel)
    desk.converse("A late parcel")
    expect(desk.said("It flickers")).to_be_visible()
    path = f"/conversations/{lamp['id']}/messages/{messages['items'][1]['id']}/redact"
    desk.stage.owner.post(path, json={"text": True}).raise_for_status()
    expect(desk.said("It flickers")).to_have_count(0)


def test_merge_fits_a_phone(window: Callable[..., Desk], stage: Stage) -> None:
    lamp, parcel = conversations(stage)
    desk = window(stage, viewport={"width": 390, "height": 844})
    desk.sign_in()
    desk.open(f"/desk/c/{lamp['id']}")
    desk.page.get_by_role("button", name="More actions").click()
    desk.page.get_by_role("menuitem", name="Merge into…").click()
    dialog = desk.page.get_by_role("dialog", name="Merge into another conversation")
    expect(dialog.get_by_role("option")).to_be_visible()
    assert desk.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert findings(desk.page) == []
    dialog.get_by_role("option").click()
    desk.eventually(lambda: merged_into(stage, lamp), parcel["id"])
    expect(desk.said("My lamp is broken")).to_be_visible()
    assert desk.page.evaluate("document.documentElement.scrollWidth") <= 390
    desk.open(f"/desk/c/{lamp['id']}")
    expect(desk.page.locator(".banner.merged")).to_be_visible()
    assert desk.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert findings(desk.page) == []
