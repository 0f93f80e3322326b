"""The cards of a survey's questions are moved by dragging: with a mouse, with a finger, and not by accident."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk
from tests.web.harness.insights import DEFINITION, edited, fits, survey, viewer
from tests.web.harness.stage import Stage

TITLES = ["Would you recommend us?", "Why?", "Your plan?"]


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own survey."""
    return shared_stage


def editor(desk: Desk, stage: Stage, name: str) -> Page:
    made = survey(stage, name)
    page = edited(desk, f"surveys/{made['id']}?part=definition", name)
    for number in (1, 2, 3):  # folded, all fit on the screen
        page.get_by_role("button", name=re.compile(f"^{number} ?[WY]")).click()
    return page


def titles(page: Page) -> Locator:
    return page.locator(".fold bdi")


def box(of: Locator) -> FloatRect:
    found = of.bounding_box()
    assert found
    return found


def hold(page: Page, number: int) -> None:
    """Press the mouse on the grip of a card."""
    page.locator(".grip").nth(number - 1).hover()
    page.mouse.down()


def drag(page: Page, to: int) -> None:
    """Move the mouse over the lower half of a card, or over the upper one if that is negative."""
    card = box(page.locator(".question").nth(abs(to) - 1))
    page.mouse.move(card["x"] + 20, card["y"] + card["height"] * (0.8 if to > 0 else 0.2), steps=5)


@pytest.mark.journey
def test_card_is_dragged_down_and_up_and_that_is_undone(desk: Desk, stage: Stage) -> None:
    page = editor(desk, stage, "Dragged")
    hold(page, 1)
    drag(page, 3)
    expect(page.locator(".question.drop-below")).to_have_count(1)
    expect(titles(page)).to_have_text(TITLES)  # until it is dropped
    page.mouse.up()
    expect(titles(page)).to_have_text(["Why?", "Your plan?", "Would you recommend us?"])
    expect(page.locator(".dragged, .drop-above, .drop-below")).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("^3 ?Would"))).to_be_focused()
    hold(page, 3)
    drag(page, -2)
    expect(page.locator(".question.drop-above")).to_have_count(1)
    page.mouse.up()
    expect(titles(page)).to_have_text(["Why?", "Would you recommend us?", "Your plan?"])
    assert findings(page) == []
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    expect(titles(page)).to_have_text(TITLES)


def test_escape_a_click_and_the_same_place_change_nothing(desk: Desk, stage: Stage) -> None:
    page = editor(desk, stage, "Not dragged")
    page.locator(".grip").first.click()
    hold(page, 1)
    drag(page, 3)
    page.keyboard.press("Escape")
    expect(page.locator(".dragged")).to_have_count(0)
    page.mouse.up()
    hold(page, 2)
    drag(page, 3)
    drag(page, 2)
    page.mouse.up()
    expect(titles(page)).to_have_text(TITLES)
    expect(page.get_by_role("button", name="Undo", exact=True)).to_have_attribute("aria-disabled", "true")


def test_list_scrolls_while_a_card_is_held_at_its_edge(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, viewport={"width": 1200, "height": 500})
    made: dict[str, Any] = dict(DEFINITION)
    many = [{"id": f"q{n}", "type": "text", "title": {"en": f"Number {n}"}} for n in range(20)]
    body = {"name": "Long", "definition": {**made, "questions": many}}
    long = stage.owner.post("/engagement/surveys", json=body).raise_for_status().json()
    page = edited(desk, f"surveys/{long['id']}?part=definition", "Long")
    page.locator(".grip").first.scroll_into_view_if_needed()
    hold(page, 1)
    page.mouse.move(600, 495, steps=3)
    expect(page.locator(".question").nth(19)).to_have_class(re.compile("drop-below"))
    page.mouse.up()
    expect(titles(page).nth(19)).to_have_text("Number 0")
    expect(titles(page).first).to_have_text("Number 1")


def test_finger_drags_a_card_on_a_phone(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, viewport={"width": 390, "height": 844}, has_touch=True)
    page = editor(desk, stage, "By finger")
    fits(page)
    assert findings(page) == []
    page.locator(".grip").first.scroll_into_view_if_needed()
    grip, last = box(page.locator(".grip").first), box(page.locator(".question").nth(2))
    assert grip["width"] >= 44
    touch = desk.context.new_cdp_session(page)
    x, down = grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2
    up = last["y"] + last["height"] - 4

    def send(kind: str, y: float | None) -> None:
        points = [] if y is None else [{"x": x, "y": y}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", down)
    for step in range(1, 9):
        send("touchMove", down + (up - down) * step / 8)
    expect(page.locator(".question.drop-below")).to_have_count(1)
    send("touchEnd", None)
    expect(titles(page)).to_have_text(["Why?", "Your plan?", "Would you recommend us?"])


def test_reader_has_no_grips(window: Callable[..., Desk], stage: Stage) -> None:
    made = survey(stage, "Read only cards")
    desk = window(stage)
    viewer(desk, stage, "Gus")
    desk.open(f"/desk/surveys/{made['id']}?part=definition")
    expect(desk.page.get_by_role("group", name="Question 1", exact=True)).to_be_visible()
    expect(desk.page.locator(".grip")).to_have_count(0)
