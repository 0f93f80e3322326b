"""The check list of a new project: its steps come from the service, lead to their pages, and are hidden for all members."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.keyboard import Keys
from tests.web.harness.overflow import overflow
from tests.web.harness.stage import PASSWORD, Stage
from tests.web.test_phone import SMALL

EMPTY: Final = "You're all caught up"


def steps_of(page: Page) -> Locator:
    """Return the list of an empty desk."""
    return page.get_by_role("region", name="Get started")


def hidden(stage: Stage) -> bool:
    """Return whether the service has the list of the demo's project as hidden."""
    return bool(stage.owner.get("/setup").raise_for_status().json()["hidden"])


def project_page(desk: Desk) -> Locator:
    """Open the settings of the demo's project, and return their part about the list."""
    desk.open(f"/desk/settings/projects/{desk.stage.demo['projectId']}")
    expect(desk.page.get_by_role("heading", level=1, name="Demo project")).to_be_visible()
    return desk.page.locator("section.part").filter(has_text="First steps")


@pytest.mark.journey
def test_empty_desk_lists_first_steps_and_follows_them(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    steps = steps_of(desk.page)
    expect(steps.get_by_role("listitem")).to_have_count(5)
    expect(steps).to_contain_text("0 of 5 done")
    expect(desk.page.get_by_text("Select one with j and k")).to_have_count(0)
    expect(desk.page.get_by_text(EMPTY)).to_be_visible()
    assert findings(desk.page) == []
    stage.person("Grace", "agent")
    stage.endpoint("crm")
    expect(steps).to_contain_text("2 of 5 done")
    keys = Keys(desk.page)
    keys.to(steps.get_by_role("link", name="Put the chat on your site"))
    keys.press("Enter")
    expect(desk.page.get_by_role("heading", level=1, name="Channels")).to_be_visible()
    desk.page.go_back()
    expect(steps.get_by_role("link", name=re.compile("Connect your backend ?, done"))).to_be_visible()


def test_list_is_hidden_and_shown_in_every_open_browser(window: Callable[..., Desk], stage: Stage) -> None:
    desk, other = window(stage), window(stage)
    desk.sign_in()
    other.sign_in(stage.person("Grace", "admin"), PASSWORD)
    for each in (desk, other):
        expect(steps_of(each.page)).to_contain_text("1 of 5 done")
    steps_of(desk.page).get_by_role("button", name="Hide for everyone").click()
    for each in (desk, other):
        expect(steps_of(each.page)).to_have_count(0)
        expect(each.page.get_by_text(EMPTY)).to_be_visible()
    assert hidden(stage)
    notice = desk.page.get_by_role("region", name="Notices")
    expect(notice).to_contain_text("Hidden for everyone in this project.")
    assert findings(desk.page) == []
    notice.get_by_role("button", name="Undo").click()
    for each in (desk, other):
        expect(steps_of(each.page)).to_contain_text("1 of 5 done")
    assert not hidden(stage)


def test_hidden_list_is_shown_again_in_the_settings_by_keys(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    keys = Keys(desk.page)
    keys.to(steps_of(desk.page).get_by_role("button", name="Hide for everyone"))
    keys.press("Enter")
    expect(steps_of(desk.page)).to_have_count(0)
    desk.page.reload()
    expect(desk.page.get_by_text(EMPTY)).to_be_visible()
    expect(steps_of(desk.page)).to_have_count(0)
    part = project_page(desk)
    expect(part).to_contain_text("The first steps are hidden for everyone in this project.")
    keys.to(part.get_by_role("button", name="Show them again"))
    keys.press("Enter")
    expect(part).to_contain_text("An empty inbox lists the first steps until they are done.")
    keys.stands_at(part.get_by_role("button", name="Hide for everyone"))
    assert not hidden(stage)
    stage.owner.put("/setup", json={"hidden": True}).raise_for_status()
    expect(part.get_by_role("button", name="Show them again")).to_be_visible()
    stage.owner.put("/setup", json={"hidden": False}).raise_for_status()
    desk.open()
    expect(steps_of(desk.page)).to_contain_text("0 of 5 done")


def test_list_is_hidden_and_shown_on_a_phone(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, viewport={"width": 390, "height": 800}, reduced_motion="reduce")
    desk.sign_in()
    page = desk.page
    expect(steps_of(page)).to_contain_text("0 of 5 done")
    assert page.evaluate(SMALL, ".first-steps") == []
    steps_of(page).get_by_role("button", name="Hide for everyone").click()
    expect(steps_of(page)).to_have_count(0)
    assert (overflow(page), findings(page)) == ([], [])
    part = project_page(desk)
    expect(part).to_contain_text("hidden for everyone")
    assert (page.evaluate(SMALL, "section.part"), overflow(page), findings(page)) == ([], [], [])
    part.get_by_role("button", name="Show them again").click()
    expect(part.get_by_role("button", name="Hide for everyone")).to_be_visible()
    assert not hidden(stage)


def test_list_stays_if_the_service_cannot_be_reached(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    button = steps_of(desk.page).get_by_role("button", name="Hide for everyone")
    expect(button).to_be_visible()
    stage.close_road()
    button.click()
    expect(desk.page.get_by_text("Couldn't change it:").first).to_be_attached()
    expect(button).to_be_visible()
    stage.open_road()
    assert not hidden(stage)


def test_choice_that_a_browser_had_stored_hides_nothing(desk: Desk, stage: Stage) -> None:
    desk.context.add_init_script(
        """sessionStorage.once ??= localStorage["deskwire.firstSteps"] = '{"x": true}'"""
    )
    desk.sign_in()
    expect(steps_of(desk.page)).to_be_visible()
    assert desk.page.evaluate("""localStorage.getItem("deskwire.firstSteps")""") is None


def test_agent_sees_own_step_only_in_a_desk_without_work(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, viewport={"width": 390, "height": 800})
    desk.sign_in(stage.person("Grace", "agent"), PASSWORD)
    steps = steps_of(desk.page)
    expect(steps.get_by_role("listitem")).to_have_count(1)
    expect(steps).to_contain_text("Protect your account")
    expect(steps.get_by_role("button")).to_have_count(0)
    assert findings(desk.page) == []
    stage.owner.put("/setup", json={"hidden": True}).raise_for_status()
    expect(steps).to_have_count(0)
    stage.owner.put("/setup", json={"hidden": False}).raise_for_status()
    expect(steps).to_be_visible()
    stage.converse("ada", "Hello!", name="Ada")
    expect(steps).to_have_count(0)
    expect(desk.page.get_by_text(EMPTY)).to_be_visible()
