"""The pages of workflows: diagram, definition, try-out, runs and versions."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.insights import FLOWS, fits, head, shown, viewer, workflow
from tests.web.harness.stage import Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own workflows."""
    return shared_stage


@pytest.mark.journey
def test_diagram_shows_exits_and_waiting_runs(desk: Desk, stage: Stage) -> None:
    waiting = [stage.converse(f"picture-{number}") for number in range(2)]
    made = workflow(stage, "Pictured", waiting)
    desk.sign_in()
    shown(desk, f"workflows/{made['id']}", "Pictured")
    page = desk.page
    main = page.get_by_role("listitem", name="Flow main")
    expect(main.locator(".step").nth(1)).to_contain_text("2 waiting, since")
    expect(main).to_contain_text("starts here")
    main.get_by_role("link", name="→ order").press("Enter")
    expect(page.get_by_role("listitem", name="Flow order")).to_be_focused()
    page.get_by_role("link", name="Runs").click()
    expect(page.get_by_role("row").filter(has_text=waiting[0]["id"])).to_contain_text("main, action 2")
    page.get_by_role("link", name=waiting[0]["id"]).click()
    expect(desk.log).to_contain_text("What is it about?")


def test_keyboard_answers_a_try_out_that_stores_nothing(desk: Desk, stage: Stage) -> None:
    made = workflow(stage, "Tried")
    desk.sign_in()
    shown(desk, f"workflows/{made['id']}?part=try", "Tried")
    page, keyboard = desk.page, desk.page.keyboard
    page.get_by_label("Attributes of the conversation").press("Tab")
    keyboard.press("Enter")
    course = page.get_by_role("region", name="What happens")
    expect(course).to_contain_text("What is it about?")
    expect(page.locator("[aria-current=step]")).to_contain_text("waits here")
    page.get_by_role("button", name="My order").press("Enter")
    page.get_by_label("Order number *").press("Enter")
    expect(page.get_by_label("Order number *")).to_have_attribute("aria-invalid", "true")
    desk.tolerated.append(NETWORK)
    expect(course).to_contain_text("This field is required.")
    keyboard.type("A-1001")
    keyboard.press("Enter")
    expect(course).to_contain_text("Order number: A-1001")
    expect(course).to_contain_text("The conversation is closed.")
    expect(course.get_by_role("status")).to_contain_text("Completed")
    expect(page.get_by_role("region", name="Attributes")).to_contain_text('"topic": "order"')
    page.get_by_role("button", name="Undo last answer").press("Enter")
    expect(page.get_by_label("Order number *")).to_be_visible()
    assert stage.owner.get(f"/workflows/{made['id']}/runs", params={"state": "ended"}).json()["items"] == []


def test_flows_are_edited_tried_and_published(desk: Desk, stage: Stage) -> None:
    made = workflow(stage, "Edited")
    desk.sign_in()
    shown(desk, f"workflows/{made['id']}?part=definition&as=json", "Edited")
    page = desk.page
    sheet = page.get_by_label("Flows", exact=True)
    flows = json.loads(json.dumps(FLOWS))
    flows[0]["actions"][1]["options"][0]["goto"] = "nowhere"
    sheet.fill(json.dumps(flows, indent=2))
    expect(page.get_by_role("list", name="Problems")).to_contain_text("/0/actions/1/options/0/goto")
    expect(page.get_by_role("button", name="Publish version 2")).to_have_attribute("aria-disabled", "true")
    flows[0]["actions"][1]["options"][0]["goto"] = "order"
    flows[0]["actions"][0]["text"] = "Good day!"
    sheet.fill(json.dumps(flows, indent=2))
    page.get_by_role("tab", name="Diagram").click()
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("region", name="What happens")).to_contain_text("Good day!")
    page.get_by_role("button", name="Publish version 2").click()
    expect(page.get_by_text("Version 2 is published.")).to_be_visible()
    assert stage.owner.get(f"/workflows/{made['id']}").json()["flows"][0]["actions"][0]["text"] == "Good day!"
    page.get_by_role("link", name="Versions").click()
    page.get_by_role("button", name="Version 1").click()
    dialog = page.get_by_role("dialog", name="Version 1")
    expect(dialog).to_contain_text("Hello!")
    dialog.get_by_role("button", name="Publish these flows again").click()
    expect(page.get_by_role("button", name="Version 3")).to_be_visible()
    assert stage.owner.get(f"/workflows/{made['id']}").json()["flows"] == FLOWS


def test_workflow_conflict_shows_both_versions(desk: Desk, stage: Stage) -> None:
    made = workflow(stage, "Renamed twice")
    path = f"/workflows/{made['id']}"
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    shown(desk, f"workflows/{made['id']}", "Renamed twice")
    desk.page.get_by_role("button", name="Manage").click()
    desk.page.get_by_role("menuitem", name="Name and start").click()
    desk.page.get_by_role("textbox", name="Name").fill("Mine")
    stage.owner.patch(path, json={"name": "By a colleague"}).raise_for_status()
    desk.page.get_by_role("button", name="Save").click()
    dialog = desk.page.get_by_role("dialog", name="Someone else changed this")
    expect(dialog.get_by_role("row").filter(has_text="By a colleague")).to_contain_text("Mine")
    dialog.get_by_role("button", name="Keep theirs").click()
    head(desk.page, "By a colleague")
    assert stage.owner.get(path).json()["name"] == "By a colleague"


def test_stopped_run_shows_its_reason(desk: Desk, stage: Stage) -> None:
    team = stage.owner.post("/teams", json={"name": "Short lived"}).raise_for_status().json()
    give = {"id": 1, "type": "assign", "assignee": {"type": "team", "id": team["id"]}}
    body = {"name": "Stopped", "trigger": {"type": "manual"}, "flows": [{"id": "main", "actions": [give]}]}
    made = stage.owner.post("/workflows", json=body).raise_for_status().json()
    stage.owner.request("DELETE", f"/teams/{team['id']}", json={}).raise_for_status()
    conversation = stage.converse("stopped")
    path = f"/s2s/conversations/{conversation['id']}/workflow/start"
    stage.s2s.post(path, json={"workflowId": made["id"]}).raise_for_status()
    desk.sign_in()
    shown(desk, f"workflows/{made['id']}", "Stopped")
    expect(desk.page.get_by_text("The assigned team or user no longer exists.")).to_be_visible()
    desk.page.get_by_role("link", name="Show them").click()
    row = desk.page.get_by_role("row").filter(has_text=conversation["id"])
    expect(row).to_contain_text("no longer exists")


def test_workflow_is_created_and_deleted(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    shown(desk, "workflows", "Workflows")
    page = desk.page
    page.get_by_role("button", name="New workflow").click()
    page.get_by_role("button", name="Create and edit").click()
    expect(page.get_by_role("dialog").get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    desk.tolerated.append(NETWORK)
    page.get_by_role("dialog").get_by_label("Name").fill("By a click")
    page.get_by_role("button", name="Create and edit").click()
    head(page, "By a click")
    page.get_by_role("button", name="Manage").click()
    page.get_by_role("menuitem", name="Delete the workflow").click()
    dialog = page.get_by_role("dialog", name="Delete the workflow")
    expect(dialog).to_contain_text("they continue to their end")
    dialog.get_by_role("button", name="Delete the workflow").click()
    head(page, "Workflows")
    assert "By a click" not in [each["name"] for each in stage.owner.get("/workflows").json()["items"]]


def test_viewer_can_only_read_and_try_workflows(window: Callable[..., Desk], stage: Stage) -> None:
    made = workflow(stage, "To look at")
    desk = window(stage)
    viewer(desk, stage, "Viola")
    shown(desk, "workflows", "Workflows")
    expect(desk.page.get_by_role("button", name="New workflow")).to_have_count(0)
    for part in ("picture", "definition", "runs", "versions"):
        shown(desk, f"workflows/{made['id']}?part={part}", "To look at")
        for name in ("Manage", "Publish"):
            expect(desk.page.get_by_role("button", name=name)).to_have_count(0)
    shown(desk, f"workflows/{made['id']}?part=try", "To look at")
    desk.page.get_by_role("button", name="Try it").click()
    expect(desk.page.get_by_role("region", name="What happens")).to_contain_text("Hello!")


def test_axe_finds_nothing_on_workflows(window: Callable[..., Desk], stage: Stage) -> None:
    made = workflow(stage, "Accessible", [stage.converse("axe")])
    desk = window(stage)
    desk.sign_in()
    shown(desk, "workflows", "Workflows")
    assert findings(desk.page) == []
    for part in ("picture", "definition", "definition&as=json", "runs", "versions", "try"):
        shown(desk, f"workflows/{made['id']}?part={part}", "Accessible")
        assert findings(desk.page) == []
    desk.page.get_by_role("button", name="Try it").click()
    desk.page.get_by_role("button", name="My order").click()
    expect(desk.page.get_by_label("Order number *")).to_be_visible()
    assert findings(desk.page) == []


def test_workflows_fit_320_pixels(window: Callable[..., Desk], stage: Stage) -> None:
    made = workflow(stage, "Narrow", [stage.converse("narrow")])
    desk = window(stage, viewport={"width": 320, "height": 640})
    desk.sign_in()
    for part in ("picture", "definition", "definition&as=json", "runs", "versions", "try"):
        shown(desk, f"workflows/{made['id']}?part={part}", "Narrow")
        fits(desk.page)
