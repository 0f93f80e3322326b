"""Messages sent with `customer.js` arrive once and in order, from real browsers on a website of another origin."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Final

import httpx
import pytest
from playwright.sync_api import BrowserContext, Playwright

from tests.api.description.browser import CHROMIUM
from tests.web.conftest import OPTIONS
from tests.web.harness.customer_page import Site, Tab, eventually, opened_page, stored_records

MESSAGES: Final = 40
MINUTE_LIMIT: Final = 30
"""Messages of a session in a minute."""
LIMITED_NETWORK: Final = 10
"""Conversations of visitors that a network may start before a proof of work is demanded."""


@pytest.mark.journey
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


@pytest.mark.journey
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
