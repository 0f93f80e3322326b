"""The page: served by the service alone, and quiet."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.web.harness.desk import Desk


def test_a_person_signs_in_and_sees_a_conversation(desk: Desk) -> None:
    desk.stage.converse("u1", "Where is my order?", name="Ada Lovelace")
    desk.sign_in()
    expect(desk.page.get_by_role("option").filter(has_text="Ada Lovelace")).to_be_visible()
