"""Hostile input is shown as text, and the page stays fast."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.hostile import CONTROLS, FIRED, LONG_WORD, MARKUP, SCRIPTS
from tests.web.harness.stage import Stage

LONG_THREAD: Final = 5_000


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own contact."""
    return shared_stage


@pytest.mark.journey
def test_user_input_never_becomes_markup(desk: Desk) -> None:
    stage = desk.stage
    texts = [*MARKUP, *CONTROLS, *SCRIPTS]
    first = MARKUP[1]
    conversation = stage.converse("hostile", *texts, name=first)
    path = f"/conversations/{conversation['id']}"
    attributes = {"plan": MARKUP[0], "url": MARKUP[7]}
    stage.owner.patch(path, json={"title": MARKUP[2], "attributes": attributes}).raise_for_status()
    stage.owner.patch(path, json={"tags": ["<b>tag</b>", "<img src=x>"]}).raise_for_status()
    for text in MARKUP[:6]:
        stage.owner.post(f"{path}/messages", json={"text": text, "internal": True}).raise_for_status()
    memory = {"name": "preference", "value": MARKUP[3]}
    stage.owner.post(f"/sessions/{conversation['contact']['id']}/memory", json=memory)
    snippet = {"shortcut": "markup", "title": MARKUP[4], "text": MARKUP[1]}
    stage.owner.post("/snippets", json=snippet).raise_for_status()
    ticket = {"title": MARKUP[2], "conversationId": conversation["id"]}
    stage.owner.post("/tickets", json=ticket)
    desk.sign_in()
    desk.view()
    desk.page.get_by_role("option").first.click()
    for text in MARKUP:
        expect(desk.log).to_contain_text(text)
    expect(desk.page.locator(".context")).to_contain_text(MARKUP[0])
    desk.box.press_sequentially(";mark")
    expect(desk.page.get_by_role("listbox", name="Snippets")).to_contain_text(MARKUP[4])
    desk.box.fill("")
    desk.page.get_by_role("searchbox").fill("script")
    expect(desk.page.get_by_role("region", name="Conversations")).to_contain_text("script")
    assert desk.page.evaluate(f"window.{FIRED} ?? null") is None
    assert (
        desk.page.locator(
            "iframe, .log img, .log svg[onload], .log script, .log a[href^='javascript']"
        ).count()
        == 0
    )
    assert desk.page.locator(".log a:not([rel*=noopener])").count() == 0


def test_endless_word_and_long_thread_can_be_read(desk: Desk) -> None:
    stage = desk.stage
    conversation = stage.converse("long", "The first of all", name="Longfellow")
    stage.flood([conversation], LONG_THREAD)
    stage.say(conversation, LONG_WORD)
    stage.say(conversation, "The last of all")
    desk.sign_in()
    desk.view()
    desk.row("Longfellow").click()
    expect(desk.said("The last of all")).to_be_visible()
    log = desk.log
    assert log.evaluate("el => el.scrollWidth <= el.clientWidth")
    assert desk.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    desk.page.get_by_role("button", name="Show more").click()
    assert log.evaluate("el => el.scrollWidth <= el.clientWidth")
    shown = desk.page.locator(".log .message").count()
    assert shown < LONG_THREAD / 10
    for _ in range(3):
        height = log.evaluate("el => el.scrollHeight")
        log.evaluate("el => el.scrollTo({top: -el.scrollHeight})")
        grown = "before => document.querySelector('.log').scrollHeight > before + 500"
        desk.page.wait_for_function(grown, arg=height)
        assert desk.page.locator(".log .message").count() < LONG_THREAD / 10
    desk.reply("Still quick")
    expect(desk.log.locator(".truth").last).to_contain_text("Saved")


def test_too_long_text_is_refused_and_kept(desk: Desk) -> None:
    desk.stage.converse("toolong", "Hello!", name="Tolstoy")
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    desk.converse("Tolstoy")
    desk.box.fill("x" * 20_001)
    expect(desk.page.locator("#composer-hint")).to_contain_text("1 characters over the limit")
    expect(desk.page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    assert len(desk.box.input_value()) == 20_001


def test_hostile_attachment_names_are_harmless(desk: Desk) -> None:
    stage = desk.stage
    conversation = stage.converse("files", "Look at these", name="Filer")
    names = [f"{number} <img src=x onerror=window.{FIRED}=1>\u202egnp.html" for number in range(10)]
    uploads = [
        stage.s2s.post("/uploads", files={"file": (name, b"<script>alert(1)</script>", "text/html")})
        .raise_for_status()
        .json()["id"]
        for name in names
    ]
    for _ in range(10):
        body = {"text": "Ten more", "attachments": uploads}
        path = f"/s2s/conversations/{conversation['id']}/messages"
        stage.s2s.post(path, json=body).raise_for_status()
    desk.sign_in()
    desk.converse("Filer")
    links = desk.log.locator("a.file")
    expect(links).to_have_count(100)
    expect(links.first).to_contain_text("_img src=x")  # names contain no characters special in paths
    with desk.page.expect_download() as download:
        links.first.click()
    assert download.value.path().read_bytes() == b"<script>alert(1)</script>"
    assert desk.page.evaluate(f"window.{FIRED} ?? null") is None
