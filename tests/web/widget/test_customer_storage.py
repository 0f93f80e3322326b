"""`customer.js` in a frame of another site, where the browser refuses storage, and on two sites of one channel."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext

from tests.web.harness.customer_page import CustomerPage, Site, Tab, eventually, opened_page


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


@pytest.mark.journey
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
