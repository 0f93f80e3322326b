"""Each view of the inbox has an address: links, Back, Forward and reload lead to it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests."""
    shared_stage.converse("views-1", "Where is my parcel?", name="Vera Views")
    return shared_stage


def _address(stage: Stage, rest: str) -> str:
    return f"{stage.url}/desk/{stage.demo['projectId']}/{rest}"


def _heading(desk: Desk, name: str) -> Locator:
    return desk.page.get_by_role("region", name="Conversations").get_by_role("heading", level=1, name=name)


def _shows(desk: Desk, name: str, rest: str) -> None:
    """Fail unless the desk shows the view of this name at this address."""
    expect(_heading(desk, name)).to_be_visible()
    expect(desk.page).to_have_url(_address(desk.stage, rest))


@pytest.mark.journey
def test_views_are_links_and_back_returns_to_the_previous_view(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    _shows(desk, "Mine", "inbox/mine")
    views = desk.page.get_by_role("navigation", name="Views")
    link = views.get_by_role("link", name=re.compile("^Waiting"))
    assert link.get_attribute("href") == f"/desk/{stage.demo['projectId']}/inbox/waiting"
    link.click()
    _shows(desk, "Waiting", "inbox/waiting")
    expect(link).to_have_attribute("aria-current", "page")
    desk.view("Unassigned")
    _shows(desk, "Unassigned", "inbox/unassigned")
    desk.page.go_back()
    _shows(desk, "Waiting", "inbox/waiting")
    desk.page.go_back()
    _shows(desk, "Mine", "inbox/mine")
    desk.page.go_forward()
    _shows(desk, "Waiting", "inbox/waiting")


def test_filter_is_in_the_address_and_survives_reload(desk: Desk, window: Callable[..., Desk]) -> None:
    desk.sign_in()
    desk.view()
    desk.page.get_by_role("button", name="Any status").click()
    desk.page.get_by_role("menuitemradio", name="Closed").click()
    _shows(desk, "All", "inbox/all?status=CLOSED")
    desk.page.reload()
    _shows(desk, "All", "inbox/all?status=CLOSED")
    expect(desk.page.get_by_role("button", name="Closed")).to_be_visible()
    other = window(desk.stage)
    other.sign_in()
    other.page.goto(desk.page.url)
    _shows(other, "All", "inbox/all?status=CLOSED")
    expect(other.page.get_by_role("heading", name="No conversations match these filters")).to_be_visible()
    other.page.get_by_role("button", name="Clear filters").click()
    _shows(other, "All", "inbox/all")
    expect(other.row("Vera Views")).to_be_visible()


def test_conversation_keeps_its_view_through_back_and_reload(desk: Desk) -> None:
    desk.sign_in()
    desk.view("Unassigned")
    desk.row("Vera Views").click()
    expect(desk.page).to_have_url(re.compile("/c/cnv_"))
    expect(_heading(desk, "Unassigned")).to_be_visible()
    desk.view("Snoozed")
    _shows(desk, "Snoozed", "inbox/snoozed")
    desk.page.go_back()
    expect(desk.said("Where is my parcel?")).to_be_visible()
    expect(_heading(desk, "Unassigned")).to_be_visible()
    desk.page.reload()
    expect(desk.said("Where is my parcel?")).to_be_visible()
    expect(_heading(desk, "Unassigned")).to_be_visible()
    desk.page.keyboard.press("Escape")
    _shows(desk, "Unassigned", "inbox/unassigned")


def test_keys_go_to_the_addresses_of_views(desk: Desk) -> None:
    desk.sign_in()
    for keys, name, rest in (
        ("gu", "Unassigned", "unassigned"),
        ("ga", "All", "all"),
        ("gi", "Mine", "mine"),
    ):
        for key in keys:
            desk.page.keyboard.press(key)
        _shows(desk, name, f"inbox/{rest}")
    desk.open()
    _shows(desk, "Mine", "inbox/mine")
    desk.open(f"/desk/{desk.stage.demo['projectId']}/inbox/nonsense")
    expect(_heading(desk, "Mine")).to_be_visible()


def test_filter_dialog_makes_chips_that_lists_follow(desk: Desk, stage: Stage) -> None:
    gold = stage.converse("gold-1", "Gold speaking", name="Goldie")
    path = f"/s2s/contacts/{gold['contact']['userId']}"
    stage.s2s.patch(path, json={"attributes": {"plan": "gold"}}).raise_for_status()
    stage.owner.patch(f"/conversations/{gold['id']}", json={"tags": ["vip"]}).raise_for_status()
    desk.sign_in()
    desk.view()
    desk.page.keyboard.press("f")
    dialog = desk.page.get_by_role("dialog", name="Filter this view")
    expect(dialog.get_by_label("With any of these tags")).to_be_focused()
    desk.page.keyboard.type("vip, returns")
    dialog.get_by_label("Attributes of the contact").fill("gold")
    desk.page.keyboard.press("Enter")
    desk.tolerated.append("Failed to load resource")
    expect(dialog.get_by_text("This must be `name:value`")).to_be_visible()
    expect(dialog.get_by_label("Attributes of the contact")).to_be_focused()
    dialog.get_by_label("Attributes of the contact").fill("plan:gold")
    dialog.get_by_label("Last activity").select_option("7d")
    desk.page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(desk.row("Goldie")).to_be_visible()
    expect(desk.row("Vera Views")).to_have_count(0)
    chips = desk.page.get_by_role("group", name="Conditions of this view")
    expect(chips).to_contain_text("Contact: plan:gold")
    expect(desk.page).to_have_url(re.compile(r"inbox/all\?tag=vip%2C\+returns&activeWithin=7d$"))
    desk.page.reload()
    expect(chips).to_contain_text("Contact: plan:gold")
    expect(desk.row("Goldie")).to_be_visible()
    expect(desk.row("Vera Views")).to_have_count(0)
    other = stage.converse("gold-2", "Also gold", name="Midas")
    stage.s2s.patch("/s2s/contacts/gold-2", json={"attributes": {"plan": "gold"}}).raise_for_status()
    stage.owner.patch(f"/conversations/{other['id']}", json={"tags": ["returns"]}).raise_for_status()
    expect(desk.row("Midas")).to_be_visible()
    chips.get_by_role("button", name="Remove: Contact: plan:gold").press("Enter")
    expect(chips).not_to_contain_text("plan:gold")
    expect(chips.get_by_role("button").first).to_be_focused()
    chips.get_by_role("button", name="Clear filters").click()
    _shows(desk, "All", "inbox/all")
    expect(desk.row("Vera Views")).to_be_visible()


def test_filters_fit_a_phone(window: Callable[..., Desk], stage: Stage) -> None:
    phone = window(stage, viewport={"width": 390, "height": 844})
    phone.sign_in()
    phone.page.get_by_role("button", name="Filter").click()
    dialog = phone.page.get_by_role("dialog", name="Filter this view")
    dialog.get_by_label("Waiting for a reply").select_option("1h")
    dialog.get_by_label("Urgent").check()
    dialog.get_by_label("High").check()
    dialog.get_by_role("button", name="Apply").click()
    expect(phone.page.get_by_role("group", name="Conditions of this view")).to_contain_text(
        "Priority: Urgent, High"
    )
    assert phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_parts_of_the_rows_are_hidden_in_the_settings(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    desk.view()
    row = desk.row("Vera Views")
    words, waits = row.get_by_text("Where is my parcel?"), row.get_by_text("waiting")
    expect(words).to_be_visible()
    expect(waits).to_be_visible()
    desk.page.get_by_role("button", name="You and your settings").click()
    desk.page.get_by_role("menuitem", name="Settings").click()
    for part in ("Last message", "Waiting time"):
        desk.page.get_by_role("dialog").get_by_label(part, exact=True).press("Space")
    expect(words).to_be_hidden()
    desk.page.reload()
    expect(desk.row("Vera Views")).to_be_visible()
    expect(words).to_be_hidden()
    expect(waits).to_be_hidden()
