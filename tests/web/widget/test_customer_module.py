"""`customer.js` in real browsers, on a website of another origin, against a running service."""

from __future__ import annotations

import os
import random
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Playwright, Route

from tests.api.description.browser import CHROMIUM
from tests.web.conftest import OPTIONS
from tests.web.harness.customer_page import CustomerPage, Site, opened_page, opened_site, stored_records
from tests.web.harness.stage import Stage

MESSAGES: Final = 40
SLOW_IDENTITY: Final = """([baseUrl, channelId, jwt]) => {
  const answered = new Promise((done) => (window.known = () => done(jwt)));
  create({ baseUrl, channelId });
  void customer.identify(() => answered);
}"""
"""Makes the customer's side with an identity function that answers after `known()`."""
MINUTE_LIMIT: Final = 30
"""Messages of a session in a minute."""
LIMITED_NETWORK: Final = 10
"""Conversations of visitors that a network may start before a proof of work is demanded."""


@pytest.fixture
def site(stage: Stage) -> Iterator[Site]:
    with opened_site(stage) as site:
        yield site


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile, with its own storage."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def tab(site: Site, context: BrowserContext) -> Iterator[Callable[[], CustomerPage]]:
    """Opens tabs of one profile; a test fails on an exception in one of them."""
    tabs: list[CustomerPage] = []

    def open_one() -> CustomerPage:
        tabs.append(opened_page(site, context))
        return tabs[-1]

    yield open_one
    assert [error for each in tabs for error in each.errors] == []


Tab = Callable[[], CustomerPage]


def eventually(page: CustomerPage, look: Callable[[], object], value: object) -> None:
    """Poll the service until it returns this value, because the page sends asynchronously."""
    seen = None
    for _ in range(400):
        seen = look()
        if seen == value:
            return
        page.page.wait_for_timeout(50)
    raise AssertionError(f"{seen!r} is not {value!r}")


# Delivery.


def test_messages_before_the_first_response_belong_to_one_conversation(site: Site, tab: Tab) -> None:
    page = tab()
    page.start()
    page.run("""(async () => {
      const { conversation } = await customer.send({ conversation: null, text: "one" });
      await customer.open(conversation);
      await Promise.all(["two", "three", "four"].map((text) => customer.send({ conversation, text })));
    })()""")
    eventually(page, site.threads, [["one", "two", "three", "four"]])
    page.wait_until_sent()
    page.wait_for("state.messages.get(state.open)?.length === 4")
    assert page.state["open"] == site.conversations()[0]["id"]
    assert [each["id"] for each in page.state["conversations"]] == [page.state["open"]]


def test_message_written_while_another_is_under_way_follows_it(site: Site, tab: Tab) -> None:
    page = tab()
    page.start()
    kept = page.send("zero")
    page.wait_until_sent()
    site.stage.freeze_road()
    page.send("one", kept["conversation"])
    page.wait_for("state.outbox[0]?.state === 'sending'")
    page.send("two", kept["conversation"])
    site.stage.thaw_road()
    eventually(page, site.threads, [["zero", "one", "two"]])


@pytest.mark.parametrize("seed", [1, 2])
def test_kept_messages_arrive_once_over_outages_reloads_and_kills(site: Site, tab: Tab, seed: int) -> None:
    stage, chance = site.stage, random.Random(seed)
    one, two = tab(), tab()
    one.start()
    first = one.send("Start")
    one.wait_until_sent()
    two.start()
    kept: dict[str, list[str]] = {"one": [], "two": []}
    closed = False
    for number in range(MESSAGES):
        name, page = chance.choice((("one", one), ("two", two)))
        text = f"{name} {number}"
        page.send(text, first["conversation"])
        kept[name].append(text)
        step = chance.random()
        if step < 0.12:
            stage.kill()
            stage.start()
        elif step < 0.25:
            stage.cut()
        elif step < 0.35:
            (stage.open_road if closed else stage.close_road)()
            closed = not closed
        elif step < 0.5:
            page.load()
            page.run("void customer.start()")
    stage.open_road()
    expected = {"Start", *kept["one"], *kept["two"]}
    eventually(one, lambda: set(site.threads()[0]), expected)
    (thread,) = site.threads()
    assert len(thread) == len(expected), "a message is stored twice"
    for name, texts in kept.items():
        assert [text for text in thread if text.startswith(name)] == texts, "out of order"
    for page in (one, two):
        page.wait_until_sent()
        page.run("customer.open([...customer.state.conversations.keys()][0])")
        page.wait_for("state.messages.get(state.open)?.length === count", count=len(expected))
        assert page.state["messages"][page.state["open"]] == thread


def test_kept_message_survives_the_kill_of_the_browser(
    site: Site, driver: Playwright, tmp_path: Path
) -> None:
    profile = tmp_path / "profile"
    page = opened_page(site, launched(driver, profile))
    page.start()
    conversation = page.send("Before")["conversation"]
    page.wait_until_sent()
    site.stage.close_road()
    page.send("Kept", conversation)
    kill_browser(profile)
    site.stage.open_road()
    assert site.threads() == [["Before"]]
    context = launched(driver, profile)
    later = opened_page(site, context)
    later.start()
    eventually(later, site.threads, [["Before", "Kept"]])
    context.close()


def test_closed_tab_leaves_its_messages_to_the_other(site: Site, tab: Tab) -> None:
    writer, other = tab(), tab()
    writer.start()
    other.start()
    conversation = writer.send("One")["conversation"]
    writer.wait_until_sent()
    site.stage.close_road()
    writer.send("Two", conversation)
    writer.page.close()
    other.wait_for("state.outbox.length === 1")
    site.stage.open_road()
    eventually(other, site.threads, [["One", "Two"]])
    other.wait_until_sent()


def test_refused_message_stays_with_its_reason_and_blocks_nothing(site: Site, tab: Tab) -> None:
    page = tab()
    page.start()
    conversation = page.send("x" * 100_001)["conversation"]
    page.send("Short", conversation)
    eventually(page, site.threads, [["Short"]])
    page.wait_for("state.outbox[0]?.state === 'refused'")
    (refused,) = page.state["outbox"]
    assert refused["code"] == "invalid_input"
    page.run("customer.retry(customer.state.outbox[0].clientId)")
    page.wait_for("state.outbox[0]?.state === 'refused'")
    assert page.run("customer.discard(customer.state.outbox[0].clientId)") is True
    page.wait_for("state.outbox.length === 0")
    page.page.reload()
    page.create()
    page.run("customer.start()")
    assert page.state["outbox"] == []
    assert site.threads() == [["Short"]]


def test_files_of_a_first_message_follow_its_text(site: Site, tab: Tab) -> None:
    page = tab()
    page.start()
    page.run(
        """customer.send({ conversation: null, text: "Look", attachments: [new File(["a,b"], "a.csv", { type: "text/csv" })] })"""
    )
    eventually(page, lambda: [text for thread in site.threads() for text in thread], ["Look", ""])
    page.run("""(async () => {
      const file = await customer.upload(new File(["c"], "c.txt", { type: "text/plain" }));
      await customer.send({ conversation: [...customer.state.conversations.keys()][0], text: "More", attachments: [file] });
    })()""")
    eventually(page, lambda: site.threads()[0], ["Look", "", "More"])
    (conversation,) = site.conversations()
    found = site.stage.owner.get(f"/conversations/{conversation['id']}/messages").json()["items"]
    assert [[file["name"] for file in each["attachments"]] for each in found] == [[], ["a.csv"], ["c.txt"]]
    page.wait_until_sent()
    assert not [key for key in stored_records(page.page) if str(key).startswith("file:")]


def test_file_above_ten_mebibytes_is_refused_before_it_is_kept(tab: Tab) -> None:
    page = tab()
    page.load()
    said = page.run(
        "customer.upload(new Blob([new Uint8Array(10 * 1024 * 1024 + 1)])).catch(({ code }) => code)"
    )
    assert said == "body_too_large"


def test_messages_above_the_rate_limit_arrive_after_the_servers_delay(site: Site, tab: Tab) -> None:
    page = tab()
    page.start(site.identity("ada"))
    conversation = page.send("0")["conversation"]
    texts = [str(number) for number in range(1, MINUTE_LIMIT + 3)]
    page.run(
        "Promise.all(texts.map((text) => customer.send({ conversation, text })))",
        texts=texts,
        conversation=conversation,
    )
    page.wait_for("state.outbox.length === 0")
    assert site.threads() == [["0", *texts]]


def test_visitors_of_a_busy_network_solve_a_proof_of_work(site: Site, tab: Tab) -> None:
    with httpx.Client(base_url=f"{site.stage.url}/v3/customer", headers={"Origin": site.origin}) as http:
        for number in range(LIMITED_NETWORK):
            token = (
                http.post("/session", json={"channelId": site.channel["id"]})
                .raise_for_status()
                .json()["token"]
            )
            body = {"clientId": f"c{number}", "message": {"text": "Hello", "clientId": f"m{number}"}}
            http.post(
                "/conversations", json=body, headers={"Authorization": f"Bearer {token}"}
            ).raise_for_status()
    page = tab()
    page.start()
    page.send("Proved")
    eventually(page, lambda: ["Proved"] in site.threads(), True)


# Sessions.


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


# Live events.


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


def test_first_visit_with_a_closed_panel_makes_no_call(tab: Tab) -> None:
    page = tab()
    page.start(passive=True)
    assert page.calls == []


# Storage.


def in_frame(site: Site, page: CustomerPage, **options: str) -> CustomerPage:
    """Open a host's page with a frame of another site; return the frame's page.

    It has no storage of its own, because a profile of Playwright blocks third-party storage as Incognito does.
    """
    frame = f"http://localhost:{site.port}/page"
    query = urlencode({"channel": site.channel["id"], "frame": frame})
    page.page.goto(f"{site.origin}/host?{query}")
    page.page.wait_for_selector("iframe")
    inner: list[Any] = [each for each in page.page.frames if each.url.startswith(frame)]
    framed = CustomerPage(site, page.page)
    (framed.page,) = inner
    framed.page.wait_for_function("() => window.create")
    port = "() => { const { port1, port2 } = new MessageChannel(); parent.postMessage('storage', '*', [port2]); return port1; }"
    given = {"baseUrl": site.stage.url, "channelId": site.channel["id"], "site": site.origin, **options}
    script = f"(options) => create({{ ...options, hostPort: options.withoutHost ? null : {port} }})"
    framed.page.evaluate(script, given)
    framed.run("customer.start()")
    return framed


def test_frame_without_storage_keeps_messages_at_the_host(site: Site, context: BrowserContext) -> None:
    page = opened_page(site, context)
    frame = in_frame(site, page)
    assert frame.state["storage"] == "host"
    conversation = frame.send("One")["conversation"]
    frame.wait_until_sent()
    site.stage.close_road()
    frame.send("Two", conversation)
    again = in_frame(site, page)
    again.wait_for("state.outbox.length === 1")
    site.stage.open_road()
    eventually(page, site.threads, [["One", "Two"]])
    again.wait_until_sent()
    assert again.state["me"]["userId"] == site.conversations()[0]["contact"]["userId"]


def test_frame_without_any_storage_says_so_and_still_sends(site: Site, context: BrowserContext) -> None:
    page = opened_page(site, context)
    frame = in_frame(site, page, withoutHost="yes")
    assert frame.state["storage"] == "page"
    frame.send("One")
    eventually(page, site.threads, [["One"]])


def test_sites_of_one_channel_share_no_session(site: Site, tab: Tab) -> None:
    one, two = tab(), tab()
    one.start(site="https://one.example")
    one.send("Of the first site")
    one.wait_until_sent()
    two.start(site="https://two.example")
    assert two.state["conversations"] == []
    assert one.state["me"]["userId"] != two.state["me"]["userId"]


def launched(driver: Playwright, profile: Path) -> BrowserContext:
    """Start a browser with a profile on disk."""
    return driver.chromium.launch_persistent_context(str(profile), executable_path=CHROMIUM, args=OPTIONS)


def kill_browser(profile: Path) -> None:
    """Kill all processes of the browser with this profile."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(profile).encode() in command.read_bytes():
                os.kill(int(command.parent.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended with its parent
