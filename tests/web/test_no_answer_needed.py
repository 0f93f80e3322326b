"""The mark that a waiting contact needs no answer: by key, menu, palette and for several rows, with its undo."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import PASSWORD, Stage

MARK = "No answer needed"
AGAIN = "Wait for an answer again"


def of(stage: Stage, conversation: dict[str, Any]) -> dict[str, Any]:
    """Return the conversation as an agent sees it."""
    path = f"/conversations/{conversation['id']}"
    found: dict[str, Any] = stage.owner.get(path, params={"view": "agent"}).raise_for_status().json()
    return found


def waits(desk: Desk, name: str) -> Locator:
    """Return the chip in a row that says since when its contact waits."""
    return desk.row(name).locator(".chip").filter(has_text="waiting")


@pytest.fixture
def ada(desk: Desk) -> dict[str, Any]:
    """The open conversation in which Ada says thanks."""
    conversation = desk.stage.converse("ada", "Thanks!", name="Ada")
    desk.sign_in()
    desk.converse("Ada")
    expect(desk.said("Thanks!")).to_be_visible()
    desk.page.locator(".log").focus()
    return conversation


@pytest.mark.journey
def test_key_ends_the_wait_names_who_did_it_and_undo_restores_it(desk: Desk, ada: dict[str, Any]) -> None:
    since = of(desk.stage, ada)["waitingSince"]
    expect(waits(desk, "Ada")).to_be_visible()
    desk.page.keyboard.press("w")
    expect(waits(desk, "Ada")).to_have_count(0)
    expect(desk.log.locator(".settled")).to_contain_text("You marked this as needing no answer · Today")
    expect(desk.page.locator(".toasts")).to_contain_text("Ada: marked as needing no answer")
    marked = of(desk.stage, ada)
    assert (marked["waitingSince"], marked["noAnswerNeededSince"]) == (None, since)
    desk.page.keyboard.press("u")
    desk.eventually(lambda: of(desk.stage, ada)["waitingSince"], since)
    expect(waits(desk, "Ada")).to_be_visible()
    expect(desk.log.locator(".settled")).to_have_count(0)


def test_the_mark_is_shown_before_the_service_has_answered(desk: Desk, ada: dict[str, Any]) -> None:
    held: list[Route] = []
    desk.page.route("**/no-answer-needed", lambda route: held.append(route))
    desk.page.keyboard.press("w")
    expect(waits(desk, "Ada")).to_have_count(0)
    desk.eventually(lambda: len(held), 1)
    assert of(desk.stage, ada)["waitingSince"] is not None
    held[0].continue_()
    desk.eventually(lambda: of(desk.stage, ada)["waitingSince"], None)


def test_a_message_that_arrives_at_the_same_time_still_waits(desk: Desk, ada: dict[str, Any]) -> None:
    desk.tolerated.append(NETWORK)
    since = of(desk.stage, ada)["waitingSince"]

    def write_first(route: Route) -> None:
        desk.stage.say(ada, "But where is my order?")
        route.continue_()

    desk.page.route("**/no-answer-needed", write_first)
    desk.page.keyboard.press("w")
    expect(desk.page.locator(".toasts")).to_contain_text("Couldn't mark Ada as needing no answer")
    expect(waits(desk, "Ada")).to_be_visible()
    assert of(desk.stage, ada)["waitingSince"] == since


def test_undo_leaves_the_wait_that_a_new_message_began(desk: Desk, ada: dict[str, Any]) -> None:
    desk.page.keyboard.press("w")
    desk.eventually(lambda: of(desk.stage, ada)["waitingSince"], None)
    said = desk.stage.say(ada, "One more question")
    expect(desk.said("One more question")).to_be_visible()
    expect(desk.log.locator(".settled")).to_have_count(0)
    desk.page.keyboard.press("u")
    expect(desk.page.locator(".toasts")).to_contain_text("Can't undo")
    assert of(desk.stage, ada)["waitingSince"] == said["createdAt"]


def test_menu_palette_and_thread_mark_and_take_back(desk: Desk, ada: dict[str, Any]) -> None:
    since = of(desk.stage, ada)["waitingSince"]
    desk.page.get_by_role("button", name="More actions").click()
    desk.page.get_by_role("menuitem", name=MARK).click()
    desk.eventually(lambda: of(desk.stage, ada)["waitingSince"], None)
    desk.log.get_by_role("button", name=AGAIN).click()
    desk.eventually(lambda: of(desk.stage, ada)["waitingSince"], since)
    for name, wanted in ((MARK, None), (AGAIN, since)):
        desk.page.locator(".log").focus()
        desk.run_command(name)
        desk.eventually(lambda: of(desk.stage, ada)["waitingSince"], wanted)
    timeline = desk.page.locator("#timeline")
    timeline.locator("summary").click()
    expect(timeline).to_contain_text("marked it as waiting for an answer")
    desk.page.keyboard.press("?")
    keys = desk.page.get_by_role("dialog").locator("dl > div").filter(has_text=MARK)
    expect(keys).to_contain_text("W", ignore_case=True)


def test_selected_rows_are_marked_together_and_undone(desk: Desk) -> None:
    made = [desk.stage.converse(name, "Thanks!", name=name) for name in ("Ada", "Bea", "Cleo")]
    desk.stage.owner.post(f"/conversations/{made[2]['id']}/messages", json={"text": "Hi"}).raise_for_status()
    desk.sign_in()
    desk.view("Unassigned")
    for name in ("Ada", "Bea", "Cleo"):
        desk.row(name).click(modifiers=["ControlOrMeta"])
    desk.page.get_by_role("toolbar").get_by_role("button", name=MARK).click()
    expect(desk.page.locator(".toasts")).to_contain_text("2 conversations marked as needing no answer")
    desk.eventually(lambda: [of(desk.stage, each)["waitingSince"] for each in made], [None] * 3)
    desk.page.keyboard.press("u")
    desk.eventually(
        lambda: [of(desk.stage, each)["waitingSince"] is not None for each in made], [True, True, False]
    )


def test_other_windows_and_the_view_of_waiting_conversations_follow(
    desk: Desk, ada: dict[str, Any], window: Callable[..., Desk]
) -> None:
    other = window(desk.stage)
    other.sign_in()
    other.view("Waiting")
    expect(other.row("Ada")).to_be_visible()
    desk.page.keyboard.press("w")
    expect(other.row("Ada")).to_have_count(0)
    desk.page.keyboard.press("w")  # the same key takes the mark back
    expect(other.row("Ada")).to_be_visible()


def test_a_reader_cannot_mark(desk: Desk) -> None:
    conversation = desk.stage.converse("ada", "Thanks!", name="Ada")
    email = desk.stage.person("Vera", "viewer")
    desk.sign_in(email, PASSWORD)
    desk.view()
    desk.row("Ada").click()
    expect(desk.said("Thanks!")).to_be_visible()
    desk.page.locator(".log").focus()
    desk.page.keyboard.press("w")
    expect(desk.page.locator(".toasts")).to_contain_text("read-only")
    desk.page.get_by_role("button", name="More actions").click()
    expect(desk.page.get_by_role("menuitem", name=MARK)).to_have_count(0)
    assert of(desk.stage, conversation)["waitingSince"] is not None


def test_a_phone_has_the_mark_and_axe_finds_nothing(window: Callable[..., Desk], stage: Stage) -> None:
    conversation = stage.converse("ada", "Thanks!", name="Ada " + "Wonderful " * 6)
    phone = window(stage, viewport={"width": 390, "height": 800}, reduced_motion="reduce")
    phone.sign_in()
    phone.open(f"/desk/{stage.demo['projectId']}/c/{conversation['id']}")
    expect(phone.said("Thanks!")).to_be_visible()
    phone.page.get_by_role("button", name="More actions").click()
    phone.page.get_by_role("menuitem", name=MARK).click()
    line = phone.log.locator(".settled")
    expect(line).to_contain_text(re.compile("You marked"))
    assert phone.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert findings(phone.page) == []
    line.get_by_role("button", name=AGAIN).click()
    expect(line).to_have_count(0)
    phone.eventually(lambda: of(stage, conversation)["waitingSince"] is not None, True)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_bar_above_selected_rows_fits(window: Callable[..., Desk], stage: Stage, width: int) -> None:
    stage.converse("ada", "Thanks!", name="Ada")
    desk = window(stage, viewport={"width": width, "height": 800}, reduced_motion="reduce")
    desk.sign_in()
    desk.open(f"/desk/{stage.demo['projectId']}/inbox/all")
    desk.row("Ada").click(modifiers=["ControlOrMeta"])
    bar = desk.page.get_by_role("toolbar")
    for button in bar.get_by_role("button").all():
        expect(button).to_be_in_viewport(ratio=1)
    bar.get_by_role("button").last.click()
    expect(bar).to_have_count(0)
