"""Messages with formatting: written with keys and the toolbar, stored as they were typed, and rendered without foreign markup."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk
from tests.web.harness.hostile import FIRED, MARKUP
from tests.web.harness.stage import Stage

PASTE = """([html, text]) => {
  const data = new DataTransfer();
  if (html) data.setData("text/html", html);
  data.setData("text/plain", text);
  document.querySelector(".composer textarea").dispatchEvent(
    new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own contact."""
    return shared_stage


@pytest.fixture
def ada(desk: Desk) -> dict[str, Any]:
    """An open conversation with Ada, whose message looks like Markdown."""
    conversation = desk.stage.converse(f"ada {id(desk)}", "*Not bold* _here_", name=f"Ada {id(desk)}")
    desk.sign_in()
    desk.converse(f"Ada {id(desk)}")
    expect(desk.said("*Not bold* _here_")).to_be_visible()
    return conversation


def _stored(desk: Desk, conversation: dict[str, Any]) -> list[tuple[str, str | None]]:
    path = f"/conversations/{conversation['id']}/messages"
    items = desk.stage.owner.get(path).raise_for_status().json()["items"]
    return [(each["text"], each.get("format")) for each in items[1:]]


@pytest.mark.journey
def test_keys_write_markdown_that_is_stored_as_typed_and_rendered(desk: Desk, ada: dict[str, Any]) -> None:
    keyboard = desk.page.keyboard
    desk.box.click()
    keyboard.type("Your ")
    keyboard.press("Control+b")
    keyboard.type("order")
    expect(desk.box).to_have_value("Your **order**")
    keyboard.press("End")
    keyboard.press("Enter")
    keyboard.type("- one")
    keyboard.press("Enter")
    keyboard.type("two")
    keyboard.press("Enter")
    keyboard.press("Enter")
    text = "Your **order**\n- one\n- two"
    expect(desk.box).to_have_value(text + "\n")
    keyboard.press("Control+Enter")
    desk.eventually(lambda: _stored(desk, ada), [(text, "markdown")])
    expect(desk.log.locator("strong")).to_have_text("order")
    expect(desk.log.locator("li")).to_have_text(["one", "two"])
    expect(desk.log.locator(".run.in em, .run.in strong")).to_have_count(0)
    assert findings(desk.page) == []


def test_plain_text_and_switched_off_formatting_are_sent_without_a_format(
    desk: Desk, ada: dict[str, Any]
) -> None:
    desk.box.fill("2 * 3 * 4 is snake_case_24")
    desk.page.keyboard.press("Control+Enter")
    desk.eventually(lambda: _stored(desk, ada), [("2 * 3 * 4 is snake_case_24", None)])
    desk.page.get_by_role("button", name="Formatting").click()
    desk.page.get_by_role("toolbar").get_by_role("button", name="Formatted").click()
    desk.box.fill("**stars**")
    desk.page.keyboard.press("Control+Enter")
    desk.eventually(lambda: _stored(desk, ada)[1:], [("**stars**", None)])
    expect(desk.said("**stars**")).to_be_visible()


def test_browser_undo_reverts_each_format(desk: Desk, ada: dict[str, Any]) -> None:
    desk.box.click()
    desk.page.keyboard.type("word")
    desk.box.select_text()
    desk.page.keyboard.press("Control+i")
    expect(desk.box).to_have_value("_word_")
    desk.page.keyboard.press("Control+i")
    expect(desk.box).to_have_value("word")
    desk.page.keyboard.press("Control+z")
    expect(desk.box).to_have_value("_word_")
    desk.page.keyboard.press("Control+z")
    expect(desk.box).to_have_value("word")
    desk.box.select_text()
    desk.page.keyboard.press("Control+e")
    expect(desk.box).to_have_value("`word`")


def test_pasted_address_and_formatting_become_markdown(desk: Desk, ada: dict[str, Any]) -> None:
    desk.box.fill("our shop")
    desk.box.select_text()
    desk.page.evaluate(PASTE, ["", "https://shop.example/a"])
    expect(desk.box).to_have_value("[our shop](https://shop.example/a)")
    desk.page.keyboard.press("Control+z")
    expect(desk.box).to_have_value("our shop")
    desk.box.select_text()
    desk.page.evaluate(PASTE, [f"<p>A <b>bold</b> word{MARKUP[0]}</p><ul><li>x</li></ul>", "A bold word\nx"])
    expect(desk.box).to_have_value("A **bold** word\n\n- x")
    assert desk.page.evaluate(f"window.{FIRED} ?? null") is None


def test_toolbar_is_used_by_keyboard_and_the_preview_shows_the_message(
    desk: Desk, ada: dict[str, Any]
) -> None:
    toggle = desk.page.get_by_role("button", name="Formatting")
    toggle.focus()
    desk.page.keyboard.press("Enter")
    bar = desk.page.get_by_role("toolbar", name="Formatting")
    desk.box.fill("one\ntwo")
    desk.box.select_text()
    desk.page.keyboard.press("Tab")
    expect(bar.get_by_role("button", name="Bold")).to_be_focused()
    for _ in range(4):
        desk.page.keyboard.press("ArrowRight")
    expect(bar.get_by_role("button", name="Bulleted list")).to_be_focused()
    desk.page.keyboard.press("Enter")
    expect(desk.box).to_have_value("- one\n- two")
    bar.get_by_role("button", name="Preview").click()
    preview = desk.page.get_by_role("region", name="Preview of your message")
    expect(preview.get_by_role("listitem")).to_have_text(["one", "two"])
    assert findings(desk.page) == []


@pytest.mark.journey
def test_hostile_markdown_makes_no_foreign_element_or_address(desk: Desk, ada: dict[str, Any]) -> None:
    hostile = [*MARKUP, "[x](javascript:alert(1)) [y](data:text/html,a)", "*a " * 3000, ">" * 10_000]
    path = f"/conversations/{ada['id']}/messages"
    for text in [*hostile, "[your bank](https://evil.example/login)"]:
        desk.stage.owner.post(path, json={"text": text, "format": "markdown"}).raise_for_status()
    link = desk.log.get_by_role("link", name="your bank")
    expect(link).to_be_visible()
    assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    expect(desk.log.locator(".host")).to_have_text("(evil.example)")
    found = desk.log.locator(".markup *").evaluate_all(
        "all => [...new Set(all.map((each) => each.localName))]"
    )
    assert set(found) <= {"p", "blockquote", "ul", "ol", "li", "strong", "em", "a", "code", "pre", "bdi"}
    links = desk.log.locator("a[href^='javascript' i], a[href^='data' i]")
    assert links.count() == 0
    assert desk.page.evaluate(f"window.{FIRED} ?? null") is None
