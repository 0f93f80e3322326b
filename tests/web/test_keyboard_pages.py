"""The main task of each page by keyboard alone, with a visible focus that stays in place after dialogs and deletions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.web.harness.desk import Desk
from tests.web.harness.keyboard import Keys
from tests.web.harness.stage import Stage, staged


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A service shared by these tests, without retry delays, with a project in two languages; each creates its own data."""
    with staged(tmp_path_factory.mktemp("keys"), DESKWIRE_WEBHOOK_RETRY_AFTER_S="0.1,0.1,0.1") as stage:
        body = {"settings": {"languages": ["en", "de"], "primaryLanguage": "en"}}
        stage.owner.patch(f"/projects/{stage.demo['projectId']}", json=body).raise_for_status()
        yield stage


def _opened(desk: Desk, place: str, heading: str) -> Keys:
    """Open a page by the command palette, and return the keyboard."""
    desk.sign_in()
    keys = Keys(desk.page)
    keys.press("Control+k")
    expect(desk.page.get_by_role("combobox", name="Type a command or a name")).to_be_focused()
    keys.type(place)
    keys.press("Enter")
    expect(desk.page.get_by_role("heading", level=1, name=heading)).to_be_focused()
    return keys


def _row(desk: Desk, text: str) -> Locator:
    return desk.page.get_by_role("row").filter(has_text=text)


@pytest.mark.journey
def test_keyboard_finds_and_changes_a_contact(desk: Desk, stage: Stage) -> None:
    stage.converse("keys-contact", name="Kim Keys")
    stage.converse("keys-other", name="Otto Other")
    keys = _opened(desk, "contacts", "Contacts")
    page = desk.page
    keys.to(page.get_by_placeholder("Name, email or external ID"))
    keys.type("kim")
    keys.press("Enter")
    expect(_row(desk, "Otto Other")).to_have_count(0)
    keys.to(page.get_by_role("link", name="Kim Keys"))
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Kim Keys")).to_be_focused()
    keys.to(page.get_by_label("Phone"))
    keys.type("+49 30 1234")
    save = page.get_by_role("button", name="Save changes")
    keys.to(save)
    keys.press("Enter")
    expect(page.get_by_text("Contact saved.").last).to_be_visible()
    keys.stands_at(save)
    (contact,) = stage.owner.get("/contacts", params={"q": "Kim"}).json()["items"]
    assert contact["phone"] == "+49 30 1234"


def test_keyboard_invites_and_removes_a_member(desk: Desk, stage: Stage) -> None:
    stage.person("Nell", "agent")
    keys = _opened(desk, "members", "Members")
    page = desk.page
    add = page.get_by_role("button", name="Invite a member")
    keys.to(add)
    keys.press("Enter")
    keys.stands_at(page.get_by_role("dialog").get_by_label("Email"))
    keys.type("nora@demo.example")
    keys.press("Tab")
    keys.type("Nora New")
    keys.press("Enter")
    secret = page.get_by_role("dialog", name="Invitation of nora@demo.example")
    keys.to(secret.get_by_role("button", name="Done"))
    keys.press("Enter")
    expect(secret).to_have_count(0)
    keys.stands_at(add)
    keys.choose(page.get_by_role("button", name="Actions for nora@demo.example"), "Revoke")
    gone = page.get_by_role("dialog", name="Revoke this invitation")
    keys.to(gone.get_by_role("button", name="Revoke"))
    keys.press("Enter")
    expect(_row(desk, "nora@demo.example")).to_have_count(0)
    keys.choose(page.get_by_role("button", name="Actions for Nell", exact=True), "Remove")
    gone = page.get_by_role("dialog", name="Remove")
    keys.stands_at(gone.get_by_role("button", name="Cancel"))
    keys.to(gone.get_by_role("button", name="Remove"))
    keys.press("Enter")
    expect(_row(desk, "Nell")).to_have_count(0)
    expect(page.locator("tbody tr").locator("a, button").and_(page.locator(":focus"))).to_have_count(1)


def test_keyboard_creates_and_revokes_a_key(desk: Desk, stage: Stage) -> None:
    keys = _opened(desk, "server keys", "Server keys")
    page = desk.page
    create = page.get_by_role("button", name="New server key")
    keys.to(create)
    keys.press("Enter")
    keys.stands_at(page.get_by_role("dialog").get_by_label("Label"))
    keys.type("by keys")
    keys.press("Enter")
    secret = page.get_by_role("dialog").filter(has_text="Copy it now")
    expect(secret).to_be_visible()
    keys.press("Escape")
    expect(secret).to_be_visible()
    keys.to(secret.get_by_role("button", name="Close"))
    keys.press("Enter")
    keys.stands_at(create)
    keys.to(_row(desk, "by keys").get_by_role("button", name="Revoke"))
    keys.press("Enter")
    gone = page.get_by_role("dialog")
    keys.stands_at(gone.get_by_role("button", name="Cancel"))
    keys.press("Escape")
    keys.stands_at(_row(desk, "by keys").get_by_role("button", name="Revoke"))
    keys.press("Enter")
    keys.to(gone.get_by_role("button", name="Revoke"))
    keys.press("Enter")
    expect(_row(desk, "by keys")).to_contain_text("revoked")
    expect(page.locator("tbody tr button:focus, h1:focus")).to_have_count(1)


def test_keyboard_redelivers_a_failed_delivery(desk: Desk, stage: Stage) -> None:
    endpoint = stage.endpoint("crm by keys", 400)
    stage.converse("keys-hook", "For the CRM")
    keys = _opened(desk, "webhooks", "Webhooks")
    page = desk.page
    expect(page.get_by_role("link", name="crm by keys")).to_be_visible()
    keys.press("j")
    keys.stands_at(page.get_by_role("link", name="crm by keys"))
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1, name=re.compile("crm by keys"))).to_be_focused()
    outcome = page.get_by_role("group", name="Filters").get_by_role("combobox", name="Outcome")
    keys.to(outcome)
    keys.page.keyboard.type("drop")
    expect(page).to_have_url(re.compile("status=dropped"))
    expect(_row(desk, "message.created")).to_be_visible()
    keys.stands_at(outcome)
    first = _row(desk, "message.created")
    keys.to(first.locator("th button"))
    keys.press("Enter")
    dialog = page.get_by_role("dialog", name="Delivery")
    expect(dialog).to_contain_text("400")
    endpoint.status = 200
    keys.to(dialog.get_by_role("button", name="Send again"))
    keys.press("Enter")
    expect(dialog).to_contain_text("Repeats")
    expect(dialog).to_contain_text("delivered")
    keys.press("Escape")
    expect(dialog).to_have_count(0)
    keys.stands_at(first.locator("th button"))


def test_snippet_is_created_and_deleted(desk: Desk, stage: Stage) -> None:
    for name in ("first", "second"):
        body = {"shortcut": f"keys-{name}", "title": f"Keys {name}", "text": "Hello!"}
        stage.owner.post("/snippets", json=body).raise_for_status()
    keys = _opened(desk, "snippets", "Snippets")
    page = desk.page
    create = page.get_by_role("button", name="New snippet")
    keys.to(create)
    keys.press("Enter")
    dialog = page.get_by_role("dialog")
    keys.stands_at(dialog.get_by_label("Shortcut"))
    keys.type("keys-third")
    keys.press("Tab")
    keys.type("Keys third")
    keys.press("Tab")
    keys.type("Good bye!")
    keys.to(dialog.get_by_role("button", name="Save"))
    keys.press("Enter")
    expect(_row(desk, "Keys third")).to_be_visible()
    keys.stands_at(create)
    keys.choose(page.get_by_role("button", name="Actions for Keys first"), "Delete")
    keys.to(dialog.get_by_role("button", name="Delete"))
    keys.press("Enter")
    expect(_row(desk, "Keys first")).to_have_count(0)
    keys.stands_at(page.get_by_role("button", name="Actions for Keys second"))


def test_keyboard_reads_a_grouped_report(desk: Desk, stage: Stage) -> None:
    stage.converse("keys-report", "Count me")
    keys = _opened(desk, "reports", "First response")
    page = desk.page
    keys.to(page.get_by_role("link", name="Volume"))
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Volume")).to_be_visible()
    keys.stands_at(page.get_by_role("link", name="Volume"))
    keys.to(page.get_by_role("button", name="As a table"))
    keys.press("Enter")
    keys.stands_at(page.get_by_role("button", name="As a chart"))
    expect(page.get_by_role("table", name="Volume")).to_be_visible()
    group = page.get_by_role("combobox", name="By")
    keys.to(group, "Shift+Tab")
    keys.press("ArrowDown")
    expect(page).to_have_url(re.compile("by=agent"))
    keys.stands_at(group)


def test_keyboard_translates_and_deletes_an_entry(desk: Desk, stage: Stage) -> None:
    for name in ("one", "two"):
        body = {"language": "en", "fields": {"text": f"Text {name}"}}
        stage.owner.put(f"/translations/entries/statictranslation:keys.{name}", json=body).raise_for_status()
    keys = _opened(desk, "translations", "Translations")
    page = desk.page
    keys.to(page.get_by_role("link", name="keys.one"))
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1, name="statictranslation:keys.one")).to_be_focused()
    field = page.get_by_label(re.compile("^text, (?!en)"))
    keys.to(field)
    keys.type("Text eins")
    save = page.get_by_role("button", name="Save")
    keys.to(save)
    keys.press("Enter")
    expect(page.get_by_text(re.compile("Saved in")).last).to_be_visible()
    keys.stands_at(save)
    keys.to(page.get_by_role("button", name="Manage"), "Shift+Tab")
    keys.choose(page.get_by_role("button", name="Manage"), "Delete the entry")
    gone = page.get_by_role("dialog")
    keys.to(gone.get_by_role("button", name="Delete the entry"))
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Translations")).to_be_focused()


def test_keyboard_ends_another_session(desk: Desk, stage: Stage) -> None:
    user = stage.demo["user"]
    proof = {"email": user["email"], "password": user["password"]}
    for _ in range(2):
        stage.owner.post("/auth/session", json=proof).raise_for_status()
    keys = _opened(desk, "your sessions", "Your sessions")
    page = desk.page
    others = _row(desk, "httpx")
    expect(others).to_have_count(2)
    keys.press("j")
    keys.stands_at(others.first.get_by_role("button", name="End"))
    keys.press("Enter")
    dialog = page.get_by_role("dialog", name="End this session")
    keys.stands_at(dialog.get_by_role("button", name="Cancel"))
    keys.to(dialog.get_by_role("button", name="End", exact=True))
    keys.press("Enter")
    expect(others).to_have_count(1)
    keys.stands_at(others.get_by_role("button", name="End"))
