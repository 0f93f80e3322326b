"""A ticket is made from a conversation, linked both ways, and changed beside the thread."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.keyboard import Keys
from tests.web.harness.stage import PASSWORD, Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own contact."""
    return shared_stage


def started(stage: Stage, user: str, **fields: Any) -> dict[str, Any]:
    """Start a conversation; return it as an agent sees it."""
    conversation = stage.converse(user, "The lamp is broken.\nIt was new.", name=f"{user.title()} Lamp")
    path = f"/conversations/{conversation['id']}"
    if fields:
        stage.owner.patch(path, json=fields).raise_for_status()
    return conversation


def seen(stage: Stage, conversation: dict[str, Any]) -> dict[str, Any]:
    path = f"/conversations/{conversation['id']}"
    found: dict[str, Any] = stage.owner.get(path, params={"view": "agent"}).raise_for_status().json()
    return found


def ticket_of(stage: Stage, conversation: dict[str, Any]) -> dict[str, Any]:
    """Return the linked ticket; fail without one."""
    identifier = seen(stage, conversation)["ticketId"]
    found: dict[str, Any] = stage.owner.get(f"/tickets/{identifier}").raise_for_status().json()
    return found


def linked(stage: Stage, conversation: dict[str, Any], title: str) -> str:
    """Create a ticket of a conversation; return its path."""
    body = {"title": title, "conversationId": conversation["id"]}
    return f"/tickets/{stage.owner.post('/tickets', json=body).raise_for_status().json()['id']}"


def panel(desk: Desk) -> Locator:
    return desk.page.get_by_role("complementary", name="Contact")


def pick(desk: Desk, name: str) -> None:
    desk.page.get_by_role("button", name="More actions").click()
    desk.page.get_by_role("menuitem", name=name).click()


@pytest.mark.journey
def test_ticket_is_made_with_the_mouse_and_opened_from_both_sides(desk: Desk, stage: Stage) -> None:
    conversation = started(stage, "mouse", title="Lamp of Mouse", tags=["returns"])
    me = stage.owner.get("/users/me").raise_for_status().json()
    body = {"assignee": {"type": "user", "id": me["id"]}}
    stage.owner.post(f"/conversations/{conversation['id']}/assign", json=body).raise_for_status()
    desk.sign_in()
    desk.converse("Lamp of Mouse")
    pick(desk, "New ticket from this conversation")
    dialog = desk.page.get_by_role("dialog", name="New ticket from this conversation")
    expect(dialog).to_contain_text("Mouse Lamp")
    expect(dialog.get_by_label("Title")).to_have_value("Lamp of Mouse")
    expect(dialog.get_by_label("Tags")).to_have_value("returns")
    assert findings(desk.page) == []
    dialog.get_by_label("Priority").select_option("HIGH")
    dialog.get_by_role("button", name="Create").dblclick()
    expect(dialog).to_have_count(0)
    expect(panel(desk).get_by_role("link", name="Lamp of Mouse")).to_be_visible()
    ticket = ticket_of(stage, conversation)
    contact = seen(stage, conversation)["contact"]["id"]
    assert (ticket["priority"], ticket["tags"], ticket["contactId"]) == ("HIGH", ["returns"], contact)
    assert ticket["processingUser"] == me["id"]
    assert len(stage.owner.get("/tickets", params={"contact": contact}).json()["items"]) == 1
    assert findings(desk.page) == []
    desk.page.locator(".thread-head").get_by_role("link", name="Ticket").click()
    expect(desk.page.get_by_role("heading", level=1, name="Lamp of Mouse")).to_be_visible()
    expect(desk.page.locator(".page")).to_contain_text("The lamp is broken.")
    assert findings(desk.page) == []
    desk.page.get_by_role("link", name="Open the conversation").click()
    expect(desk.said("The lamp is broken.")).to_be_visible()


def test_ticket_is_made_and_opened_by_keys_alone(desk: Desk, stage: Stage) -> None:
    conversation = started(stage, "keys")
    desk.sign_in()
    desk.converse("Keys Lamp")
    desk.page.locator(".log").focus()
    keys = Keys(desk.page)
    keys.press("Shift+T")
    title = desk.page.get_by_role("dialog").get_by_label("Title")
    expect(title).to_be_focused()
    expect(title).to_have_value("The lamp is broken.")
    keys.press("Enter")
    expect(desk.page.get_by_role("dialog")).to_have_count(0)
    expect(panel(desk).get_by_role("link", name="The lamp is broken.")).to_be_visible()
    desk.page.locator(".log").focus()
    keys.press("Shift+T")
    expect(desk.page.get_by_role("heading", level=1, name="The lamp is broken.")).to_be_visible()
    expect(desk.page.get_by_role("link", name="Open the conversation")).to_be_visible()
    keys.press("Shift+T")
    expect(desk.said("It was new.")).to_be_visible()
    keys.press("Control+k")
    desk.page.keyboard.type("ticket")
    expect(desk.page.get_by_role("option", name="Open the ticket")).to_be_visible()
    desk.page.keyboard.type(" unlink")
    expect(desk.page.get_by_role("option", name="Unlink the ticket")).to_have_attribute(
        "aria-selected", "true"
    )
    keys.press("Enter")
    desk.eventually(lambda: seen(stage, conversation)["ticketId"], None)
    expect(panel(desk).get_by_role("button", name="New ticket")).to_be_visible()


def test_panel_changes_the_ticket_and_follows_colleagues(desk: Desk, stage: Stage) -> None:
    conversation = started(stage, "panel", title="Lamp of Panel")
    path = linked(stage, conversation, "Panel ticket")
    desk.sign_in()
    desk.converse("Lamp of Panel")
    box = panel(desk)
    box.get_by_label("Status").select_option("IN_PROGRESS")
    desk.eventually(lambda: stage.owner.get(path).json()["status"], "IN_PROGRESS")
    box.get_by_label("Person").select_option(label=re.compile("Demo owner").pattern + " (you)")
    box.get_by_label("Type").fill("parcel")
    box.get_by_label("Type").press("Enter")
    desk.eventually(lambda: stage.owner.get(path).json()["type"], "parcel")
    stage.owner.patch(path, json={"priority": "URGENT", "title": "Renamed by Ken"}).raise_for_status()
    expect(box.get_by_role("link", name="Renamed by Ken")).to_be_visible()
    expect(box.get_by_label("Priority")).to_have_value("URGENT")
    assert stage.owner.get(path).json()["processingUser"] is not None
    stage.owner.delete(path).raise_for_status()
    expect(box.get_by_role("button", name="New ticket")).to_be_visible()


def test_change_by_a_colleague_keeps_the_type_that_is_being_written(desk: Desk, stage: Stage) -> None:
    conversation = started(stage, "writing", title="Lamp of Writing")
    path = linked(stage, conversation, "Writing ticket")
    desk.sign_in()
    desk.converse("Lamp of Writing")
    box = panel(desk)
    box.get_by_label("Type").press_sequentially("par")
    stage.owner.patch(path, json={"title": "Renamed meanwhile"}).raise_for_status()
    expect(box.get_by_role("link", name="Renamed meanwhile")).to_be_visible()
    box.get_by_label("Type").press_sequentially("cel")
    box.get_by_label("Type").press("Enter")
    desk.eventually(lambda: stage.owner.get(path).json()["type"], "parcel")


def test_concurrent_change_asks_only_about_the_same_field(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)  # 412
    conversation = started(stage, "race", title="Lamp of Race")
    path = linked(stage, conversation, "Race ticket")
    desk.sign_in()
    desk.converse("Lamp of Race")
    box = panel(desk)
    expect(box.get_by_label("Status")).to_have_value("OPEN")
    theirs: list[dict[str, str]] = [{"priority": "LOW"}]

    def collide(route: Route) -> None:
        if route.request.method == "PATCH" and theirs:
            stage.owner.patch(path, json=theirs.pop(0)).raise_for_status()
        route.continue_()

    desk.page.route(f"**/v3{path}", collide)
    box.get_by_label("Status").select_option("IN_PROGRESS")
    desk.eventually(lambda: stage.owner.get(path).json()["status"], "IN_PROGRESS")
    assert stage.owner.get(path).json()["priority"] == "LOW"
    expect(box.get_by_label("Priority")).to_have_value("LOW")
    theirs.append({"status": "DONE"})
    box.get_by_label("Status").select_option("OPEN")
    dialog = desk.page.get_by_role("dialog", name="Someone else changed this")
    expect(dialog.get_by_role("row").filter(has_text="Status")).to_contain_text("Done")
    assert stage.owner.get(path).json()["status"] == "DONE"
    assert findings(desk.page) == []
    dialog.get_by_role("button", name="Save yours").click()
    expect(dialog).to_have_count(0)
    desk.eventually(lambda: stage.owner.get(path).json()["status"], "OPEN")
    expect(box.get_by_label("Status")).to_have_value("OPEN")


def test_link_is_cut_restored_and_made_from_either_side(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    conversation = started(stage, "cut", title="Lamp of Cut")
    path = linked(stage, conversation, "Cut ticket")
    elsewhere = started(stage, "else", title="Lamp of Else")
    linked(stage, elsewhere, "Cut elsewhere")
    desk.sign_in()
    desk.converse("Lamp of Cut")
    panel(desk).get_by_role("button", name="Unlink").click()
    desk.eventually(lambda: seen(stage, conversation)["ticketId"], None)
    assert stage.owner.get(path).json()["conversationId"] is None
    desk.page.locator(".toast").get_by_role("button", name="Undo").click()
    desk.eventually(lambda: f"/tickets/{seen(stage, conversation)['ticketId']}", path)
    pick(desk, "Unlink the ticket")
    desk.eventually(lambda: seen(stage, conversation)["ticketId"], None)
    pick(desk, "Link a ticket…")
    dialog = desk.page.get_by_role("dialog", name="Link a ticket")
    dialog.get_by_role("combobox").fill("elsewhere")
    dialog.get_by_role("option", name="Cut elsewhere").click()
    expect(dialog.get_by_role("alert")).to_contain_text("linked to another conversation")
    dialog.get_by_role("combobox").fill("cut tick")
    dialog.get_by_role("option", name="Cut ticket").click()
    expect(dialog).to_have_count(0)
    desk.eventually(lambda: f"/tickets/{seen(stage, conversation)['ticketId']}", path)
    desk.open(f"/desk{path}")
    desk.page.get_by_role("button", name="Unlink").click()
    desk.eventually(lambda: seen(stage, conversation)["ticketId"], None)
    desk.page.get_by_role("button", name="Link a conversation").click()
    dialog = desk.page.get_by_role("dialog", name="Link a conversation")
    dialog.get_by_role("combobox").fill("Lamp of")
    dialog.get_by_role("option", name="Lamp of Else").click()
    expect(dialog.get_by_role("alert")).to_contain_text("another ticket")
    assert findings(desk.page) == []
    dialog.get_by_role("option", name="Lamp of Cut").click()
    expect(dialog).to_have_count(0)
    expect(desk.page.get_by_role("link", name="Open the conversation")).to_be_visible()
    desk.eventually(lambda: f"/tickets/{seen(stage, conversation)['ticketId']}", path)


def test_colleague_who_was_first_is_shown(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)  # 409
    conversation = started(stage, "first", title="Lamp of First")
    desk.sign_in()
    desk.converse("Lamp of First")
    desk.page.locator(".log").focus()
    desk.page.keyboard.press("Shift+T")
    dialog = desk.page.get_by_role("dialog")
    expect(dialog.get_by_label("Title")).to_have_value("Lamp of First")
    linked(stage, conversation, "Theirs")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_contain_text("linked to another ticket")
    dialog.get_by_role("button", name="Cancel").click()
    expect(panel(desk).get_by_role("link", name="Theirs")).to_be_visible()


def test_viewer_reads_the_ticket_and_changes_nothing(desk: Desk, stage: Stage) -> None:
    conversation = started(stage, "viewer", title="Lamp of Viewer")
    linked(stage, conversation, "Viewer ticket")
    desk.sign_in(stage.person("Vera", "viewer"), PASSWORD)
    desk.view()
    desk.row("Lamp of Viewer").click()
    expect(panel(desk).get_by_label("Status")).to_be_disabled()
    expect(panel(desk).get_by_role("button", name="Unlink")).to_have_count(0)
    desk.page.get_by_role("button", name="More actions").click()
    expect(desk.page.get_by_role("menuitem", name="Open the ticket")).to_be_visible()
    expect(desk.page.get_by_role("menuitem", name="Unlink the ticket")).to_have_count(0)


def test_ticket_is_made_on_a_phone(window: Callable[..., Desk], stage: Stage) -> None:
    conversation = started(stage, "phone", title="Lamp of Phone")
    desk = window(stage, viewport={"width": 390, "height": 800})
    desk.sign_in()
    desk.page.get_by_role("button", name="Navigation").click()
    desk.converse("Lamp of Phone")
    pick(desk, "New ticket from this conversation")
    dialog = desk.page.get_by_role("dialog")
    assert findings(desk.page) == []
    dialog.get_by_role("button", name="Create").click()
    expect(dialog).to_have_count(0)
    assert ticket_of(stage, conversation)["title"] == "Lamp of Phone"
    desk.page.get_by_role("button", name="Contact", exact=True).click()
    expect(panel(desk).get_by_label("Status")).to_be_visible()
    assert desk.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert findings(desk.page) == []
