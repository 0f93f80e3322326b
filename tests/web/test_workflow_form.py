"""The flows of a workflow are edited in a diagram, and as JSON beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.insights import FLOWS, edited, fits, shown, viewer, workflow
from tests.web.harness.stage import Stage

BUTTONS = {"id": 1, "type": "buttons", "text": "?", "options": [{"id": "a", "label": "A"}]}
END = {"id": 9, "type": "hand_off"}


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own workflows."""
    return shared_stage


def editor(desk: Desk, made: Mapping[str, Any], view: str = "") -> Page:
    """Sign in and open the editor of a workflow."""
    return edited(desk, f"workflows/{made['id']}?part=definition{view}", made["name"])


def card(page: Page, flow: int, action: int = -1) -> Locator:
    """Return the card of an action, or the head of a flow."""
    return page.locator(f'[data-place="{flow} {action}"]')


def side(page: Page) -> Locator:
    """Return the form of the selected part."""
    return page.get_by_role("region", name="Selected part")


def as_json(page: Page) -> Any:
    """Change to JSON, and return the flows."""
    page.get_by_role("tab", name="JSON").click()
    text = page.get_by_label("Flows", exact=True).input_value()
    flows = json.loads(text)
    assert text == json.dumps(flows, indent=2, ensure_ascii=False)
    return flows


@pytest.mark.journey
def test_mouse_adds_connects_tries_and_publishes(desk: Desk, stage: Stage) -> None:
    made = workflow(stage, "By mouse")
    page = editor(desk, made)
    card(page, 0, 1).click()
    form = side(page)
    form.get_by_role("button", name="Add a button").click()
    form.get_by_label("Label").nth(2).fill("An invoice")
    expect(form.get_by_label("Continues with").nth(2)).to_have_value("")
    handle = page.locator(".handle").nth(2)
    handle.click()
    expect(form.get_by_label("Continues with").nth(2)).to_have_value("")
    frame = handle.bounding_box()
    space = page.locator(".canvas").bounding_box()
    assert frame
    assert space
    page.mouse.move(frame["x"] + 6, frame["y"] + 6)
    page.mouse.down()
    page.mouse.move(space["x"] + space["width"] - 30, space["y"] + 30, steps=4)
    page.mouse.up()
    expect(form.get_by_label("Continues with").nth(2)).to_have_value("flow1")
    expect(page.locator(".canvas-flow")).to_have_count(3)
    card(page, 2, 0).click()
    form.get_by_label("Text").fill("Which invoice?")
    handle.hover()
    page.mouse.down()
    card(page, 1, 0).hover()
    page.mouse.up()
    card(page, 0, 1).click()
    expect(form.get_by_label("Continues with").nth(2)).to_have_value("order")
    form.get_by_label("Continues with").nth(2).select_option("flow1")
    expect(page.get_by_text("No problems.")).to_be_visible()
    page.get_by_role("button", name="Try it").click()
    page.get_by_role("button", name="An invoice").click()
    expect(page.get_by_role("region", name="What happens")).to_contain_text("Which invoice?")
    expect(card(page, 2, 0)).to_contain_text("ends here")
    expect(page.locator(".way.done")).not_to_have_count(0)
    expect(page.locator(".canvas-card.done")).to_have_count(3)
    page.get_by_role("button", name="Publish version 2").click()
    expect(page.get_by_text("Version 2 is published.")).to_be_visible()
    expected = json.loads(json.dumps(FLOWS))
    expected[0]["actions"][1]["options"].append({"id": "option1", "label": "An invoice", "goto": "flow1"})
    expected.append({"id": "flow1", "actions": [{"id": 7, "type": "message", "text": "Which invoice?"}]})
    assert stage.owner.get(f"/workflows/{made['id']}").json()["flows"] == expected
    assert as_json(page) == expected


def test_keyboard_alone_walks_edits_adds_and_removes(desk: Desk, stage: Stage) -> None:
    made = workflow(stage, "By keys only")
    page = editor(desk, made)
    keyboard = page.keyboard
    page.get_by_role("tab", name="Diagram").focus()
    while page.evaluate("document.activeElement.dataset.place ?? null") is None:
        keyboard.press("Tab")
    expect(card(page, 0, 0)).to_be_focused()
    keyboard.press("ArrowDown")
    expect(card(page, 0, 1)).to_be_focused()
    keyboard.press("ArrowRight")
    expect(card(page, 1, 0)).to_be_focused()
    keyboard.press("ArrowLeft")
    expect(card(page, 0, 1)).to_be_focused()
    keyboard.press("End")
    expect(card(page, 0, 2)).to_be_focused()
    keyboard.press("Enter")
    expect(side(page).get_by_label("Type")).to_be_focused()
    side(page).get_by_role("button", name="Move Action 3 up").press("Enter")
    expect(card(page, 0, 1)).to_contain_text("Hand off to an agent")
    page.get_by_role("button", name="Undo", exact=True).press("Enter")
    card(page, 0, 2).press("Enter")
    side(page).get_by_role("button", name="Add an action after this").press("Enter")
    keyboard.press("Enter")
    expect(side(page)).to_contain_text("Action 7: Message")
    expect(side(page).get_by_label("Type")).to_be_focused()
    keyboard.press("Tab")
    keyboard.type("Never sent")
    keyboard.press("Escape")
    expect(card(page, 0, 3)).to_be_focused()
    problems = page.get_by_role("list", name="Problems")
    expect(problems).to_contain_text(re.compile("Flow main . Action 7"))
    expect(card(page, 0, 3)).to_contain_text("Problems")
    keyboard.press("Delete")
    expect(problems).to_have_count(0)
    expect(card(page, 0, 2)).to_be_focused()
    keyboard.press("Delete")
    expect(card(page, 0, 1)).to_be_focused()
    keyboard.press("Control+z")
    expect(card(page, 0, 2)).to_be_visible()
    assert as_json(page) == FLOWS


EXAMPLES: dict[str, Any] = {
    "wrong_type": [{"id": "a", "actions": [{"id": 1, "type": "message", "text": 7}]}],
    "required": [{"id": "a", "actions": [{"id": 1, "type": "message"}]}],
    "unknown_field": [{"id": "a", "actions": [{**END, "colour": 1}]}],
    "empty": [{"id": "a", "actions": [{"id": 1, "type": "set_attributes", "attributes": {}}]}],
    "empty flow": [{"id": "a", "actions": []}],
    "too_long": [{"id": "a", "actions": [{**BUTTONS, "options": [{"id": "a", "label": "x" * 201}]}]}],
    "bad_id": [{"id": "a b", "actions": [END]}],
    "bad_id of an action": [{"id": "a", "actions": [{**END, "id": "x"}]}],
    "duplicate_id": [{"id": "a", "actions": [{**BUTTONS, "options": [{"id": "a", "label": "A"}] * 2}]}],
    "unknown_action": [{"id": "a", "actions": [{"id": 1, "type": "dance"}]}],
    "unknown_type": [
        {
            "id": "a",
            "actions": [
                {
                    "id": 1,
                    "type": "form",
                    "text": "?",
                    "fields": [{"id": "a", "type": "colour", "label": "A"}],
                }
            ],
        }
    ],
    "unknown_assignee": [
        {"id": "a", "actions": [{"id": 1, "type": "assign", "assignee": {"type": "team", "id": "tea_x"}}]}
    ],
    "bad_wait": [{"id": "a", "actions": [{"id": 1, "type": "wait", "seconds": 0}, END]}],
    "unknown_flow": [
        {
            "id": "a",
            "actions": [{**BUTTONS, "options": [{"id": "a", "label": "A", "goto": "nowhere"}]}, END],
        }
    ],
    "bad_operand": [
        {
            "id": "a",
            "actions": [{"id": 1, "type": "branch", "on": "x", "cases": {"y": "end"}, "default": "end"}],
        }
    ],
    "impossible_case": [
        {
            "id": "a",
            "actions": [
                BUTTONS,
                {"id": 2, "type": "branch", "on": "answers.1", "cases": {"b/~": "end"}, "default": "end"},
            ],
        }
    ],
    "unreachable_flow": [{"id": "a", "actions": [END]}, {"id": "b", "actions": [{**END, "id": 2}]}],
    "unreachable_action": [{"id": "a", "actions": [{**END, "id": 2}, END]}],
    "endless_loop": [
        {
            "id": "a",
            "actions": [
                {"id": 1, "type": "branch", "on": "attributes.x", "cases": {"y": "a"}, "default": "end"}
            ],
        }
    ],
}
"""Flows with one problem each."""


def test_every_problem_is_shown_at_its_field(desk: Desk, stage: Stage) -> None:
    made = workflow(stage, "All problems of flows")
    page = editor(desk, made, "&as=json")
    sheet = page.get_by_label("Flows", exact=True)
    for name, flows in EXAMPLES.items():
        body = {"name": "x", "trigger": {"type": "manual"}, "flows": flows}
        (error,) = stage.owner.post("/workflows/validate", json=body).json()["errors"]
        path = error["path"].removeprefix("/flows")
        sheet.fill(json.dumps(flows, indent=2))
        problem = page.locator(".editor ul.problems li").filter(
            has=page.locator(f"code:text-is({json.dumps(path)})")
        )
        expect(problem).to_contain_text(error["message"])
        page.get_by_role("tab", name="Diagram").click()
        page.get_by_role("list", name="Problems").get_by_role("button").first.click()
        focused = page.evaluate(
            """async () => {
              for (let left = 60; left && document.activeElement?.dataset.at === undefined; left -= 1) await new Promise(requestAnimationFrame);
              const at = document.activeElement;
              return [at.dataset.at ?? "none", at.textContent + (at.closest(".label, .switch")?.parentElement ?? at).textContent];
            }"""
        )
        assert error["message"] in focused[1], f"{name}: {error} is not at {focused}"
        assert path.startswith(focused[0]), name
        expect(page.locator(".canvas .chip.bad")).to_have_count(1)
        page.get_by_role("tab", name="JSON").click()
        expect(sheet).to_have_value(json.dumps(flows, indent=2))


def test_each_type_of_action_has_its_fields(desk: Desk, stage: Stage) -> None:
    made = workflow(stage, "All types")
    page = editor(desk, made)
    card(page, 0, 0).click()
    form = side(page)
    form.get_by_label("Type").select_option("set_attributes")
    form.get_by_label("Name").fill("plan")
    form.get_by_label("Name").press("Tab")
    form.get_by_label("Value").fill("3")
    assert as_json(page)[0]["actions"][0] == {"id": 1, "type": "set_attributes", "attributes": {"plan": 3}}
    page.get_by_role("tab", name="Diagram").click()
    card(page, 0, 0).click()
    form.get_by_label("Value").fill('"3"')
    form.get_by_label("Type").select_option("assign")
    (team,) = stage.owner.get("/teams").json()["items"]
    form.get_by_label("Team").last.select_option(team["id"])
    form.get_by_role("button", name="Add an action after this").click()
    page.get_by_role("menuitem", name="Branch").click()
    form.get_by_label("Look at").fill("attributes.plan")
    form.get_by_label("If it is").fill("pro")
    form.get_by_label("If it is").press("Tab")
    form.get_by_label("Continues with", exact=True).select_option("order")
    form.get_by_label("Otherwise continues with").select_option("A new flow…")
    found = as_json(page)
    assert found[0]["actions"][0] == {
        "id": 1,
        "type": "assign",
        "assignee": {"type": "team", "id": team["id"]},
    }
    assert found[0]["actions"][1] == {
        "id": 7,
        "type": "branch",
        "on": "attributes.plan",
        "cases": {"pro": "order"},
        "default": "flow1",
    }
    page.get_by_role("tab", name="Diagram").click()
    card(page, 0).click()
    form.get_by_label("ID of the flow").fill("start")
    form.get_by_label("ID of the flow").press("Tab")
    card(page, 0, 0).click()
    form.get_by_label("Type").select_option("set_attributes")
    expect(form.get_by_label("Value")).to_have_value('"3"')
    form.get_by_role("button", name="Move to another flow").click()
    page.get_by_role("menuitem", name="flow1").click()
    found = as_json(page)
    assert [each["id"] for each in found] == ["start", "order", "flow1"]
    assert found[2]["actions"][1] == {"id": 1, "type": "set_attributes", "attributes": {"plan": "3"}}


def test_flows_survive_a_reload_and_a_colleagues_version(desk: Desk, stage: Stage) -> None:
    made = workflow(stage, "Kept flows")
    page = editor(desk, made)
    desk.tolerated.append(NETWORK)
    card(page, 0, 0).click()
    side(page).get_by_label("Text").fill("Mine")
    theirs = json.loads(json.dumps(FLOWS))
    theirs[0]["actions"][0]["text"] = "Theirs"
    stage.owner.patch(f"/workflows/{made['id']}", json={"flows": theirs}).raise_for_status()
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("Someone published version 2")
    expect(card(page, 0, 0)).to_contain_text("Mine")
    page.get_by_role("button", name=re.compile("Publish version")).click()
    dialog = page.get_by_role("dialog", name="Someone else changed this")
    expect(dialog).to_contain_text('"text": "Theirs"')
    dialog.get_by_role("button", name="Save yours").click()
    expect(page.get_by_text("Version 3 is published.")).to_be_visible()
    assert stage.owner.get(f"/workflows/{made['id']}").json()["flows"][0]["actions"][0]["text"] == "Mine"
    versions = stage.owner.get(f"/workflows/{made['id']}/versions/2").json()
    assert versions["flows"] == theirs


def test_other_shapes_of_flows_are_kept(desk: Desk, stage: Stage) -> None:
    made = workflow(stage, "Odd flows")
    page = editor(desk, made, "&as=json")
    odd = [
        {"id": "a", "actions": [7, {"id": 1, "type": "message", "text": "Hi", "more": {"x": [1]}}]},
        "no flow",
        {"id": "b", "actions": "none", "note": None},
    ]
    page.get_by_label("Flows", exact=True).fill(json.dumps(odd, indent=2))
    page.get_by_role("tab", name="Diagram").click()
    card(page, 0, 0).click()
    expect(side(page)).to_contain_text("Edit it as JSON.")
    card(page, 1).click()
    expect(side(page)).to_contain_text("Edit it as JSON.")
    card(page, 0, 1).click()
    side(page).get_by_label("Text").fill("Hello")
    odd[0]["actions"][1]["text"] = "Hello"  # type: ignore[index]
    assert as_json(page) == odd
    page.get_by_label("Flows", exact=True).fill("{}")
    page.get_by_role("tab", name="Diagram").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("Edit it as JSON.")


def test_viewer_reads_the_diagram(window: Callable[..., Desk], stage: Stage) -> None:
    made = workflow(stage, "To read as a diagram")
    desk = window(stage)
    viewer(desk, stage, "Victor")
    shown(desk, f"workflows/{made['id']}?part=definition", made["name"])
    page = desk.page
    card(page, 0, 1).click()
    expect(side(page).get_by_label("Text")).to_be_disabled()
    for name in ("Add", "Remove", "Move", "Undo", "Publish"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.locator(".handle")).to_have_count(0)


def test_phone_has_a_list_of_cards(window: Callable[..., Desk], stage: Stage) -> None:
    made = workflow(stage, "On a phone")
    desk = window(stage, viewport={"width": 390, "height": 800}, has_touch=True)
    page = editor(desk, made)
    tops = page.locator("[data-place]").evaluate_all("all => all.map(e => e.getBoundingClientRect().top)")
    assert tops == sorted(tops)
    card(page, 0, 1).tap()
    expect(side(page).get_by_label("Type")).to_be_focused()
    side(page).get_by_label("Text").fill("On the phone?")
    side(page).get_by_role("button", name="Back to the diagram").tap()
    expect(card(page, 0, 1)).to_be_focused()
    expect(card(page, 0, 1)).to_contain_text("On the phone?")
    fits(page)


@pytest.mark.parametrize("options", [{}, {"viewport": {"width": 390, "height": 900}}], ids=["wide", "phone"])
def test_axe_finds_nothing_on_the_diagram(
    window: Callable[..., Desk], stage: Stage, options: dict[str, Any]
) -> None:
    made = workflow(stage, f"Accessible diagram {len(options)}")
    desk = window(stage, **options)
    page = editor(desk, made)
    page.get_by_role("button", name="Try it").click()
    page.get_by_role("button", name="My order").click()
    expect(page.get_by_label("Order number *")).to_be_visible()
    assert findings(page) == []
    card(page, 0, 1).click()
    assert findings(page) == []
    side(page).get_by_label("Type").select_option("branch")
    expect(page.get_by_role("list", name="Problems")).to_be_visible()
    assert findings(page) == []
    card(page, 0).click()
    assert findings(page) == []
    fits(page)
