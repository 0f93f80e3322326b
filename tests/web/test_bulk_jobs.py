"""All conversations of a view are changed at once: the offer, progress and result above the list, and undo."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage

NUMBER = 53
"""More conversations than the list loads at first."""


def statuses(stage: Stage, made: list[dict[str, Any]]) -> set[str]:
    return {
        stage.owner.get(f"/conversations/{each['id']}").raise_for_status().json()["status"] for each in made
    }


@pytest.fixture
def made(desk: Desk) -> list[dict[str, Any]]:
    """The conversations of a view, all of which are selected."""
    made = [desk.stage.converse(f"u{n}", f"I am {n}", name=f"Person {n}") for n in range(NUMBER)]
    desk.sign_in()
    desk.view("Unassigned")
    expect(desk.row("Person").first).to_be_visible()
    desk.page.locator(".rows").focus()
    desk.page.keyboard.press("Control+a")
    desk.page.get_by_role("button", name=f"Select all {NUMBER} in this view").click()
    expect(desk.page.get_by_role("toolbar", name=f"All {NUMBER} in this view")).to_be_visible()
    return made


def test_all_of_the_view_are_closed_and_opened_again_by_undo(desk: Desk, made: list[dict[str, Any]]) -> None:
    desk.page.keyboard.press("e")
    bar = desk.page.get_by_role("group", name="Bulk change")
    expect(bar).to_contain_text(f"{NUMBER} closed")
    assert statuses(desk.stage, made) == {"CLOSED"}
    assert findings(desk.page) == []
    desk.page.reload()
    expect(bar).to_contain_text(f"{NUMBER} closed")  # in other tabs, too
    desk.page.set_viewport_size({"width": 390, "height": 800})
    assert desk.page.evaluate("() => document.documentElement.scrollWidth") <= 390
    bar.get_by_role("button", name="Undo").click()
    expect(bar).to_contain_text(f"{NUMBER} restored")
    assert statuses(desk.stage, made) == {"OPEN"}
    bar.get_by_role("button", name="Dismiss").click()
    expect(bar).to_have_count(0)


def test_tags_are_added_to_all_of_the_view_and_skipped_ones_have_a_reason(
    desk: Desk, made: list[dict[str, Any]]
) -> None:
    path = f"/conversations/{made[0]['id']}"
    desk.stage.owner.patch(path, json={"tags": ["vip"]}).raise_for_status()
    desk.page.keyboard.press("t")
    dialog = desk.page.get_by_role("dialog", name="Tags of all in this view")
    dialog.get_by_role("combobox").fill("vip")
    desk.page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Save").click()
    bar = desk.page.get_by_role("group", name="Bulk change")
    expect(bar).to_contain_text(f"{NUMBER - 1} with changed tags, 1 skipped")
    bar.get_by_role("button", name="Why").click()
    expect(bar).to_contain_text("1: Nothing to change")
    desk.page.locator(".rows").focus()
    desk.page.keyboard.press("u")
    expect(bar).to_contain_text(f"{NUMBER - 1} restored")
    assert desk.stage.owner.get(path, params={"view": "agent"}).json()["tags"] == ["vip"]
