"""The widget on hosts' pages: under their policies, without a trace before the first click, and for their scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.harness.host_site import NONCE
from tests.web.harness.widget import HostWindow, make_channel

POLICIES = {
    "none": "",
    "strict with Trusted Types": "default-src 'none'; script-src {own} 'self'; frame-src {own}; style-src 'self'; img-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "only our scripts and frames": "script-src 'self' {own}; frame-src {own}; style-src 'self'; require-trusted-types-for 'script'",
    "nonces and strict-dynamic": "default-src 'self'; script-src 'nonce-{nonce}' 'strict-dynamic'; frame-src {own}; object-src 'none'; "
    "base-uri 'none'",
    "usual": "default-src 'self'; script-src 'self' {own}; child-src {own}; object-src 'none'",
}
"""Policies of hosts; `{own}` is the service's address."""


@pytest.mark.parametrize("name", POLICIES)
def test_panel_opens_and_closes_under_the_policy_of_the_host(name: str, window: HostWindow) -> None:
    window.site.policy = POLICIES[name].format(own=window.stage.url, nonce=NONCE)
    window.open(make_channel(window.stage))
    expect(window.button).to_have_accessible_name("Shop support")
    expect(window.button).to_have_css("position", "fixed")
    window.button.click()
    expect(window.box).to_be_visible()
    expect(window.panel.get_by_role("heading", name="Shop support")).to_be_visible()
    window.panel.get_by_role("button", name="Close chat").click()
    expect(window.frame).to_be_hidden()


@pytest.mark.journey
def test_page_has_no_frame_and_one_request_before_the_first_click(window: HostWindow) -> None:
    window.open(make_channel(window.stage))
    expect(window.button).to_be_visible()
    window.page.wait_for_load_state("networkidle")
    assert [each for each in window.requested if each.startswith(window.stage.url)] == [window.site.loader]
    expect(window.frame).to_have_count(0)


_SHIFTS = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => { for (const each of list.getEntries()) sum += each.value; }).observe({type: "layout-shift", buffered: true});
  requestAnimationFrame(() => setTimeout(() => done([sum, document.documentElement.scrollWidth, document.body.scrollHeight]), 300));
})"""


def test_button_and_panel_shift_nothing_on_the_page(window: HostWindow) -> None:
    window.site.loader = "/first.js"
    window.page.goto(window.site.url)
    _, *size = window.calls(_SHIFTS)
    window.open(make_channel(window.stage))
    expect(window.button).to_be_visible()
    assert window.calls(_SHIFTS) == [0, *size]
    window.button.click()
    expect(window.box).to_be_visible()
    assert window.calls(_SHIFTS) == [0, *size]


def test_calls_before_the_script_has_loaded_are_carried_out_in_order(window: HostWindow) -> None:
    window.site.first = """window.heard = []; window.Deskwire = window.Deskwire || [];
Deskwire.push(["on", "open", () => heard.push("open")], ["on", "close", () => heard.push("close")], ["open"]);
"""
    window.open(make_channel(window.stage))
    expect(window.box).to_be_visible()
    assert window.calls("heard") == ["open"]
    window.calls("Deskwire.push(['close'])")
    expect(window.frame).to_be_hidden()
    assert window.calls("heard") == ["open", "close"]
    assert window.calls("Deskwire.open().then(() => heard.length)") == 3


def test_script_twice_on_a_page_makes_one_button(window: HostWindow) -> None:
    window.site.first = "window.Deskwire = window.Deskwire || [];"
    window.open(make_channel(window.stage))
    expect(window.button).to_be_visible()
    window.page.add_script_tag(url=window.site.loader)
    expect(window.button).to_have_count(1)


def test_focus_goes_into_the_panel_and_back_to_the_button(window: HostWindow) -> None:
    window.open(make_channel(window.stage))
    window.button.focus()
    window.button.press("Enter")
    expect(window.box).to_be_focused()
    expect(window.button).to_have_attribute("aria-expanded", "true")
    window.box.press("Escape")
    expect(window.frame).to_be_hidden()
    expect(window.button).to_be_focused()
    window.button.press("Enter")
    expect(window.box).to_be_focused()
    window.page.locator("#own").focus()
    window.calls("Deskwire.close()")
    expect(window.page.locator("#own")).to_be_focused()


def test_panel_of_a_site_that_is_not_allowed_says_so(window: HostWindow) -> None:
    window.open(make_channel(window.stage, origins=["https://shop.example"]))
    window.button.click()
    expect(window.panel.get_by_role("heading")).to_have_text("This chat is not allowed on this site.")
    expect(window.panel.get_by_text(f"add {window.site.url} to the origins")).to_be_visible()


def test_disabled_channel_has_no_button_and_says_so(window: HostWindow) -> None:
    window.open(make_channel(window.stage, enabled=False), "?lang=de")
    window.page.wait_for_function("window.Deskwire.open")
    expect(window.button).to_be_hidden()
    window.calls("Deskwire.open()")
    expect(window.panel.get_by_role("heading")).to_have_text("Dieser Chat ist zurzeit geschlossen.")


@pytest.mark.parametrize(
    ("options", "query", "title"),
    [
        ({}, "", "Shop support"),
        ({"locale": "de-AT"}, "", "Hilfe vom Shop"),
        ({"locale": "ja-JP"}, "", "Shop support"),
        ({}, "?lang=ar", "دعم المتجر"),
    ],
)
def test_language_is_the_page_s_wish_or_the_browser_s(
    visit: Callable[..., HostWindow], options: dict[str, Any], query: str, title: str
) -> None:
    window = visit(**options)
    window.open(make_channel(window.stage), query)
    expect(window.button).to_have_accessible_name(title)
    window.button.click()
    expect(window.panel.get_by_role("heading", name=title)).to_be_visible()
    direction = "rtl" if "ar" in query else "ltr"
    assert window.panel.locator("html").get_attribute("dir") == direction


@pytest.mark.parametrize("size", [(320, 568), (390, 844), (800, 360)])
def test_panel_fills_small_windows_and_can_be_closed(
    visit: Callable[..., HostWindow], size: tuple[int, int]
) -> None:
    width, height = size
    window = visit(viewport={"width": width, "height": height})
    window.open(make_channel(window.stage))
    window.button.click()
    expect(window.box).to_be_visible()
    box = window.frame.bounding_box()
    assert box == {"x": 0, "y": 0, "width": width, "height": height}
    wide = "() => document.documentElement.scrollWidth - innerWidth"
    assert window.panel.locator("body").evaluate(wide) <= 0
    expect(window.button).to_be_hidden()
    window.panel.get_by_role("button", name="Close chat").click()
    expect(window.frame).to_be_hidden()
    expect(window.button).to_be_visible()


def test_button_and_panel_are_on_the_side_of_the_channel(window: HostWindow) -> None:
    look = {"colour": "#ffe14d", "position": "left"}
    window.open(make_channel(window.stage, look=look))
    button = window.button.bounding_box()
    assert button is not None
    assert (button["x"], button["width"], button["height"]) == (20, 56, 56)
    assert window.button.evaluate("each => getComputedStyle(each).color") == "rgb(0, 0, 0)"
    window.button.click()
    expect(window.box).to_be_visible()
    frame = window.frame.bounding_box()
    assert frame is not None
    assert frame["x"] == 20
