"""Formatted messages in the panel: rendered with a module that is loaded for them, and the customer's own text as it is."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.harness.widget import HostWindow
from tests.web.widget.test_panel import started

TEXT = "Your **order**:\n- _one_\n- [carrier](https://carrier.example/1)\n\n<img src=x onerror=alert(1)> [x](javascript:alert(1))"


@pytest.mark.journey
def test_formatted_reply_is_rendered_and_plain_texts_are_not(window: HostWindow) -> None:
    conversation = started(window, "*Where* is my _order_?")
    loaded = "() => performance.getEntriesByType('resource').some(each => each.name.includes('/markup-'))"
    frame = window.page.frames[-1]
    assert not frame.evaluate(loaded)
    path = f"/conversations/{conversation['id']}/messages"
    window.stage.owner.post(path, json={"text": TEXT, "format": "markdown"}).raise_for_status()
    window.stage.owner.post(path, json={"text": "**not** marked"}).raise_for_status()
    log = window.log()
    expect(log.locator("strong")).to_have_text(["order"])
    expect(log.locator("em")).to_have_text(["one"])
    assert log.locator("strong").evaluate("each => Number(getComputedStyle(each).fontWeight)") >= 600
    expect(log.get_by_role("link")).to_have_count(1)
    expect(log.get_by_role("link")).to_have_attribute("rel", "noopener noreferrer nofollow")
    expect(log.locator(".host")).to_have_text("(carrier.example)")
    expect(log.get_by_text("*Where* is my _order_?")).to_be_visible()
    expect(log.get_by_text("**not** marked")).to_be_visible()
    expect(log.locator("img, script")).to_have_count(0)
    assert frame.evaluate(loaded)
