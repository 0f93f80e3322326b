"""Search results show assignees and mark matching words; commands know the appearance; letters after `r` are text."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import Desk
from tests.web.harness.stage import PASSWORD, Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own contacts."""
    return shared_stage


@pytest.mark.journey
def test_hits_show_assignee_and_mark_titles(desk: Desk, stage: Stage) -> None:
    conversation = stage.converse("zora", "Hello!", name="Zora")
    path = f"/conversations/{conversation['id']}"
    stage.owner.patch(path, json={"title": "Ésprésso zappers"}).raise_for_status()
    me = stage.owner.get("/users/me").raise_for_status().json()
    stage.owner.post(f"{path}/assign", json={"assignee": {"type": "user", "id": me["id"]}}).raise_for_status()
    made = stage.owner.post("/tickets", json={"title": "Order espresso"}).raise_for_status().json()
    desk.sign_in()
    desk.page.keyboard.press("/")
    desk.page.keyboard.type("espr")
    hit = desk.page.locator(".hits .row").filter(has_text="Zora")
    expect(hit.locator("mark")).to_have_text("Éspr")
    expect(hit).to_contain_text(me["name"])
    ticket = desk.page.locator(".hits .hit").filter(has_text="Order espresso")
    expect(ticket.locator("mark")).to_have_text("espr")
    ticket.click()
    expect(desk.page.get_by_role("heading", level=1, name="Order espresso")).to_be_visible()
    assert made["id"] in desk.page.url


def test_commands_change_the_appearance(desk: Desk) -> None:
    desk.sign_in()
    desk.page.keyboard.press("Control+k")
    desk.page.keyboard.type("dark")
    expect(desk.page.get_by_role("option", name="Appearance: Dark")).to_have_attribute(
        "aria-selected", "true"
    )
    desk.page.keyboard.press("Enter")
    expect(desk.page.locator("html[data-theme=dark]")).to_have_count(1)


def test_letters_after_r_never_act_while_a_colleague_types(desk: Desk, stage: Stage) -> None:
    conversation = stage.converse("lettie", "Hello!", name="Lettie")
    stage.person("Ken", "agent")
    ken = stage.client("ken@demo.example", PASSWORD)
    path = f"/conversations/{conversation['id']}"
    desk.sign_in()
    desk.converse("Lettie")
    expect(desk.said("Hello!")).to_be_visible()
    for number in range(12):
        ken.post(f"{path}/typing", json={"typing": number % 2 == 0}).raise_for_status()
        desk.page.locator(".log").focus()
        desk.page.keyboard.press("r")
        desk.page.keyboard.type("a")
        desk.page.keyboard.type("e")
        expect(desk.box).to_have_value("ae" * (number + 1))
        desk.page.keyboard.press("Escape")
    found = stage.owner.get(path).raise_for_status().json()
    assert (found["status"], found["assignee"]) == ("OPEN", None)
