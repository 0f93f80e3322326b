"""Pictures of the desk's states, compared with reviewed ones.

`make web-all ARGS="-k pictures" PICTURES=renew` takes them again; review each before you commit it. Times, faces and deliveries are
masked, because they differ each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Browser, expect

from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage

PICTURES: Final = Path(__file__).parent / "pictures"
MADE_BY: Final = PICTURES / "browser.txt"
"""The major version of the browser that took them: others render letters differently."""
DIFFERENT: Final = 40
"""The minimum difference of a channel to count, of 255."""
SHARE: Final = 0.001
"""The permitted share of differing pixels."""
COVERED: Final = "time, .avatar, .truth, .trouble, .when, .chip, #timeline, .context dd, nav .dot"
NARROW: Final[dict[str, Any]] = {"viewport": {"width": 390, "height": 800}}


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """A service with a few conversations, one for each test, because drafts and read marks are stored."""
    for number, (name, text) in enumerate(
        (
            ("Alan Turing", "It does not halt."),
            ("Mónica Núñez", "¿Dónde está mi pedido?"),
            ("Barbara Liskov", "Can I have another one in its place?"),
            ("Ada Lovelace", "Where is my order?"),
        )
    ):
        conversation = stage.converse(f"u{number}", text, name=name, email=f"u{number}@example.org")
        path = f"/conversations/{conversation['id']}"
        stage.owner.patch(path, json={"tags": ["returns"]}).raise_for_status()
        note = {"text": "The carrier was asked: it comes tomorrow.", "internal": True}
        stage.owner.post(f"{path}/messages", json=note).raise_for_status()
        stage.owner.post(f"{path}/messages", json={"text": "It left us today."}).raise_for_status()
    for number, (title, priority) in enumerate((("Parcel lost", "HIGH"), ("Refund", "LOW"))):
        ticket = {"title": title, "priority": priority, "tags": ["returns"][number:]}
        stage.owner.post("/tickets", json=ticket).raise_for_status()
    return stage


def _opened(desk: Desk) -> None:
    _list(desk)
    desk.row("Ada Lovelace").click()
    expect(desk.said("It left us today.")).to_be_visible()
    expect(desk.box).to_be_visible()
    if desk.page.viewport_size != NARROW["viewport"]:
        expect(desk.row("Ada Lovelace").locator(".unread")).to_have_count(0)
        expect(desk.page.locator(".context")).to_contain_text("No other conversations.")
    desk.page.mouse.move(700, 300)


def _list(desk: Desk) -> None:
    desk.page.keyboard.press("g")
    desk.page.keyboard.press("a")
    expect(desk.row("Ada Lovelace")).to_be_visible()
    expect(desk.page.locator("[aria-busy=true]")).to_have_count(0)
    # The style of the pages comes last, and makes the buttons of a phone larger.
    desk.page.wait_for_function(
        "() => [...document.styleSheets].some((each) => each.href?.includes('pages.css'))"
    )


def _note(desk: Desk) -> None:
    _opened(desk)
    desk.page.keyboard.press("Escape")
    expect(desk.box).to_be_hidden()
    expect(desk.page.locator(".rows")).to_be_focused()
    desk.page.keyboard.press("Enter")
    expect(desk.box).to_be_visible()
    desk.page.keyboard.press("n")
    expect(desk.page.get_by_role("button", name="Note", exact=True)).to_have_attribute("aria-pressed", "true")
    desk.box.fill("Only for us.")
    expect(desk.page.locator("#composer-hint")).to_have_text("Draft saved")


def _palette(desk: Desk) -> None:
    _opened(desk)
    desk.page.keyboard.press("Control+k")
    expect(desk.page.get_by_role("dialog")).to_be_visible()


def _empty(desk: Desk) -> None:
    expect(desk.page.get_by_text("You're all caught up")).to_be_visible()
    views = desk.page.get_by_role("navigation", name="Views")
    expect(views.get_by_role("link", name="Unassigned")).to_contain_text("4")


def _tickets(desk: Desk) -> None:
    desk.open("/desk/tickets")
    expect(desk.page.get_by_role("row").filter(has_text="Parcel lost")).to_be_visible()


def _hide_pages(desk: Desk) -> None:
    """Hide the navigation to pages, also parts that load later, so that a new page changes no picture."""
    desk.page.evaluate(
        "const sheet = new CSSStyleSheet(); sheet.replaceSync('.places { display: none !important }');"
        "document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]"
    )


STATES: Final[dict[str, tuple[dict[str, Any], Callable[[Desk], None]]]] = {
    "empty": ({}, _empty),
    "thread": ({}, _opened),
    "thread-dark": ({"color_scheme": "dark"}, _opened),
    "note": ({}, _note),
    "palette": ({}, _palette),
    "list-narrow": (NARROW, _list),
    "thread-narrow": (NARROW, _opened),
    "tickets": ({}, _tickets),
}


def _version(browser: Browser) -> str:
    return str(browser.version).partition(".")[0]


@pytest.mark.parametrize("state", STATES)
def test_desk_equals_its_reviewed_pictures(
    window: Callable[..., Desk], stage: Stage, browser: Browser, tmp_path: Path, state: str
) -> None:
    renew = os.environ.get("PICTURES") == "renew"
    if not renew and (made_by := MADE_BY.read_text().strip()) != _version(browser):
        pytest.skip(f"the pictures were made by version {made_by} of Chromium, this is {_version(browser)}")
    options, reach = STATES[state]
    desk = window(stage, reduced_motion="reduce", **options)
    desk.sign_in()
    reach(desk)
    _hide_pages(desk)
    desk.page.evaluate("document.fonts.ready.then(() => true)")
    taken = tmp_path / "taken.png"
    covered = [desk.page.locator(COVERED)]
    desk.page.screenshot(path=taken, mask=covered, mask_color="#888888", caret="hide", animations="disabled")
    kept = PICTURES / f"{state}.png"
    if renew:
        PICTURES.mkdir(exist_ok=True)
        MADE_BY.write_text(f"{_version(browser)}\n")
        Image.open(taken).convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(kept, optimize=True)
    before, now = Image.open(kept).convert("RGB"), Image.open(taken).convert("RGB")
    assert before.size == now.size
    difference = (
        ImageChops.difference(before, now).convert("L").point([0] * DIFFERENT + [255] * (256 - DIFFERENT))
    )
    share = difference.histogram()[255] / (now.width * now.height)
    assert share <= SHARE, f"{share:.2%} of the pixels differ; the picture is {taken}"
