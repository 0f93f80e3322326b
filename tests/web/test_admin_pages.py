"""The administration pages: a task on each, by mouse or keyboard, and the permissions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import PASSWORD, Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each creates its own data."""
    return shared_stage


def _opened(desk: Desk, place: str, heading: str) -> None:
    desk.sign_in()
    desk.open(f"/desk/{place}")
    expect(desk.page.get_by_role("heading", level=1, name=heading)).to_be_visible()


def _row(desk: Desk, text: str) -> Locator:
    return desk.page.get_by_role("row").filter(has_text=text)


def _ticket(stage: Stage, title: str, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = (
        stage.owner.post("/tickets", json={"title": title, **fields}).raise_for_status().json()
    )
    return made


def _project(stage: Stage) -> str:
    return f"/projects/{stage.demo['projectId']}"


@pytest.mark.journey
def test_ticket_is_created_found_changed_and_deleted(desk: Desk, stage: Stage) -> None:
    _opened(desk, "tickets", "Tickets")
    page = desk.page
    page.get_by_role("button", name="New ticket").click()
    page.get_by_label("Title").fill("Parcel lost")
    page.get_by_label("Tags").fill("carrier, vip")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1, name="Parcel lost")).to_be_visible()
    page.get_by_label("Priority").select_option("URGENT")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("listitem").filter(has_text="Medium → Urgent").first).to_be_visible()
    page.get_by_role("link", name="Tickets").first.click()
    page.get_by_role("combobox", name="Priority").select_option("URGENT")
    expect(_row(desk, "Parcel lost")).to_contain_text("carrier")
    expect(page).to_have_url(f"{stage.url}/desk/{stage.demo['projectId']}/tickets?priority=URGENT")
    page.get_by_role("link", name="Parcel lost").click()
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete this ticket")
    expect(dialog).to_contain_text("The ticket “Parcel lost”")
    expect(dialog).to_contain_text("Its activity log")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1, name="Tickets")).to_be_visible()
    assert stage.owner.get("/tickets", params={"q": "Parcel"}).json()["items"] == []


def test_ticket_conflict_shows_both_versions(desk: Desk, stage: Stage) -> None:
    ticket = _ticket(stage, "Who is first?")
    _opened(desk, f"tickets/{ticket['id']}", "Who is first?")
    desk.tolerated.append(NETWORK)
    title = desk.page.get_by_label("Title")
    title.fill("I am first")
    path = f"/tickets/{ticket['id']}"
    stage.owner.patch(path, json={"title": "No, I am"}).raise_for_status()
    desk.page.get_by_role("button", name="Save changes").click()
    dialog = desk.page.get_by_role("dialog", name="Someone else changed this")
    expect(dialog.get_by_role("row").filter(has_text="Title")).to_contain_text("No, I am")
    assert stage.owner.get(path).json()["title"] == "No, I am"
    dialog.get_by_role("button", name="Save yours").click()
    expect(dialog).to_have_count(0)
    assert stage.owner.get(path).json()["title"] == "I am first"
    title.fill("Mine")
    stage.owner.patch(path, json={"title": "Theirs"}).raise_for_status()
    desk.page.get_by_role("button", name="Save changes").click()
    dialog.get_by_role("button", name="Keep theirs").click()
    expect(title).to_have_value("Theirs")
    assert stage.owner.get(path).json()["title"] == "Theirs"


def test_snoozing_a_ticket_keeps_unsaved_fields(desk: Desk, stage: Stage) -> None:
    ticket = _ticket(stage, "Not now")
    _opened(desk, f"tickets/{ticket['id']}", "Not now")
    desk.page.get_by_label("Description").fill("Half a sentence")
    desk.page.get_by_role("button", name="Snooze", exact=True).click()
    desk.page.get_by_role("menuitem", name="Tomorrow").click()
    expect(desk.page.get_by_role("listitem").filter(has_text="Snoozed until").first).to_be_visible()
    expect(desk.page.get_by_label("Description")).to_have_value("Half a sentence")
    assert stage.owner.get(f"/tickets/{ticket['id']}").json()["snoozedUntil"] is not None


def test_bulk_change_updates_tickets(desk: Desk, stage: Stage) -> None:
    tickets = [_ticket(stage, f"Bulk {number}", tags=["bulk"]) for number in range(3)]
    _opened(desk, "tickets?tag=bulk", "Tickets")
    expect(_row(desk, "Bulk 2")).to_be_visible()
    desk.page.get_by_label("Select all shown").check()
    desk.page.get_by_label("Select Bulk 1").uncheck()
    desk.page.get_by_label("Set priority").select_option("HIGH")
    expect(_row(desk, "Bulk 2")).to_contain_text("High")
    found = [stage.owner.get(f"/tickets/{each['id']}").json()["priority"] for each in tickets]
    assert found == ["HIGH", "MEDIUM", "HIGH"]


def test_keyboard_goes_from_inbox_to_ticket_and_back(desk: Desk, stage: Stage) -> None:
    for number in range(3):
        _ticket(stage, f"By keys {number}", tags=["keys"])
    desk.sign_in()
    keyboard = desk.page.keyboard
    keyboard.press("Control+k")
    expect(desk.page.get_by_role("combobox", name="Type a command or a name")).to_be_focused()
    keyboard.type("tickets")
    keyboard.press("Enter")
    expect(desk.page.get_by_role("heading", level=1, name="Tickets")).to_be_focused()
    expect(_row(desk, "By keys 2")).to_be_visible()
    keyboard.press("j")
    expect(desk.page.get_by_role("link", name="By keys 2")).to_be_focused()
    keyboard.press("j")
    expect(desk.page.get_by_role("link", name="By keys 1")).to_be_focused()
    keyboard.press("Enter")
    expect(desk.page.get_by_role("heading", level=1, name="By keys 1")).to_be_visible()
    keyboard.press("Escape")
    expect(desk.page.get_by_role("heading", level=1, name="Tickets")).to_be_visible()


def test_refused_field_shows_its_problem_and_has_focus(desk: Desk) -> None:
    desk.tolerated.append(NETWORK)
    _opened(desk, "tickets", "Tickets")
    desk.page.get_by_role("button", name="New ticket").click()
    desk.page.get_by_label("Title").fill("Long enough")
    desk.page.get_by_label("Conversation").fill("cnv_nothing")
    desk.page.get_by_role("button", name="Create").click()
    field = desk.page.get_by_label("Conversation")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(desk.page.get_by_role("dialog")).to_contain_text("There is no such conversation in this project.")


@pytest.mark.journey
def test_contact_is_found_changed_and_erased(desk: Desk, stage: Stage) -> None:
    conversation = stage.converse("lovelace", "Where is my order?", name="Ada Lovelace")
    _opened(desk, "contacts", "Contacts")
    page = desk.page
    page.get_by_role("searchbox").fill("love")
    page.get_by_role("searchbox").press("Enter")
    page.get_by_role("link", name="Ada Lovelace").click()
    page.get_by_label("Attributes").fill("plan: pro\nseats: 12")
    page.get_by_label("Tags").fill("vip")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_text("Contact saved.").first).to_be_attached()
    path = f"/contacts/{conversation['contact']['id']}"
    contact = stage.owner.get(path).json()
    assert (contact["attributes"], contact["tags"]) == ({"plan": "pro", "seats": 12}, ["vip"])
    page.get_by_role("button", name="Erase").click()
    dialog = page.get_by_role("dialog", name="Erase")
    expect(dialog).to_contain_text("Conversations: 1, with all messages")
    dialog.get_by_role("button", name="Erase permanently").click()
    expect(dialog).to_contain_text("This is not “lovelace”")
    assert stage.owner.get(path).status_code == 200
    dialog.get_by_label("Type “lovelace” to confirm").fill("lovelace")
    dialog.get_by_role("button", name="Erase permanently").click()
    expect(page.get_by_role("heading", level=1, name="Contacts")).to_be_visible()
    assert stage.owner.get(path).status_code == 404


def test_two_contacts_are_merged(desk: Desk, stage: Stage) -> None:
    kept = stage.converse("kept", "Hello", name="Grace Kept")["contact"]
    other = stage.converse("merged", "Hello again", name="Grace Merged")
    _opened(desk, f"contacts/{kept['id']}", "Grace Kept")
    desk.page.get_by_role("button", name="Merge").click()
    desk.page.get_by_label("Duplicate contact").fill("merged")
    desk.page.get_by_role("button", name="Grace Merged").click()
    dialog = desk.page.get_by_role("dialog")
    expect(dialog).to_contain_text("The contact Grace Merged")
    dialog.get_by_role("button", name="Merge").click()
    expect(dialog).to_have_count(0)
    moved = stage.owner.get(f"/conversations/{other['id']}").json()
    assert moved["contact"]["id"] == kept["id"]


def test_member_is_changed_and_removed(desk: Desk, stage: Stage) -> None:
    stage.person("Ken", "agent")
    _opened(desk, "settings/members", "Members")
    page = desk.page
    page.get_by_role("button", name="Actions for Ken").click()
    page.get_by_role("menuitem", name="Change the role").click()
    page.get_by_role("dialog").get_by_label("Role").select_option("admin")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(_row(desk, "ken@demo.example")).to_contain_text("Admin")
    page.get_by_role("button", name="Actions for Ken").click()
    page.get_by_role("menuitem", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(_row(desk, "ken@demo.example")).to_have_count(0)


def test_role_is_created_by_keyboard_given_changed_and_deleted(desk: Desk, stage: Stage) -> None:
    _opened(desk, "settings/roles", "Roles")
    page = desk.page
    page.get_by_role("button", name="New role").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="New role")
    dialog.get_by_label("Name").fill("Ticket desk")
    tickets = dialog.get_by_role("group", name="Tickets")
    expect(tickets.get_by_role("checkbox")).to_have_count(2)
    tickets.get_by_role("checkbox").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(_row(desk, "Ticket desk")).to_contain_text("1 permission")
    organisation = stage.owner.get("/organisations").json()["items"][0]["id"]
    path = f"/organisations/{organisation}"
    made = stage.owner.get(f"{path}/roles").json()["items"][-1]
    assert (made["name"], made["permissions"]) == ("Ticket desk", ["tickets.read"])
    member = {"email": "tess@demo.example", "name": "Tess", "role": "viewer"}
    tess = stage.owner.post(f"{path}/members", json=member).raise_for_status().json()
    desk.open("/desk/settings/members")
    page.get_by_role("button", name="Actions for Tess").click()
    page.get_by_role("menuitem", name="Change the role").click()
    page.get_by_role("dialog").get_by_label("Role").select_option(label="Ticket desk")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(_row(desk, "tess@demo.example")).to_contain_text("Ticket desk")
    desk.open("/desk/settings/roles")
    page.get_by_role("button", name="Actions for Ticket desk").click()
    expect(page.get_by_role("menuitem", name="Delete")).to_have_count(0)
    page.get_by_role("menuitem", name="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit role")
    expect(dialog).to_contain_text("at once to the member with this role")
    dialog.get_by_role("group", name="Surveys").get_by_role("checkbox").first.check()
    dialog.get_by_role("button", name="Save").click()
    expect(_row(desk, "Ticket desk")).to_contain_text("2 permissions")
    stage.owner.delete(f"{path}/members/{tess['id']}").raise_for_status()
    expect(_row(desk, "Ticket desk").get_by_role("cell").nth(1)).to_have_text("0")
    page.get_by_role("button", name="Actions for Ticket desk").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(_row(desk, "Ticket desk")).to_have_count(0)


@pytest.mark.journey
def test_server_key_is_shown_once_and_revoked(desk: Desk, stage: Stage) -> None:
    _opened(desk, "settings/keys", "Server keys")
    page = desk.page
    page.get_by_role("button", name="New server key").click()
    page.get_by_label("Label").fill("shop")
    page.get_by_role("button", name="Create").click()
    dialog = page.get_by_role("dialog", name="The server key shop")
    key = dialog.get_by_role("region", name="Secret").inner_text()
    headers = {"Authorization": f"Bearer {key}"}
    assert stage.s2s.get("/s2s/project", headers=headers).status_code == 200
    dialog.get_by_role("button", name="Close").click()
    expect(_row(desk, "shop")).not_to_contain_text(key)
    _row(desk, "shop").get_by_role("button", name="Revoke").click()
    revoke = page.get_by_role("dialog", name="Revoke this server key")
    expect(revoke).to_contain_text("Every call with the key shop is refused")
    revoke.get_by_role("button", name="Revoke").click()
    expect(_row(desk, "shop")).to_contain_text("revoked")
    assert stage.s2s.get("/s2s/project", headers=headers).status_code == 401


def test_machine_credential_is_limited_rotated_and_revoked(desk: Desk, stage: Stage) -> None:
    _opened(desk, "settings/credentials", "Machine credentials")
    page = desk.page

    def secret() -> str:
        dialog = page.get_by_role("dialog", name="The secret of CRM")
        text = dialog.get_by_role("region", name="Secret").inner_text()
        dialog.get_by_role("button", name="Close").click()
        expect(dialog).to_have_count(0)
        return str(text)

    def answer(secret: str, path: str) -> int:
        return stage.s2s.get(path, headers={"Authorization": f"Bearer {secret}"}).status_code

    page.get_by_role("button", name="New credential").click()
    page.get_by_label("Name").fill("CRM")
    page.get_by_role("checkbox", name="tickets.read").check()
    page.get_by_role("button", name="Create").click()
    first = secret()
    assert (answer(first, "/tickets"), answer(first, "/contacts")) == (200, 403)
    page.get_by_role("button", name="Actions for CRM").click()
    page.get_by_role("menuitem", name="Rotate").click()
    page.get_by_role("dialog").get_by_label("The current secret stays valid").select_option("0")
    page.get_by_role("button", name="Create a new secret").click()
    second = secret()
    assert (answer(first, "/tickets"), answer(second, "/tickets")) == (401, 200)
    page.get_by_role("button", name="Actions for CRM").click()
    page.get_by_role("menuitem", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(_row(desk, "CRM")).to_contain_text("revoked")
    assert answer(second, "/tickets") == 401


def test_team_is_created_changed_and_deleted(desk: Desk, stage: Stage) -> None:
    _opened(desk, "settings/teams", "Teams")
    page = desk.page
    page.get_by_role("button", name="New team").click()
    page.get_by_label("Name").fill("Returns")
    page.get_by_role("checkbox", name="Demo owner").check()
    page.get_by_role("button", name="Save").click()
    expect(_row(desk, "Returns")).to_contain_text("Demo owner")
    expect(page.get_by_role("navigation", name="Views").get_by_role("link", name="Returns")).to_be_visible()
    page.get_by_role("button", name="Actions for Returns").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("The assignment of its tickets")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(_row(desk, "Returns")).to_have_count(0)


def test_project_settings_are_changed_and_checked(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    _opened(desk, f"settings/projects/{stage.demo['projectId']}", "Demo project")
    page = desk.page
    page.get_by_label("Languages").fill("en, de")
    page.get_by_label("Days until archived").fill("30")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_text("Project saved.").first).to_be_attached()
    settings = stage.owner.get(_project(stage)).json()["settings"]
    assert (settings["languages"], settings["archivedRetentionDays"]) == (["en", "de"], 30)
    page.get_by_label("Languages").fill("en, no such tag")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_label("Languages")).to_have_attribute("aria-invalid", "true")


def test_snippet_is_created_and_deleted(desk: Desk, stage: Stage) -> None:
    _opened(desk, "settings/snippets", "Snippets")
    page = desk.page
    page.get_by_role("button", name="New snippet").click()
    page.get_by_label("Shortcut").fill("hello")
    page.get_by_label("Title").fill("Greeting")
    page.get_by_label("Text").fill("Hello {contact.name},")
    page.get_by_role("button", name="Save").click()
    expect(_row(desk, "Greeting")).to_contain_text(";hello")
    page.get_by_role("button", name="Actions for Greeting").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(_row(desk, "Greeting")).to_have_count(0)


def test_health_shows_longest_wait_and_failing_endpoint(desk: Desk, stage: Stage) -> None:
    stage.endpoint("crm")
    stage.endpoint("search")
    endpoints = stage.s2s.get("/s2s/webhooks").raise_for_status().json()["items"]
    path = next(f"/s2s/webhooks/{each['id']}" for each in endpoints if each["description"] == "search")
    stage.s2s.patch(path, json={"status": "disabled"}).raise_for_status()
    stage.converse("patient", "Is anybody there?")
    _opened(desk, "console", "Health")
    expect(_row(desk, "search")).to_contain_text("disabled")
    expect(_row(desk, "crm")).to_contain_text("healthy")
    expect(desk.page.get_by_role("status").filter(has_text="Some deliveries are failing.")).to_be_visible()
    desk.page.get_by_role("link", name="Open the conversation").click()
    expect(desk.box).to_be_visible()


def test_messages_are_redacted_and_deleted(desk: Desk, stage: Stage) -> None:
    conversation = stage.converse("card", "My card is 4111 1111.", "And my cat is Tom.", name="Carla Card")
    desk.sign_in()
    desk.converse("Carla Card")
    said = desk.said("My card is")
    said.hover()
    said.get_by_role("button", name="Actions for this message").click()
    desk.page.get_by_role("menuitem", name="Redact").click()
    dialog = desk.page.get_by_role("dialog", name="Redact this message")
    field = dialog.get_by_label("Select the text to redact")
    field.evaluate("field => field.setSelectionRange(11, 20)")
    dialog.get_by_role("button", name="Redact selection").click()
    dialog.get_by_role("button", name="Redact", exact=True).click()
    expect(desk.said("My card is *********.")).to_be_visible()
    said = desk.said("And my cat")
    said.hover()
    said.get_by_role("button", name="Actions for this message").click()
    desk.page.get_by_role("menuitem", name="Delete").click()
    dialog = desk.page.get_by_role("dialog", name="Delete this message")
    expect(dialog).to_contain_text("And my cat is Tom.")
    dialog.get_by_role("button", name="Delete").click()
    expect(desk.said("And my cat")).to_have_count(0)
    assert stage.messages(conversation) == ["My card is *********."]


def test_new_password_ends_other_sessions_only(window: Callable[..., Desk], stage: Stage) -> None:
    email = stage.person("Pat", "agent")
    here, elsewhere = window(stage), window(stage)
    for each in (here, elsewhere):
        each.sign_in(email, PASSWORD)
    here.open("/desk/settings/account")
    here.tolerated.append(NETWORK)
    elsewhere.tolerated.append(NETWORK)
    fresh = "another password, long enough"
    here.page.get_by_label("Current password").fill(PASSWORD)
    here.page.get_by_label("New password", exact=True).fill(fresh)
    here.page.get_by_label("Confirm new password").fill("something else")
    here.page.get_by_role("button", name="Change password").click()
    expect(here.page.get_by_text("The passwords do not match.")).to_be_visible()
    here.page.get_by_label("Confirm new password").fill(fresh)
    here.page.get_by_role("button", name="Change password").click()
    expect(elsewhere.page.get_by_role("dialog", name="Sign in again")).to_be_visible()
    expect(here.page.get_by_role("button", name="Connection: Live")).to_be_visible()
    expect(here.page.get_by_role("dialog")).to_have_count(0)
    here.open("/desk/settings/sessions")
    expect(_row(here, "current")).to_be_visible()


def test_audit_trail_shows_the_creator_of_a_key(desk: Desk, stage: Stage) -> None:
    stage.owner.post(f"{_project(stage)}/keys", json={"label": "audited"}).raise_for_status()
    _opened(desk, "settings/audit", "Audit trail")
    made = _row(desk, "Key created").filter(has_text="audited")
    expect(made).to_contain_text("Demo owner")
    desk.page.get_by_role("combobox", name="Actor").select_option("operator")
    expect(made).to_have_count(0)
    expect(desk.page).to_have_url(re.compile("actor=operator"))


def test_contact_export_is_downloaded(desk: Desk, stage: Stage) -> None:
    contact = stage.converse("exported", "Keep a copy.", name="Eve Export")["contact"]
    _opened(desk, f"contacts/{contact['id']}", "Eve Export")
    with desk.page.expect_download() as waited:
        desk.page.get_by_role("button", name="Export").click()
    assert waited.value.suggested_filename == f"{contact['id']}.json"
    document = json.loads(Path(waited.value.path()).read_text())
    assert (document["complete"], document["contact"]["userId"]) == (True, "exported")


VIEWED = {
    "tickets": "Tickets",
    "contacts": "Contacts",
    "settings/teams": "Teams",
    "settings/snippets": "Snippets",
    "settings/projects": "Projects",
}
WRITING = ("New ticket", "New team", "New snippet", "New project", "Delete", "Save changes", "Erase", "Merge")


def test_admin_pages_of_a_viewer_have_no_control_that_writes(
    window: Callable[..., Desk], stage: Stage
) -> None:
    conversation = stage.converse("seen", "Hello", name="Sean Seen")
    ticket = _ticket(stage, "Only to be read", contactId=conversation["contact"]["id"])
    desk = window(stage)
    desk.sign_in(stage.person("Vera", "viewer"), PASSWORD)
    places = {
        **VIEWED,
        f"tickets/{ticket['id']}": "Only to be read",
        f"contacts/{conversation['contact']['id']}": "Sean Seen",
    }
    for place, heading in places.items():
        desk.open(f"/desk/{place}")
        expect(desk.page.get_by_role("heading", level=1, name=heading)).to_be_visible()
        expect(desk.page.locator(".page .bar")).to_have_count(0)
        for name in WRITING:
            expect(desk.page.locator(".page").get_by_role("button", name=name)).to_have_count(0)
        expect(desk.page.locator(".page-body").get_by_role("checkbox")).to_have_count(0)
    desk.open("/desk/settings/keys")
    expect(desk.page.get_by_text("Your role can't open this page")).to_be_visible()
    desk.view()
    desk.row("Sean Seen").click()
    expect(desk.said("Hello")).to_be_visible()
    desk.said("Hello").get_by_role("button", name="Actions for this message").click()
    expect(desk.page.get_by_role("menuitem")).to_have_text(["Copy link"])
