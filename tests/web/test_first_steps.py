"""The check list of a new project: its steps come from the service, lead to their pages, and can be put away."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk
from tests.web.harness.keyboard import Keys
from tests.web.harness.stage import PASSWORD, Stage


def test_empty_desk_lists_first_steps_and_follows_them(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    steps = desk.page.get_by_role("region", name="Get started")
    expect(steps.get_by_role("listitem")).to_have_count(5)
    expect(steps).to_contain_text("0 of 5 done")
    expect(desk.page.get_by_text("Select one with j and k")).to_have_count(0)
    expect(desk.page.get_by_text("You're all caught up")).to_be_visible()
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
    keys.to(steps.get_by_role("button", name="Hide this list"))
    keys.press("Enter")
    expect(steps).to_have_count(0)
    desk.page.reload()
    expect(desk.page.get_by_text("You're all caught up")).to_be_visible()
    expect(steps).to_have_count(0)


def test_agent_sees_own_step_only_in_a_desk_without_work(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, viewport={"width": 390, "height": 800})
    desk.sign_in(stage.person("Grace", "agent"), PASSWORD)
    steps = desk.page.get_by_role("region", name="Get started")
    expect(steps.get_by_role("listitem")).to_have_count(1)
    expect(steps).to_contain_text("Protect your account")
    assert findings(desk.page) == []
    stage.converse("ada", "Hello!", name="Ada")
    expect(steps).to_have_count(0)
    expect(desk.page.get_by_text("You're all caught up")).to_be_visible()
