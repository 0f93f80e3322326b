"""Marking all conversations as read. Conversations closed before their import are not unread."""

from __future__ import annotations

import orjson
import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage


def bring_in(stage: Stage, status: str, names: list[str]) -> None:
    """Import last year's conversations, each with a message of its contact."""
    at = "2025-01-01T00:00:00Z"
    closed = {"closedAt": at} if status == "CLOSED" else {}
    records = []
    for name in names:
        contact = {"userId": name, "name": name}
        conversation = {"externalId": name, "contact": contact, "status": status, "createdAt": at, **closed}
        records.append({"type": "conversation", **conversation})
        message = {"externalId": f"{name}-1", "conversation": name, "author": {"type": "contact"}}
        records.append({"type": "message", **message, "text": f"I am {name}", "createdAt": at})
    lines = b"\n".join(map(orjson.dumps, records))
    headers = {"Content-Type": "application/x-ndjson"}
    stage.s2s.post("/s2s/import", content=lines, headers=headers).raise_for_status()


@pytest.mark.journey
def test_command_marks_all_as_read_and_undo_reverts_it(desk: Desk) -> None:
    desk.stage.converse("ada", "I am Ada", name="Ada")
    desk.sign_in()
    desk.view()
    expect(desk.row("Ada")).to_be_visible()
    bring_in(desk.stage, "CLOSED", ["Closed"])
    bring_in(desk.stage, "OPEN", ["Pia"])
    desk.page.reload()
    expect(desk.row("I am Pia")).to_be_visible()
    dots = desk.page.locator("[role=option] .dot.unread")
    for name in ("Ada", "Pia"):
        expect(desk.row(f"I am {name}").locator(".dot.unread")).to_have_count(1)
    expect(desk.row("I am Closed").locator(".dot.unread")).to_have_count(0)
    before = dots.count()
    desk.page.keyboard.press("Control+k")
    desk.page.get_by_role("combobox").fill("mark all as read")
    desk.page.keyboard.press("Enter")
    expect(desk.page.locator(".toasts")).to_contain_text("All conversations marked as read")
    expect(dots).to_have_count(0)
    desk.page.reload()
    expect(desk.row("I am Pia")).to_be_visible()
    expect(dots).to_have_count(0)
    desk.page.get_by_role("button", name="Any status").click()
    desk.page.get_by_role("menuitem", name="Mark all as read").click()
    expect(desk.page.locator(".toasts")).to_contain_text("All conversations marked as read")
    desk.stage.converse("bea", "I am Bea", name="Bea")
    desk.page.get_by_role("heading", name="All").hover()
    expect(desk.row("I am Bea").locator(".dot.unread")).to_have_count(1)
    assert before >= 2


def test_undo_marks_conversations_unread_again(desk: Desk) -> None:
    desk.stage.converse("ada", "I am Ada", name="Ada")
    desk.sign_in()
    desk.view()
    expect(desk.row("Ada").locator(".dot.unread")).to_have_count(1)
    desk.page.keyboard.press("Control+k")
    desk.page.get_by_role("combobox").fill("mark all as read")
    desk.page.keyboard.press("Enter")
    expect(desk.row("Ada").locator(".dot.unread")).to_have_count(0)
    desk.page.keyboard.press("u")
    expect(desk.page.locator(".toasts")).to_contain_text("Undone")
    expect(desk.row("Ada").locator(".dot.unread")).to_have_count(1)
