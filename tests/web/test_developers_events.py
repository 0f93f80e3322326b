"""The live log, stream consumers and time travel."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
import trio
import trio_websocket
from playwright.sync_api import Locator, Page, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import PASSWORD, Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own conversations."""
    return shared_stage


def rows(page: Page, name: str = "Live log") -> Locator:
    return page.get_by_role("region", name=name).locator("tbody").get_by_role("row")


@contextmanager
def consuming(stage: Stage, consumer_id: str, channel: str) -> Iterator[None]:
    """Hold a channel of the stream with a client that confirms its events."""
    socket = stage.background.enter(_held(stage, consumer_id, channel))
    try:
        yield
    finally:
        stage.background.call(trio.aclose_forcefully, socket._stream)


@asynccontextmanager
async def _held(
    stage: Stage, consumer_id: str, channel: str
) -> AsyncIterator[trio_websocket.WebSocketConnection]:
    url = f"{stage.server.url.replace('http', 'ws')}/app/{stage.demo['streamKey']}?protocol=7&client=test"
    async with trio_websocket.open_websocket_url(url, message_queue_size=100) as socket:
        hello = json.loads(await socket.get_message())
        name = {"socket_id": json.loads(hello["data"])["socket_id"], "channel_name": channel}
        answer = stage.s2s.post("/s2s/stream/auth", json={**name, "consumerId": consumer_id})
        data = {"channel": channel, "auth": answer.raise_for_status().json()["auth"]}
        await socket.send_message(json.dumps({"event": "pusher:subscribe", "data": data}))
        subscribed = json.loads(await socket.get_message())
        assert subscribed["event"] == "pusher_internal:subscription_succeeded"
        try:
            yield socket
        finally:
            await trio.aclose_forcefully(socket._stream)


@pytest.mark.journey
def test_live_log_shows_events_and_can_be_paused(desk: Desk, stage: Stage) -> None:
    one = stage.converse("log", "Before.", name="Lola Log")
    desk.sign_in()
    desk.page.get_by_role("link", name="Live log").click()
    expect(rows(desk.page).filter(has_text="Before.")).to_be_visible()
    stage.say(one, "While somebody looks.")
    expect(rows(desk.page).first).to_contain_text("While somebody looks.")
    desk.page.get_by_role("button", name="Pause").click()
    stage.say(one, "While it is paused.")
    expect(desk.page.get_by_role("status").filter(has_text="paused, 1 new")).to_be_visible()
    expect(rows(desk.page).filter(has_text="While it is paused.")).to_have_count(0)
    desk.page.get_by_role("button", name="Resume").click()
    expect(rows(desk.page).first).to_contain_text("While it is paused.")
    ids = desk.page.evaluate("[...document.querySelectorAll('tbody time')].map(each => each.dateTime)")
    assert ids == sorted(ids, reverse=True)


def test_live_log_filters_are_in_the_address(desk: Desk, stage: Stage) -> None:
    one, two = stage.converse("type", "Only mine."), stage.converse("type-2", "Not mine.")
    desk.sign_in()
    desk.open(f"/desk/events?conversation={one['id']}&types=message.created")
    expect(rows(desk.page)).to_have_count(1)
    stage.say(two, "Not here.")
    stage.say(one, "But this.")
    expect(rows(desk.page)).to_have_count(2)
    expect(rows(desk.page).first).to_contain_text("But this.")
    desk.page.get_by_role("combobox", name="Event").select_option("conversation.created")
    expect(rows(desk.page)).to_have_count(1)
    expect(desk.page).to_have_url(re.compile(r"types=conversation\.created"))


def test_event_dialog_shows_data_and_deliveries(desk: Desk, stage: Stage) -> None:
    stage.endpoint("crm")
    one = stage.converse("reached", "Who has it?")
    desk.sign_in()
    desk.open(f"/desk/events?conversation={one['id']}")
    rows(desk.page).filter(has_text="message.created").get_by_role("button").click()
    dialog = desk.page.get_by_role("dialog", name="message.created")
    expect(dialog).to_contain_text('"text": "Who has it?"')
    expect(dialog).to_contain_text("Deliveries")
    expect(dialog).to_contain_text("crm")
    expect(desk.page).to_have_url(re.compile("event=evt_"))
    desk.page.reload()
    expect(dialog).to_contain_text('"text": "Who has it?"')
    desk.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(desk.page).not_to_have_url(re.compile("event="))


def test_consumers_show_their_lag_and_can_be_ended(desk: Desk, stage: Stage) -> None:
    one = stage.converse("heard", "Do you hear me?", name="Hera Heard")
    with consuming(stage, "mirror-1", f"private-conversation-{one['id']}"):
        desk.sign_in()
        desk.page.get_by_role("link", name="Stream consumers").click()
        row = rows(desk.page, "Stream consumers").filter(has_text="mirror-1")
        expect(row).to_contain_text("the conversation")
        row.get_by_role("button", name="End").click()
        dialog = desk.page.get_by_role("dialog", name="End the consumer mirror-1")
        expect(dialog).to_contain_text("refused for a minute")
        dialog.get_by_role("button", name="End", exact=True).click()
        expect(row).to_contain_text("not connected")


def test_message_shows_consumers_that_lack_it(desk: Desk, stage: Stage) -> None:
    one = stage.converse("consumer", "First.", name="Cora Consumer")
    with consuming(stage, "mirror-2", f"private-conversation-{one['id']}"):
        pass
    stage.say(one, "Second.")
    desk.sign_in()
    desk.converse("Cora Consumer")
    expect(desk.log).to_contain_text("mirror-2 is not connected")
    desk.log.get_by_role("button", name=re.compile("mirror-2")).last.click()
    receipts = desk.page.get_by_label("Delivery of this message")
    expect(receipts).to_contain_text("mirror-2 is not connected and has not confirmed it")
    with consuming(stage, "mirror-2", f"private-conversation-{one['id']}"):
        expect(receipts).to_contain_text("mirror-2 has confirmed it")


def past(desk: Desk) -> Locator:
    return desk.page.get_by_role("list", name="Messages").get_by_role("listitem")


def test_time_travel_shows_the_conversation_at_each_event(desk: Desk, stage: Stage) -> None:
    one = stage.converse("travel", "First.", "Second.", name="Tara Travel")
    path = f"/conversations/{one['id']}"
    stage.owner.patch(
        path, json={"title": "Travel", "tags": ["vip"]}, params={"view": "agent"}
    ).raise_for_status()
    stage.owner.post(f"{path}/close").raise_for_status()
    desk.sign_in()
    desk.open(f"/desk/history/{one['id']}")
    expect(desk.page.get_by_role("heading", level=2, name="Present")).to_be_visible()
    expect(past(desk)).to_have_count(2)
    moments = desk.page.locator(".moments li")
    expect(moments.filter(has_text="Closed by an agent")).to_contain_text("by Demo owner")
    expect(moments.filter(has_text="tagged vip")).to_be_visible()
    slider = desk.page.get_by_role("slider", name="Event")
    slider.focus()
    for _ in range(3):
        desk.page.keyboard.press("ArrowLeft")
    expect(desk.page.get_by_role("heading", level=2, name="As of event 2")).to_be_visible()
    expect(past(desk)).to_have_count(1)
    expect(desk.page.locator("dd").filter(has_text="open").first).to_contain_text("now closed")
    expect(desk.page.locator("dd").filter(has_text="now vip")).to_be_visible()
    expect(desk.page).to_have_url(re.compile("at=2"))
    desk.page.reload()
    expect(past(desk)).to_have_count(1)
    desk.page.get_by_role("button", name="Back to present").click()
    expect(past(desk)).to_have_count(2)
    stage.say(one, "Third, live.")
    expect(past(desk)).to_have_count(3)


def test_conversation_links_to_time_travel(desk: Desk, stage: Stage) -> None:
    stage.endpoint("crm")
    one = stage.converse("reach", "Look back.", name="Rhea Reach")
    desk.sign_in()
    desk.converse("Rhea Reach")
    desk.page.get_by_role("complementary").get_by_role("link", name="Time travel").click()
    expect(desk.page.get_by_role("heading", level=1, name="Time travel: Rhea Reach")).to_be_visible()
    expect(desk.page).to_have_url(re.compile(f"/history/{one['id']}$"))


def test_viewer_can_only_read_events_and_history(window: Callable[..., Desk], stage: Stage) -> None:
    one = stage.converse("viewer", "Look, do not touch.")
    desk = window(stage)
    desk.sign_in(stage.person("Viola", "viewer"), PASSWORD)
    desk.open(f"/desk/history/{one['id']}")
    expect(past(desk)).to_have_count(1)
    expect(desk.page.locator("main .button.primary, main .button.danger")).to_have_count(0)
    desk.open("/desk/events")
    expect(rows(desk.page).first).to_be_visible()
    expect(desk.page.get_by_role("link", name="Stream consumers")).to_have_count(0)


def test_history_of_another_project_is_hidden(desk: Desk) -> None:
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    desk.open("/desk/history/cnv_00000000000000000000000000")
    expect(desk.page.get_by_text("Not found")).to_be_visible()


def test_axe_finds_nothing_on_events_consumers_and_history(window: Callable[..., Desk], stage: Stage) -> None:
    one = stage.converse("axe", "First.", "Second.")
    desk = window(stage)

    desk.sign_in()
    desk.open("/desk/events")
    expect(rows(desk.page).first).to_be_visible()
    assert findings(desk.page) == []
    rows(desk.page).first.get_by_role("button").click()
    expect(desk.page.get_by_role("dialog")).to_contain_text('"apiVersion"')
    assert findings(desk.page) == []
    with consuming(stage, "mirror", f"private-conversation-{one['id']}"):
        desk.open("/desk/consumers")
        expect(rows(desk.page, "Stream consumers").first).to_be_visible()
        assert findings(desk.page) == []
    desk.open(f"/desk/history/{one['id']}?at=2")
    expect(past(desk)).to_have_count(1)
    assert findings(desk.page) == []
    desk.open("/desk/history")
    expect(rows(desk.page, "Recent").first).to_be_visible()
    assert findings(desk.page) == []
