"""Customers in the desk: badge, presence, page, sessions, and how far a message has come."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Request, expect

from tests.web.harness.axe import findings
from tests.web.harness.customer import Customer, channel_of
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.hostile import FIRED, MARKUP
from tests.web.harness.stage import PASSWORD, Stage

TIME: Final = r"\d\d:\d\d:\d\d"
_RELOADS_MS: Final = 2_500
"""Longer than the delays after which the desk loads context and counters again, as after a reply."""


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own customers."""
    return shared_stage


@pytest.fixture(scope="module")
def channel(stage: Stage) -> dict[str, Any]:
    """A channel of the shop."""
    return channel_of(stage)


def _panel(desk: Desk) -> Locator:
    return desk.page.get_by_role("complementary", name="Contact")


def _tick(desk: Desk) -> Locator:
    return desk.log.locator(".tick").last


@pytest.mark.journey
def test_visitor_has_a_badge_in_list_panel_and_contact_page(
    desk: Desk, stage: Stage, channel: dict[str, Any]
) -> None:
    visitor = Customer(stage, channel)
    visitor.start("Do you ship to Norway?")
    desk.sign_in()
    desk.view()
    row = desk.row("Do you ship to Norway?")
    expect(row).to_contain_text(re.compile(r"Visitor \w{4}visitor"))
    row.click()
    expect(desk.log.locator(".by")).to_contain_text(re.compile(r"Visitor \w{4}"))
    expect(_panel(desk).get_by_text("Unverified visitor")).to_be_visible()
    expect(desk.page.locator(".thread-head")).to_contain_text("Shop")
    contact = stage.owner.get("/contacts").json()["items"][0]
    desk.open(f"/desk/contacts/{contact['id']}")
    expect(desk.page.get_by_role("heading", level=1)).to_contain_text("Unverified visitor")


def test_signed_customer_is_verified(desk: Desk, stage: Stage, channel: dict[str, Any]) -> None:
    Customer(stage, channel, sub="ada", name="Ada Signed").start("My parcel is late.")
    stage.converse("backend-only", "By the backend", name="Bea Backend")
    desk.sign_in()
    desk.converse("Ada Signed")
    expect(_panel(desk).get_by_text("Verified", exact=True)).to_be_visible()
    expect(_panel(desk).get_by_text("Unverified visitor")).to_have_count(0)
    expect(_panel(desk).locator(".browser-sessions li")).to_contain_text("external ID, name")
    expect(_panel(desk).locator(".browser-sessions li")).not_to_contain_text("email")
    desk.row("Bea Backend").click()
    expect(desk.said("By the backend")).to_be_visible()
    expect(_panel(desk).locator(".badges .chip")).to_have_count(0)
    expect(desk.page.locator(".thread-head .sub")).not_to_contain_text("Shop")


def test_panel_follows_presence_and_the_current_page(
    desk: Desk, stage: Stage, channel: dict[str, Any]
) -> None:
    customer = Customer(stage, channel, sub="page", name="Paige Page")
    customer.start("Where am I?")
    desk.sign_in()
    desk.converse("Paige Page")
    panel = _panel(desk)
    expect(panel.get_by_text("Offline", exact=True)).to_be_visible()
    with customer.online():
        expect(panel.get_by_text("Online", exact=True)).to_be_visible()
        customer.shows(url="https://shop.example/cart?step=2", title="Your cart")
        link = panel.get_by_role("link", name="https://shop.example/cart?step=2")
        expect(link).to_be_visible()
        expect(panel).to_contain_text("Your cart")
        assert link.get_attribute("target") == "_blank"
        assert set((link.get_attribute("rel") or "").split()) == {"noopener", "noreferrer", "nofollow"}
        customer.shows(url="https://shop.example/paid", title="Thank you")
        expect(panel.get_by_role("link", name="https://shop.example/paid")).to_be_visible()
    expect(panel.get_by_text("Offline", exact=True)).to_be_visible()


def test_context_of_a_hostile_page_is_text(desk: Desk, stage: Stage, channel: dict[str, Any]) -> None:
    visitor = Customer(stage, channel)
    context = {
        "title": MARKUP[0],
        "url": "javascript:alert(1)",
        "referrer": "https://bank.example@evil.example/",
        "custom": {"plan": MARKUP[1], "<b>name</b>": 7},
    }
    visitor.start("Look at my page", context=context)
    desk.sign_in()
    desk.converse("Look at my page")
    panel = _panel(desk)
    expect(panel).to_contain_text("Nothing of it is verified")
    for text in (MARKUP[0], MARKUP[1], "javascript:alert(1)", "https://bank.example@evil.example/"):
        expect(panel).to_contain_text(text)
    expect(panel.locator("a[href^=javascript], a[href*=evil]")).to_have_count(0)
    assert desk.page.evaluate(f"window.{FIRED} ?? null") is None


def test_tick_follows_a_reply_to_the_customer(desk: Desk, stage: Stage, channel: dict[str, Any]) -> None:
    customer = Customer(stage, channel, sub="tick", name="Tick Tack")
    conversation = customer.start("Anyone?")
    desk.sign_in()
    desk.converse("Tick Tack")
    desk.reply("I am here.")
    expect(desk.log.locator(".truth").last).to_contain_text("Saved")
    expect(_tick(desk)).to_have_attribute("title", "Stored, not yet in the customer's browser")
    reply = customer.newest(conversation)
    desk.page.wait_for_timeout(_RELOADS_MS)
    calls: list[str] = []

    def note(request: Request) -> None:
        calls.append(f"{request.method} {request.url.removeprefix(stage.url)}")

    desk.page.on("request", note)
    customer.confirm(conversation, reached=reply["id"])
    expect(_tick(desk)).to_have_attribute("title", re.compile(f"^Reached the customer's browser {TIME}$"))
    customer.confirm(conversation, seen=reply["id"])
    seen = re.compile(f"^Reached the customer's browser {TIME}, seen {TIME}$")
    expect(_tick(desk)).to_have_attribute("title", seen)
    expect(_tick(desk)).to_have_accessible_name(seen)
    desk.page.wait_for_timeout(_RELOADS_MS)
    assert calls == []
    words = _tick(desk).locator(".tick-words")
    expect(words).to_be_hidden()
    _tick(desk).focus()
    expect(words).to_be_visible()
    expect(words).to_have_text(seen)


def test_panel_of_the_widget_confirms_a_reply(
    window: Callable[..., Desk], stage: Stage, channel: dict[str, Any]
) -> None:
    visitor, desk = window(stage), window(stage)
    visitor.open(f"/widget/{channel['id']}/demo")
    visitor.page.locator("deskwire-widget button").first.click()
    panel = visitor.page.frame_locator("deskwire-widget iframe")
    panel.get_by_role("textbox").fill("Sent from the panel")
    panel.get_by_role("button", name="Send").click()
    desk.sign_in()
    desk.converse("Sent from the panel")
    expect(_panel(desk).get_by_text("Online", exact=True)).to_be_visible()
    expect(_panel(desk).get_by_role("link", name=f"{stage.url}/widget/{channel['id']}/demo")).to_be_visible()
    desk.reply("Read in the panel")
    expect(panel.get_by_text("Read in the panel")).to_be_visible()
    expect(_tick(desk)).to_have_attribute("title", re.compile(f", seen {TIME}$"))
    visitor.page.close()
    expect(_panel(desk).get_by_text("Offline", exact=True)).to_be_visible()


def test_receipts_stay_after_a_reload(desk: Desk, stage: Stage, channel: dict[str, Any]) -> None:
    customer = Customer(stage, channel, sub="reload", name="Rea Load")
    conversation = customer.start("Hello?")
    path = f"/conversations/{conversation['id']}/messages"
    first = stage.owner.post(path, json={"text": "One"}).raise_for_status().json()
    stage.owner.post(path, json={"text": "Two"}).raise_for_status()
    customer.confirm(conversation, reached=first["id"])
    desk.sign_in()
    desk.converse("Rea Load")
    expect(_tick(desk)).to_have_attribute("title", re.compile(rf"^Reached .* {TIME} \(1 of 2\)$"))


def test_session_is_listed_and_ended(desk: Desk, stage: Stage, channel: dict[str, Any]) -> None:
    customer = Customer(stage, channel, sub="ended", name="End Ed")
    conversation = customer.start("My laptop was stolen.")
    contact = stage.owner.get(f"/conversations/{conversation['id']}").json()["contact"]["id"]
    desk.sign_in()
    desk.open(f"/desk/contacts/{contact}")
    row = desk.page.get_by_role("row").filter(has_text="Firefox, Linux")
    expect(row).to_contain_text("Shop")
    expect(row).to_contain_text("verified")
    row.get_by_role("button", name="End").click()
    dialog = desk.page.get_by_role("dialog", name="End this session")
    expect(dialog).to_contain_text("Firefox, Linux")
    dialog.get_by_role("button", name="End", exact=True).click()
    expect(desk.page.get_by_text("No browser or app has signed in.")).to_be_visible()
    assert customer.status() == 401


def test_session_that_starts_appears_at_once(desk: Desk, stage: Stage, channel: dict[str, Any]) -> None:
    customer = Customer(stage, channel, sub="second", name="Sec Ond")
    customer.start("From the laptop")
    desk.sign_in()
    desk.converse("Sec Ond")
    sessions = _panel(desk).locator(".browser-sessions li")
    expect(sessions).to_have_count(1)
    Customer(stage, channel, sub="second", name="Sec Ond").say(
        {"id": stage.owner.get("/conversations", params={"q": "laptop"}).json()["items"][0]["id"]},
        "From the phone",
    )
    expect(sessions).to_have_count(2)


def test_viewer_sees_sessions_and_ends_none(
    window: Callable[..., Desk], stage: Stage, channel: dict[str, Any]
) -> None:
    conversation = Customer(stage, channel, sub="viewed", name="Vi Ewed").start("Look, don't touch.")
    contact = stage.owner.get(f"/conversations/{conversation['id']}").json()["contact"]["id"]
    desk = window(stage)
    desk.sign_in(stage.person("Vito", "viewer"), PASSWORD)
    desk.open(f"/desk/contacts/{contact}")
    row = desk.page.get_by_role("row").filter(has_text="Firefox, Linux")
    expect(row).to_contain_text("Shop")
    expect(row.get_by_role("button", name="End")).to_have_count(0)


def test_merging_a_visitor_warns_that_its_sessions_end(
    desk: Desk, stage: Stage, channel: dict[str, Any]
) -> None:
    visitor = Customer(stage, channel)
    visitor.start("I am Ada, too", contact={"name": "Maybe Merged"})
    known = stage.converse("known", name="Kno Wn")["contact"]["id"]
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    desk.open(f"/desk/contacts/{known}")
    desk.page.get_by_role("button", name="Merge").click()
    desk.page.get_by_role("searchbox").fill("Maybe Merged")
    desk.page.get_by_role("dialog").get_by_role("button", name="Maybe Merged").click()
    dialog = desk.page.get_by_role("dialog")
    expect(dialog).to_contain_text("a merge does not prove who the visitor is")
    dialog.get_by_role("button", name="Merge").click()
    expect(desk.page.get_by_text("Contacts merged.").last).to_be_visible()
    assert visitor.status() == 401


def test_axe_finds_nothing_beside_a_customer(
    window: Callable[..., Desk], stage: Stage, channel: dict[str, Any]
) -> None:
    customer = Customer(stage, channel, sub="axe", name="Axe")
    conversation = customer.start(
        "Is this accessible?", context={"url": "https://shop.example/a", "title": "A"}
    )
    stage.owner.post(
        f"/conversations/{conversation['id']}/messages", json={"text": "Yes."}
    ).raise_for_status()
    customer.confirm(conversation, seen=customer.newest(conversation)["id"])
    desk = window(stage, reduced_motion="reduce")
    desk.sign_in()
    desk.converse("Axe")
    expect(_panel(desk).locator(".browser-sessions li")).to_have_count(1)
    assert findings(desk.page) == []
    contact = stage.owner.get(f"/conversations/{conversation['id']}").json()["contact"]["id"]
    desk.open(f"/desk/contacts/{contact}")
    expect(desk.page.get_by_role("row").filter(has_text="Firefox, Linux")).to_be_visible()
    assert findings(desk.page) == []
