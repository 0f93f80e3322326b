"""Keys act on visible conversations only, and report if there are none."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage

NOTHING = "No conversation is open or selected"


@pytest.fixture
def three(desk: Desk) -> Desk:
    """The desk on *Unassigned* with three conversations, newest first: Cleo, Bea, Ada."""
    for name in ("Ada", "Bea", "Cleo"):
        desk.stage.converse(name.lower(), f"I am {name}", name=name)
    close_others(desk.stage, {"Ada", "Bea", "Cleo"})
    desk.sign_in()
    desk.view("Unassigned")
    expect(desk.page.get_by_role("option")).to_have_count(3)
    return desk


def close_others(stage: Stage, names: set[str]) -> None:
    """Close the demo's conversations."""
    items = stage.owner.get("/conversations", params={"limit": "100"}).json()["items"]
    for each in items:
        if each["contact"]["name"] not in names and each["status"] != "CLOSED":
            stage.owner.post(f"/conversations/{each['id']}/close").raise_for_status()


def statuses(stage: Stage) -> dict[str, str]:
    """Return the status of each conversation, by its contact's name."""
    items = stage.owner.get("/conversations", params={"limit": "100"}).json()["items"]
    return {each["contact"]["name"]: each["status"] for each in items}


def move_to(desk: Desk, name: str) -> None:
    """Move the cursor to a row, from the first one."""
    desk.page.keyboard.press("j")
    rows = desk.page.get_by_role("option").count()
    for key in ["k"] * rows + ["j"] * rows:
        if key == "j" and active(desk) == name:
            return
        desk.page.keyboard.press(key)
    assert active(desk) == name


def open_row(desk: Desk, name: str) -> None:
    """Open a row by keys, and wait for its thread."""
    move_to(desk, name)
    desk.page.keyboard.press("Enter")
    expect(desk.said(f"I am {name}")).to_be_visible()


def read_ada(desk: Desk) -> None:
    """Focus the thread of a conversation with Ada."""
    desk.stage.converse("ada", "I am Ada", name="Ada")
    desk.sign_in()
    desk.converse("Ada")
    expect(desk.said("I am Ada")).to_be_visible()
    desk.page.locator(".log").focus()


def active(desk: Desk) -> str:
    return str(desk.page.locator("[role=option].active .who").inner_text())


@pytest.mark.journey
def test_cursor_moves_on_when_its_row_leaves(three: Desk) -> None:
    open_row(three, "Bea")
    three.page.keyboard.press("a")
    expect(three.row("Bea")).to_have_count(0)
    expect(three.page.locator("[role=option].active")).to_contain_text("Ada")
    three.page.keyboard.press("m")
    expect(three.page.get_by_text("No conversation is open")).to_be_visible()
    expect(three.page.locator("[role=option].active")).to_contain_text("Ada")
    three.page.keyboard.press("e")
    expect(three.page.locator(".toasts")).to_contain_text("Ada: closed")
    three.eventually(lambda: statuses(three.stage)["Ada"], "CLOSED")
    assert statuses(three.stage)["Bea"] == "OPEN"


def test_key_without_a_visible_row_is_reported(three: Desk) -> None:
    for name in ("Cleo", "Bea", "Ada"):
        open_row(three, name)
        three.page.keyboard.press("a")
        expect(three.row(name)).to_have_count(0)
    three.page.keyboard.press("m")
    expect(three.page.get_by_text("No conversation is open", exact=True)).to_be_visible()
    for key in ("e", "p", "o", "a", "m"):
        three.page.keyboard.press(key)
        expect(three.page.locator(".toasts")).to_contain_text(NOTHING)
    for key in ("t", "z", "Shift+A"):
        three.page.keyboard.press(key)
        expect(three.page.get_by_role("dialog")).to_have_count(0)
    for key in ("r", "n"):
        three.page.keyboard.press(key)
        three.page.keyboard.type("everything")
        expect(three.page.locator(".toasts")).to_contain_text(NOTHING)
    assert {statuses(three.stage)[name] for name in ("Ada", "Bea", "Cleo")} == {"OPEN"}


def test_next_conversation_continues_from_the_former_place(three: Desk) -> None:
    open_row(three, "Bea")
    three.page.keyboard.press("a")
    expect(three.row("Bea")).to_have_count(0)
    three.page.keyboard.press("]")
    expect(three.said("I am Ada")).to_be_visible()


def test_selected_row_that_left_is_no_target(three: Desk) -> None:
    for name in ("Ada", "Bea"):
        three.row(name).click(modifiers=["ControlOrMeta"])
    expect(three.page.get_by_role("toolbar", name=re.compile("2 selected"))).to_be_visible()
    three.page.get_by_role("searchbox").hover()  # the order is held only while the list is in use
    three.page.locator(".thread").click()
    items = three.stage.owner.get("/conversations", params={"limit": "100"}).json()["items"]
    (ada,) = [each["id"] for each in items if each["contact"]["name"] == "Ada"]
    user = three.stage.owner.get("/users/me").json()
    body = {"assignee": {"type": "user", "id": user["id"]}}
    three.stage.owner.post(f"/conversations/{ada}/assign", json=body).raise_for_status()
    expect(three.row("Ada")).to_have_count(0)
    expect(three.page.get_by_role("toolbar", name=re.compile("1 selected"))).to_be_visible()
    three.page.keyboard.press("e")
    three.eventually(lambda: statuses(three.stage)["Bea"], "CLOSED")
    assert statuses(three.stage)["Ada"] == "OPEN"


def test_hidden_selection_is_no_target_during_search(three: Desk) -> None:
    three.row("Ada").click(modifiers=["ControlOrMeta"])
    three.page.get_by_role("searchbox").fill("Cleo")
    found = three.page.get_by_role("button", name=re.compile("I am Cleo"))
    expect(found).to_be_visible()
    three.page.keyboard.press("ArrowDown")
    expect(found).to_be_focused()
    three.page.keyboard.press("e")
    three.eventually(lambda: statuses(three.stage)["Cleo"], "CLOSED")
    assert statuses(three.stage)["Ada"] == "OPEN"


def test_scrolled_away_row_is_shown_before_a_key_acts(desk: Desk) -> None:
    for number in range(30):
        desk.stage.converse(f"s{number}", f"I am number {number}", name=f"Contact {number:02}")
    desk.sign_in()
    desk.view("Unassigned")
    expect(desk.row("Contact 29")).to_be_visible()
    desk.page.keyboard.press("j")
    rows = desk.page.locator(".rows")
    marked = active(desk)
    rows.evaluate("element => element.scrollTo(0, 1200)")
    expect(desk.page.locator("[role=option].active")).not_to_be_in_viewport()
    desk.page.keyboard.press("e")
    expect(desk.page.locator(".toasts")).to_contain_text("scrolled out of view")
    expect(desk.page.locator("[role=option].active")).to_be_in_viewport()
    assert statuses(desk.stage)[marked] == "OPEN"
    desk.page.keyboard.press("e")
    expect(desk.page.locator(".toasts")).to_contain_text(f"{marked}: closed")


DELAY = "() => { const frame = requestAnimationFrame; window.requestAnimationFrame = then => setTimeout(() => frame(then), 400); }"


@pytest.mark.parametrize(("key", "label"), [("r", "Reply to Ada"), ("n", "Write a note")])
def test_keys_before_the_editor_has_focus_are_text(desk: Desk, key: str, label: str) -> None:
    read_ada(desk)
    desk.page.evaluate(DELAY)
    desk.page.keyboard.press(key)
    desk.page.keyboard.type("everything again, Ada!")
    expect(desk.box).to_have_value("everything again, Ada!")
    expect(desk.page.get_by_label(re.compile(label))).to_be_focused()
    assert statuses(desk.stage)["Ada"] == "OPEN"
    (one,) = [
        each
        for each in desk.stage.owner.get("/conversations", params={"limit": "100"}).json()["items"]
        if each["contact"]["name"] == "Ada"
    ]
    assert one["assignee"] is None


def test_keys_typed_while_a_conversation_opens_are_text(desk: Desk) -> None:
    desk.stage.converse("ada", "I am Ada", name="Ada")
    desk.sign_in()
    desk.view()
    desk.row("Ada").wait_for()
    move_to(desk, "Ada")
    desk.page.keyboard.type("reset password")  # `r` is the command, on a row that is not open yet
    expect(desk.box).to_have_value("eset password")
    expect(desk.box).to_be_focused()
    assert statuses(desk.stage)["Ada"] == "OPEN"


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("/", ".list-search input"),
        ("t", "dialog input"),
        ("Shift+A", "dialog input"),
        ("Control+k", "dialog input"),
        ("c", "dialog input"),
    ],
)
def test_keys_before_a_dialog_opens_are_text(desk: Desk, key: str, field: str) -> None:
    read_ada(desk)
    desk.page.evaluate(DELAY)
    desk.page.keyboard.press(key)
    desk.page.keyboard.type("apex")
    expect(desk.page.locator(field).first).to_have_value("apex")
    assert statuses(desk.stage)["Ada"] == "OPEN"


def test_keys_after_the_palettes_key_in_a_draft_are_text_for_the_palette(desk: Desk) -> None:
    read_ada(desk)
    desk.page.keyboard.press("r")
    desk.page.keyboard.type("Hello Ada")
    expect(desk.box).to_have_value("Hello Ada")
    desk.page.evaluate(DELAY)
    desk.page.keyboard.press("Control+k")
    desk.page.keyboard.type("apex")
    expect(desk.page.locator("dialog input").first).to_have_value("apex")
    expect(desk.box).to_have_value("Hello Ada")


def test_escape_ends_type_ahead(desk: Desk) -> None:
    read_ada(desk)
    desk.page.evaluate("() => { window.requestAnimationFrame = () => 0; }")
    desk.page.evaluate("() => { HTMLElement.prototype.focus = () => {}; }")
    desk.page.keyboard.press("r")
    desk.page.keyboard.press("e")
    desk.page.keyboard.press("Escape")
    desk.page.keyboard.press("e")
    desk.eventually(lambda: statuses(desk.stage)["Ada"], "CLOSED")


def test_keys_before_actions_are_loaded_are_text(desk: Desk) -> None:
    desk.stage.converse("ada", "I am Ada", name="Ada")
    held: list[Route] = []
    desk.page.route("**/actions.js", lambda route: held.append(route))
    desk.sign_in()
    desk.view()
    desk.row("Ada").wait_for()
    move_to(desk, "Ada")
    desk.page.keyboard.press("t")
    desk.page.keyboard.type("express")
    for route in held:
        route.continue_()
    expect(desk.page.locator("dialog input").first).to_have_value("express")
    assert held
    assert statuses(desk.stage)["Ada"] == "OPEN"


def test_enter_after_escape_reopens_the_row(desk: Desk) -> None:
    read_ada(desk)
    desk.page.evaluate(DELAY)
    desk.page.keyboard.press("Escape")
    desk.page.keyboard.press("Enter")
    expect(desk.said("I am Ada")).to_be_visible()
