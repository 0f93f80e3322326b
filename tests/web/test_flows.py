"""Agents' daily tasks, by mouse."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import FilePayload, expect

from tests.web.harness.desk import Desk
from tests.web.harness.endpoint import Endpoint
from tests.web.harness.stage import PASSWORD, Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own contact."""
    return shared_stage


@pytest.fixture(scope="module")
def crm(shared_stage: Stage) -> Endpoint:
    """A healthy webhook endpoint for all events."""
    return shared_stage.endpoint("crm")


@pytest.mark.journey
def test_first_sign_in_replaces_the_one_time_password(desk: Desk) -> None:
    (organisation,) = desk.stage.owner.get("/organisations").json()["items"]
    body = {"email": "ken@demo.example", "name": "Ken", "role": "agent"}
    first = desk.stage.owner.post(f"/organisations/{organisation['id']}/members", json=body).json()[
        "password"
    ]
    desk.tolerated.append("Failed to load resource")  # the first attempt has no new password
    desk.open()
    desk.page.get_by_label("Email").fill("ken@demo.example")
    desk.page.get_by_label("Password", exact=True).fill(first)
    desk.page.get_by_role("button", name="Sign in").click()
    desk.page.get_by_label("New password").fill(PASSWORD)
    desk.page.get_by_role("button", name="Sign in").click()
    expect(desk.page.get_by_role("navigation", name="Views")).to_be_visible()


def test_reply_shows_its_save_and_delivery_times(desk: Desk, crm: Endpoint) -> None:
    conversation = desk.stage.converse("bea", "Where is my order?", name="Bea Lovelace")
    desk.sign_in()
    desk.converse("Bea Lovelace")
    expect(desk.said("Where is my order?")).to_be_visible()
    desk.reply("It left us today.")
    truth = desk.log.locator(".truth").last
    expect(truth).to_contain_text(re.compile(r"Saved in \d+ ms"))
    expect(truth).to_contain_text(re.compile(r"Delivered to crm \d+ m?s later"))
    expect(desk.box).to_have_value("")
    assert desk.stage.messages(conversation) == ["Where is my order?", "It left us today."]
    sent = [each["data"]["message"] for each in crm.events if each["type"] == "message.created"]
    assert [each["text"] for each in sent if each["conversationId"] == conversation["id"]] == [
        "Where is my order?",
        "It left us today.",
    ]


def test_failing_endpoint_is_shown_with_its_reason(desk: Desk) -> None:
    desk.stage.endpoint("search", status=503)
    desk.stage.converse("cleo", "Hello!", name="Cleo")
    desk.sign_in()
    desk.converse("Cleo")
    expect(desk.log).to_contain_text(re.compile(r"search: (retrying|queued)"))


@pytest.mark.journey
def test_note_is_visible_to_agents_only(desk: Desk, crm: Endpoint) -> None:
    conversation = desk.stage.converse("dora", "Hello!", name="Dora")
    desk.sign_in()
    desk.converse("Dora")
    desk.page.get_by_role("button", name="Note").click()
    expect(desk.page.get_by_text("Only agents will see this")).to_be_visible()
    desk.box.fill("The carrier was asked.")
    desk.page.get_by_role("button", name="Add note").click()
    note = desk.page.get_by_role("article", name=re.compile("Note · only agents see it"))
    expect(note).to_contain_text("The carrier was asked.")
    customer = desk.stage.s2s.get(f"/s2s/conversations/{conversation['id']}/messages").json()["items"]
    assert [message["text"] for message in customer] == ["Hello!"]
    desk.stage.say(conversation, "Are you there?")
    expect(desk.said("Are you there?")).to_be_visible()
    assert "carrier" not in str(crm.events)


def test_assign_close_and_reopen_show_at_once(desk: Desk) -> None:
    conversation = desk.stage.converse("emil", "Hello!", name="Emil")
    desk.sign_in()
    desk.converse("Emil")
    head = desk.page.locator(".thread-head")
    head.get_by_role("button", name="Assign to me").click()
    expect(head).to_contain_text("Demo owner")
    head.get_by_role("button", name="Close").click()
    expect(head).to_contain_text("closed")
    head.get_by_role("button", name="Reopen").click()
    expect(head).to_contain_text("open")
    path = f"/conversations/{conversation['id']}/events"

    def types() -> list[str]:
        return [event["type"].partition(".")[2] for event in desk.stage.owner.get(path).json()["items"]]

    desk.eventually(lambda: types()[-3:], ["assigned", "closed", "reopened"])


def test_send_and_close_is_one_step(desk: Desk) -> None:
    conversation = desk.stage.converse("fay", "Hello!", name="Fay")
    desk.sign_in()
    desk.converse("Fay")
    desk.box.fill("Done.")
    desk.box.press("Control+Shift+Enter")
    expect(desk.log.locator(".truth").last).to_contain_text("Saved")
    expect(desk.said("Done.")).to_have_count(1)
    expect(desk.page.locator(".thread-head")).to_contain_text("closed")
    path = f"/conversations/{conversation['id']}/events"

    def newest() -> list[str]:
        return [event["type"] for event in desk.stage.owner.get(path).json()["items"][-2:]]

    desk.eventually(newest, ["message.created", "conversation.closed"])


def test_customer_message_appears_without_reload(desk: Desk) -> None:
    conversation = desk.stage.converse("gil", "Hello!", name="Gil")
    desk.sign_in()
    desk.converse("Gil")
    expect(desk.said("Hello!")).to_be_visible()
    desk.stage.say(conversation, "Is anybody there?")
    expect(desk.said("Is anybody there?")).to_be_visible()
    expect(desk.row("Is anybody there?")).to_be_visible()
    desk.stage.converse("u2", "A new one", name="Grace")
    desk.page.get_by_role(
        "button", name=re.compile("1 new")
    ).click()  # the order is held while the list has focus
    expect(desk.row("A new one")).to_be_visible()


def test_search_finds_conversations_while_typing(desk: Desk) -> None:
    desk.stage.converse("hana", "Where is my parcel?", name="Hana")
    desk.stage.converse("u2", "A refund, please", name="Alan")
    desk.sign_in()
    desk.page.get_by_role("searchbox").fill("parc")
    found = desk.page.get_by_role("region", name="Conversations")
    expect(found.get_by_role("button", name=re.compile("Hana"))).to_be_visible()
    expect(found).not_to_contain_text("Alan")
    desk.page.get_by_role("searchbox").fill("nothing has this")
    expect(desk.page.get_by_text("No results for “nothing has this”")).to_be_visible()


def test_snippet_is_inserted_with_names(desk: Desk) -> None:
    body = {
        "shortcut": "refund",
        "title": "Refund",
        "text": "Dear {contact.name}, it is on its way. {agent.name}",
    }
    desk.stage.owner.post("/snippets", json=body).raise_for_status()
    desk.stage.converse("ida", "Hello!", name="Ida")
    desk.sign_in()
    desk.converse("Ida")
    desk.box.press_sequentially(";ref")
    expect(desk.page.get_by_role("listbox", name="Snippets")).to_contain_text("Refund")
    desk.box.press("Enter")
    expect(desk.box).to_have_value("Dear Ida, it is on its way. Demo owner")


def test_file_is_attached_and_shown(desk: Desk) -> None:
    conversation = desk.stage.converse("jon", "Hello!", name="Jon")
    desk.sign_in()
    desk.converse("Jon")
    file = FilePayload(name="label.txt", mimeType="text/plain", buffer=b"parcel 1Z")
    desk.page.locator(".composer input[type=file]").set_input_files(file)
    expect(desk.page.locator(".composer .files")).to_contain_text("label.txt")
    desk.reply("Here it is.")
    expect(desk.log.get_by_role("link", name=re.compile("label.txt"))).to_be_visible()
    (_, message) = desk.stage.owner.get(f"/conversations/{conversation['id']}/messages").json()["items"]
    assert [each["name"] for each in message["attachments"]] == ["label.txt"]


def test_viewer_has_no_control_that_writes(window: Callable[..., Desk], stage: Stage) -> None:
    stage.converse("kim", "Hello!", name="Kim")
    desk = window(stage)
    desk.sign_in(stage.person("Vera", "viewer"), PASSWORD)
    desk.view()
    desk.row("Kim").click()
    expect(desk.said("Hello!")).to_be_visible()
    expect(desk.page.get_by_text(re.compile("can read but not reply"))).to_be_visible()
    expect(desk.box).to_have_count(0)
    for name in ("Close", "Assign to me", "Snooze"):
        expect(desk.page.locator(".thread-head").get_by_role("button", name=name)).to_have_count(0)
