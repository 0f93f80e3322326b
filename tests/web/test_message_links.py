"""Links to messages: copied from the menu of a message, and opened in a long thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import PASSWORD, Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own contact."""
    return shared_stage


@pytest.fixture
def ada(stage: Stage, request: pytest.FixtureRequest) -> dict[str, Any]:
    """A conversation with a contact of this test."""
    return stage.converse(request.node.name, "Hello!", name="Ada")


def long_thread(stage: Stage, conversation: dict[str, Any], count: int = 260) -> list[dict[str, Any]]:
    """Write many messages; return them."""
    return [stage.say(conversation, f"Number {number} of many\nand a line") for number in range(count)]


@pytest.mark.journey
def test_link_is_copied_by_mouse_and_by_keyboard(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    note = {"text": "A note", "internal": True}
    path = f"/conversations/{ada['id']}/messages"
    noted = stage.owner.post(path, json=note).raise_for_status().json()
    desk = window(stage, permissions=["clipboard-read", "clipboard-write"])
    desk.sign_in()
    desk.open(f"/desk/c/{ada['id']}")
    said = desk.said("A note")
    said.hover()
    said.get_by_role("button", name="Actions for this message").click()
    desk.page.get_by_role("menuitem", name="Copy link").click()
    expect(desk.page.locator(".toasts")).to_contain_text("Copied")
    address = desk.page.evaluate("navigator.clipboard.readText()")
    project = stage.demo["projectId"]
    assert address == f"{stage.url}/desk/{project}/c/{ada['id']}/m/{noted['id']}"
    hello = desk.said("Hello!")
    hello.get_by_role("button", name="Actions for this message").focus()
    desk.page.keyboard.press("Enter")
    expect(desk.page.get_by_role("menuitem", name="Copy link")).to_be_focused()
    desk.page.keyboard.press("Enter")
    desk.eventually(lambda: desk.page.evaluate("navigator.clipboard.readText()") != address, True)
    desk.page.goto(address)
    expect(said).to_have_attribute("aria-current", "true")
    expect(said).to_be_focused()


def test_link_into_a_long_thread_loads_scrolls_and_marks(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    messages = long_thread(stage, ada)
    desk = window(stage)
    desk.sign_in()
    for at in (3, 200, 259):
        desk.open(f"/desk/c/{ada['id']}/m/{messages[at]['id']}")
        said = desk.page.locator(f"#{messages[at]['id']}")
        expect(said).to_be_in_viewport()
        expect(said).to_be_focused()
        expect(said).to_have_class("message found")
        expect(desk.page.locator(".message.found")).to_have_count(1)
    assert findings(desk.page) == []


def test_back_and_forward_lead_to_the_message_of_each_address(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    first, *_, last = long_thread(stage, ada, 130)
    desk = window(stage)
    desk.sign_in()
    desk.open(f"/desk/c/{ada['id']}/m/{first['id']}")
    expect(desk.page.locator(f"#{first['id']}")).to_be_focused()
    address = desk.page.url.replace(first["id"], last["id"])
    desk.page.evaluate(
        "to => (history.pushState(null, '', to), dispatchEvent(new Event('popstate')))", address
    )
    expect(desk.page.locator(f"#{last['id']}")).to_be_focused()
    for go, shown in (("back", first), ("forward", last)):
        desk.page.evaluate(f"history.{go}()")
        expect(desk.page.locator(f"#{shown['id']}")).to_be_in_viewport()
        expect(desk.page.locator(f"#{shown['id']}")).to_have_attribute("aria-current", "true")


def test_deleted_and_unknown_messages_say_so(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    gone = stage.say(ada, "Regretted")
    stage.say(ada, "Kept")
    stage.owner.delete(f"/conversations/{ada['id']}/messages/{gone['id']}").raise_for_status()
    desk = window(stage, viewport={"width": 390, "height": 800})
    desk.sign_in()
    desk.tolerated.append(NETWORK)  # 404 for the unknown one
    for message_id in (gone["id"], "msg_01M3250V00PPPPPPPPPPPPPPPP"):
        desk.open(f"/desk/c/{ada['id']}/m/{message_id}")
        expect(desk.said("Kept")).to_be_visible()
        notice = desk.page.get_by_role("alert").filter(has_text="The linked message was deleted")
        expect(notice).to_be_visible()
        assert findings(desk.page) == []
        notice.get_by_role("button", name="Close").click()
        expect(notice).to_have_count(0)
        assert desk.page.url.endswith(f"/c/{ada['id']}")


def test_link_that_fails_to_load_is_tried_again(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    messages = long_thread(stage, ada, 120)
    desk = window(stage)
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    desk.context.route("**/messages?**before=**", lambda route: route.abort())
    desk.open(f"/desk/c/{ada['id']}/m/{messages[0]['id']}")
    failed = desk.page.get_by_role("alert").filter(has_text="Couldn't load the linked message")
    expect(failed).to_be_visible()
    desk.context.unroute("**/messages?**before=**")
    failed.get_by_role("button", name="Try again").click()
    expect(desk.page.locator(f"#{messages[0]['id']}")).to_be_in_viewport()


def test_link_to_a_message_of_another_conversation_finds_nothing(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    said = stage.say(ada, "Ours alone")
    other = stage.converse("elsewhere", "Another one", name="Bea")
    email = stage.person("Vera", "viewer")
    desk = window(stage)
    desk.sign_in(email, PASSWORD)
    desk.tolerated.append(NETWORK)
    desk.open(f"/desk/c/{other['id']}/m/{said['id']}")  # a message of another conversation
    expect(desk.page.get_by_role("alert").filter(has_text="The linked message was deleted")).to_be_visible()
    expect(desk.said("Ours alone")).to_have_count(0)
