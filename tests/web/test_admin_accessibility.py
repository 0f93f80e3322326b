"""Accessibility of the administration pages (WCAG 2.2 AA), and their layout at 320 pixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from playwright.sync_api import expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage

WINDOWS: Final[Mapping[str, Mapping[str, Any]]] = {
    "wide": {},
    "narrow": {"viewport": {"width": 320, "height": 800}},
}
PLACES: Final = {
    "tickets": "New ticket",
    "contacts": None,
    "console": None,
    "settings/members": "Invite a member",
    "settings/organisation": None,
    "settings/roles": "New role",
    "settings/teams": "New team",
    "settings/snippets": "New snippet",
    "settings/projects": "New project",
    "settings/channels": "New channel",
    "settings/keys": "New server key",
    "settings/credentials": "New credential",
    "settings/account": None,
    "settings/audit": None,
}
"""The pages, and the button of each that opens a dialog."""


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service with one resource of each kind."""
    stage = shared_stage
    stage.endpoint("crm")
    conversation = stage.converse("u1", "Hello!", name="Ada", email="ada@example.org")
    ticket = {
        "title": "Parcel lost",
        "priority": "URGENT",
        "tags": ["vip"],
        "conversationId": conversation["id"],
    }
    made = stage.owner.post("/tickets", json=ticket).raise_for_status().json()
    stage.owner.patch(f"/tickets/{made['id']}", json={"status": "IN_PROGRESS"}).raise_for_status()
    snippet = {"shortcut": "refund", "title": "Refund", "text": "It is on its way. " * 20}
    stage.owner.post("/snippets", json=snippet).raise_for_status()
    credential = {"name": "CRM", "permissions": ["tickets.read"]}
    stage.owner.post("/channels", json={"name": "Shop"}).raise_for_status()
    path = f"/projects/{stage.demo['projectId']}/credentials"
    stage.owner.post(path, json=credential).raise_for_status()
    return stage


@pytest.mark.parametrize("window_kind", WINDOWS)
def test_axe_finds_nothing_on_admin_pages_and_dialogs(
    window: Callable[..., Desk], stage: Stage, window_kind: str
) -> None:
    desk = window(stage, reduced_motion="reduce", **WINDOWS[window_kind])
    problems: dict[str, Any] = {}

    def look(where: str) -> None:
        if found := findings(desk.page):
            problems[where] = found
        if desk.page.evaluate("document.documentElement.scrollWidth - innerWidth") > 0:
            problems[f"{where}, sideways"] = desk.page.evaluate("document.documentElement.scrollWidth")

    desk.sign_in()
    ticket = stage.owner.get("/tickets").json()["items"][0]["id"]
    contact = stage.owner.get("/contacts").json()["items"][0]["id"]
    details = dict.fromkeys((f"tickets/{ticket}", f"contacts/{contact}"))
    for place, opens in {**PLACES, **details}.items():
        desk.open(f"/desk/{place}")
        expect(desk.page.locator(".page-body")).to_be_visible()
        expect(desk.page.locator(".page .bar")).to_have_count(0)
        look(place)
        if opens:
            desk.page.get_by_role("button", name=opens).click()
            expect(desk.page.get_by_role("dialog")).to_be_visible()
            look(f"{place}, {opens}")
    assert problems == {}
