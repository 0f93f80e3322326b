"""Blocking a contact in the desk: menu, keys, contact page and narrow window; and the customer's panel."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk, opened
from tests.web.harness.stage import PASSWORD, Stage


@pytest.fixture
def ada(desk: Desk) -> dict[str, Any]:
    """The open conversation of Ada."""
    conversation = desk.stage.converse("ada", "I am Ada", name="Ada")
    desk.sign_in()
    desk.converse("Ada")
    return conversation


def block_of(stage: Stage, user: str = "ada") -> Any:
    """Return the block of a contact, as the backend sees it."""
    return stage.s2s.get(f"/s2s/contacts/{user}").raise_for_status().json()["blocked"]


def context(desk: Desk) -> Locator:
    return desk.page.get_by_role("complementary", name="Contact")


def pick(desk: Desk, name: str) -> None:
    desk.page.get_by_role("button", name="More actions").click()
    desk.page.get_by_role("menuitem", name=name).click()


@pytest.mark.journey
def test_agent_blocks_from_the_menu_and_unblocks_beside_the_thread(desk: Desk, ada: dict[str, Any]) -> None:
    pick(desk, "Block contact…")
    dialog = desk.page.get_by_role("dialog", name="Block the contact")
    dialog.get_by_label("Reason").fill("Insults")
    dialog.get_by_role("button", name="Block", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(desk.page.locator(".toasts")).to_contain_text("Ada is blocked.")
    note = context(desk).get_by_role("note")
    expect(note).to_contain_text(re.compile(r"Blocked by .+Insults"))
    expect(context(desk).locator(".badges")).to_contain_text("Blocked")
    assert block_of(desk.stage)["reason"] == "Insults"
    desk.reply("You are blocked")
    expect(desk.said("You are blocked")).to_be_visible()
    note.get_by_role("button", name="Unblock").click()
    expect(note).to_have_count(0)
    assert block_of(desk.stage) is None


def test_keys_alone_block_and_unblock(desk: Desk, ada: dict[str, Any]) -> None:
    keys = desk.page.keyboard
    for title, label in (("Block the contact", "Blocked"), ("Unblock the contact", "")):
        desk.page.locator(".log").focus()
        keys.press("Control+k")
        desk.page.get_by_role("combobox").fill("block")
        keys.press("Enter")
        dialog = desk.page.get_by_role("dialog", name=title)
        expect(dialog.get_by_role("button", name=re.compile("^(Block|Unblock)$"))).to_be_visible()
        dialog.get_by_role("button", name=re.compile("^(Block|Unblock)$")).focus()
        keys.press("Enter")
        expect(dialog).to_have_count(0)
        desk.eventually(lambda: block_of(desk.stage) is None, not label)
        expect(context(desk).get_by_role("note")).to_have_count(1 if label else 0)


def test_block_of_a_colleague_appears_without_a_reload(desk: Desk, ada: dict[str, Any]) -> None:
    expect(context(desk).get_by_role("heading", name="Ada")).to_be_visible()
    desk.stage.s2s.post("/s2s/contacts/ada/block", json={"reason": "<b>spam</b>"}).raise_for_status()
    expect(context(desk).get_by_role("note")).to_contain_text("<b>spam</b>")


def test_contact_page_blocks_and_the_list_shows_it(desk: Desk, ada: dict[str, Any]) -> None:
    desk.open(f"/desk/contacts/{ada['contact']['id']}")
    desk.page.get_by_role("button", name="Block", exact=True).click()
    dialog = desk.page.get_by_role("dialog", name="Block the contact")
    dialog.get_by_role("button", name="Block", exact=True).click()
    expect(desk.page.get_by_role("note")).to_contain_text("Blocked by")
    expect(desk.page.get_by_role("button", name="Block", exact=True)).to_have_count(0)
    desk.page.get_by_role("link", name="Contacts").first.click()
    expect(desk.page.get_by_role("row", name=re.compile("Ada"))).to_contain_text("Blocked")
    desk.page.get_by_role("link", name="Ada").click()
    desk.page.get_by_role("button", name="Unblock").click()
    expect(desk.page.get_by_role("note")).to_have_count(0)
    assert block_of(desk.stage) is None


def test_member_without_the_permission_sees_the_block_alone(browser: Browser, stage: Stage) -> None:
    conversation = stage.converse("ada", "I am Ada", name="Ada")
    stage.s2s.post("/s2s/contacts/ada/block", json={}).raise_for_status()
    email = stage.person("Vera", "viewer")
    with opened(browser, stage) as desk:
        desk.sign_in(email, PASSWORD)
        desk.open(f"/desk/contacts/{conversation['contact']['id']}")
        expect(desk.page.get_by_role("note")).to_contain_text("Blocked by")
        expect(desk.page.get_by_role("button", name="Unblock")).to_have_count(0)
        desk.open(f"/desk/c/{conversation['id']}")
        expect(desk.said("I am Ada")).to_be_visible()
        desk.page.get_by_role("button", name="More actions").click()
        expect(desk.page.get_by_role("menuitem", name="Copy link")).to_be_visible()
        expect(desk.page.get_by_role("menuitem", name=re.compile("lock contact"))).to_have_count(0)


def test_axe_finds_nothing_about_blocks_at_390_pixels(browser: Browser, stage: Stage) -> None:
    conversation = stage.converse("ada", "I am Ada", name="Ada")
    with opened(browser, stage, viewport={"width": 390, "height": 800}) as desk:
        desk.sign_in()
        desk.open(f"/desk/contacts/{conversation['contact']['id']}")
        desk.page.get_by_role("button", name="Block", exact=True).click()
        dialog = desk.page.get_by_role("dialog", name="Block the contact")
        expect(dialog.get_by_label("Reason")).to_be_visible()
        assert findings(desk.page) == []
        dialog.get_by_label("Reason").fill("x" * 400)
        dialog.get_by_role("button", name="Block", exact=True).click()
        expect(desk.page.get_by_role("note")).to_be_visible()
        desk.page.reload()
        expect(desk.page.get_by_role("note")).to_be_visible()
        assert findings(desk.page) == []
        wide = desk.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390
