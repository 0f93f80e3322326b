"""Form input survives the session's end and a reload, for its user only."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import PASSWORD, Stage
from tests.web.test_session_end_secrecy import end_sessions


@pytest.fixture
def grace(window: Callable[..., Desk], stage: Stage) -> Desk:
    """Grace, an admin, in the list of tickets."""
    desk = window(stage)
    desk.tolerated.append(NETWORK)
    desk.sign_in(stage.person("Grace", "admin"), PASSWORD)
    desk.page.get_by_role("link", name="Tickets").first.click()
    return desk


def half_a_ticket(desk: Desk) -> None:
    desk.page.get_by_role("button", name="New ticket").first.click()
    form = desk.page.get_by_role("dialog", name="New ticket")
    form.get_by_label("Title").fill("A parrot is missing")
    form.get_by_label("Description").fill("It was blue, and confidential")
    form.get_by_label("Priority").select_option("URGENT")


@pytest.mark.journey
def test_form_survives_the_end_of_the_session(grace: Desk) -> None:
    page = grace.page
    half_a_ticket(grace)
    end_sessions(grace.stage, "grace@demo.example")
    again = page.get_by_role("dialog", name=re.compile("session", re.IGNORECASE))
    expect(page.get_by_role("dialog")).to_contain_text("Your session has ended")
    assert "confidential" not in page.content()
    assert "confidential" not in page.evaluate("JSON.stringify(sessionStorage)")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(again).to_have_count(0)
    page.get_by_role("button", name="New ticket").first.click()
    form = page.get_by_role("dialog", name="New ticket")
    expect(form.get_by_label("Title")).to_have_value("A parrot is missing")
    expect(form.get_by_label("Description")).to_have_value("It was blue, and confidential")
    expect(form.get_by_label("Priority")).to_have_value("URGENT")
    form.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="A parrot is missing")).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="New ticket").first.click()
    expect(page.get_by_role("dialog").get_by_label("Title")).to_have_value("")


def test_form_survives_reload_but_not_cancel(grace: Desk) -> None:
    page = grace.page
    half_a_ticket(grace)
    page.reload()
    page.get_by_role("button", name="New ticket").first.click()
    expect(page.get_by_role("dialog").get_by_label("Title")).to_have_value("A parrot is missing")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="New ticket").first.click()
    expect(page.get_by_role("dialog").get_by_label("Title")).to_have_value("")
    assert page.evaluate("Object.keys(sessionStorage).filter(each => each.startsWith('deskwire.form'))") == []


def test_typed_filters_are_not_in_the_address(grace: Desk) -> None:
    page = grace.page
    page.get_by_role("searchbox").first.fill("Ada Secretson")
    page.get_by_role("searchbox").first.press("Enter")
    expect(page.get_by_text("No ticket", exact=False).first).to_be_visible()
    assert "Secretson" not in page.url
    page.reload()
    expect(page.get_by_role("searchbox").first).to_have_value("Ada Secretson")
    page.get_by_role("link", name="Contacts").first.click()
    expect(page.get_by_role("searchbox").first).to_have_value("")
    page.go_back()
    expect(page.get_by_role("searchbox").first).to_have_value("Ada Secretson")
    end_sessions(grace.stage, "grace@demo.example")
    expect(page.get_by_role("dialog")).to_contain_text("Your session has ended")
    assert "Secretson" not in page.content() + page.url
