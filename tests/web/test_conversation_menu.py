"""The menu of a conversation: subject, archive, link and deletion; and the subject in the list."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage


@pytest.fixture
def ada(desk: Desk) -> dict[str, Any]:
    """The open conversation of Ada, without a subject."""
    conversation = desk.stage.converse("ada", "I am Ada", name="Ada")
    desk.sign_in()
    desk.converse("Ada")
    return conversation


def of(stage: Stage, conversation: dict[str, Any]) -> dict[str, Any]:
    """Return the conversation as an agent sees it."""
    found: dict[str, Any] = (
        stage.owner.get(f"/conversations/{conversation['id']}", params={"view": "agent"})
        .raise_for_status()
        .json()
    )
    return found


def pick(desk: Desk, name: str) -> None:
    desk.page.get_by_role("button", name="More actions").click()
    desk.page.get_by_role("menuitem", name=name).click()


def set_subject(desk: Desk, subject: str) -> None:
    pick(desk, "Change the subject…")
    dialog = desk.page.get_by_role("dialog", name="Change the subject")
    dialog.get_by_label("Subject").fill(subject)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)


@pytest.mark.journey
def test_subject_is_changed_shown_in_the_list_and_undone(desk: Desk, ada: dict[str, Any]) -> None:
    set_subject(desk, "A broken lamp")
    desk.eventually(lambda: of(desk.stage, ada)["title"], "A broken lamp")
    row = desk.row("A broken lamp")
    expect(row).to_contain_text("I am Ada")  # the last words follow the subject
    set_subject(desk, "")
    desk.eventually(lambda: of(desk.stage, ada)["title"], None)
    desk.page.locator(".log").focus()
    desk.page.keyboard.press("u")
    desk.eventually(lambda: of(desk.stage, ada)["title"], "A broken lamp")


def test_undo_leaves_the_subject_that_a_colleague_changed_since(desk: Desk, ada: dict[str, Any]) -> None:
    set_subject(desk, "Mine")
    desk.eventually(lambda: of(desk.stage, ada)["title"], "Mine")
    desk.stage.owner.patch(f"/conversations/{ada['id']}", json={"title": "Theirs"}).raise_for_status()
    expect(desk.row("Theirs")).to_be_visible()
    desk.page.locator(".log").focus()
    desk.page.keyboard.press("u")
    expect(desk.page.locator(".toasts")).to_contain_text("Can't undo")
    assert of(desk.stage, ada)["title"] == "Theirs"


def test_archived_conversation_leaves_the_list_and_is_found_by_the_filter(
    desk: Desk, ada: dict[str, Any]
) -> None:
    desk.stage.converse("bea", "I am Bea", name="Bea")
    pick(desk, "Archive")
    desk.eventually(lambda: of(desk.stage, ada)["archived"], True)
    expect(desk.row("I am Ada")).to_have_count(0)
    desk.page.get_by_role("button", name="Any status").click()
    desk.page.get_by_role("menuitemcheckbox", name="Archived").or_(
        desk.page.get_by_role("menuitemradio", name="Archived")
    ).or_(desk.page.get_by_role("menuitem", name="Archived")).click()
    expect(desk.row("I am Ada")).to_be_visible()
    expect(desk.row("I am Bea")).to_have_count(0)
    desk.row("I am Ada").click()
    pick(desk, "Unarchive")
    desk.eventually(lambda: of(desk.stage, ada)["archived"], False)
    expect(desk.row("I am Ada")).to_have_count(0)


def test_deletion_is_confirmed_by_a_word_and_closes_the_conversation(desk: Desk, ada: dict[str, Any]) -> None:
    pick(desk, "Delete the conversation…")
    dialog = desk.page.get_by_role("dialog", name="Delete the conversation")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    assert of(desk.stage, ada)["id"] == ada["id"]
    dialog.get_by_role("textbox").fill("delete")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog).to_have_count(0)
    expect(desk.row("I am Ada")).to_have_count(0)
    path = f"/conversations/{ada['id']}"
    assert desk.stage.owner.get(path).status_code == 404


def test_link_leads_to_the_conversation(desk: Desk, ada: dict[str, Any]) -> None:
    desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    pick(desk, "Copy link")
    expect(desk.page.locator(".toasts")).to_contain_text("Copied")
    link = desk.page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(rf"{re.escape(desk.stage.url)}/desk/.*c/{ada['id']}", link)
    desk.page.goto(link)
    expect(desk.said("I am Ada")).to_be_visible()
