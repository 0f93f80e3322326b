"""A panel whose first calls fail: it offers a new conversation only to customers who can't have one already."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.web.harness.host_site import HostSite
from tests.web.harness.panel_tab import Computer, PanelTab, computer
from tests.web.harness.stage import Stage

CALLS = re.compile("/v3/customer/(session|conversations|me|stream|events)")
OFFLINE = "You are offline."


@pytest.fixture(params=["another site", "same site"])
def shared(
    request: pytest.FixtureRequest, browser: Browser, shared_stage: Stage, host: HostSite
) -> Iterator[Computer]:
    """A customer's computer, with its storage at the host or at the panel's origin."""
    with computer(browser, shared_stage, host, request.param) as one:
        yield one


def refuse(route: Route) -> None:
    """Let a call fail as without a network."""
    route.abort()


def unreachable(one: Computer) -> Page:
    """Open a page whose panel gets no response to any call, and open the panel."""
    page = one.context.new_page()
    page.on("pageerror", lambda error: one.errors.append(str(error)))
    page.route(CALLS, refuse)
    site, address = one.site, f"{one.stage.url}/widget/{one.channel['id']}"
    site.loader = f"{address}.js"
    page.goto(site.url if one.place == "another site" else site.url.replace("localhost", "127.0.0.1"))
    page.locator("deskwire-widget button").click()
    return page


def check_no_text_field(tab: PanelTab) -> None:
    """Check that the panel without a connection shows no text field."""
    expect(tab.view.get_by_text(OFFLINE)).to_be_visible()
    tab.page.wait_for_timeout(300)
    assert not tab.box.is_visible()


def check_one_conversation_continues(one: Computer, tab: PanelTab, *before: str) -> None:
    """Check that the panel has no text field before it has the list, and that the customer then continues the conversation."""
    check_no_text_field(tab)
    tab.page.unroute(CALLS, refuse)
    row = tab.view.get_by_role("listitem")
    expect(row).to_have_count(1, timeout=60_000)
    assert not tab.box.is_visible()
    row.get_by_role("button").dispatch_event("click")
    tab.say("Are you there?")
    expect(tab.log.get_by_text("Delivered")).to_be_visible()
    assert one.thread() == [*before, "Are you there?"]


@pytest.mark.journey
def test_visitor_who_has_written_gets_the_conversation_and_no_new_one(shared: Computer) -> None:
    first = shared.tab()
    first.say("Where is my order?")
    expect(first.log.get_by_text("Delivered")).to_be_visible()
    first.page.close()
    check_one_conversation_continues(shared, PanelTab(shared, unreachable(shared)), "Where is my order?")


def test_signed_in_customer_on_a_new_device_gets_the_conversation_and_no_new_one(
    browser: Browser, shared: Computer
) -> None:
    ada = f"ada of {shared.channel['id']}"
    contact = {"userId": ada, "name": "Ada"}
    body = {"contact": contact, "message": {"text": "Written on another device"}}
    shared.stage.s2s.post("/s2s/conversations", json=body).raise_for_status()
    shared.site.first = f"window.Deskwire = [['identify', async () => {json.dumps(shared.identity(ada))}]];"
    tab = PanelTab(shared, unreachable(shared))
    check_no_text_field(tab)
    tab.page.unroute(CALLS, refuse)
    expect(tab.view.get_by_role("listitem")).to_have_text(
        re.compile("Written on another device"), timeout=60_000
    )
    assert not tab.box.is_visible()


def test_first_visit_without_a_connection_keeps_a_message(shared: Computer) -> None:
    tab = PanelTab(shared, unreachable(shared))
    expect(tab.view.get_by_text(OFFLINE)).to_be_visible()
    tab.say("Is anyone there?")
    expect(tab.log.get_by_text("Kept on this device")).to_be_visible()
    tab.page.unroute(CALLS, refuse)
    expect(tab.log.get_by_text("Delivered")).to_be_visible(timeout=60_000)
    assert shared.thread() == ["Is anyone there?"]


def test_list_appears_after_pages_that_have_loaded_the_unread_number_only(shared: Computer) -> None:
    tab = shared.tab()
    tab.say("Where is my order?")
    expect(tab.log.get_by_text("Delivered")).to_be_visible()
    for _ in range(3):  # the first page stores the number, the next ones find it unchanged
        tab.page.reload()
        with tab.page.expect_response(re.compile("/v3/customer/conversations")) as listed:
            pass
        assert listed.value.status in (200, 304)
    tab.page.locator("deskwire-widget button").click()
    expect(tab.view.get_by_role("listitem").or_(tab.box).first).to_be_visible()
    tab.page.wait_for_timeout(500)
    expect(tab.view.get_by_role("listitem")).to_have_count(1)
    assert not tab.box.is_visible()
