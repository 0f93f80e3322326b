"""Customers of one computer, one after the other; and one customer in two tabs, who signs in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.web.harness.host_site import HostSite
from tests.web.harness.panel_tab import Computer, PanelTab, computer
from tests.web.harness.stage import Stage


@pytest.fixture(params=["another site", "same site"])
def shared(
    request: pytest.FixtureRequest, browser: Browser, shared_stage: Stage, host: HostSite
) -> Iterator[Computer]:
    """A computer of several customers, with its storage at the host or at the panel's origin."""
    with computer(browser, shared_stage, host, request.param) as one:
        yield one


def identity(one: Computer, name: str) -> str:
    """Return a signed identity of a customer of this test alone."""
    return one.identity(f"{name} of {one.channel['id']}")


def sign_in_at_load(one: Computer, user_id: str | None) -> None:
    """Let the host's pages sign in this customer when they load; None signs in no customer."""
    call = f"['identify', async () => {json.dumps(identity(one, user_id))}]" if user_id else ""
    one.site.first = f"window.Deskwire = [{call}];"


def owners(one: Computer) -> dict[str, str]:
    """Return the customer of each message."""
    found: dict[str, str] = {}
    for each in one.conversations():
        found |= dict.fromkeys(one.stage.messages(each), each["contact"]["userId"].partition(" ")[0])
    return found


def traces(tab: PanelTab, *texts: str) -> list[str]:
    """Return those of these texts that page, panel or their storage have."""
    places = [tab.page.content(), tab.frame.content(), str(tab.box.input_value()), tab.stored()]
    return [each for each in texts if any(each in place for place in places)]


def written_by_ada(one: Computer) -> PanelTab:
    """Let Ada write, get an unread reply, write while she is offline, and leave a draft; return her tab."""
    sign_in_at_load(one, "ada")
    tab = one.tab()
    tab.say("Secret of Ada")
    expect(tab.log.get_by_text("Delivered")).to_be_visible()
    one.stage.close_road()
    tab.say("Waiting of Ada")
    tab.box.fill("Draft of Ada")
    return tab


def reply_unread(one: Computer, tab: PanelTab) -> None:
    """Answer while the panel is closed, so that its button has a number."""
    tab.box.press("Escape")
    (conversation,) = one.conversations()
    path = f"/conversations/{conversation['id']}/messages"
    one.stage.owner.post(path, json={"text": "Reply to Ada"}).raise_for_status()
    expect(tab.page.locator("deskwire-widget button")).to_have_accessible_name("Shop support (1)")


LIST = re.compile(r"/v3/customer/conversations\?")
SECRETS = ("Secret of Ada", "Waiting of Ada", "Draft of Ada", "Reply to Ada", "ct_")


@pytest.mark.journey
def test_next_customer_finds_no_trace_of_the_one_before(shared: Computer) -> None:
    tab = written_by_ada(shared)
    token = re.findall(r"ct_[\w-]{20,}", tab.stored())
    assert token
    shared.stage.open_road()
    expect(tab.log.locator(".waiting")).to_have_count(0)
    reply_unread(shared, tab)
    sign_in_at_load(shared, "bob")
    tab.visit("other")
    expect(tab.view.get_by_text("Hello! See")).to_be_visible()
    tab.say("First of Bob")
    expect(tab.log.get_by_text("Delivered")).to_be_visible()
    assert traces(tab, *SECRETS[:4], *token) == []
    tab.box.press("Escape")
    expect(tab.page.locator("deskwire-widget button")).to_have_accessible_name("Shop support")
    assert owners(shared) == {
        "Secret of Ada": "ada", "Waiting of Ada": "ada", "Reply to Ada": "ada", "First of Bob": "bob",
    }  # fmt: skip


@pytest.mark.journey
def test_message_that_waits_at_the_change_goes_to_its_own_customer(shared: Computer) -> None:
    tab = written_by_ada(shared)
    tab.page.evaluate("jwt => void Deskwire.identify(async () => jwt)", identity(shared, "bob"))
    shared.stage.open_road()
    expect(tab.view.get_by_text("Hello! See")).to_be_visible(timeout=60_000)
    expect(tab.box).to_have_value("")
    tab.say("First of Bob")
    expect(tab.log.get_by_text("Delivered")).to_be_visible(timeout=60_000)
    assert owners(shared) == {"Secret of Ada": "ada", "Waiting of Ada": "ada", "First of Bob": "bob"}
    assert traces(tab, *SECRETS[:3]) == []


def test_sign_out_leaves_nothing_to_the_next_visitor(shared: Computer) -> None:
    tab = written_by_ada(shared)
    assert tab.page.evaluate("Deskwire.signOut()") == {"givenUp": 1}
    shared.stage.open_road()
    expect(tab.box).to_have_value("")
    assert traces(tab, *SECRETS) == []
    sign_in_at_load(shared, None)
    tab.visit("other")
    expect(tab.view.get_by_text("Hello! See")).to_be_visible(timeout=60_000)
    assert traces(tab, *SECRETS) == []
    assert owners(shared) == {"Secret of Ada": "ada"}


@pytest.mark.journey
def test_sign_out_in_one_tab_empties_the_other(shared: Computer) -> None:
    sign_in_at_load(shared, "ada")
    one = shared.tab()
    one.say("Secret of Ada")
    expect(one.log.get_by_text("Delivered")).to_be_visible()
    two = shared.tab()
    expect(two.log.get_by_text("Secret of Ada")).to_be_visible()
    two.box.fill("Draft of Ada")
    assert one.page.evaluate("Deskwire.signOut()") == {"givenUp": 0}
    expect(two.view.get_by_text("Secret of Ada")).to_have_count(0)
    expect(two.box).to_have_value("")
    for tab in (one, two):
        assert traces(tab, *SECRETS) == []


def test_unread_number_of_a_customer_who_signs_out_leaves_the_buttons_of_all_tabs(shared: Computer) -> None:
    sign_in_at_load(shared, "ada")
    shared.site.first += "Deskwire.push(['on', 'unread', each => (window.number = each)]);"
    one = shared.tab()
    one.say("Secret of Ada")
    expect(one.log.get_by_text("Delivered")).to_be_visible()
    reply_unread(shared, one)
    two = shared.context.new_page()
    two.goto(one.page.url)
    two.wait_for_function("window.number === 1")  # of its hidden panel
    number = two.locator("deskwire-widget button b")
    expect(number).to_have_text("1")
    assert one.page.evaluate("Deskwire.signOut()") == {"givenUp": 0}
    expect(number).to_have_text("")


def test_sign_out_while_a_hidden_panel_loads_leaves_no_number(shared: Computer) -> None:
    sign_in_at_load(shared, "ada")
    one = shared.tab()
    one.say("Secret of Ada")
    expect(one.log.get_by_text("Delivered")).to_be_visible()
    reply_unread(shared, one)
    two = shared.context.new_page()
    held: list[Route] = []
    two.route(LIST, lambda route: held.append(route))
    two.goto(one.page.url)
    while not held:
        two.wait_for_timeout(20)

    def end_session(route: Route) -> None:
        """Let the other tab have its list just before the session ends."""
        with two.expect_response(LIST):
            held.pop().continue_()
        route.continue_()

    one.page.route(re.compile("/v3/customer/me$"), end_session)
    assert one.page.evaluate("Deskwire.signOut()") == {"givenUp": 0}
    two.wait_for_timeout(500)
    expect(two.locator("deskwire-widget button b")).to_have_text("")
    assert two.evaluate("Object.values(localStorage)") == []


def test_tab_that_is_signing_in_at_a_sign_out_stays_signed_out(shared: Computer) -> None:
    sign_in_at_load(shared, "ada")
    shared.site.first = shared.site.first.replace(
        "async () =>",
        "async () => location.pathname === '/slow' && (await new Promise(done => (window.release = done))) ||",
    )
    one = shared.tab()
    one.say("Secret of Ada")
    expect(one.log.get_by_text("Delivered")).to_be_visible()
    two = shared.context.new_page()
    two.goto(f"{one.page.url}slow")
    two.wait_for_function("() => Boolean(window.release)")
    assert one.page.evaluate("Deskwire.signOut()") == {"givenUp": 0}
    two.evaluate("release()")
    two.wait_for_timeout(1_000)
    assert traces(one, *SECRETS) == []
    two.locator("deskwire-widget button").click()
    tab = PanelTab(shared, two)
    expect(tab.box).to_be_visible()
    assert traces(tab, *SECRETS) == []


def test_visitor_who_signs_in_keeps_thread_and_draft_in_both_tabs(shared: Computer) -> None:
    sign_in_at_load(shared, None)
    one = shared.tab()
    one.say("As a visitor")
    expect(one.log.get_by_text("Delivered")).to_be_visible()
    two = shared.tab()
    expect(two.log.get_by_text("As a visitor")).to_be_visible()
    one.box.fill("Half a sentence")
    one.page.evaluate("jwt => Deskwire.identify(async () => jwt)", identity(shared, "ada"))

    def contact() -> Any:
        return owners(shared)["As a visitor"]

    for _ in range(200):
        if contact() == "ada":
            break
        one.page.wait_for_timeout(50)
    assert contact() == "ada"
    expect(one.box).to_have_value("Half a sentence")
    two.say("From the other tab")
    one.say("As Ada")
    texts = ["As a visitor", "From the other tab", "As Ada"]
    for tab in (one, two):
        expect(tab.log.locator("article .text")).to_have_text(texts)
        expect(tab.view.locator(".waiting")).to_have_count(0)
    (conversation,) = shared.conversations()
    path = f"/conversations/{conversation['id']}/messages"
    shared.stage.owner.post(path, json={"text": "Hello Ada"}).raise_for_status()
    for tab in (one, two):
        expect(tab.log.locator("article .text")).to_have_text([*texts, "Hello Ada"])
    assert shared.thread() == [*texts, "Hello Ada"]
    assert set(owners(shared).values()) == {"ada"}
