"""A thread of 2,000 messages keeps few elements, and nothing moves while parts of it leave and enter the document."""

from __future__ import annotations

import os
from typing import Final

import pytest
from playwright.sync_api import expect

from tests.support.api.import_lines import NDJSON, conversation, message, ndjson
from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage

MESSAGES: Final = 2_000
ELEMENTS_MAX: Final = 3_000
BEGIN: Final = "Start of the conversation"

TOP = "el => new Promise(done => { el.scrollTo({top: -el.scrollHeight}); requestAnimationFrame(() => requestAnimationFrame(done)); })"
ANCHOR = """el => {
  const box = el.getBoundingClientRect();
  const one = [...el.querySelectorAll('.message')].find(each => each.getBoundingClientRect().top > box.top + 100);
  return [one.id, Math.round(one.getBoundingClientRect().top)];
}"""
IN_VIEW = """() => [...document.querySelectorAll('.log .message')].some(each => {
  const { top } = each.getBoundingClientRect();
  return top > 150 && top < 400;
})"""
FRAMES = """el => new Promise(done => {
  const times = []; let last = 0;
  const step = now => {
    if (last) times.push(now - last);
    last = now;
    el.scrollBy({top: times.length % 120 < 60 ? 160 : -160});
    if (times.length < 240) requestAnimationFrame(step); else done(times.sort((a, b) => a - b));
  };
  requestAnimationFrame(step);
})"""


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service with one long conversation."""
    lines = [conversation("long", "longfellow"), *(message("long", each) for each in range(MESSAGES))]
    lines[0]["contact"]["name"] = "Longfellow"
    answer = shared_stage.s2s.post("/s2s/import", content=ndjson(lines), headers=NDJSON, timeout=120)
    assert answer.raise_for_status().json()["imported"]["messages"] == MESSAGES
    return shared_stage


def _to_begin(desk: Desk) -> int:
    """Scroll up to the first message; return the most elements that the thread had on the way."""
    most = 0
    for _ in range(200):
        desk.log.evaluate(TOP)
        seen: int = desk.log.locator("*").count()
        most = max(most, seen)
        if desk.log.get_by_text(BEGIN).count():
            desk.log.evaluate(TOP)
            return most
        expect(desk.log.locator(".older .spin")).to_have_count(0)
    raise AssertionError("the beginning is not reached")


@pytest.mark.journey
def test_long_thread_keeps_few_elements_and_its_place(desk: Desk) -> None:
    stage = desk.stage
    desk.sign_in()
    desk.converse("Longfellow")
    expect(desk.said("long 1999")).to_be_visible()
    assert _to_begin(desk) <= ELEMENTS_MAX
    expect(desk.said("long 0")).to_be_visible()
    assert desk.page.locator("*").count() <= ELEMENTS_MAX
    expect(desk.said("long 1500")).to_have_count(0)

    before = desk.log.evaluate(ANCHOR)
    found = stage.owner.get("/conversations", params={"q": "Longfellow"}).raise_for_status().json()["items"]
    stage.say(found[0], "A live message")
    expect(desk.page.get_by_role("button", name="1 new message")).to_be_visible()
    assert desk.log.evaluate(ANCHOR) == before

    desk.log.evaluate("el => el.scrollTo({top: -el.scrollHeight / 2})")
    desk.page.wait_for_function(IN_VIEW)
    numbers = desk.log.locator(".chunk:has(> .run) .text").all_inner_texts()
    read = [int(each.split()[1]) for each in numbers if each.startswith("long ")]
    assert read == sorted(read)
    middle = [each for each in read if 300 < each < 1_700]
    assert middle == list(range(middle[0], middle[0] + len(middle)))
    settled = desk.log.evaluate(ANCHOR)
    desk.page.wait_for_function("() => document.getAnimations().length === 0")
    assert desk.log.evaluate(ANCHOR) == settled

    desk.page.get_by_role("button", name="1 new message").click()
    expect(desk.said("A live message")).to_be_visible()
    assert desk.log.evaluate("el => Math.round(el.scrollTop)") == 0
    assert desk.page.locator("*").count() <= ELEMENTS_MAX
    assert findings(desk.page) == []


def test_texts_out_of_the_document_are_found_by_the_browser_and_by_keyboard(desk: Desk) -> None:
    desk.sign_in()
    desk.converse("Longfellow")
    _to_begin(desk)
    hidden = desk.log.locator("[hidden]").filter(has_text="long 1200\n")
    expect(hidden).to_have_count(1)
    texts = (hidden.text_content() or "").split("\n")
    hidden.evaluate("each => each.dispatchEvent(new Event('beforematch'))")
    expect(
        desk.said(texts[len(texts) // 2])
    ).to_be_in_viewport()  # the event does not tell which text was found
    desk.log.focus()
    desk.page.keyboard.press("End")
    expect(desk.said("long 1999")).to_be_in_viewport()
    desk.page.keyboard.press("Home")
    expect(desk.said("long 0")).to_be_in_viewport()


@pytest.mark.skipif("DESKWIRE_MEASURE" not in os.environ, reason="measures frames, on a quiet machine")
def test_scrolling_a_long_thread_is_smooth(desk: Desk) -> None:
    desk.sign_in()
    desk.converse("Longfellow")
    most = _to_begin(desk)
    desk.log.evaluate("el => el.scrollTo({top: -el.scrollHeight / 2})")
    times = desk.log.evaluate(FRAMES)
    p95 = times[int(len(times) * 0.95)]
    print(
        f"elements {most}, frames p50 {times[len(times) // 2]:.0f} ms, p95 {p95:.0f} ms, load {os.getloadavg()}"
    )
    assert p95 <= 34
