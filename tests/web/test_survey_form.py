"""A survey's definition is edited as a form, and as JSON beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from deskwire.engine.surveys.validation.rules import RULES, VALID
from deskwire.engine.surveys.validation.validate import definition_errors
from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.insights import DEFINITION, edited, fits, head, shown, survey, viewer
from tests.web.harness.stage import Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own surveys."""
    return shared_stage


def editor(desk: Desk, made: Mapping[str, Any], view: str = "") -> Page:
    """Sign in and open the editor of a survey."""
    return edited(desk, f"surveys/{made['id']}?part=definition{view}", made["name"])


def published(stage: Stage, made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the published definition."""
    found: dict[str, Any] = stage.owner.get(f"/engagement/surveys/{made['id']}").json()["definition"]
    return found


def as_json(page: Page) -> str:
    """Change to JSON, and return the text."""
    page.get_by_role("tab", name="JSON").click()
    text: str = page.get_by_label("Definition", exact=True).input_value()
    return text


def publish(page: Page, version: int) -> None:
    """Publish the definition once it has no problems."""
    button = page.get_by_role("button", name=f"Publish version {version}")
    expect(button).not_to_have_attribute("aria-disabled", "true")
    button.click()
    expect(page.get_by_text(f"Version {version} is published.")).to_be_visible()


def question(page: Page, number: int) -> Locator:
    """Return the fields of a question."""
    return page.get_by_role("group", name=f"Question {number}", exact=True)


@pytest.mark.journey
def test_form_gives_the_same_bytes_as_the_json(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "By two ways")
    page = editor(desk, made)
    page.get_by_role("button", name="Add a question").click()
    page.get_by_role("menuitem", name="Several choices").click()
    added = question(page, 4)
    added.get_by_label("Question", exact=True).fill("What do you use?")
    added.get_by_role("textbox", name="ID").first.fill("uses")
    added.get_by_role("textbox", name="ID").first.press("Tab")
    added.get_by_label("Text", exact=True).fill("Chat")
    added.get_by_role("button", name="Add a choice").click()
    added.get_by_label("Text", exact=True).nth(1).fill("Mail")
    added.get_by_label("Most choices").fill("2")
    added.get_by_label("Must be answered").check()
    first = question(page, 1)
    first.get_by_role("button", name="Add a jump").click()
    first.get_by_label("If the answer").select_option("in")
    first.get_by_label("Values").fill("9, 10")
    first.get_by_label("go to").select_option("uses")
    expect(page.get_by_text("No problems.")).to_be_visible()
    text = as_json(page)
    by_hand = json.loads(json.dumps(DEFINITION))
    by_hand["questions"].append(
        {
            "id": "uses",
            "type": "multiple_choice",
            "title": {"en": "What do you use?"},
            "required": True,
            "choices": [
                {"id": "choice1", "label": {"en": "Chat"}},
                {"id": "choice2", "label": {"en": "Mail"}},
            ],
            "max": 2,
        }
    )
    by_hand["logic"] = [{"from": "score", "to": "uses", "when": {"op": "in", "value": [9, 10]}}]
    assert text == json.dumps(by_hand, indent=2, ensure_ascii=False)
    publish(page, 2)
    assert published(stage, made) == by_hand


def test_keyboard_alone_moves_copies_removes_and_undoes(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "By keys")
    page = editor(desk, made)
    keyboard = page.keyboard
    page.get_by_role("button", name=re.compile("^1 ?Would")).focus()
    keyboard.press("Alt+ArrowDown")
    heads = page.locator(".fold bdi")
    expect(heads).to_have_text(["Why?", "Would you recommend us?", "Your plan?"])
    expect(heads.nth(1).locator("xpath=ancestor::button")).to_be_focused()
    keyboard.press("Tab")
    keyboard.press("Enter")  # up
    expect(heads).to_have_text(["Would you recommend us?", "Why?", "Your plan?"])
    page.get_by_role("button", name="Duplicate Question 3").press("Enter")
    expect(heads).to_have_count(4)
    expect(question(page, 4).get_by_role("textbox", name="ID").first).to_have_value("plan-1")
    page.get_by_role("button", name="Remove Question 4").press("Enter")
    expect(heads).to_have_count(3)
    page.locator(".toast").get_by_role("button", name="Undo").press("Enter")
    expect(heads).to_have_count(4)
    page.get_by_role("button", name="Undo", exact=True).press("Enter")
    expect(heads).to_have_count(3)
    page.get_by_role("button", name="Redo").press("Enter")
    expect(heads).to_have_count(4)
    keyboard.press("Control+z")
    expect(heads).to_have_count(3)
    page.get_by_role("tab", name="Form").press("ArrowRight")
    expect(page.get_by_role("tab", name="JSON")).to_be_focused()
    assert json.loads(page.get_by_label("Definition", exact=True).input_value()) == DEFINITION
    keyboard.press("Home")
    expect(page.get_by_role("tab", name="Form")).to_be_focused()
    expect(page.get_by_role("button", name="Publish version 2")).to_have_attribute("aria-disabled", "true")


def test_every_rule_is_shown_at_its_field(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "All problems")
    page = editor(desk, made, "&as=json")
    sheet = page.get_by_label("Definition", exact=True)
    for code, rule in RULES.items():
        broken = {**VALID, **rule.example}
        sheet.fill(json.dumps(broken, indent=2))
        (error,) = definition_errors(broken)
        problem = page.locator(".editor ul.problems li").filter(
            has=page.locator(f'code:text-is("{error.path}")')
        )
        expect(problem).to_contain_text(error.message)
        message = error.message
        page.get_by_role("tab", name="Form").click()
        link = page.get_by_role("list", name="Problems").get_by_role("button").first
        link.click()
        focused = page.evaluate(
            """async () => {
              for (let left = 60; left && document.activeElement?.dataset.at === undefined; left -= 1) await new Promise(requestAnimationFrame);
              const at = document.activeElement;
              const near = at.closest(".label, .switch, [data-at]")?.parentElement ?? at;
              return at.textContent + near.textContent;
            }"""
        )
        assert message in focused, f"{code}: {message} is not at {focused}"
        page.get_by_role("tab", name="JSON").click()
        expect(sheet).to_have_value(json.dumps(broken, indent=2))


def test_unknown_members_and_other_shapes_are_kept(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "Unknown parts")
    page = editor(desk, made, "&as=json")
    odd = json.loads(json.dumps(DEFINITION))
    odd["colour"] = {"10": 1, "a": [None, True]}
    odd["questions"][0]["hint"] = "?"
    odd["questions"][1]["title"] = 7
    odd["questions"].append("no question")
    odd["logic"] = [{"from": "nowhere", "to": "end", "note": "x"}, 5]
    sheet = page.get_by_label("Definition", exact=True)
    sheet.fill(json.dumps(odd, indent=2))
    page.get_by_role("tab", name="Form").click()
    page.get_by_label("Title", exact=True).fill("Changed")
    expect(page.get_by_role("group", name="Jumps from questions that don't exist")).to_have_count(0)
    assert json.loads(as_json(page)) == {**odd, "title": "Changed"}
    page.get_by_role("tab", name="Form").click()
    page.get_by_role("button", name="Remove colour").click()
    page.get_by_role("button", name="Remove hint").click()
    page.get_by_role("button", name="Remove Question 4").click()
    found = json.loads(as_json(page))
    assert "colour" not in found
    assert found["questions"] == [DEFINITION["questions"][0], odd["questions"][1], DEFINITION["questions"][2]]


def test_json_that_would_lose_something_has_no_form(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "Lossy text")
    page = editor(desk, made, "&as=json")
    sheet = page.get_by_label("Definition", exact=True)
    for lossy, words in (
        ('{"a": 1,\n "a": 2}', 'The name "a" is given twice'),
        ('{"a": 12345678901234567890}', "has too many digits"),
        ('{"a": ', "Invalid JSON"),
    ):
        sheet.fill(lossy)
        expect(page.get_by_role("status").filter(has_text="1 problem")).to_be_visible()
        page.get_by_role("tab", name="Form").click()
        expect(page.get_by_role("tabpanel")).to_contain_text(words)
        page.get_by_role("button", name="Edit the JSON").click()
        expect(sheet).to_have_value(lossy)


def test_languages_come_with_fields_and_go_with_their_texts(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "In two languages")
    page = editor(desk, made)
    page.get_by_label("Add a language").first.fill("de")
    page.get_by_label("Add a language").first.press("Enter")
    texts = page.get_by_label("Question, de")
    expect(texts).to_have_count(3)
    expect(texts.first).to_have_attribute("aria-invalid", "true")
    texts.first.fill("Würden Sie uns empfehlen?")
    expect(texts.first).not_to_have_attribute("aria-invalid", "true")
    page.get_by_label("Show texts in").select_option("en")
    expect(texts).to_have_count(0)
    page.get_by_role("list", name="Problems").get_by_role("button").first.click()
    expect(texts.nth(1)).to_be_focused()
    page.get_by_role("button", name="Remove de").click()
    expect(texts).to_have_count(0)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(texts.first).to_have_value("Würden Sie uns empfehlen?")
    page.get_by_role("button", name="Remove de").click()
    assert json.loads(as_json(page)) == DEFINITION


def test_changes_survive_a_reload_and_other_pages_until_discarded(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "Half done")
    page = editor(desk, made)
    question(page, 1).get_by_label("Question", exact=True).fill("Secret question?")
    page.get_by_role("link", name="Versions").click()
    page.get_by_role("link", name="Definition").click()
    expect(question(page, 1).get_by_label("Question", exact=True)).to_have_value("Secret question?")
    page.reload()
    expect(page.get_by_text("Your unpublished changes are still here.")).to_be_visible()
    expect(question(page, 1).get_by_label("Question", exact=True)).to_have_value("Secret question?")
    assert "Secret" not in page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})")
    assert published(stage, made) == DEFINITION
    page.get_by_role("button", name="Discard changes").last.click()
    expect(question(page, 1).get_by_label("Question", exact=True)).to_have_value("Would you recommend us?")
    page.reload()
    head(page, "Half done")
    expect(page.get_by_text("Your unpublished changes are still here.")).to_have_count(0)


@pytest.mark.parametrize("seen", [False, True], ids=["refused", "known"])
def test_colleagues_version_and_ones_own_are_both_kept(desk: Desk, stage: Stage, seen: bool) -> None:
    made = survey(stage, f"Edited by two {seen}")
    page = editor(desk, made)
    desk.tolerated.append(NETWORK)
    page.get_by_label("Title", exact=True).fill("Mine")
    body = {"definition": {**DEFINITION, "title": "Theirs"}}
    path = f"/engagement/surveys/{made['id']}/versions"
    stage.owner.post(path, json=body).raise_for_status()
    if seen:
        page.reload()
        expect(page.get_by_role("alert")).to_contain_text("Someone published version 2")
    page.get_by_role("button", name=re.compile("Publish version")).click()
    dialog = page.get_by_role("dialog", name="Someone else changed this")
    expect(dialog).to_contain_text('"title": "Theirs"')
    expect(dialog).to_contain_text('"title": "Mine"')
    page.keyboard.press("Escape")
    expect(page.get_by_label("Title", exact=True)).to_have_value("Mine")
    assert published(stage, made)["title"] == "Theirs"
    page.get_by_role("button", name=re.compile("Publish version")).click()
    if seen:
        dialog.get_by_role("button", name="Keep theirs").click()
        expect(page.get_by_label("Title", exact=True)).to_have_value("Theirs")
        assert published(stage, made)["title"] == "Theirs"
    else:
        dialog.get_by_role("button", name="Save yours").click()
        expect(page.get_by_text("Version 3 is published.")).to_be_visible()
        assert published(stage, made)["title"] == "Mine"
        assert stage.owner.get(f"{path}/2").json()["definition"]["title"] == "Theirs"
    expect(page.get_by_role("alert")).to_have_count(0)


def test_lost_answer_to_a_publication_is_no_conflict(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "Published once")
    page = editor(desk, made)
    desk.tolerated.append(NETWORK)
    page.get_by_label("Title", exact=True).fill("Mine")

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/versions", lose, times=1)
    page.get_by_role("button", name="Publish version 2").click()
    expect(page.locator(".toast.bad")).to_be_visible()
    page.get_by_role("button", name="Publish version 2").click()
    expect(page.get_by_text("Version 2 is published.")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    found = stage.owner.get(f"/engagement/surveys/{made['id']}").json()
    assert (found["version"], found["definition"]["title"]) == (2, "Mine")


def test_ids_types_and_jumps_stay_together(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "Renamed")
    page = editor(desk, made)
    first = question(page, 1)
    first.get_by_role("button", name="Add a jump").click()
    first.get_by_label("If the answer").select_option("gte")
    first.get_by_label("Value").fill("9.")
    expect(first.get_by_label("Value")).to_have_value("9.")
    first.get_by_label("go to").select_option("plan")
    identifier = question(page, 3).get_by_role("textbox", name="ID").first
    with page.expect_response(lambda response: response.url.endswith("/validate")):
        first.get_by_label("Question", exact=True).fill("Recommend us?")
        identifier.fill("tariff")
    expect(page.get_by_text("No problems.")).to_be_visible()
    expect(identifier).to_have_value("tariff")
    expect(first.get_by_label("go to")).to_have_value("plan")
    identifier.press("Enter")
    expect(first.get_by_label("go to")).to_have_value("tariff")
    question(page, 3).get_by_label("Type").select_option("text")
    question(page, 3).get_by_label("Type").select_option("multiple_choice")
    expect(question(page, 3).get_by_label("Text", exact=True).first).to_have_value("Free")
    page.get_by_role("button", name="Remove Question 1").click()
    expect(page.locator(".toast").get_by_text("Question 1 removed, with 1 jump.")).to_be_visible()
    assert json.loads(as_json(page))["logic"] == []


def test_text_typed_while_a_version_is_published_stays(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "Typed on")
    page = editor(desk, made)
    title = page.get_by_label("Title", exact=True)
    title.fill("Sent")
    expect(page.get_by_text("No problems.")).to_be_visible()

    def hold(route: Route) -> None:
        title.fill("Typed while it is published")  # while the request is under way
        route.continue_()

    page.route("**/versions", hold, times=1)
    page.get_by_role("button", name="Publish version 2").click()
    expect(page.get_by_role("button", name="Publish version 3")).to_be_visible()
    expect(title).to_have_value("Typed while it is published")
    expect(page.get_by_text("Someone published")).to_have_count(0)
    publish(page, 3)
    assert published(stage, made)["title"] == "Typed while it is published"


def test_focus_stays_with_a_moved_choice_and_goes_on_from_a_removed_one(desk: Desk, stage: Stage) -> None:
    page = editor(desk, survey(stage, "Moved choices"))
    plan = question(page, 3)
    for _ in range(2):
        plan.get_by_role("button", name="Add a choice").click()
    ids = plan.locator(".choice-row").get_by_label("ID", exact=True)
    plan.get_by_role("button", name="Move Choice 1 down").focus()
    for _ in range(2):
        page.keyboard.press("Enter")
    for number, identifier in enumerate(("pro", "choice1", "free", "choice2")):
        expect(ids.nth(number)).to_have_value(identifier)
    expect(plan.get_by_role("button", name="Move Choice 3 down")).to_be_focused()
    plan.get_by_role("button", name="Remove Choice 4").focus()
    for left in (3, 2, 1):
        page.keyboard.press("Enter")
        expect(ids).to_have_count(left)
        expect(plan.get_by_role("button", name=f"Remove Choice {left}")).to_be_focused()
    page.keyboard.press("Enter")
    expect(plan.get_by_role("button", name="Add a choice")).to_be_focused()


def test_try_out_follows_the_jumps_and_stores_nothing(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "Tried out")
    page = editor(desk, made)
    first = question(page, 1)
    first.get_by_role("button", name="Add a jump").click()
    first.get_by_label("If the answer").select_option("gte")
    first.get_by_label("Value").fill("9")
    first.get_by_label("go to").select_option("plan")
    page.get_by_role("button", name="Try it").click()
    preview = page.get_by_role("region", name="Try it")
    preview.get_by_role("button", name="Next").click()
    expect(preview.get_by_role("alert")).to_have_text("This question must be answered.")
    preview.get_by_label("9", exact=True).check()
    preview.get_by_role("button", name="Next").press("Enter")
    expect(preview.get_by_text("Your plan?")).to_be_visible()
    preview.get_by_label("Pro").check()
    page.keyboard.press("Enter")
    expect(preview.get_by_role("status")).to_contain_text("The survey ends here. Thank you!")
    expect(preview).to_contain_text('"pro"')
    assert stage.owner.get(f"/engagement/surveys/{made['id']}").json()["responses"] == 0


def test_viewer_reads_the_form(window: Callable[..., Desk], stage: Stage) -> None:
    made = survey(stage, "To read only")
    desk = window(stage)
    viewer(desk, stage, "Vito")
    shown(desk, f"surveys/{made['id']}?part=definition", "To read only")
    expect(question(desk.page, 1).get_by_label("Question", exact=True)).to_be_disabled()
    for name in ("Add", "Remove", "Move", "Duplicate", "Undo", "Publish"):
        expect(desk.page.get_by_role("button", name=name)).to_have_count(0)


@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_nothing_on_the_form(window: Callable[..., Desk], stage: Stage, width: int) -> None:
    made = survey(stage, f"Accessible form {width}")
    desk = window(stage, viewport={"width": width, "height": 900})
    page = editor(desk, made)
    page.get_by_label("Add a language").first.fill("de")
    page.get_by_role("button", name="Add a language").click()
    question(page, 1).get_by_role("button", name="Add a jump").click()
    question(page, 1).get_by_label("If the answer").select_option("in")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("list", name="Problems")).to_be_visible()
    assert findings(page) == []
    fits(page)
