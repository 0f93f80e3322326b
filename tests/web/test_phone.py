"""The desk on a phone: all of it within reach, in targets for fingers, without broken words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import PASSWORD, Stage

SMALL = """scope => [...document.querySelectorAll(scope)].flatMap(part => [...part.querySelectorAll(
    "button, a[href], input:not([type=hidden]), select, summary, [role=option], textarea")])
  .filter(each => each.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !each.closest("p, dd, [inert]"))
  .map(each => each.matches("input[type=checkbox], input[type=radio]") ? each.closest("label") ?? each : each)
  .map(each => [each, each.getBoundingClientRect()])
  .filter(([each, box]) => box.width > 1 && (box.height < 43.5 || box.width < 43.5))
  .map(([each, box]) => `${each.outerHTML.slice(0, 120)}: ${Math.round(box.width)} by ${Math.round(box.height)}`)"""
"""Return the controls that are smaller than 44 pixels, except links within a text."""
BROKEN = """() => [...document.querySelectorAll(".table :is(th, td)")].flatMap(cell => {
  const found = [], walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) for (const { 0: word, index } of node.data.matchAll(/\\p{L}{3,}/gu)) {
    const range = document.createRange();
    range.setStart(node, index), range.setEnd(node, index + word.length);
    if (node.parentElement.checkVisibility() && !node.parentElement.closest(".sr, .mono, code") && range.getClientRects().length > 1) found.push(word);
  }
  return found;
})"""
"""Return the words of tables that are broken between two lines."""


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service with conversations, tickets and members."""
    for number in range(3):
        conversation = shared_stage.converse(f"p{number}", "Hello!", name=f"Pia {number}")
        path = f"/conversations/{conversation['id']}"
        shared_stage.owner.post(f"{path}/messages", json={"text": "I am here."}).raise_for_status()
    shared_stage.owner.post(
        "/tickets", json={"title": "An unusually long title of a ticket", "tags": ["vip"]}
    )
    shared_stage.person("Grace", "agent")
    return shared_stage


@pytest.fixture
def phone(window: Callable[..., Desk], stage: Stage) -> Desk:
    """A narrow window."""
    return window(stage, viewport={"width": 390, "height": 800}, reduced_motion="reduce")


def navigation(desk: Desk) -> Locator:
    """Open the navigation, and return it."""
    desk.page.get_by_role("button", name="Navigation").click()
    found = desk.page.get_by_role("navigation", name="Views")
    expect(found).to_be_visible()
    return found


def sideways(page: Page) -> Any:
    """Return by how many pixels the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.mark.journey
def test_navigation_has_everything(phone: Desk) -> None:
    phone.sign_in("grace@demo.example", PASSWORD)
    side = navigation(phone)
    for name in ("Mine", "Waiting", "Unassigned", "All"):
        expect(side.get_by_role("link", name=re.compile(rf"^{name}\b")).first).to_be_visible()
    expect(side.get_by_role("button", name=re.compile("Connection: Live"))).to_be_in_viewport(ratio=1)
    assert findings(phone.page) == []
    assert phone.page.evaluate(SMALL, ".side") == []
    side.get_by_role("link", name="Tickets").click()
    expect(side).to_be_hidden()
    expect(phone.page.get_by_role("heading", level=1, name="Tickets")).to_be_visible()
    navigation(phone).get_by_text("Settings", exact=True).click()
    side.get_by_role("link", name="Your sessions").click()
    expect(side).to_be_hidden()
    expect(phone.page.get_by_role("heading", level=1, name="Your sessions")).to_be_visible()
    navigation(phone).get_by_role("link", name="All", exact=True).click()
    expect(side).to_be_hidden()
    expect(phone.page.get_by_role("heading", level=1, name="All")).to_be_visible()
    navigation(phone).get_by_role("button", name=re.compile("You and your settings")).click()
    phone.page.get_by_role("menuitem", name="Sign out").click()
    expect(phone.page.get_by_label("Email")).to_be_visible()


def test_navigation_works_by_keyboard_alone(phone: Desk) -> None:
    phone.sign_in()
    page, keys = phone.page, phone.page.keyboard
    page.get_by_role("button", name="Navigation").focus()
    keys.press("Enter")
    contacts = page.get_by_role("navigation", name="Views").get_by_role("link", name="Contacts", exact=True)
    expect(contacts).to_be_visible()
    for _ in range(30):
        if contacts.evaluate("each => each === document.activeElement"):
            break
        keys.press("Tab")
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Contacts")).to_be_visible()
    button = page.get_by_role("button", name="Navigation")
    button.focus()
    keys.press("Enter")
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("navigation", name="Views")).to_be_hidden()
    expect(button).to_be_focused()


@pytest.mark.journey
def test_lost_connection_marks_the_button_of_the_navigation(phone: Desk) -> None:
    phone.tolerated.append(NETWORK)
    phone.sign_in()
    button = phone.page.get_by_role("button", name="Navigation")
    dot = "each => getComputedStyle(each, '::after').content"
    expect(phone.page.locator("html[data-link=live]")).to_have_count(1)
    phone.eventually(lambda: button.evaluate(dot), "none")
    phone.stage.close_road()
    try:
        expect(phone.page.locator("html[data-link=busy], html[data-link=off]")).to_have_count(1)
        phone.eventually(lambda: button.evaluate(dot), '""')
    finally:
        phone.stage.open_road()
    expect(phone.page.locator("html[data-link=live]")).to_have_count(1, timeout=40_000)


def test_targets_of_the_inbox_are_large_enough(phone: Desk) -> None:
    phone.sign_in()
    navigation(phone).get_by_role("link", name="All", exact=True).click()
    expect(phone.page.get_by_role("option").first).to_be_visible()
    assert phone.page.evaluate(SMALL, ".list") == []
    phone.page.get_by_role("button", name="Any status").click()
    assert phone.page.evaluate(SMALL, "[role=menu]") == []
    phone.page.keyboard.press("Escape")
    phone.row("Pia 1").click()
    expect(phone.said("I am here.")).to_be_visible()
    assert phone.page.evaluate(SMALL, ".thread") == []
    phone.page.get_by_role("button", name="Contact", exact=True).click()
    expect(phone.page.get_by_role("complementary", name="Contact")).to_be_visible()
    assert phone.page.evaluate(SMALL, ".context") == []
    assert sideways(phone.page) <= 0


@pytest.mark.parametrize(
    "path",
    [
        "tickets",
        "contacts",
        "settings/members",
        "settings/sessions",
        "settings/teams",
        "settings/snippets",
        "reports",
        "settings/audit",
        "surveys",
        "workflows",
        "webhooks",
        "console",
        "settings/account",
        "settings/channels",
        "settings/keys",
    ],
)
def test_pages_fit_and_break_no_words(phone: Desk, path: str) -> None:
    phone.sign_in()
    phone.open(f"/desk/{path}")
    expect(phone.page.locator(".page-head h1")).to_be_visible()
    expect(phone.page.locator("[aria-busy=true]")).to_have_count(0)
    assert phone.page.evaluate(BROKEN) == []
    assert sideways(phone.page) <= 0
    assert phone.page.evaluate(SMALL, ".page") == []
