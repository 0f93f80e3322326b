"""Replies are neither lost nor duplicated, and the page shows the stored state."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import PASSWORD, Stage


@pytest.mark.journey
def test_offline_reply_is_sent_once(desk: Desk) -> None:
    conversation = desk.stage.converse("u1", "Hello!", name="Ada")
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    desk.converse("Ada")
    expect(desk.said("Hello!")).to_be_visible()
    desk.context.set_offline(True)
    desk.reply("I am looking into it.")
    expect(desk.log.locator(".truth").last).to_contain_text("Will send when you're back online")
    desk.context.set_offline(False)
    expect(desk.log.locator(".truth").last).to_contain_text("Saved")
    expect(desk.said("I am looking into it.")).to_have_count(1)
    assert desk.stage.messages(conversation) == ["Hello!", "I am looking into it."]


@pytest.mark.journey
def test_outbox_survives_a_reload_and_sends_once(desk: Desk) -> None:
    conversation = desk.stage.converse("u1", "Hello!", name="Ada")
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    desk.converse("Ada")
    expect(desk.said("Hello!")).to_be_visible()
    desk.page.route("**/messages", lambda route: route.abort())
    desk.reply("Kept over a reload.")
    expect(desk.log.locator(".truth").last).to_contain_text("Will send when you're back online")
    desk.page.unroute("**/messages")
    desk.page.reload()
    expect(desk.said("Kept over a reload.")).to_have_count(1)
    expect(desk.log.locator(".truth").last).to_contain_text("Saved")
    assert desk.stage.messages(conversation) == ["Hello!", "Kept over a reload."]


@pytest.mark.journey
def test_lost_response_makes_no_second_reply(desk: Desk) -> None:
    conversation = desk.stage.converse("u1", "Hello!", name="Ada")
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    desk.converse("Ada")
    lost: list[int] = []

    def lose(route: Route) -> None:
        if lost or route.request.method != "POST":
            route.continue_()
            return
        lost.append(route.fetch().status)
        route.abort()

    desk.page.route("**/messages", lose)
    desk.reply("Once.")
    expect(desk.log.locator(".truth").last).to_contain_text("Saved")
    expect(desk.said("Once.")).to_have_count(1)
    assert lost == [200]
    assert desk.stage.messages(conversation) == ["Hello!", "Once."]


@pytest.mark.journey
def test_connection_lost_while_the_page_loads_stops_neither_replies_nor_the_stream(desk: Desk) -> None:
    conversation = desk.stage.converse("u1", "Hello!", name="Ada")
    desk.tolerated.append(NETWORK)
    desk.context.add_init_script("delete window.SharedWorker")
    modules = re.compile(r"/core/(outbox-store|stream|uploads)\.js$")
    lost: list[str] = []

    def lose(route: Route) -> None:
        lost.append(route.request.url.rpartition("/")[2])
        route.abort()

    desk.page.route(modules, lose)
    desk.sign_in()
    desk.view()
    expect(desk.row("Ada")).to_be_visible()
    desk.page.wait_for_timeout(500)
    assert {"outbox-store.js", "stream.js"} <= set(lost)
    desk.page.unroute(modules, lose)
    desk.converse("Ada")
    desk.reply("I am looking into it.")
    expect(desk.log.locator(".truth").last).to_contain_text("Saved")
    desk.stage.say(conversation, "Thanks!")
    expect(desk.said("Thanks!")).to_be_visible()
    assert desk.stage.messages(conversation) == ["Hello!", "I am looking into it.", "Thanks!"]


def test_replies_survive_repeated_kills_of_the_service(desk: Desk) -> None:
    conversation = desk.stage.converse("u1", "Hello!", name="Ada")
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    desk.converse("Ada")
    expect(desk.said("Hello!")).to_be_visible()
    written = [f"Reply number {number}." for number in range(9)]
    for number, text in enumerate(written):
        desk.reply(text)
        if number % 3 == 1:
            desk.stage.kill()
        if number % 3 == 2:
            desk.stage.start()
    for text in written:
        expect(desk.said(text)).to_have_count(1)
    expect(desk.log.get_by_text(re.compile("Kept here|Will send"))).to_have_count(0, timeout=60_000)
    expect(desk.log.get_by_text("Sending")).to_have_count(0)
    assert desk.stage.messages(conversation) == ["Hello!", *written]


@pytest.mark.parametrize("missed", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_missed_events_arrive_without_a_reload(desk: Desk, missed: int) -> None:
    conversation = desk.stage.converse("u1", "Hello!", name="Ada")
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    desk.converse("Ada")
    expect(desk.said("Hello!")).to_be_visible()
    desk.page.evaluate("window.here = 'not loaded anew'")
    desk.stage.close_road()
    desk.reply("Written while away.")
    expect(desk.log.locator(".truth").last).to_contain_text("Will send when you're back online")
    others = [desk.stage.converse(f"o{number}", "First", name=f"Other {number}") for number in range(20)]
    desk.stage.flood(others, missed)
    desk.stage.say(conversation, "Are you still there?")
    desk.stage.open_road()
    expect(desk.said("Are you still there?")).to_be_visible(timeout=60_000)
    expect(desk.page.get_by_role("button", name=re.compile("Connection: Live"))).to_be_visible(timeout=60_000)
    assert desk.page.evaluate("window.here") == "not loaded anew"
    decide = desk.page.get_by_role(
        "button", name="Send anyway"
    )  # the customer wrote in the meantime: the agent decides
    expect(decide).to_be_visible()
    decide.click()
    expect(desk.said("Written while away.")).to_have_count(1)
    expect(desk.log.locator(".truth").last).to_contain_text("Saved")
    assert desk.stage.messages(conversation) == ["Hello!", "Are you still there?", "Written while away."]
    shown = desk.rows()
    fresh = desk.context.new_page()
    desk.watch(fresh)
    fresh.goto(desk.page.url)
    loaded = Desk(desk.stage, desk.context, fresh)
    loaded.view()
    expect(fresh.get_by_role("option").first).to_be_visible()
    loaded.eventually(loaded.rows, shown)


def test_concurrent_reply_asks_the_second_agent(window: Callable[..., Desk], stage: Stage) -> None:
    conversation = stage.converse("u1", "Where is my order?", name="Ada")
    grace, ken = window(stage), window(stage)
    ken.tolerated.append(NETWORK)  # the refusal
    grace.sign_in(stage.person("Grace", "agent"), PASSWORD)
    ken.sign_in(stage.person("Ken", "agent"), PASSWORD)
    for desk in (grace, ken):
        desk.converse("Ada")
        expect(desk.said("Where is my order?")).to_be_visible()
    expect(ken.page.locator(".thread-head")).to_contain_text("Grace is viewing")
    grace.box.press_sequentially("It left")
    expect(ken.page.locator(".thread-head")).to_contain_text("Grace is typing")
    ken.page.route("**/messages", lambda route: held.append(route))
    held: list[Route] = []
    ken.reply("No idea.")
    ken.page.wait_for_timeout(200)
    grace.reply("It left us today.")
    expect(grace.log.locator(".run.out .tick").last).to_be_visible()
    held.pop().continue_()
    moved = ken.page.get_by_role("alert")
    expect(moved).to_contain_text("Grace wrote before you")
    expect(moved).to_contain_text("It left us today.")
    ken.page.unroute("**/messages")
    moved.get_by_role("button", name="Discard").click()
    expect(moved).to_have_count(0)
    assert stage.messages(conversation) == ["Where is my order?", "It left us today."]


def test_ended_session_keeps_the_draft(window: Callable[..., Desk], stage: Stage) -> None:
    conversation = stage.converse("u1", "Hello!", name="Ada")
    email = stage.person("Grace", "agent")
    desk = window(stage)
    desk.tolerated.append(NETWORK)
    desk.sign_in(email, PASSWORD)
    desk.converse("Ada")
    desk.box.fill("Half a sen")
    client = stage.client(email)
    for session in client.get("/users/me/sessions").json()["items"]:
        client.delete(f"/users/me/sessions/{session['id']}").raise_for_status()
    dialog = desk.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Your session has ended")
    dialog.get_by_label("Password", exact=True).fill(PASSWORD)
    dialog.get_by_role("button", name="Sign in").click()
    expect(dialog).to_have_count(0)
    expect(desk.box).to_have_value("Half a sen")
    desk.reply("Half a sentence more.")
    expect(desk.log.locator(".run.out .tick").last).to_be_visible()
    assert stage.messages(conversation) == ["Hello!", "Half a sentence more."]


def test_lost_role_is_reported_and_keeps_the_draft(window: Callable[..., Desk], stage: Stage) -> None:
    stage.converse("u1", "Hello!", name="Ada")
    desk = window(stage)
    desk.tolerated.append(NETWORK)
    desk.sign_in(stage.person("Grace", "agent"), PASSWORD)
    desk.converse("Ada")
    desk.box.fill("Not yet sent")
    (organisation,) = stage.owner.get("/organisations").json()["items"]
    members = stage.owner.get(f"/organisations/{organisation['id']}/members").json()["items"]
    (grace,) = [each for each in members if each["name"] == "Grace"]
    path = f"/organisations/{organisation['id']}/members/{grace['id']}"
    stage.owner.patch(path, json={"role": "viewer"}).raise_for_status()
    expect(desk.page.get_by_text(re.compile("can read but not reply"))).to_be_visible()
    stage.owner.patch(path, json={"role": "agent"}).raise_for_status()
    desk.page.reload()
    expect(desk.box).to_have_value("Not yet sent")


@pytest.mark.parametrize(("how", "why"), [("deleted", "deleted it"), ("erased", "Its contact was erased")])
def test_deleted_conversation_shows_reason_and_draft(desk: Desk, how: str, why: str) -> None:
    conversation = desk.stage.converse("u1", "Hello!", name="Ada")
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    desk.converse("Ada")
    desk.box.fill("What I had written")
    if how == "deleted":
        desk.stage.owner.delete(f"/conversations/{conversation['id']}").raise_for_status()
    else:
        desk.stage.s2s.delete("/s2s/contacts/u1").raise_for_status()
    gone = desk.page.locator(".gone")
    expect(gone).to_contain_text(why)
    expect(gone).to_contain_text("What I had written")
    expect(desk.row("Ada")).to_have_count(0)


def test_eight_tabs_share_one_outbox(desk: Desk) -> None:
    conversation = desk.stage.converse("u1", "Hello!", name="Ada")
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    desk.converse("Ada")
    tabs = [desk]
    for _ in range(7):
        tab = Desk(desk.stage, desk.context, desk.context.new_page(), desk.tolerated, desk.complaints)
        tab.watch(tab.page)
        tab.page.goto(desk.page.url)
        tabs.append(tab)
    for tab in tabs:
        expect(tab.said("Hello!")).to_be_visible()
    desk.context.set_offline(True)
    desk.page.bring_to_front()
    desk.reply("From one of eight.")
    expect(desk.log.locator(".truth").last).to_contain_text("Will send when you're back online")
    desk.context.set_offline(False)
    for tab in tabs:
        expect(tab.said("From one of eight.")).to_have_count(1)
    desk.eventually(lambda: desk.stage.messages(conversation), ["Hello!", "From one of eight."])
    desk.stage.say(conversation, "Thank you all")
    for tab in tabs:
        expect(tab.said("Thank you all")).to_be_visible()


def test_next_user_of_the_computer_finds_no_data(window: Callable[..., Desk], stage: Stage) -> None:
    stage.converse("u1", "Hello!", name="Ada")
    desk = window(stage)
    desk.sign_in(stage.person("Grace", "agent"), PASSWORD)
    desk.converse("Ada")
    desk.box.fill("A draft of Grace")
    desk.page.get_by_role("button", name=re.compile("You and your settings")).click()
    desk.tolerated.append(NETWORK)  # a call in flight is refused
    desk.page.get_by_role("menuitem", name="Sign out").click()
    expect(desk.page.get_by_role("heading", name="Sign in to Deskwire")).to_be_visible()
    desk.sign_in(stage.person("Ken", "agent"), PASSWORD)
    desk.converse("Ada")
    expect(desk.box).to_have_value("")
