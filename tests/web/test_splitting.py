"""Splits of conversations in the desk: by mouse, by keyboard, on a phone, undone, and seen at once by colleagues."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import PASSWORD, Stage

TITLE = "New conversation from this message"


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own contact."""
    return shared_stage


@pytest.fixture
def lamp(stage: Stage, request: pytest.FixtureRequest) -> dict[str, Any]:
    """A conversation about a lamp, in which the customer asks about a parcel as well."""
    texts = ("My lamp is broken", "Where is my parcel?\nIt was due on Monday.", "It should come by post")
    lamp = stage.converse(request.node.name, *texts, name="Ada")
    stage.owner.patch(f"/conversations/{lamp['id']}", json={"title": "A broken lamp"}).raise_for_status()
    return lamp


def opened(desk: Desk, conversation: dict[str, Any]) -> None:
    """Sign in, and open a conversation."""
    desk.sign_in()
    desk.open(f"/desk/c/{conversation['id']}")
    expect(desk.box).to_be_visible()


def splits(stage: Stage, conversation: dict[str, Any]) -> list[str]:
    """Return the conversations that were started from this one."""
    found = stage.owner.get(f"/conversations/{conversation['id']}").raise_for_status().json()
    return list(found.get("splitInto", []))


def split(stage: Stage, conversation: dict[str, Any], *texts: str) -> dict[str, Any]:
    """Split the messages with these words off into a new conversation, in a colleague's session."""
    path = f"/conversations/{conversation['id']}"
    messages = stage.owner.get(f"{path}/messages").raise_for_status().json()["items"]
    chosen = [each["id"] for each in messages if any(text in each["text"] for text in texts)]
    body = {"messageIds": chosen, "title": "A late parcel"}
    made: dict[str, Any] = stage.owner.post(f"{path}/split", json=body).raise_for_status().json()
    return made


def actions(desk: Desk, text: str) -> Locator:
    """Return the button of a message's menu."""
    return desk.said(text).get_by_role("button", name="Actions for this message")


def ask(desk: Desk, text: str) -> Locator:
    """Open the dialog from the menu of a message."""
    desk.said(text).hover()
    actions(desk, text).click()
    desk.page.get_by_role("menuitem", name="New conversation from here…").click()
    return desk.page.get_by_role("dialog", name=TITLE)


@pytest.mark.journey
def test_conversation_starts_with_a_message_and_the_later_ones(desk: Desk, lamp: dict[str, Any]) -> None:
    opened(desk, lamp)
    page = desk.page
    dialog = ask(desk, "Where is my parcel?")
    expect(dialog).to_contain_text("Ada sees a new conversation")
    expect(dialog).to_contain_text("They stay in this one, too")
    expect(dialog.get_by_label("Subject")).to_have_value("")
    expect(dialog.get_by_role("radio", name="Only this message")).to_be_checked()
    dialog.get_by_role("radio", name="This and the later ones (2 messages)").check()
    dialog.get_by_label("Subject").fill("A late parcel")
    assert findings(page) == []
    dialog.get_by_role("button", name="Start the conversation").click()
    expect(page.get_by_role("heading", name="A late parcel")).to_be_visible()
    (made,) = splits(desk.stage, lamp)
    assert f"/c/{made}" in page.url
    expect(desk.said("Where is my parcel?")).to_be_visible()
    expect(desk.said("It should come by post")).to_be_visible()
    expect(desk.said("My lamp is broken")).to_have_count(0)
    expect(page.locator(".run .from").first).to_have_text("from “A broken lamp”")
    expect(page.locator(".toasts")).to_contain_text("New conversation with 2 messages")
    assert findings(page) == []
    desk.log.get_by_role("link", name="Started from “A broken lamp”").click()
    expect(desk.said("My lamp is broken")).to_be_visible()
    expect(desk.said("Where is my parcel?")).to_have_attribute("aria-current", "true")
    also = desk.log.get_by_role("link", name="Also in “A late parcel”")
    expect(also).to_have_count(2)
    assert findings(page) == []
    also.first.click()
    expect(page.get_by_role("heading", name="A late parcel")).to_be_visible()
    desk.reply("Your parcel comes today")
    expect(desk.said("Your parcel comes today")).to_be_visible()
    desk.eventually(lambda: "Your parcel comes today" in desk.stage.messages({"id": made}), True)
    assert "Your parcel comes today" not in desk.stage.messages(lamp)


def test_message_is_split_off_by_keyboard_alone_and_that_is_undone(desk: Desk, lamp: dict[str, Any]) -> None:
    opened(desk, lamp)
    page, keyboard = desk.page, desk.page.keyboard
    actions(desk, "Where is my parcel?").focus()
    desk.run_command("Split off a new conversation…", "split off")
    dialog = page.get_by_role("dialog", name=TITLE)
    expect(dialog.get_by_label("Subject")).to_be_focused()
    expect(dialog).to_contain_text("It was due on Monday.")
    keyboard.press("Tab")
    expect(dialog.get_by_role("radio", name="Only this message")).to_be_focused()
    keyboard.press("ArrowDown")
    expect(dialog.get_by_role("radio", name="This and the later ones")).to_be_checked()
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(desk.log.get_by_role("link", name="Started from “A broken lamp”")).to_be_visible()
    expect(desk.said("It should come by post")).to_have_count(0)
    (made,) = splits(desk.stage, lamp)
    page.locator(".log").focus()
    keyboard.press("u")
    expect(page.get_by_role("heading", name="A broken lamp")).to_be_visible()
    expect(desk.said("Where is my parcel?")).to_have_count(1)
    expect(desk.said("My lamp is broken")).to_be_visible()
    merged = desk.stage.owner.get(f"/conversations/{made}").raise_for_status().json()
    assert merged["mergedInto"] == lamp["id"]


def test_new_conversation_without_a_message_of_its_own_needs_no_answer_by_key(
    desk: Desk, lamp: dict[str, Any]
) -> None:
    made = split(desk.stage, lamp, "parcel")
    opened(desk, made)
    expect(desk.said("Where is my parcel?")).to_be_visible()

    def waits() -> tuple[bool, bool]:
        agents = desk.stage.owner.get(f"/conversations/{made['id']}", params={"view": "agent"})
        row = agents.raise_for_status().json()
        return row["waitingSince"] is not None, row["noAnswerNeededSince"] is not None

    assert waits() == (True, False)
    desk.page.locator(".log").focus()
    desk.page.keyboard.press("w")
    desk.eventually(waits, (False, True))
    desk.page.keyboard.press("u")
    desk.eventually(waits, (True, False))


def test_menu_of_a_message_works_by_keyboard_and_escape_starts_nothing(
    desk: Desk, lamp: dict[str, Any]
) -> None:
    opened(desk, lamp)
    keyboard = desk.page.keyboard
    actions(desk, "My lamp is broken").focus()
    keyboard.press("Enter")
    keyboard.press("ArrowDown")
    expect(desk.page.get_by_role("menuitem", name="New conversation from here…")).to_be_focused()
    keyboard.press("Enter")
    dialog = desk.page.get_by_role("dialog", name=TITLE)
    expect(dialog.get_by_role("radio", name="This and the later ones (3 messages)")).to_be_visible()
    keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(actions(desk, "My lamp is broken")).to_be_focused()
    assert splits(desk.stage, lamp) == []


def test_colleague_with_the_conversation_open_sees_the_split_and_its_undo_at_once(
    window: Callable[..., Desk], stage: Stage, lamp: dict[str, Any]
) -> None:
    desk = window(stage)
    opened(desk, lamp)
    also = desk.log.get_by_role("link", name="Also in “A late parcel”")
    expect(desk.said("It should come by post")).to_be_visible()
    made = split(stage, lamp, "parcel", "post")
    expect(also).to_have_count(2)
    expect(desk.said("My lamp is broken")).to_be_visible()
    desk.view()
    row = desk.page.locator(f"#row-{made['id']}")
    expect(row).to_contain_text("It should come by post")
    row.click()
    expect(desk.said("It should come by post")).to_be_visible()
    stage.say(made, "It has come!")
    expect(desk.said("It has come!")).to_be_visible()
    path = f"/conversations/{made['id']}/merge"
    stage.owner.post(path, json={"into": lamp["id"]}).raise_for_status()
    desk.page.get_by_role("button", name="Open the other conversation").click()
    expect(desk.said("It has come!")).to_be_visible()
    expect(desk.said("It should come by post")).to_have_count(1)
    expect(also).to_have_count(0)


def test_redaction_and_deletion_reach_the_conversation_that_shows_the_message(
    desk: Desk, lamp: dict[str, Any]
) -> None:
    stage = desk.stage
    made = split(stage, lamp, "parcel", "post")
    stage.say(made, "Any news?")
    opened(desk, made)
    expect(desk.said("It should come by post")).to_be_visible()
    messages = stage.owner.get(f"/conversations/{lamp['id']}/messages").raise_for_status().json()["items"]
    path = f"/conversations/{lamp['id']}/messages/{messages[2]['id']}/redact"
    stage.owner.post(path, json={"text": True}).raise_for_status()
    expect(desk.said("It should come by post")).to_have_count(0)
    expect(desk.said("Where is my parcel?")).to_be_visible()
    stage.owner.delete(f"/conversations/{lamp['id']}").raise_for_status()
    expect(desk.said("Where is my parcel?")).to_have_count(0)
    expect(desk.said("Any news?")).to_be_visible()
    expect(desk.log.get_by_role("link", name=re.compile("Started from"))).to_have_count(0)


def test_lost_response_is_followed_by_the_same_conversation(desk: Desk, lamp: dict[str, Any]) -> None:
    opened(desk, lamp)
    lost: list[int] = []

    def lose(route: Route) -> None:
        lost.append(route.fetch().status)
        route.abort()

    desk.tolerated.append(NETWORK)
    desk.page.route("**/split", lose, times=1)
    dialog = ask(desk, "Where is my parcel?")
    start = dialog.get_by_role("button", name="Start the conversation")
    start.click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    assert lost in ([200], [201])
    start.click()
    expect(dialog).to_have_count(0)
    (made,) = splits(desk.stage, lamp)
    assert f"/c/{made}" in desk.page.url


def test_message_that_a_colleague_has_split_off_is_refused_with_the_reason(
    desk: Desk, lamp: dict[str, Any]
) -> None:
    opened(desk, lamp)
    desk.tolerated.append(NETWORK)
    dialog = ask(desk, "Where is my parcel?")
    split(desk.stage, lamp, "parcel")
    dialog.get_by_role("button", name="Start the conversation").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    assert len(splits(desk.stage, lamp)) == 1
    dialog.get_by_role("button", name="Cancel").click()
    dialog = ask(desk, "My lamp is broken")
    expect(dialog).to_contain_text("1 of the later messages is in another new conversation already")
    expect(dialog.get_by_role("radio", name="This and the later ones (2 messages)")).to_be_visible()


def test_note_alone_starts_nothing_but_goes_along(desk: Desk, lamp: dict[str, Any]) -> None:
    path = f"/conversations/{lamp['id']}/messages"
    for text, internal in (("Ask the carrier", True), ("I'll look", False)):
        desk.stage.owner.post(path, json={"text": text, "internal": internal}).raise_for_status()
    opened(desk, lamp)
    dialog = ask(desk, "Ask the carrier")
    expect(dialog.get_by_role("radio", name="Only this message")).to_be_disabled()
    expect(dialog.get_by_role("radio", name="This and the later ones (2 messages)")).to_be_checked()
    dialog.get_by_label("Subject").fill("The carrier")
    dialog.get_by_role("button", name="Start the conversation").click()
    expect(desk.page.get_by_role("heading", name="The carrier")).to_be_visible()
    expect(desk.said("Ask the carrier")).to_be_visible()
    expect(desk.said("I'll look")).to_be_visible()


def test_message_that_is_in_another_conversation_has_no_such_entry_there(
    desk: Desk, lamp: dict[str, Any]
) -> None:
    made = split(desk.stage, lamp, "parcel")
    opened(desk, made)
    for conversation in (made, lamp):
        desk.open(f"/desk/c/{conversation['id']}")
        desk.said("Where is my parcel?").hover()
        actions(desk, "Where is my parcel?").click()
        expect(desk.page.get_by_role("menuitem", name="Copy link")).to_be_visible()
        expect(desk.page.get_by_role("menuitem", name="New conversation from here…")).to_have_count(0)


def test_reader_has_neither_the_entry_nor_the_command(
    window: Callable[..., Desk], stage: Stage, lamp: dict[str, Any]
) -> None:
    desk = window(stage)
    desk.sign_in(stage.person("Rita", "viewer"), PASSWORD)
    desk.open(f"/desk/c/{lamp['id']}")
    desk.said("Where is my parcel?").hover()
    actions(desk, "Where is my parcel?").click()
    expect(desk.page.get_by_role("menuitem", name="Copy link")).to_be_visible()
    expect(desk.page.get_by_role("menuitem", name="New conversation from here…")).to_have_count(0)
    desk.page.keyboard.press("Escape")
    desk.page.keyboard.press("Control+k")
    desk.page.keyboard.type("split off")
    expect(desk.page.get_by_role("dialog").get_by_role("option")).to_have_count(0)


def test_split_fits_a_phone(window: Callable[..., Desk], stage: Stage, lamp: dict[str, Any]) -> None:
    desk = window(stage, viewport={"width": 390, "height": 844}, has_touch=True)
    opened(desk, lamp)
    width = "document.documentElement.scrollWidth"
    actions(desk, "Where is my parcel?").click()
    desk.page.get_by_role("menuitem", name="New conversation from here…").click()
    dialog = desk.page.get_by_role("dialog", name=TITLE)
    dialog.get_by_label("Subject").fill("A parcel with a subject that is much longer than a phone is wide")
    assert desk.page.evaluate(width) <= 390
    assert findings(desk.page) == []
    dialog.get_by_role("button", name="Start the conversation").click()
    expect(desk.log.get_by_role("link", name="Started from “A broken lamp”")).to_be_visible()
    assert desk.page.evaluate(width) <= 390
    assert findings(desk.page) == []
    desk.open(f"/desk/c/{lamp['id']}")
    expect(desk.log.get_by_role("link", name=re.compile("Also in “A parcel"))).to_be_visible()
    assert desk.page.evaluate(width) <= 390
    assert findings(desk.page) == []
