"""`customer.js` signs customers in and out, and keeps what one customer wrote from the next one."""

from __future__ import annotations

import re
from typing import Final

import pytest
from playwright.sync_api import Route

from tests.web.harness.customer_page import Site, Tab, eventually, stored_records

SLOW_IDENTITY: Final = """([baseUrl, channelId, jwt]) => {
  const answered = new Promise((done) => (window.known = () => done(jwt)));
  create({ baseUrl, channelId });
  void customer.identify(() => answered);
}"""
"""Makes the customer's side with an identity function that answers after `known()`."""


@pytest.mark.journey
def test_visitor_keeps_the_thread_after_signing_in(site: Site, tab: Tab) -> None:
    page = tab()
    page.start()
    conversation = page.send("As a visitor")["conversation"]
    page.run("customer.open(conversation)", conversation=conversation)
    page.wait_until_sent()
    before = page.state["me"]
    assert not before["verified"]
    page.run("identify(jwt)", jwt=site.identity("ada"))
    page.wait_for("state.me?.userId === 'ada' && state.me.verified")
    page.send("As Ada", conversation)
    eventually(page, site.threads, [["As a visitor", "As Ada"]])
    page.wait_for("state.messages.get(state.open)?.length === 2")
    assert site.conversations()[0]["contact"]["userId"] == "ada"
    assert page.state["open"] == site.conversations()[0]["id"]


def test_waiting_message_of_a_visitor_is_sent_after_signing_in(site: Site, tab: Tab) -> None:
    page = tab()
    page.start()
    page.send("Before")
    page.wait_until_sent()
    site.stage.close_road()
    page.send("Waiting")
    page.run("void identify(jwt)", jwt=site.identity("ada"))
    site.stage.open_road()
    eventually(page, site.threads, [["Before"], ["Waiting"]])
    eventually(page, lambda: {each["contact"]["userId"] for each in site.conversations()}, {"ada"})


@pytest.mark.journey
def test_next_customer_sees_no_trace_and_gets_no_message_of_the_first(site: Site, tab: Tab) -> None:
    page, other = tab(), tab()
    page.start(site.identity("ada"))
    other.start(site.identity("ada"))
    conversation = page.send("Secret of Ada")["conversation"]
    page.wait_until_sent()
    site.stage.close_road()
    page.send("Waiting of Ada", conversation)
    page.page.close()
    later = tab()
    later.load(site.identity("bob"))
    later.run("void customer.start()")
    later.send("First of Bob")
    site.stage.open_road()
    later.wait_for("state.me?.userId === 'bob'")
    eventually(later, site.threads, [["Secret of Ada", "Waiting of Ada"], ["First of Bob"]])
    assert [each["contact"]["userId"] for each in site.conversations()] == ["ada", "bob"]
    later.wait_until_sent()
    for each in (later, other):
        each.wait_for("state.me?.userId === 'bob' && state.conversations.size === 1")
        assert "Ada" not in str(each.state)
    sessions = site.stage.owner.get(f"/contacts/{site.conversations()[0]['contact']['id']}/sessions").json()
    assert sessions["items"] == [], "the session of Ada is still live"


@pytest.mark.journey
def test_older_tab_that_renews_its_session_does_not_sign_the_next_customer_out(site: Site, tab: Tab) -> None:
    older, newer = tab(), tab()
    older.start(site.identity("ada"))
    older.send("Of Ada")
    older.wait_until_sent()
    newer.load(site.identity("bob"))
    held: list[Route] = []
    newer.page.route(
        "**/v3/customer/session", lambda route: held.append(route)
    )  # a bound method of a list has no place for Playwright
    newer.run("void customer.start()")  # ends the session of Ada, and asks for that of Bob
    eventually(newer, lambda: len(held), 1)
    older.run("void customer.request('GET', 'conversations').catch(() => {})")  # refused with 401
    waiting = "async () => (await navigator.locks.query()).pending.some(({ name }) => name.endsWith(' send'))"
    older.page.wait_for_function(waiting)
    held[0].continue_()
    for each in (newer, older):
        each.wait_for("state.me?.userId === 'bob'")
    older.run("customer.request('GET', 'conversations')")
    newer.send("Of Bob")
    newer.wait_until_sent()
    assert [each["contact"]["userId"] for each in site.conversations()] == ["ada", "bob"]
    for each in (newer, older):
        assert each.state["me"]["userId"] == "bob"


def test_message_from_before_the_identity_is_sent_for_no_other_customer(site: Site, tab: Tab) -> None:
    page = tab()
    page.start(site.identity("ada"))
    page.send("Of Ada")
    page.wait_until_sent()
    later = tab()
    later.load()
    later.page.evaluate(SLOW_IDENTITY, [site.stage.url, site.channel["id"], site.identity("bob")])
    later.send("Of Bob")
    page.run("customer.start()")
    page.page.wait_for_timeout(500)  # the other page has heard of the message, and could send it
    assert site.threads() == [["Of Ada"]]
    later.run("known()")
    eventually(later, site.threads, [["Of Ada"], ["Of Bob"]])
    assert [each["contact"]["userId"] for each in site.conversations()] == ["ada", "bob"]


def test_message_from_before_the_identity_survives_its_page(site: Site, tab: Tab) -> None:
    page = tab()
    page.load()
    page.page.evaluate(SLOW_IDENTITY, [site.stage.url, site.channel["id"], site.identity("ada")])
    page.send("Kept")
    page.page.close()
    later = tab()
    later.start(site.identity("ada"))
    eventually(later, site.threads, [["Kept"]])


def test_sign_out_deletes_everything_and_counts_what_could_not_leave(site: Site, tab: Tab) -> None:
    page = tab()
    page.start(site.identity("ada"))
    conversation = page.send("Sent")["conversation"]
    page.wait_until_sent()
    site.stage.close_road()
    page.send("Given up", conversation)
    assert page.run("customer.signOut()") == {"givenUp": 1}
    site.stage.open_road()
    assert stored_records(page.page) == []
    assert page.state["me"] is None
    assert page.state["conversations"] == page.state["outbox"] == []
    page.page.wait_for_timeout(1_000)
    assert site.threads() == [["Sent"]]


def test_ended_session_is_renewed_and_the_message_sent(site: Site, tab: Tab) -> None:
    page = tab()
    page.start(site.identity("ada"))
    conversation = page.send("One")["conversation"]
    page.wait_until_sent()
    contact = site.conversations()[0]["contact"]["id"]
    for each in site.stage.owner.get(f"/contacts/{contact}/sessions").json()["items"]:
        site.stage.owner.delete(f"/contacts/{contact}/sessions/{each['id']}").raise_for_status()
    page.send("Two", conversation)
    eventually(page, site.threads, [["One", "Two"]])
    page.wait_for("state.connection === 'online' && state.conversations.size === 1")


def test_wrong_identity_is_named_and_sends_nothing(site: Site, tab: Tab) -> None:
    page = tab()
    page.load(site.identity("ada", aud="chn_other"))
    page.run("customer.start()")
    page.send("Kept")
    page.wait_for("state.problem?.code === 'identity_invalid'")
    assert "aud" in page.state["problem"]["detail"]
    assert [each["state"] for each in page.state["outbox"]] == ["kept"]
    page.run("identify(jwt)", jwt=site.identity("ada"))
    eventually(page, site.threads, [["Kept"]])
    assert page.state["problem"] is None


def test_fields_of_a_visitor_are_not_those_of_the_customer_who_signs_in(site: Site, tab: Tab) -> None:
    """Another person may have entered them in this browser, and replies would go to that address."""
    page = tab()
    page.start()
    page.run("customer.updateMe({ name: 'Eve', email: 'eve@evil.example' })")
    page.run("identify(jwt)", jwt=site.identity("ada"))
    page.wait_for("state.me?.userId === 'ada' && state.me.verified")
    page.start(site.identity("ada"))  # loads the page again
    page.send("As Ada")
    eventually(page, site.threads, [["As Ada"]])
    contact = site.conversations()[0]["contact"]
    assert (contact["userId"], contact["email"]) == ("ada", None)


def test_fields_of_a_visitor_go_with_the_first_message(site: Site, tab: Tab) -> None:
    page = tab()
    page.start()
    page.run("customer.updateMe({ name: 'Ada', email: 'ada@example.org' })")
    page.run("customer.context({ url: 'https://shop.example/cart', title: 'Cart' })")
    page.send("Hello")
    eventually(page, site.threads, [["Hello"]])
    contact = site.conversations()[0]["contact"]
    assert (contact["name"], contact["email"]) == ("Ada", "ada@example.org")
    (session,) = site.stage.owner.get(f"/contacts/{contact['id']}/sessions").json()["items"]
    assert session["context"]["title"] == "Cart"


def test_token_is_in_no_address(site: Site, tab: Tab) -> None:
    page = tab()
    urls: list[str] = []
    page.page.on("request", lambda request: urls.append(request.url))
    page.start(site.identity("ada"))
    page.send("Hello")
    page.wait_until_sent()
    page.wait_for("state.connection === 'online'")
    assert not [url for url in urls if re.search(r"c[tv]_", url)]
