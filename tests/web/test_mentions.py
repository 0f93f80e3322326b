"""Mentions in notes and following of conversations, by keyboard, by mouse and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk
from tests.web.harness.stage import PASSWORD, Stage


def members(stage: Stage) -> dict[str, str]:
    """Return the ids of the members by name."""
    (organisation,) = stage.owner.get("/organisations").raise_for_status().json()["items"]
    path = f"/organisations/{organisation['id']}/members"
    return {each["name"]: each["id"] for each in stage.owner.get(path).raise_for_status().json()["items"]}


def notes(stage: Stage, conversation: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the notes of a conversation, each with the names that it mentions."""
    path = f"/conversations/{conversation['id']}/messages"
    items = stage.owner.get(path).raise_for_status().json()["items"]
    return [(each["text"], [one["name"] for one in each["mentions"]]) for each in items if each["internal"]]


def followers(stage: Stage, conversation: dict[str, Any]) -> list[str]:
    """Return the names of the followers."""
    path = f"/conversations/{conversation['id']}"
    found = stage.owner.get(path, params={"view": "agent"}).raise_for_status().json()["followers"]
    names = {user: name for name, user in members(stage).items()}
    return sorted(names[each] for each in found)


def counter(desk: Desk, view: str) -> Locator:
    """Return the counter of a view in the side bar."""
    return desk.page.locator(".side .view", has_text=view).locator(".count")


def options(desk: Desk) -> Locator:
    """Return the suggestions."""
    return desk.page.get_by_role("listbox", name="People and teams").get_by_role("option")


@pytest.fixture
def alan(stage: Stage) -> str:
    """The email address of Alan, an agent."""
    return stage.person("Alan", "agent")


@pytest.fixture
def ada(stage: Stage, alan: str) -> dict[str, Any]:
    """Ada's conversation."""
    return stage.converse("ada", "Where is my order?", name="Ada")


@pytest.mark.journey
def test_note_mentions_a_colleague_by_keyboard_who_finds_it(
    window: Callable[..., Desk], stage: Stage, alan: str, ada: dict[str, Any]
) -> None:
    desk = window(stage)
    desk.sign_in()
    desk.converse("Ada")
    desk.page.keyboard.press("n")
    expect(desk.box).to_be_focused()
    desk.page.keyboard.type("Hello @al")
    expect(options(desk)).to_have_count(1)
    expect(desk.box).to_have_attribute("aria-controls", "mentions")
    active = desk.box.get_attribute("aria-activedescendant")
    assert active == options(desk).get_attribute("id")
    assert findings(desk.page) == []
    desk.page.keyboard.press("Escape")
    expect(options(desk)).to_have_count(0)
    desk.page.keyboard.type("a")
    expect(options(desk)).to_have_count(1)
    desk.page.keyboard.press("Enter")
    expect(desk.box).to_have_value("Hello @Alan ")
    desk.page.keyboard.type("a refund?")
    expect(desk.page.locator(".composer .notified")).to_contain_text("Notifies Alan")
    desk.page.reload()
    expect(desk.page.locator(".composer .notified")).to_contain_text("Notifies Alan")  # with the draft
    desk.box.focus()
    desk.page.keyboard.press("Control+Enter")
    desk.eventually(lambda: notes(stage, ada), [("Hello @Alan a refund?", ["Alan"])])
    expect(desk.log.locator(".mention")).to_have_text("@Alan")

    colleague = window(stage)
    colleague.sign_in(alan, PASSWORD)
    expect(counter(colleague, "Mentions")).to_have_text("1")
    colleague.page.keyboard.press("g")
    colleague.page.keyboard.press("m")
    expect(colleague.row("mentions you")).to_be_visible()
    colleague.page.keyboard.press("j")
    colleague.page.keyboard.press("Enter")
    expect(colleague.log.locator(".mention.me")).to_have_text("@Alan")
    expect(counter(colleague, "Mentions")).to_have_count(0)  # marked as seen when it was opened
    expect(counter(colleague, "Following")).to_have_text("1")
    assert len(followers(stage, ada)) == 2


def test_phone_mentions_with_the_button_and_a_tap(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    desk = window(stage, viewport={"width": 390, "height": 800})
    desk.sign_in()
    desk.open(f"/desk/c/{ada['id']}")
    desk.page.locator(".modes").get_by_role("button", name="Note").click()
    desk.page.get_by_role("button", name="Mention a colleague").click()
    choice = options(desk).filter(has_text="Alan")
    expect(choice).to_be_visible()
    box = choice.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert findings(desk.page) == []
    choice.click()
    expect(desk.box).to_have_value("@Alan ")
    desk.page.keyboard.type("look")
    desk.page.get_by_role("button", name="Add note").click()
    desk.eventually(lambda: notes(stage, ada), [("@Alan look", ["Alan"])])


def test_typed_name_is_offered_and_a_deleted_one_is_not_mentioned(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    desk = window(stage)
    desk.sign_in()
    desk.converse("Ada")
    desk.page.keyboard.press("n")
    desk.box.fill("Ask @Alan, then close")
    offer = desk.page.get_by_role("button", name="Notify Alan")
    expect(offer).to_be_visible()
    offer.click()
    expect(desk.page.locator(".composer .notified")).to_contain_text("Notifies Alan")
    desk.box.fill("Ask nobody")
    expect(desk.page.locator(".composer .notified")).to_have_count(0)
    desk.box.focus()
    desk.page.keyboard.press("Control+Enter")
    desk.eventually(lambda: notes(stage, ada), [("Ask nobody", [])])


def test_conversation_is_followed_by_key_menu_and_undo(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    desk = window(stage)
    desk.sign_in()
    desk.converse("Ada")
    desk.log.focus()
    desk.page.keyboard.press("Shift+F")
    desk.eventually(lambda: len(followers(stage, ada)), 1)
    expect(desk.page.locator(".thread-head .followers")).to_contain_text("Followed by You")
    expect(counter(desk, "Following")).to_have_text("1")
    desk.page.keyboard.press("u")
    desk.eventually(lambda: len(followers(stage, ada)), 0)
    expect(desk.page.locator(".thread-head .followers")).to_have_count(0)
    desk.page.get_by_role("button", name="More actions").click()
    desk.page.get_by_role("menuitem", name="Follow").click()
    desk.eventually(lambda: len(followers(stage, ada)), 1)
    desk.page.keyboard.press("g")
    desk.page.keyboard.press("f")
    expect(desk.row("Ada")).to_be_visible()
