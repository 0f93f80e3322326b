"""`customer.js` shows events as they happen, by stream or long poll, and reads the unread count without either."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Route

from tests.web.harness.customer_page import Site, Tab, eventually


@pytest.mark.journey
def test_agents_answer_is_shown_counted_and_marked(site: Site, tab: Tab) -> None:
    page = tab()
    page.start()
    page.send("Hello")
    page.wait_until_sent()
    (conversation,) = site.conversations()
    site.answer(conversation, "Hi")
    page.wait_for("state.unread === 1")

    def marks() -> tuple[Any, Any]:
        one = site.stage.owner.get(f"/conversations/{conversation['id']}", params={"view": "agent"}).json()
        return one["contactReachedIndex"], one["contactSeenIndex"]

    eventually(page, marks, (1, None))
    page.run("customer.open(id)", id=conversation["id"])
    eventually(page, marks, (1, 1))
    page.wait_for("state.unread === 0")
    assert page.state["messages"][conversation["id"]] == ["Hello", "Hi"]


def test_tabs_share_one_stream_and_the_next_one_takes_it_over(site: Site, tab: Tab) -> None:
    one, two, three = tab(), tab(), tab()
    for each in (one, two, three):
        each.start(site.identity("ada"))
        each.wait_for("state.connection === 'online'")
    assert [each.calls.count("GET stream") for each in (one, two, three)] == [1, 0, 0]
    one.send("Hello")
    for each in (one, two, three):
        each.wait_for("[...state.conversations.keys()][0]?.startsWith('cnv_')")
    for each in (two, three):
        each.run("customer.open([...customer.state.conversations.keys()][0])")
    (conversation,) = site.conversations()
    one.page.close()
    site.answer(conversation, "While the stream moves")
    for each in (two, three):
        each.wait_for("state.messages.get(state.open)?.at(-1).text === 'While the stream moves'")
    assert two.calls.count("GET stream") + three.calls.count("GET stream") == 1


def test_answers_come_by_long_poll_where_a_proxy_holds_streams_back(site: Site, tab: Tab) -> None:
    page = tab()
    page.page.route(re.compile(r"/customer/stream"), lambda route: None)
    page.start()
    conversation = page.send("Hello")["conversation"]
    page.run("customer.open(conversation)", conversation=conversation)
    page.wait_until_sent()
    page.wait_for("state.connection === 'online'")
    site.answer(site.conversations()[0], "By poll")
    page.wait_for("state.messages.get(state.open)?.at(-1).text === 'By poll'")
    assert "GET events" in page.calls


def test_messages_are_loaded_again_after_a_gap(site: Site, tab: Tab) -> None:
    page = tab()
    page.start()
    conversation = page.send("Hello")["conversation"]
    page.run("customer.open(conversation)", conversation=conversation)
    page.wait_until_sent()
    (stored,) = site.conversations()
    site.stage.close_road()
    page.wait_for("state.connection !== 'online'")
    site.answer(stored, "Missed")

    def forget(route: Route) -> None:
        route.continue_(url=re.sub(r"after=evt_\w+", f"after=evt_7{'Z' * 25}", route.request.url))

    page.page.route(re.compile(r"/customer/stream"), forget)  # as after a restore of an older backup
    page.calls.clear()
    site.stage.open_road()
    page.wait_for("state.messages.get(state.open)?.at(-1).text === 'Missed'")
    assert f"GET conversations/{stored['id']}/messages" in page.calls
    assert page.state["messages"][stored["id"]] == ["Hello", "Missed"]


def test_passive_start_makes_one_conditional_call_and_no_connection(site: Site, tab: Tab) -> None:
    page = tab()
    page.start()
    page.send("Hello")
    page.wait_until_sent()
    page.run("customer.stop()")
    site.answer(site.conversations()[0], "Hi")
    page.page.goto("about:blank")
    statuses: list[int] = []
    page.page.on(
        "response", lambda answer: statuses.append(answer.status) if answer.request.method == "GET" else None
    )
    for expected in (200, 304):
        page.calls.clear()
        page.load()
        statuses.clear()
        page.run("customer.start({ passive: true })")
        assert page.state["unread"] == 1
        assert [each for each in page.calls if not each.startswith("OPTIONS")] == ["GET conversations"]
        assert statuses == [expected]


def test_passive_start_repeats_a_failed_call_a_few_times(site: Site, tab: Tab) -> None:
    page = tab()
    page.start()
    page.send("Hello")
    page.wait_until_sent()
    page.run("customer.stop()")
    site.answer(site.conversations()[0], "Hi")
    page.page.route(re.compile(r"/customer/conversations"), lambda route: route.abort(), times=2)
    page.start(passive=True)
    assert page.state["unread"] == 0
    page.wait_for("state.unread === 1")
    page.page.route(re.compile(r"/customer/conversations"), lambda route: route.abort())
    page.calls.clear()
    page.page.clock.install()
    page.start(passive=True)
    for _ in range(3):
        with page.page.expect_event("requestfailed"):
            page.page.clock.run_for(30_000)
    page.page.clock.run_for(300_000)
    assert [each for each in page.calls if not each.startswith("OPTIONS")] == ["GET conversations"] * 4
    assert page.errors == []


def test_first_visit_with_a_closed_panel_makes_no_call(tab: Tab) -> None:
    page = tab()
    page.start(passive=True)
    assert page.calls == []
