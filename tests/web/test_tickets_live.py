"""Tickets follow the stream: lists without a reload, one ticket without a loss of unsaved fields."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each creates its own tickets under its own tag."""
    return shared_stage


def _ticket(stage: Stage, title: str, **fields: Any) -> str:
    made = stage.owner.post("/tickets", json={"title": title, **fields}).raise_for_status().json()
    return f"/tickets/{made['id']}"


def _list(desk: Desk, query: str) -> None:
    desk.sign_in()
    desk.open(f"/desk/tickets?{query}")
    expect(desk.page.get_by_role("heading", level=1, name="Tickets")).to_be_visible()
    desk.page.mouse.move(2, 2)


def _one(desk: Desk, path: str, title: str) -> Locator:
    """Open a ticket; return the part with its fields."""
    desk.sign_in()
    desk.open(f"/desk{path}")
    expect(desk.page.get_by_role("heading", level=1, name=title)).to_be_visible()
    return desk.page.locator("form.form")


def _titles(desk: Desk) -> Locator:
    return desk.page.locator("tbody th")


@pytest.mark.journey
def test_open_list_follows_a_ticket(desk: Desk, stage: Stage) -> None:
    _ticket(stage, "Was there", tags=["live"])
    _list(desk, "tag=live&status=OPEN&sort=priority")
    expect(_titles(desk)).to_have_text([re.compile("Was there")])
    new = _ticket(stage, "Just came", tags=["live"], priority="URGENT")
    expect(_titles(desk)).to_have_text([re.compile("Just came"), re.compile("Was there")])
    stage.owner.patch(new, json={"title": "Just renamed", "priority": "LOW"}).raise_for_status()
    expect(_titles(desk)).to_have_text([re.compile("Was there"), re.compile("Just renamed")])
    me = stage.owner.get("/users/me").raise_for_status().json()
    stage.owner.patch(new, json={"processingUser": me["id"]}).raise_for_status()
    expect(desk.page.get_by_role("row").filter(has_text="Just renamed")).to_contain_text(me["name"])
    stage.owner.patch(new, json={"status": "DONE"}).raise_for_status()
    expect(_titles(desk)).to_have_text([re.compile("Was there")])
    stage.owner.patch(new, json={"status": "OPEN"}).raise_for_status()
    expect(_titles(desk)).to_have_count(2)
    stage.owner.delete(new).raise_for_status()
    expect(_titles(desk)).to_have_count(1)


def test_missed_changes_appear_after_reconnection(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    _list(desk, "tag=away")
    expect(desk.page.get_by_text("No tickets match these filters")).to_be_visible()
    stage.close_road()
    _ticket(stage, "Meanwhile", tags=["away"])
    stage.open_road()
    expect(_titles(desk)).to_have_text([re.compile("Meanwhile")], timeout=60_000)


def test_rows_keep_their_places_under_the_pointer(desk: Desk, stage: Stage) -> None:
    first = _ticket(stage, "First", tags=["held"])
    _list(desk, "tag=held")
    desk.page.get_by_role("link", name="First").hover()
    _ticket(stage, "Second", tags=["held"])
    news = desk.page.get_by_role("button", name="1 new or moved")
    expect(news).to_be_visible()
    expect(_titles(desk)).to_have_text([re.compile("First")])
    stage.owner.patch(first, json={"title": "First, renamed"}).raise_for_status()
    expect(_titles(desk)).to_have_text([re.compile("First, renamed")])
    news.click()
    expect(_titles(desk)).to_have_text([re.compile("Second"), re.compile("First, renamed")])


def test_deleted_ticket_leaves_the_selection(desk: Desk, stage: Stage) -> None:
    paths = [_ticket(stage, f"Chosen {number}", tags=["chosen"]) for number in range(2)]
    _list(desk, "tag=chosen")
    desk.page.get_by_label("Select all shown").check()
    expect(desk.page.get_by_role("group", name="2 tickets selected")).to_be_visible()
    stage.owner.delete(paths[0]).raise_for_status()
    expect(desk.page.get_by_role("group", name="1 ticket selected")).to_be_visible()
    stage.owner.patch(paths[1], json={"tags": ["elsewhere"]}).raise_for_status()
    expect(desk.page.get_by_role("button", name="1 new or moved")).to_be_visible()
    expect(_titles(desk)).to_have_count(1)
    desk.page.get_by_label("Set priority").select_option("HIGH")
    expect(_titles(desk)).to_have_count(0)
    assert stage.owner.get(paths[1]).json()["priority"] == "HIGH"


def test_loaded_pages_stay_loaded(desk: Desk, stage: Stage) -> None:
    for number in range(52):
        _ticket(stage, f"Many {number}", tags=["many"])
    _list(desk, "tag=many")
    expect(_titles(desk)).to_have_count(50)
    desk.page.get_by_role("button", name="Show more").click()
    expect(_titles(desk)).to_have_count(52)
    desk.page.mouse.move(2, 2)
    desk.page.get_by_role("heading", level=1).focus()
    _ticket(stage, "One more", tags=["many"])
    expect(_titles(desk)).to_have_count(53)


def test_open_ticket_follows_changes_and_keeps_focus(desk: Desk, stage: Stage) -> None:
    path = _ticket(stage, "Untouched")
    form = _one(desk, path, "Untouched")
    form.get_by_label("Priority").focus()
    stage.owner.patch(path, json={"title": "Touched", "priority": "URGENT"}).raise_for_status()
    expect(form.get_by_label("Title")).to_have_value("Touched")
    expect(form.get_by_label("Priority")).to_have_value("URGENT")
    expect(form.get_by_label("Priority")).to_be_focused()
    expect(desk.page.get_by_role("listitem").filter(has_text="Medium → Urgent").first).to_be_visible()
    form.get_by_label("Type").fill("parcel")
    form.get_by_role("button", name="Save changes").press("Enter")
    expect(form.get_by_role("button", name="Save changes")).to_be_focused()
    assert stage.owner.get(path).json()["type"] == "parcel"


def test_unsaved_fields_stay_beside_a_colleagues_change(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    path = _ticket(stage, "Both of us")
    form = _one(desk, path, "Both of us")
    form.get_by_label("Title").fill("Mine, half wri")
    stage.owner.patch(path, json={"title": "Theirs", "priority": "HIGH"}).raise_for_status()
    told = desk.page.get_by_role("status").filter(has_text="Demo owner changed this ticket")
    expect(told).to_be_visible()
    expect(form.get_by_label("Title")).to_have_value("Mine, half wri")
    expect(form.get_by_label("Priority")).to_have_value("MEDIUM")
    told.get_by_role("button", name="Compare").click()
    dialog = desk.page.get_by_role("dialog", name="Someone else changed this")
    expect(dialog.get_by_role("row").filter(has_text="Title")).to_contain_text("Theirs")
    expect(dialog.get_by_role("row").filter(has_text="Title")).to_contain_text("Mine, half wri")
    dialog.get_by_role("button", name="Save yours").click()
    expect(dialog).to_have_count(0)
    expect(told).to_have_count(0)
    expect(form.get_by_label("Priority")).to_have_value("HIGH")
    stored = stage.owner.get(path).json()
    assert (stored["title"], stored["priority"]) == ("Mine, half wri", "HIGH")


def test_unsaved_fields_survive_deletion_of_the_ticket(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    path = _ticket(stage, "Going")
    form = _one(desk, path, "Going")
    form.get_by_label("Description").fill("What I found out")
    stage.owner.delete(path).raise_for_status()
    expect(desk.page.get_by_role("status").filter(has_text="Demo owner deleted this ticket")).to_be_visible()
    expect(form.get_by_label("Description")).to_have_value("What I found out")
