"""Replies that an agent schedules: by mouse and by keyboard, listed, changed, cancelled, refused, and sent without a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk, opened
from tests.web.harness.stage import Stage

BERLIN: Final = {"timezone_id": "Europe/Berlin"}


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own contact."""
    return shared_stage


@pytest.fixture
def ada(stage: Stage, request: pytest.FixtureRequest) -> dict[str, Any]:
    """A conversation with a contact of this test; nothing is scheduled."""
    for each in scheduled(stage):
        stage.owner.delete(f"/held-messages/{each['id']}").raise_for_status()
    return stage.converse(request.node.name, "Hello!", name="Ada")


def scheduled(stage: Stage) -> list[dict[str, Any]]:
    """Return what the owner has scheduled."""
    found: list[dict[str, Any]] = stage.owner.get("/held-messages").raise_for_status().json()["items"]
    return [each for each in found if each["scheduled"]]


def schedule(stage: Stage, conversation: dict[str, Any], text: str, seconds: float, **body: Any) -> None:
    """Schedule a reply by the API."""
    at = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
    path = f"/conversations/{conversation['id']}/messages"
    stage.owner.post(path, json={"text": text, "sendAt": at, **body}).raise_for_status()


def shown(desk: Desk, conversation: dict[str, Any]) -> Desk:
    desk.sign_in()
    desk.open(f"/desk/c/{conversation['id']}")
    expect(desk.said("Hello!")).to_be_visible()
    return desk


def waiting(desk: Desk) -> Locator:
    """The scheduled replies above the editor."""
    return desk.page.get_by_role("region", name="Scheduled reply")


def pick_time(desk: Desk, name: str) -> None:
    desk.page.get_by_role("button", name="More ways to send").click()
    desk.page.get_by_role("menuitem", name="Send later…").click()
    dialog = desk.page.get_by_role("dialog", name="Send later")
    expect(dialog).to_contain_text("Times are in your time zone, Europe/Berlin.")
    dialog.get_by_role("button", name=re.compile(f"^{name}")).click()
    expect(dialog).to_have_count(0)


@pytest.mark.journey
def test_reply_is_scheduled_edited_and_cancelled_by_mouse(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    desk = shown(window(stage, **BERLIN), ada)
    desk.box.fill("See you tomorrow")
    pick_time(desk, "Tomorrow morning")
    expect(waiting(desk)).to_contain_text(re.compile(r"Scheduled for .*09:00 \(Europe/Berlin\)"))
    expect(waiting(desk)).to_contain_text("Not sent if the customer writes first.")
    expect(desk.page.locator(".toasts")).to_contain_text("Scheduled for")
    expect(desk.box).to_have_value("")
    expect(desk.said("See you tomorrow")).to_have_count(0)
    (one,) = scheduled(stage)
    at = datetime.fromisoformat(one["sendAt"])
    assert (at - datetime.now(UTC)) < timedelta(hours=48)
    assert (one["text"], one["unlessReplied"]) == ("See you tomorrow", True)
    waiting(desk).get_by_role("button", name="Edit").click()
    expect(desk.box).to_have_value("See you tomorrow")
    expect(desk.box).to_be_focused()
    expect(waiting(desk)).to_have_count(0)
    pick_time(desk, "In an hour")
    waiting(desk).get_by_role("button", name="Cancel").click()
    expect(waiting(desk)).to_have_count(0)
    desk.eventually(lambda: scheduled(stage), [])
    expect(desk.box).to_have_value("")
    desk.page.locator(".toasts").get_by_role("button", name="Undo").click()
    expect(waiting(desk)).to_contain_text("See you tomorrow")
    waiting(desk).get_by_role("button", name="Send now").click()
    desk.eventually(lambda: stage.messages(ada), ["Hello!", "See you tomorrow"])
    expect(waiting(desk)).to_have_count(0)
    expect(desk.said("See you tomorrow")).to_have_count(1)


def test_reply_is_scheduled_by_keyboard_alone_and_by_the_palette(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    desk = shown(window(stage, **BERLIN), ada)
    keyboard = desk.page.keyboard
    keyboard.press("r")
    keyboard.type("By keys")
    keyboard.press("Control+Alt+Enter")
    dialog = desk.page.get_by_role("dialog", name="Send later")
    expect(dialog.get_by_role("button", name=re.compile("^In an hour"))).to_be_focused()
    keyboard.press("Enter")
    expect(waiting(desk)).to_contain_text("By keys")
    expect(desk.box).to_be_focused()
    keyboard.type("By the palette")
    desk.run_command("Send the reply later…", "send the reply later")
    expect(dialog).to_be_visible()
    keyboard.press("Tab")
    keyboard.press("Enter")
    expect(waiting(desk)).to_have_count(2)
    keyboard.press("Escape")
    keyboard.press("u")  # undoes neither: each has its own buttons
    expect(waiting(desk)).to_have_count(2)
    desk.run_command("Scheduled", "scheduled")
    expect(desk.page.get_by_role("heading", name="Scheduled", exact=True)).to_be_visible()
    expect(desk.page.locator(".scheduled-list li")).to_have_count(2)


@pytest.mark.parametrize(
    ("today", "times"),
    [
        (
            "2026-12-02T10:20",
            ["In an hour11:20", "Tomorrow morningThu 3 Dec, 09:00", "Monday morningMon 7 Dec, 09:00"],
        ),
        ("2026-12-06T23:30", ["In an hourMon 7 Dec, 00:30", "Tomorrow morningMon 7 Dec, 09:00"]),
        (
            "2026-12-31T08:00",
            [
                "In an hour09:00",
                "Tomorrow morningFri, 1 Jan 2027, 09:00",
                "Monday morningMon, 4 Jan 2027, 09:00",
            ],
        ),
    ],
)
def test_times_to_choose_from_fit_the_day(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any], today: str, times: list[str]
) -> None:
    desk = shown(window(stage, **BERLIN), ada)
    desk.box.fill("Soon")
    desk.page.clock.set_fixed_time(f"{today}+01:00")
    desk.box.press("Control+Alt+Enter")
    choices = desk.page.get_by_role("dialog", name="Send later").locator(".menu-item")
    expect(choices).to_have_count(len(times))
    assert [each.replace("\n", "") for each in choices.all_inner_texts()] == times


def test_time_of_its_own_is_checked_and_kept(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    desk = shown(window(stage, **BERLIN), ada)
    desk.box.fill("Happy new year")
    desk.box.press("Control+Alt+Enter")
    dialog = desk.page.get_by_role("dialog", name="Send later")
    time = dialog.get_by_label("A date and time")
    year = datetime.now(UTC).year
    for value, problem in (
        (f"{year - 1}-01-01T09:00", "This time is in the past."),
        (f"{year + 2}-01-01T09:00", "Choose a time within a year."),
    ):
        time.fill(value)
        dialog.get_by_role("button", name="Schedule").click()
        expect(dialog.get_by_role("alert")).to_have_text(problem)
    soon = (datetime.now(UTC) + timedelta(days=40)).date()
    time.fill(f"{soon}T08:30")
    dialog.get_by_role("checkbox").uncheck()
    dialog.get_by_role("button", name="Schedule").click()
    expect(waiting(desk)).to_contain_text("08:30")
    expect(waiting(desk)).not_to_contain_text("Not sent if")
    (one,) = scheduled(stage)
    hours = 7 if one["sendAt"][11:13] == "07" else 6  # winter or summer in Berlin
    assert one["sendAt"] == f"{soon}T0{hours}:30:00.000Z"
    assert one["unlessReplied"] is False


def test_reply_is_sent_at_its_time_without_a_page_and_leaves_other_tabs(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    desk = shown(window(stage), ada)
    schedule(stage, ada, "On time", 6)
    schedule(stage, ada, "Much later", 600)
    expect(waiting(desk)).to_have_count(2)
    desk.page.keyboard.press("e")  # a close is not held up by a scheduled reply
    desk.eventually(lambda: stage.owner.get(f"/conversations/{ada['id']}").json()["status"], "CLOSED")
    expect(waiting(desk).last).to_contain_text("Not sent while the conversation is closed.")
    assert stage.messages(ada) == ["Hello!"]
    desk.page.keyboard.press("o")
    desk.eventually(lambda: stage.messages(ada), ["Hello!", "On time"])
    expect(waiting(desk)).to_have_count(1)
    expect(desk.said("On time")).to_have_count(1)


def test_reply_that_the_customer_overtakes_comes_back_with_the_reason(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    other = stage.converse("elsewhere", "Something else", name="Bea")
    desk = window(stage)
    desk.sign_in()
    schedule(stage, ada, "Still there?", 3, unlessReplied=True)
    stage.say(ada, "Solved, thanks")
    desk.open(f"/desk/c/{other['id']}")
    expect(desk.page.locator(".toasts")).to_contain_text("The customer has written since")
    desk.page.locator(".toasts").get_by_role("button", name="Show").click()
    refused = desk.page.locator(".moved")
    expect(refused).to_contain_text("Ada wrote before you")
    expect(refused).to_contain_text("Solved, thanks")
    desk.open("/desk/scheduled")
    line = desk.page.get_by_role("listitem").filter(has_text="Still there?")
    expect(line).to_contain_text("The customer has written since you scheduled this message")
    line.get_by_role("button", name="Edit").click()
    expect(desk.box).to_have_value("Still there?")
    assert stage.messages(ada) == ["Hello!", "Solved, thanks"]
    desk.eventually(lambda: scheduled(stage), [])


def test_reply_written_offline_is_scheduled_once_online(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    desk = shown(window(stage, **BERLIN), ada)
    desk.box.fill("From the train")
    desk.box.press("Control+Alt+Enter")
    soon = desk.page.get_by_role("dialog").get_by_role("button", name=re.compile("^In an hour"))
    expect(soon).to_be_visible()  # the dialog is loaded while there is a network
    desk.tolerated.append(NETWORK)
    desk.context.set_offline(True)
    soon.click()
    expect(desk.log.locator(".truth").last).to_contain_text("back online")
    desk.context.set_offline(False)
    expect(waiting(desk)).to_contain_text("From the train")
    assert [each["text"] for each in scheduled(stage)] == ["From the train"]


def test_scheduled_reply_of_a_deleted_conversation_is_gone_with_a_notice(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    schedule(stage, ada, "Never", 600)
    desk = shown(window(stage), ada)
    expect(waiting(desk)).to_contain_text("Never")
    stage.owner.delete(f"/conversations/{ada['id']}").raise_for_status()
    expect(desk.page.locator(".toasts")).to_contain_text("A scheduled reply was not sent")
    desk.open("/desk/scheduled")
    expect(desk.page.get_by_role("heading", name="Nothing is scheduled")).to_be_visible()


def test_list_sends_cancels_and_opens_what_is_scheduled(
    window: Callable[..., Desk], stage: Stage, ada: dict[str, Any]
) -> None:
    for text, seconds in (("Third", 9_000), ("First", 600), ("Second", 1_200)):
        schedule(stage, ada, text, seconds)
    desk = window(stage, **BERLIN)
    desk.sign_in()
    desk.page.get_by_role("link", name="Scheduled").click()
    lines = desk.page.locator(".scheduled-list li")
    expect(lines).to_have_text([re.compile("First"), re.compile("Second"), re.compile("Third")])
    lines.nth(0).get_by_role("button", name="Send now").click()
    desk.eventually(lambda: stage.messages(ada), ["Hello!", "First"])
    expect(lines).to_have_count(2)
    lines.nth(0).get_by_role("button", name="Cancel").click()
    expect(lines).to_have_count(1)
    desk.page.locator(".toasts").get_by_role("button", name="Undo").click()
    expect(lines).to_have_count(2)
    lines.nth(1).get_by_role("link", name="Ada").click()
    expect(waiting(desk)).to_have_count(2)


def test_cancelled_reply_that_cannot_be_scheduled_again_is_a_draft_with_its_files(
    desk: Desk, stage: Stage, ada: dict[str, Any]
) -> None:
    desk.tolerated.append(NETWORK)  # 422: its time has passed
    file = {"file": ("receipt.txt", b"paid", "text/plain")}
    uploaded = stage.owner.post("/uploads", files=file).raise_for_status().json()
    shown(desk, ada)
    schedule(stage, ada, "See the receipt", 3, attachments=[uploaded["id"]])
    ends = datetime.now(UTC) + timedelta(seconds=3)
    waiting(desk).get_by_role("button", name="Cancel").click()
    desk.eventually(lambda: scheduled(stage), [])
    desk.eventually(lambda: datetime.now(UTC) > ends, True)
    desk.page.locator(".toasts").get_by_role("button", name="Undo").click()
    expect(desk.box).to_have_value("See the receipt")
    expect(desk.page.get_by_text("receipt.txt")).to_be_visible()


def test_reply_in_a_closed_conversation_is_scheduled_without_a_warning(
    desk: Desk, stage: Stage, ada: dict[str, Any]
) -> None:
    path = f"/conversations/{ada['id']}"
    stage.owner.post(f"{path}/close", json={}).raise_for_status()
    schedule(stage, ada, "How did it go?", 600)
    shown(desk, ada)
    expect(waiting(desk)).not_to_contain_text("closed")
    stage.owner.post(f"{path}/reopen", json={}).raise_for_status()
    stage.owner.post(f"{path}/close", json={}).raise_for_status()
    expect(waiting(desk)).to_contain_text("Not sent while the conversation is closed.")


def test_axe_finds_nothing_about_scheduled_replies_at_390_pixels(
    browser: Browser, stage: Stage, ada: dict[str, Any]
) -> None:
    schedule(stage, ada, "A long word: " + "x" * 200, 600, unlessReplied=True)
    schedule(stage, ada, "Refused", 0.2, unlessReplied=True)
    stage.say(ada, "Wait")
    with opened(browser, stage, viewport={"width": 390, "height": 800}) as desk:
        desk.eventually(lambda: sorted(each["status"] for each in scheduled(stage)), ["held", "refused"])
        shown(desk, ada)
        expect(waiting(desk)).to_have_count(1)
        expect(desk.page.locator(".moved")).to_have_count(1)
        expect(desk.page.locator(".toast")).to_have_count(0)
        assert findings(desk.page) == []
        desk.box.fill("On the phone")
        desk.page.get_by_role("button", name="More ways to send").click()
        desk.page.get_by_role("menuitem", name="Send later…").click()
        dialog = desk.page.get_by_role("dialog", name="Send later")
        expect(dialog).to_be_visible()
        assert findings(desk.page) == []
        assert desk.page.evaluate("document.documentElement.scrollWidth") <= 390
        dialog.get_by_role("button", name="Close").click()
        desk.open("/desk/scheduled")
        expect(desk.page.locator(".scheduled-list li")).to_have_count(2)
        expect(desk.page.locator(".toast")).to_have_count(1)  # of the refused reply
        expect(desk.page.locator(".toast")).to_have_count(0)
        assert findings(desk.page) == []
        assert desk.page.evaluate("document.documentElement.scrollWidth") <= 390
