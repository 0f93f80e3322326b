"""All conversations of a view are changed at once: the offer, progress and result above the list, and undo."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import PASSWORD, Stage

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


@pytest.mark.journey
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


def test_job_whose_module_is_lost_is_not_started_and_says_so(desk: Desk, made: list[dict[str, Any]]) -> None:
    desk.tolerated.append(NETWORK)
    module = re.compile(r"/inbox/bulk-jobs\.js$")
    desk.page.route(module, lambda route: route.abort())
    desk.page.reload()
    expect(desk.row("Person").first).to_be_visible()
    take_all(desk)
    desk.page.keyboard.press("e")
    expect(desk.page.get_by_text("This part of the desk couldn't be loaded.").first).to_be_visible()
    assert statuses(desk.stage, made) == {"OPEN"}
    desk.page.unroute(module)
    desk.page.locator(".rows").focus()
    desk.page.keyboard.press("e")
    expect(bar_of(desk)).to_contain_text(f"{NUMBER} closed")


def own(stage: Stage, made: list[dict[str, Any]], name: str) -> list[Any]:
    """Return a field of each conversation as the owner sees it."""
    paths = [f"/conversations/{each['id']}?view=agent" for each in made]
    return [stage.owner.get(path).raise_for_status().json()[name] for path in paths]


def bar_of(desk: Desk) -> Locator:
    return desk.page.get_by_role("group", name="Bulk change")


def take_all(desk: Desk) -> None:
    """Select all of the view by keyboard and the offer."""
    desk.page.locator(".rows").focus()
    desk.page.keyboard.press("Control+a")
    desk.page.get_by_role("button", name="Select all").click()


def test_all_of_the_view_need_no_answer_and_wait_again(desk: Desk, made: list[dict[str, Any]]) -> None:
    since = own(desk.stage, made, "waitingSince")
    desk.page.keyboard.press("w")
    bar = bar_of(desk)
    expect(bar).to_contain_text(f"{NUMBER} marked as needing no answer")
    assert own(desk.stage, made, "noAnswerNeededSince") == since
    desk.page.locator(".rows").focus()
    desk.page.keyboard.press("u")
    expect(bar).to_contain_text(f"{NUMBER} restored")
    assert own(desk.stage, made, "waitingSince") == since
    path = f"/conversations/{made[0]['id']}/no-answer-needed"
    desk.stage.owner.put(path, json={"index": 0}).raise_for_status()
    take_all(desk)
    desk.run_command("Wait for an answer again")
    expect(bar).to_contain_text(f"1 marked as waiting for an answer, {NUMBER - 1} skipped")
    assert own(desk.stage, made, "waitingSince") == since


def test_all_of_the_view_are_unread_until_undo(desk: Desk, made: list[dict[str, Any]]) -> None:
    desk.stage.owner.put("/inbox/seen", json={}).raise_for_status()
    unread, rows = desk.page.locator(".rows .row.unread"), desk.page.locator(".rows .row")
    expect(unread).to_have_count(0)
    desk.page.get_by_role("toolbar").get_by_role("button", name="Mark unread").click()
    bar = bar_of(desk)
    expect(bar).to_contain_text(f"{NUMBER} marked unread")
    expect(unread).to_have_count(rows.count())
    assert {each["unread"] for each in own(desk.stage, made, "mine")} == {1}
    bar.get_by_role("button", name="Undo").click()
    expect(bar).to_contain_text(f"{NUMBER} restored")
    expect(unread).to_have_count(0)
    assert {each["unread"] for each in own(desk.stage, made, "mine")} == {0}


def test_all_of_the_view_are_followed_on_a_phone_and_by_palette_no_longer(
    desk: Desk, made: list[dict[str, Any]], window: Callable[..., Desk]
) -> None:
    page, bar = desk.page, bar_of(desk)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert findings(page) == []
    page.get_by_role("toolbar").get_by_role("button", name="Follow").click()
    expect(bar).to_contain_text(f"{NUMBER} followed")
    assert {len(each) for each in own(desk.stage, made, "followers")} == {1}
    german = window(desk.stage, locale="de-AT")
    german.start_session()
    german.open()
    expect(german.page.get_by_role("group", name="Sammeländerung")).to_contain_text(f"{NUMBER} gefolgt")
    page.set_viewport_size({"width": 1440, "height": 900})
    take_all(desk)
    desk.run_command("Stop following")
    expect(bar).to_contain_text(f"{NUMBER} no longer followed")
    bar.get_by_role("button", name="Undo").click()
    expect(bar).to_contain_text(f"{NUMBER} restored")
    assert {len(each) for each in own(desk.stage, made, "followers")} == {1}


def test_reader_follows_all_of_the_view_and_closes_none(desk: Desk) -> None:
    made = [desk.stage.converse(f"u{n}", f"I am {n}", name=f"Person {n}") for n in range(NUMBER)]
    desk.sign_in(desk.stage.person("Vera", "viewer"), PASSWORD)
    desk.view("Unassigned")
    expect(desk.row("Person").first).to_be_visible()
    take_all(desk)
    desk.page.keyboard.press("e")
    expect(desk.page.locator(".toasts")).to_contain_text("Your role here is read-only")
    desk.page.keyboard.press("Shift+f")
    expect(bar_of(desk)).to_contain_text(f"{NUMBER} followed")
    assert {len(each) for each in own(desk.stage, made, "followers")} == {1}
    assert statuses(desk.stage, made) == {"OPEN"}
