"""Saved views of the inbox in the desk: made from a filter, shared, followed by other tabs, changed, moved and deleted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk, opened
from tests.web.harness.stage import PASSWORD, Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests."""
    shared_stage.converse("saved-1", "Where is my parcel?", name="Vera Views")
    tagged(shared_stage, "saved-2", "Rita Refund", "refund")
    return shared_stage


@pytest.fixture(autouse=True)
def _no_views(stage: Stage) -> None:
    for each in stage.owner.get("/views").json()["items"]:
        stage.owner.delete(f"/views/{each['id']}").raise_for_status()


def tagged(stage: Stage, user: str, name: str, tag: str) -> dict[str, Any]:
    """Begin a conversation that has a tag; return it."""
    made = stage.converse(user, "I want my money back", name=name)
    stage.owner.patch(f"/conversations/{made['id']}", json={"tags": [tag]}).raise_for_status()
    return made


def saved(stage: Stage, name: str, **fields: Any) -> dict[str, Any]:
    """Save a view through the API as the owner; return it."""
    answer = stage.owner.post("/views", json={"name": name, "filter": {"tag": "refund"}, **fields})
    answer.raise_for_status()
    made: dict[str, Any] = answer.json()
    return made


def heading(desk: Desk, name: str) -> Locator:
    """Return the heading of the list."""
    return desk.page.get_by_role("region", name="Conversations").get_by_role("heading", level=1, name=name)


def link(desk: Desk, name: str) -> Locator:
    """Return the link to a view in the navigation."""
    views = desk.page.get_by_role("navigation", name="Views")
    return views.get_by_role("link", name=re.compile(f"^{name}"))


def order(desk: Desk) -> list[str]:
    """Return the names of the saved views in the navigation."""
    return [
        each.inner_text().split("\n")[0] for each in desk.page.locator("a.view[href*='inbox/view/']").all()
    ]


def pick(desk: Desk, item: str) -> None:
    """Choose a command of the menu of the view."""
    desk.page.get_by_role("button", name="Actions for this view").click()
    desk.page.get_by_role("menuitem", name=item).click()


def filter_by_tag(desk: Desk, tag: str) -> None:
    """Filter the shown view by a tag, with the keyboard."""
    desk.page.keyboard.press("f")
    dialog = desk.page.get_by_role("dialog", name="Filter this view")
    expect(dialog.get_by_label("With any of these tags")).to_be_focused()
    dialog.get_by_label("With any of these tags").fill(tag)
    desk.page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)


@pytest.mark.journey
def test_filter_is_saved_as_a_view_with_an_address_and_a_count(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    desk.view()
    filter_by_tag(desk, "refund")
    desk.page.get_by_role("button", name="Save view").click()
    dialog = desk.page.get_by_role("dialog", name="Save this filter as a view")
    expect(dialog).to_contain_text("Tag: refund")
    expect(dialog.get_by_label("Name")).to_be_focused()
    desk.page.keyboard.press("Enter")
    desk.tolerated.append(NETWORK)
    expect(dialog.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    desk.page.keyboard.type("Refunds")
    desk.page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(heading(desk, "Refunds")).to_be_visible()
    expect(desk.row("Rita Refund")).to_be_visible()
    expect(desk.row("Vera Views")).to_have_count(0)
    (made,) = stage.owner.get("/views").json()["items"]
    assert made["filter"] == {"tag": "refund"}
    address = f"{stage.url}/desk/{stage.demo['projectId']}/inbox/view/{made['id']}"
    expect(desk.page).to_have_url(address)
    expect(link(desk, "Refunds")).to_have_attribute("aria-current", "page")
    expect(link(desk, "Refunds")).to_contain_text("1")
    desk.page.reload()
    expect(heading(desk, "Refunds")).to_be_visible()
    expect(desk.row("Rita Refund")).to_be_visible()
    desk.page.go_back()
    expect(heading(desk, "All")).to_be_visible()
    expect(desk.row("Vera Views")).to_be_visible()
    desk.page.go_forward()
    expect(heading(desk, "Refunds")).to_be_visible()
    desk.row("Rita Refund").click()
    expect(desk.page).to_have_url(re.compile("/c/cnv_"))
    desk.page.reload()
    expect(heading(desk, "Refunds")).to_be_visible()


def test_changed_filter_is_saved_or_discarded(desk: Desk, stage: Stage) -> None:
    made = saved(stage, "Money")
    desk.sign_in()
    link(desk, "Money").click()
    expect(desk.row("Rita Refund")).to_be_visible()
    chips = desk.page.get_by_role("group", name="Conditions of this view")
    expect(chips).to_contain_text("Tag: refund")
    expect(chips).not_to_contain_text("Changed")
    chips.get_by_role("button", name="Remove: Tag: refund").click()
    expect(desk.row("Vera Views")).to_be_visible()
    expect(chips).to_contain_text("Changed")
    chips.get_by_role("button", name="Discard changes").click()
    expect(desk.row("Vera Views")).to_have_count(0)
    expect(chips).to_contain_text("Tag: refund")
    desk.page.get_by_role("button", name="Any status").click()
    desk.page.get_by_role("menuitemradio", name="Pending", exact=True).click()
    expect(desk.page.get_by_role("heading", name="No conversations match these filters")).to_be_visible()
    chips.get_by_role("button", name="Save changes").click()
    expect(chips).not_to_contain_text("Changed")
    expect(desk.page.get_by_role("heading", name="No conversations in this view")).to_be_visible()
    expect(desk.page).to_have_url(re.compile(f"inbox/view/{made['id']}$"))
    now = stage.owner.get(f"/views/{made['id']}").json()
    assert now["filter"] == {"status": "PENDING", "tag": "refund"}


def test_views_are_renamed_shared_and_moved_and_other_tabs_follow(
    desk: Desk, window: Callable[..., Desk], stage: Stage
) -> None:
    for name in ("One", "Two", "Three"):
        saved(stage, name, visibility="project")
    email = stage.person("Sam", "agent")
    other = window(stage)
    other.sign_in(email, PASSWORD)
    expect(link(other, "Three")).to_be_visible()
    desk.sign_in()
    link(desk, "Three").click()
    pick(desk, "Move this view up")
    notices = desk.page.get_by_role("region", name="Notices")
    expect(notices).to_contain_text("“Three” moved up")
    assert order(desk) == ["One", "Three", "Two"]
    desk.eventually(lambda: order(other), ["One", "Three", "Two"])
    pick(desk, "Rename or share…")
    dialog = desk.page.get_by_role("dialog", name="Rename or share the view")
    dialog.get_by_label("Name").fill("Third")
    dialog.get_by_label("Visible to").select_option("Only you")
    dialog.get_by_role("button", name="Save").click()
    expect(heading(desk, "Third")).to_be_visible()
    expect(link(other, "Three")).to_have_count(0)
    assert order(desk) == ["Third", "One", "Two"]
    link(other, "One").click()
    expect(other.row("Rita Refund")).to_be_visible()
    other.page.get_by_role("button", name="Actions for this view").click()
    expect(other.page.get_by_role("menuitem", name="Save as a new view…")).to_be_visible()
    expect(other.page.get_by_role("menuitem", name="Rename or share…")).to_have_count(0)
    expect(other.page.get_by_role("menuitem", name="Delete this view…")).to_have_count(0)


def test_deleted_view_says_so_in_every_tab(desk: Desk, window: Callable[..., Desk], stage: Stage) -> None:
    made = saved(stage, "Short-lived", visibility="project")
    email = stage.person("Dora", "agent")
    other = window(stage)
    other.sign_in(email, PASSWORD)
    link(other, "Short-lived").click()
    expect(other.row("Rita Refund")).to_be_visible()
    desk.sign_in()
    link(desk, "Short-lived").click()
    pick(desk, "Delete this view…")
    dialog = desk.page.get_by_role("dialog", name="Delete the view “Short-lived”?")
    expect(dialog).to_contain_text("for everyone in this project")
    dialog.get_by_role("button", name="Delete view").click()
    expect(heading(desk, "Mine")).to_be_visible()
    expect(link(desk, "Short-lived")).to_have_count(0)
    expect(other.page.get_by_role("heading", name="This view isn't available")).to_be_visible()
    other.page.reload()
    expect(other.page.get_by_role("heading", name="This view isn't available")).to_be_visible()
    assert made["id"] in other.page.url
    other.page.get_by_role("link", name="Go to Mine").click()
    expect(heading(other, "Mine")).to_be_visible()


def test_view_of_another_user_is_not_available(desk: Desk, window: Callable[..., Desk], stage: Stage) -> None:
    made = saved(stage, "Private")
    email = stage.person("Nils", "agent")
    other = window(stage)
    other.sign_in(email, PASSWORD)
    other.open(f"/desk/{stage.demo['projectId']}/inbox/view/{made['id']}")
    expect(other.page.get_by_role("heading", name="This view isn't available")).to_be_visible()
    assert "Private" not in other.page.content()


def test_view_is_opened_and_saved_from_the_palette(desk: Desk, stage: Stage) -> None:
    saved(stage, "Palette refunds", filter={"assignee": "me", "status": "OPEN,PENDING", "snoozed": "false"})
    desk.sign_in()
    expect(link(desk, "Palette refunds")).to_be_visible()
    desk.run_command("Palette refunds", "palette ref")
    expect(heading(desk, "Palette refunds")).to_be_visible()
    expect(desk.page.get_by_role("button", name="Open and pending")).to_be_visible()
    desk.run_command("Save as a new view…", "save as a new")
    dialog = desk.page.get_by_role("dialog", name="Save this filter as a view")
    expect(dialog.get_by_label("Name")).to_be_focused()
    desk.page.keyboard.type("A copy")
    desk.page.keyboard.press("Enter")
    expect(heading(desk, "A copy")).to_be_visible()
    filters = {each["name"]: each["filter"] for each in stage.owner.get("/views").json()["items"]}
    assert filters["A copy"] == filters["Palette refunds"]


def test_count_follows_new_conversations(desk: Desk, stage: Stage) -> None:
    saved(stage, "Counted", filter={"tag": "counted"})
    desk.sign_in()
    link(desk, "Counted").click()
    expect(desk.page.get_by_role("heading", name="No conversations in this view")).to_be_visible()
    tagged(stage, "counted-1", "Carl Counted", "counted")
    expect(desk.row("Carl Counted")).to_be_visible()
    expect(link(desk, "Counted")).to_contain_text("1")


def test_axe_finds_nothing_about_saved_views_at_390_pixels(browser: Browser, stage: Stage) -> None:
    saved(stage, "Refunds of customers with a rather long name of the view", visibility="project")
    with opened(browser, stage, viewport={"width": 390, "height": 844}) as phone:
        phone.sign_in()
        phone.page.get_by_role("button", name="Navigation").click()
        link(phone, "Refunds of").click()
        expect(phone.row("Rita Refund")).to_be_visible()
        phone.page.get_by_role("button", name="Remove: Tag: refund").click()
        expect(phone.page.get_by_role("button", name="Save changes")).to_be_visible()
        assert findings(phone.page) == []
        assert phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        pick(phone, "Rename or share…")
        expect(phone.page.get_by_role("dialog", name="Rename or share the view")).to_be_visible()
        assert findings(phone.page) == []
        assert phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
