"""The questions of a channel to visitors, also when they arrive after the visitor's first message."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.web.harness.desk import NETWORK
from tests.web.harness.widget import HostWindow, conversation_of, make_channel

SETTINGS = re.compile("/v3/customer/channels/")
FIELDS = re.compile(r"/built/later-\w+\.js")
CALLS = re.compile("/v3/customer/(session|conversations|me|stream|events)")


def open_panel(window: HostWindow) -> None:
    """Open the panel of a channel that asks visitors for their email, and for their name if they like."""
    window.open(make_channel(window.stage, visitors={"allowed": True, "ask": ["name?", "email"]}))
    window.button.click()


def answer(window: HostWindow, text: str) -> None:
    """Answer the question, and check that the message is stored once, and the answer with its contact."""
    email = window.panel.get_by_label("Email")
    email.fill("ada@shop.example")
    email.press("Enter")
    expect(window.log().get_by_text("Delivered")).to_be_visible()
    expect(email).to_have_count(0)
    conversation = conversation_of(window.stage, text)
    assert window.stage.messages(conversation) == [text]

    def stored() -> Any:
        return window.stage.owner.get(f"/contacts/{conversation['contact']['id']}").json()["email"]

    for _ in range(100):
        if stored() == "ada@shop.example":
            return
        window.page.wait_for_timeout(50)
    assert stored() == "ada@shop.example"


@pytest.mark.journey
def test_visitor_is_asked_for_what_the_channel_wants(window: HostWindow) -> None:
    open_panel(window)
    window.say("Please call me back")
    expect(window.panel.get_by_label("Email")).to_be_focused()
    answer(window, "Please call me back")


@pytest.mark.journey
@pytest.mark.parametrize("late", [SETTINGS, FIELDS], ids=["settings", "fields"])
def test_message_waits_until_the_questions_are_shown(window: HostWindow, late: re.Pattern[str]) -> None:
    held: list[Route] = []
    window.page.route(late, lambda route: held.append(route))
    open_panel(window)
    text = f"Before the {'settings' if late is SETTINGS else 'fields'}"
    window.say(text)
    window.page.wait_for_timeout(500)
    assert len(held) == 1
    expect(window.box).to_have_value(text)
    held[0].continue_()
    expect(window.panel.get_by_label("Email")).to_be_focused()
    answer(window, text)


@pytest.mark.parametrize("late", [SETTINGS, FIELDS], ids=["settings", "fields"])
def test_questions_are_loaded_again_after_a_lost_connection(
    window: HostWindow, late: re.Pattern[str]
) -> None:
    window.tolerated.append(NETWORK)
    lost: list[Route] = []

    def lose(route: Route) -> None:
        lost.append(route)
        route.abort()

    window.page.route(late, lose)
    open_panel(window)
    text = f"After the {'settings' if late is SETTINGS else 'fields'}"
    window.say(text)
    window.page.wait_for_timeout(500)
    assert lost
    window.page.unroute(late, lose)
    expect(window.panel.get_by_label("Email")).to_be_focused()
    answer(window, text)


def test_message_written_offline_is_sent_after_the_answer(window: HostWindow) -> None:
    """The service refuses it at first, because nothing had asked the visitor."""
    window.tolerated.append(NETWORK)
    window.page.route(CALLS, lambda route: route.abort())
    window.page.route(SETTINGS, lambda route: route.abort())
    open_panel(window)
    expect(window.panel.get_by_text("You are offline.")).to_be_visible()
    window.say("In the tunnel")
    expect(window.log().get_by_text("Kept on this device")).to_be_visible()
    window.page.unroute(CALLS)
    expect(window.log().get_by_text("Not sent: ")).to_be_visible()
    window.page.unroute(SETTINGS)
    expect(window.panel.get_by_label("Email")).to_be_visible()
    answer(window, "In the tunnel")
