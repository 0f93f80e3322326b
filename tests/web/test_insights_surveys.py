"""The pages of surveys: figures, responses, definition and versions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.insights import DEFINITION, fits, head, shown, survey, viewer
from tests.web.harness.stage import Stage

ANSWERS = (
    {"score": 10, "why": "The delivery was fast.", "plan": "pro"},
    {"score": 9, "why": "The delivery was fast.", "plan": "pro"},
    {"score": 2, "why": "<b>The delivery</b> was late.", "plan": "free"},
)


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own surveys."""
    return shared_stage


@pytest.mark.journey
def test_keyboard_creates_edits_and_publishes_a_survey(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    shown(desk, "surveys", "Surveys")
    page, keyboard = desk.page, desk.page.keyboard
    page.get_by_role("button", name="New survey").press("Enter")
    expect(page.get_by_role("dialog", name="New survey")).to_be_visible()
    keyboard.type("Written by hand")
    keyboard.press("Enter")
    head(page, "Written by hand")
    page.get_by_role("tab", name="JSON").press("Enter")
    sheet = page.get_by_label("Definition", exact=True)
    sheet.focus()
    expect(page.get_by_text("No problems.")).to_be_visible()
    keyboard.press("Control+Home")
    sheet.fill(sheet.input_value().replace('"nps"', '"stars"'))
    expect(page.get_by_text("1 problem", exact=True)).to_be_visible()
    line = page.get_by_role("button", name="Line 11")
    expect(line).to_be_visible()
    expect(page.get_by_role("button", name="Publish version 2")).to_have_attribute("aria-disabled", "true")
    line.press("Enter")
    assert (
        sheet.evaluate("e => e.value.slice(e.selectionStart, e.selectionEnd)").strip() == '"type": "stars",'
    )
    sheet.fill(sheet.input_value().replace('"stars"', '"csat"'))
    expect(page.get_by_text("No problems.")).to_be_visible()
    page.get_by_role("button", name="Publish version 2").press("Enter")
    expect(page.get_by_text("Version 2 is published.")).to_be_visible()
    (made,) = stage.owner.get("/engagement/surveys", params={"q": "Written by hand"}).json()["items"]
    found = stage.owner.get(f"/engagement/surveys/{made['id']}").json()
    assert (found["version"], found["definition"]["questions"][0]["type"]) == (2, "csat")
    page.get_by_role("link", name="Versions").press("Enter")
    page.get_by_role("button", name="Version 1").press("Enter")
    expect(page.get_by_role("dialog", name="Version 1")).to_contain_text('"type": "nps"')


def test_invalid_json_shows_its_line_and_is_not_sent(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "Broken text")
    desk.sign_in()
    shown(desk, f"surveys/{made['id']}?part=definition&as=json", "Broken text")
    sheet = desk.page.get_by_label("Definition", exact=True)
    calls: list[str] = []
    expect(desk.page.get_by_text("No problems.")).to_be_visible()
    desk.page.on("request", lambda request: calls.append(request.url))
    sheet.fill('{\n  "schemaVersion": "2.0",\n  "title" 5\n}')
    expect(desk.page.get_by_role("button", name="Line 3")).to_be_visible()
    expect(desk.page.get_by_text("Invalid JSON").last).to_be_visible()
    assert [url for url in calls if url.endswith("/validate")] == []


def test_definition_conflict_shows_both_versions(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "Edited twice")
    path = f"/engagement/surveys/{made['id']}"
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    shown(desk, f"surveys/{made['id']}?part=definition&as=json", "Edited twice")
    sheet = desk.page.get_by_label("Definition", exact=True)
    sheet.fill(json.dumps({**DEFINITION, "title": "Mine"}, indent=2))
    expect(desk.page.get_by_text("No problems.")).to_be_visible()
    body = {"definition": {**DEFINITION, "title": "Theirs"}}
    stage.owner.post(f"{path}/versions", json=body).raise_for_status()
    desk.page.get_by_role("button", name="Publish version 2").click()
    dialog = desk.page.get_by_role("dialog", name="Someone else changed this")
    expect(dialog).to_contain_text('"title": "Theirs"')
    expect(dialog).to_contain_text('"title": "Mine"')
    assert stage.owner.get(path).json()["definition"]["title"] == "Theirs"
    dialog.get_by_role("button", name="Save yours").click()
    expect(dialog).to_have_count(0)
    found = stage.owner.get(path).json()
    assert (found["version"], found["definition"]["title"]) == (3, "Mine")


def test_figures_have_a_chart_a_table_and_insights(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "With answers", *ANSWERS, *ANSWERS)
    desk.sign_in()
    shown(desk, f"surveys/{made['id']}", "With answers")
    page = desk.page
    expect(page.locator(".facts")).to_contain_text("33.3 NPS, 6 answers")
    expect(page.get_by_role("img", name="The score over time")).to_be_visible()
    expect(page.locator("figure.chart .drawing")).to_have_count(2)
    page.get_by_role("button", name="As a table").first.click()
    expect(page.get_by_role("row").filter(has_text="33.3")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Pro")).to_contain_text("4")
    expect(page.get_by_text("No insights yet")).to_be_visible()
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_text("6 responses. NPS 33.3")).to_be_visible()
    late = page.get_by_role("row").filter(has_text="late").first
    late.get_by_text("quote").click()
    expect(late).to_contain_text("<b>The delivery</b> was late.")


def test_responses_are_filtered_read_exported_and_deleted(desk: Desk, stage: Stage, tmp_path: Path) -> None:
    made = survey(stage, "To read", *ANSWERS)
    body = {"contact": {"userId": "ada"}, "answers": {"score": 7}}
    stage.s2s.post(f"/s2s/surveys/{made['id']}/responses", json=body).raise_for_status()
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    shown(desk, f"surveys/{made['id']}?part=responses", "To read")
    page = desk.page
    expect(page.get_by_text("Showing 4")).to_be_visible()
    page.get_by_label("Contact").fill("ada")
    page.get_by_label("Contact").press("Enter")
    expect(page.get_by_text("Showing 1")).to_be_visible()
    page.get_by_label("Version").select_option("1")
    expect(page).to_have_url(re.compile("version=1"))
    assert "ada" not in page.url.partition("?")[2], "the browser keeps addresses after signing out"
    page.reload()
    expect(page.get_by_label("Contact")).to_have_value("ada")
    expect(page.get_by_text("Showing 1")).to_be_visible()
    with page.expect_download() as kept:
        page.get_by_role("button", name="As CSV").click()
    kept.value.save_as(tmp_path / "answers.csv")
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 2
    page.get_by_role("button", name="7").click()
    dialog = page.get_by_role("dialog", name="A response")
    expect(dialog).to_contain_text("Would you recommend us?")
    dialog.get_by_role("button", name="Delete this response").click()
    gone = page.get_by_role("dialog", name="Delete this response")
    expect(gone).to_contain_text("All answers of this response")
    gone.get_by_role("button", name="Delete this response").click()
    expect(page.get_by_text("No results")).to_be_visible()
    assert stage.owner.get(f"/engagement/surveys/{made['id']}").json()["responses"] == 3


def test_deleting_a_survey_requires_its_name(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "Short lived", *ANSWERS)
    desk.sign_in()
    shown(desk, f"surveys/{made['id']}", "Short lived")
    desk.page.get_by_role("button", name="Manage").click()
    desk.page.get_by_role("menuitem", name="Delete the survey").click()
    dialog = desk.page.get_by_role("dialog", name="Delete the survey")
    expect(dialog).to_contain_text("3 responses")
    dialog.get_by_role("button", name="Delete the survey").click()
    expect(dialog).to_contain_text("This is not “Short lived”.")
    dialog.get_by_role("textbox").fill("Short lived")
    dialog.get_by_role("button", name="Delete the survey").click()
    head(desk.page, "Surveys")
    assert stage.owner.get(f"/engagement/surveys/{made['id']}").status_code == 404


def test_viewer_can_only_read_surveys(window: Callable[..., Desk], stage: Stage) -> None:
    made = survey(stage, "To look at", *ANSWERS)
    desk = window(stage)
    viewer(desk, stage, "Vera")
    shown(desk, "surveys", "Surveys")
    expect(desk.page.get_by_role("button", name="New survey")).to_have_count(0)
    for part in ("figures", "responses", "versions", "definition&as=json"):
        shown(desk, f"surveys/{made['id']}?part={part}", "To look at")
        for name in ("Manage", "Refresh", "Publish", "Delete"):
            expect(desk.page.get_by_role("button", name=name)).to_have_count(0)
    assert desk.page.get_by_label("Definition", exact=True).get_attribute("readonly") is not None


def test_axe_finds_nothing_on_surveys(window: Callable[..., Desk], stage: Stage) -> None:
    made = survey(stage, "Accessible", *ANSWERS)
    desk = window(stage)
    desk.sign_in()
    shown(desk, "surveys", "Surveys")
    assert findings(desk.page) == []
    for part in ("figures", "responses", "versions", "definition&as=json"):
        shown(desk, f"surveys/{made['id']}?part={part}", "Accessible")
        if part == "figures":
            expect(desk.page.locator("figure.chart .drawing")).to_have_count(2)
        assert findings(desk.page) == []
    sheet = desk.page.get_by_label("Definition", exact=True)
    sheet.fill(sheet.input_value().replace('"nps"', '"stars"'))
    expect(desk.page.get_by_text("1 problem", exact=True)).to_be_visible()
    assert findings(desk.page) == []


def test_surveys_fit_320_pixels(window: Callable[..., Desk], stage: Stage) -> None:
    made = survey(stage, "Narrow", *ANSWERS)
    desk = window(stage, viewport={"width": 320, "height": 640})
    desk.sign_in()
    for part in ("figures", "responses", "versions", "definition", "definition&as=json"):
        shown(desk, f"surveys/{made['id']}?part={part}", "Narrow")
        fits(desk.page)
