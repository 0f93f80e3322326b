"""Addresses contain their project, and open it for every member, whichever project was open last."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import Desk
from tests.web.harness.stage import PASSWORD, Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own projects."""
    return shared_stage


def _project(stage: Stage, name: str) -> dict[str, Any]:
    (organisation,) = stage.owner.get("/organisations").raise_for_status().json()["items"]
    path = f"/organisations/{organisation['id']}/projects"
    made: dict[str, Any] = stage.owner.post(path, json={"name": name}).raise_for_status().json()
    return made


def _ticket(stage: Stage, project: str, title: str) -> None:
    headers = {"project": project}
    stage.owner.post("/tickets", json={"title": title}, headers=headers).raise_for_status()


def _signed_in(desk: Desk, *who: str) -> None:
    """Sign in, and go to the demo's project, which is the oldest here."""
    desk.sign_in(*who)
    desk.open(f"/desk/{desk.stage.demo['projectId']}")
    _shows(desk, "Demo project")


def _shows(desk: Desk, project: str) -> None:
    """Fail unless the desk is in the project of this name."""
    expect(desk.page.locator(".brand")).to_contain_text(project)


@pytest.mark.journey
def test_copied_link_opens_in_its_own_project(window: Callable[..., Desk], stage: Stage) -> None:
    project = _project(stage, "Second shop")
    _ticket(stage, project["id"], "Only in the second shop")
    one, other = window(stage), window(stage)
    _signed_in(one)
    one.page.get_by_role("button", name="Project").click()
    one.page.get_by_role("menuitemradio", name=re.compile("Second shop")).click()
    one.page.get_by_role("link", name="Tickets").click()
    one.page.get_by_role("link", name="Only in the second shop").click()
    expect(one.page.get_by_role("heading", level=1, name="Only in the second shop")).to_be_visible()
    expect(one.page).to_have_url(re.compile(f"/desk/{project['id']}/tickets/tkt_"))
    link = one.page.url
    copied = one.page.get_by_role("link", name="Contacts").get_attribute("href")
    assert copied == f"/desk/{project['id']}/contacts"
    _signed_in(other, stage.person("Olga", "agent"), PASSWORD)
    other.page.goto(link)
    expect(other.page.get_by_role("heading", level=1, name="Only in the second shop")).to_be_visible()
    _shows(other, "Second shop")
    other.page.go_back()
    _shows(other, "Demo project")


def test_back_returns_to_the_previous_project(desk: Desk, stage: Stage) -> None:
    _project(stage, "Third shop")
    stage.converse("back", "Still here?", name="Bo Back")
    _signed_in(desk)
    desk.converse("Bo Back")
    expect(desk.page).to_have_url(re.compile(f"/desk/{stage.demo['projectId']}/c/cnv_"))
    here = desk.page.url
    desk.page.get_by_role("button", name="Project").click()
    desk.page.get_by_role("menuitemradio", name=re.compile("Third shop")).click()
    _shows(desk, "Third shop")
    expect(desk.row("Bo Back")).to_have_count(0)
    desk.page.go_back()
    _shows(desk, "Demo project")
    expect(desk.said("Still here?")).to_be_visible()
    expect(desk.page).to_have_url(here)


def test_address_without_a_project_opens_the_last_one(desk: Desk, stage: Stage) -> None:
    _signed_in(desk)
    desk.open("/desk/tickets?priority=URGENT")
    expect(desk.page.get_by_role("heading", level=1, name="Tickets")).to_be_visible()
    expect(desk.page.get_by_role("combobox", name="Priority")).to_have_value("URGENT")
    expect(desk.page).to_have_url(re.compile(f"/desk/{stage.demo['projectId']}/tickets\\?priority=URGENT$"))


def test_inaccessible_project_is_reported_without_data_loss(desk: Desk, stage: Stage) -> None:
    conversation = stage.converse("draft", "Are you there?", name="Dina Draft")
    _signed_in(desk)
    desk.converse("Dina Draft")
    desk.box.fill("Half an answer")
    desk.open("/desk/prj_01KZ0000000000000000000000/tickets")
    expect(desk.page.get_by_role("heading", name="You don't have access to this project")).to_be_visible()
    expect(desk.page.get_by_text("prj_01KZ0000000000000000000000")).to_be_visible()
    desk.page.get_by_role("button", name="Go to Demo project").click()
    _shows(desk, "Demo project")
    desk.open(f"/desk/c/{conversation['id']}")
    expect(desk.box).to_have_value("Half an answer")
    desk.page.go_back()
    desk.page.go_back()
    expect(desk.page.get_by_role("heading", name="You don't have access to this project")).to_be_visible()


def test_address_survives_sign_in(desk: Desk, stage: Stage) -> None:
    project = _project(stage, "Fourth shop")
    _ticket(stage, project["id"], "Behind the password")
    desk.open(f"/desk/{project['id']}/tickets")
    user = stage.demo["user"]
    desk.page.get_by_label("Email").fill(user["email"])
    desk.page.get_by_label("Password", exact=True).fill(user["password"])
    desk.page.get_by_role("button", name="Sign in").click()
    expect(desk.page.get_by_role("link", name="Behind the password")).to_be_visible()
    _shows(desk, "Fourth shop")
