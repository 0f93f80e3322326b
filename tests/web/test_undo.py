"""`u` and `Ctrl Z` undo changes of any kind, one after the other."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import Stage

HELD_STREAM = """
delete window.SharedWorker;
const plain = fetch;
window.fetch = async (...given) => {
  const response = await plain(...given);
  if (!String(given[0]).includes("/v3/stream")) return response;
  const held = new TransformStream({ transform: async (chunk, to) => (await window.held, to.enqueue(chunk)) });
  return new Response(response.body.pipeThrough(held), response);
};
"""
"""The page reads the stream without a worker, and waits with its events while the promise `window.held` is pending."""


def of(stage: Stage, conversation: dict[str, Any]) -> dict[str, Any]:
    """Return the conversation as an agent sees it."""
    path = f"/conversations/{conversation['id']}"
    found: dict[str, Any] = stage.owner.get(path, params={"view": "agent"}).raise_for_status().json()
    return found


@pytest.fixture
def ada(desk: Desk) -> dict[str, Any]:
    """The open conversation of Ada, who is waiting; the focus is in its messages."""
    conversation = desk.stage.converse("ada", "I am Ada", name="Ada")
    desk.sign_in()
    desk.converse("Ada")
    expect(desk.said("I am Ada")).to_be_visible()
    desk.page.locator(".log").focus()
    return conversation


def kept(one: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that undo must restore."""
    names = ("status", "assignee", "tags", "snoozedUntil", "waitingSince", "archived")
    return {name: one[name] for name in names}


def tag(desk: Desk, name: str) -> None:
    desk.page.keyboard.press("t")
    dialog = desk.page.get_by_role("dialog", name="Tags")
    dialog.get_by_role("combobox").fill(name)
    desk.page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)


def snooze(desk: Desk) -> None:
    desk.page.keyboard.press("z")
    desk.page.get_by_role("dialog").get_by_role("button", name=re.compile("^Tomorrow")).click()


@pytest.mark.parametrize("key", ["u", "Control+z"])
@pytest.mark.parametrize("change", ["close", "pending", "assign", "tag", "snooze"])
def test_undo_reverts_each_kind_of_change(desk: Desk, ada: dict[str, Any], change: str, key: str) -> None:
    before = kept(of(desk.stage, ada))
    if change == "tag":
        tag(desk, "returns")
    elif change == "snooze":
        snooze(desk)
    else:
        desk.page.keyboard.press({"close": "e", "pending": "p", "assign": "a"}[change])
    desk.eventually(lambda: kept(of(desk.stage, ada)) != before, True)
    desk.page.locator(".log").focus()
    desk.page.keyboard.press(key)
    expect(desk.page.locator(".toasts")).to_contain_text("Undone")
    desk.eventually(lambda: kept(of(desk.stage, ada)), before)


@pytest.mark.journey
def test_undo_reverts_several_changes_in_order(desk: Desk, ada: dict[str, Any]) -> None:
    states = [kept(of(desk.stage, ada))]
    for key in ("a", "p", "e"):
        desk.page.keyboard.press(key)
        desk.eventually(lambda: kept(of(desk.stage, ada)) != states[-1], True)
        states.append(kept(of(desk.stage, ada)))
    for state in reversed(states[:-1]):
        desk.page.keyboard.press("u")
        desk.eventually(lambda: kept(of(desk.stage, ada)), state)
    desk.page.keyboard.press("u")
    expect(desk.page.locator(".toasts")).to_contain_text("Nothing to undo")


def test_undo_reverts_reopening_and_unread_marks(desk: Desk, ada: dict[str, Any]) -> None:
    desk.page.keyboard.press("e")
    desk.eventually(lambda: of(desk.stage, ada)["status"], "CLOSED")
    desk.page.keyboard.press("o")
    desk.eventually(lambda: of(desk.stage, ada)["status"], "OPEN")
    desk.page.keyboard.press("u")
    desk.eventually(lambda: of(desk.stage, ada)["status"], "CLOSED")
    desk.eventually(lambda: of(desk.stage, ada)["mine"]["unread"], 0)
    desk.page.keyboard.press("m")
    desk.eventually(lambda: of(desk.stage, ada)["mine"]["unread"], 1)
    desk.page.keyboard.press("u")
    desk.eventually(lambda: of(desk.stage, ada)["mine"]["unread"], 0)


def test_undo_of_close_restores_pending_and_snooze(desk: Desk, ada: dict[str, Any]) -> None:
    desk.page.keyboard.press("p")
    snooze(desk)
    desk.eventually(lambda: of(desk.stage, ada)["snoozedUntil"] is not None, True)
    before = kept(of(desk.stage, ada))
    desk.page.locator(".log").focus()
    desk.page.keyboard.press("e")
    desk.eventually(lambda: of(desk.stage, ada)["status"], "CLOSED")
    desk.page.keyboard.press("u")
    desk.eventually(lambda: kept(of(desk.stage, ada)), before)


def test_key_reopens_a_pending_conversation(desk: Desk, ada: dict[str, Any]) -> None:
    desk.page.keyboard.press("p")
    desk.eventually(lambda: of(desk.stage, ada)["status"], "PENDING")
    desk.page.keyboard.press("o")
    desk.eventually(lambda: of(desk.stage, ada)["status"], "OPEN")


def test_undo_reverts_a_bulk_change(desk: Desk) -> None:
    made = [desk.stage.converse(name, f"I am {name}", name=name) for name in ("Ada", "Bea", "Cleo")]
    desk.sign_in()
    desk.view("Unassigned")
    for name in ("Ada", "Bea", "Cleo"):
        desk.row(name).click(modifiers=["ControlOrMeta"])
    desk.page.keyboard.press("e")
    expect(desk.page.locator(".toasts")).to_contain_text("3 conversations closed")
    desk.eventually(lambda: {of(desk.stage, each)["status"] for each in made}, {"CLOSED"})
    desk.page.keyboard.press("u")
    desk.eventually(lambda: {of(desk.stage, each)["status"] for each in made}, {"OPEN"})


@pytest.mark.journey
def test_undo_never_reverts_a_colleagues_change(desk: Desk, ada: dict[str, Any]) -> None:
    grace = desk.stage.client(desk.stage.person("Grace", "agent"))
    desk.page.keyboard.press("e")
    desk.eventually(lambda: of(desk.stage, ada)["status"], "CLOSED")
    grace.post(f"/conversations/{ada['id']}/reopen").raise_for_status()
    expect(desk.page.locator(".thread-head")).to_contain_text("open")
    grace.patch(f"/conversations/{ada['id']}", json={"status": "PENDING"}).raise_for_status()
    expect(desk.page.locator(".thread-head")).to_contain_text("pending")
    desk.page.keyboard.press("u")
    notice = desk.page.locator(".toast.bad")
    expect(notice).to_contain_text("Can't undo")
    expect(notice).to_contain_text("Ada")
    expect(notice).to_contain_text("Grace")
    assert of(desk.stage, ada)["status"] == "PENDING"


def test_undo_of_tags_keeps_what_a_colleague_added(desk: Desk, ada: dict[str, Any]) -> None:
    grace = desk.stage.client(desk.stage.person("Grace", "agent"))
    tag(desk, "returns")
    desk.eventually(lambda: of(desk.stage, ada)["tags"], ["returns"])
    grace.patch(f"/conversations/{ada['id']}", json={"tags": ["returns", "vip"]}).raise_for_status()
    expect(desk.page.locator(".context")).to_contain_text("vip")
    desk.page.locator(".log").focus()
    desk.page.keyboard.press("u")
    desk.eventually(lambda: of(desk.stage, ada)["tags"], ["vip"])


def test_undo_of_tags_keeps_one_that_has_not_arrived_yet(desk: Desk) -> None:
    desk.context.add_init_script(HELD_STREAM)
    conversation = desk.stage.converse("ada", "I am Ada", name="Ada")
    desk.sign_in()
    desk.converse("Ada")
    expect(desk.said("I am Ada")).to_be_visible()
    grace = desk.stage.client(desk.stage.person("Grace", "agent"))
    tag(desk, "returns")
    desk.eventually(lambda: of(desk.stage, conversation)["tags"], ["returns"])
    expect(desk.page.locator(".context")).to_contain_text("returns")
    desk.page.evaluate("void (window.held = new Promise(() => {}))")
    path = f"/conversations/{conversation['id']}"
    grace.patch(path, json={"tags": ["returns", "vip"]}).raise_for_status()
    desk.page.locator(".log").focus()
    desk.page.keyboard.press("u")
    desk.eventually(lambda: of(desk.stage, conversation)["tags"], ["vip"])


def test_offline_undo_never_overwrites_a_colleague(desk: Desk, ada: dict[str, Any]) -> None:
    desk.tolerated.append(NETWORK)
    grace = desk.stage.client(desk.stage.person("Grace", "agent"))
    desk.page.keyboard.press("a")
    desk.eventually(lambda: (of(desk.stage, ada)["assignee"] or {}).get("name"), "Demo owner")
    desk.stage.close_road()
    desk.page.keyboard.press("u")
    expect(desk.page.locator(".toasts")).to_contain_text("until you're back online")
    user = grace.get("/users/me").json()
    body = {"assignee": {"type": "user", "id": user["id"]}}
    grace.post(f"/conversations/{ada['id']}/assign", json=body).raise_for_status()
    desk.stage.open_road()
    expect(desk.page.locator(".toast.bad")).to_contain_text("Grace", timeout=40_000)
    assert of(desk.stage, ada)["assignee"]["name"] == "Grace"


def test_unsent_change_is_withdrawn_without_sending(desk: Desk, ada: dict[str, Any]) -> None:
    desk.tolerated.append(NETWORK)
    desk.stage.close_road()
    desk.page.keyboard.press("a")  # is attempted with an unknown outcome, so later changes wait for it
    expect(desk.page.locator(".toasts")).to_contain_text("until you're back online")
    desk.page.keyboard.press("p")
    expect(desk.page.locator(".thread-head")).to_contain_text("pending")
    desk.page.keyboard.press("u")
    expect(desk.page.locator(".thread-head .chip.good")).to_have_text("open")
    desk.stage.open_road()
    expect(desk.page.get_by_role("button", name=re.compile("Connection: Live"))).to_be_visible(timeout=40_000)
    path = f"/conversations/{ada['id']}/events"
    types = [event["type"] for event in desk.stage.owner.get(path).json()["items"]]
    assert "conversation.updated" not in types


def test_control_z_in_a_field_undoes_its_text(desk: Desk, ada: dict[str, Any]) -> None:
    desk.page.keyboard.press("p")
    desk.eventually(lambda: of(desk.stage, ada)["status"], "PENDING")
    desk.page.keyboard.press("r")
    desk.box.press_sequentially("abc")
    desk.box.press("Control+z")
    expect(desk.box).not_to_have_value("abc")
    assert of(desk.stage, ada)["status"] == "PENDING"


def test_undo_reports_a_sent_reply_and_continues(desk: Desk, ada: dict[str, Any]) -> None:
    desk.page.keyboard.press("a")
    desk.eventually(lambda: of(desk.stage, ada)["assignee"] is not None, True)
    desk.reply("Hello Ada")
    expect(desk.log.locator(".truth").last).to_contain_text("Saved")
    desk.page.keyboard.press("Escape")
    desk.page.keyboard.press("u")
    expect(desk.page.locator(".toasts")).to_contain_text("already sent")
    assert of(desk.stage, ada)["assignee"] is not None
    desk.page.keyboard.press("u")
    desk.eventually(lambda: of(desk.stage, ada)["assignee"], None)


def test_help_lists_both_undo_keys(desk: Desk) -> None:
    desk.sign_in()
    desk.page.keyboard.press("?")
    line = desk.page.get_by_role("dialog").locator("dl > div").filter(has_text="Undo")
    expect(line).to_contain_text("u")
    expect(line).to_contain_text("mod+z")
