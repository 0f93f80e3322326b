"""The tag dialog for one and for several conversations: on all, on some, on none."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk, opened
from tests.web.harness.stage import Stage

TAGS = {"Ada": ["returns", "vip"], "Bea": ["returns"], "Cleo": ["late", "returns"]}


def make(stage: Stage) -> dict[str, dict[str, Any]]:
    """Start three conversations with these tags, and return them by the contact's name."""
    made = {name: stage.converse(name.lower(), f"I am {name}", name=name) for name in TAGS}
    for name, tags in TAGS.items():
        stage.owner.patch(f"/conversations/{made[name]['id']}", json={"tags": tags}).raise_for_status()
    return made


def tags_of(stage: Stage, made: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Return the stored tags by the contact's name."""
    found = {}
    for name, conversation in made.items():
        answer = stage.owner.get(f"/conversations/{conversation['id']}", params={"view": "agent"})
        found[name] = answer.raise_for_status().json()["tags"]
    return found


def select_all(desk: Desk) -> Locator:
    """Select the three conversations, and open the dialog."""
    for name in TAGS:
        expect(desk.row(f"I am {name}")).to_be_visible()
        desk.row(f"I am {name}").click(modifiers=["ControlOrMeta"])
    desk.page.keyboard.press("t")
    return desk.page.get_by_role("dialog", name="Tags of 3 conversations")


def states(dialog: Locator) -> dict[str, str | None]:
    """Return the state of each tag in the order of the dialog."""
    expect(dialog.get_by_role("option").first).to_be_visible()
    return {
        one.locator("bdi").inner_text(): one.get_attribute("aria-checked")
        for one in dialog.get_by_role("option").all()
    }


@pytest.fixture
def made(desk: Desk) -> dict[str, dict[str, Any]]:
    """The conversations, in a desk that shows them."""
    made = make(desk.stage)
    desk.sign_in()
    desk.view("Unassigned")
    return made


@pytest.mark.journey
def test_dialog_shows_tags_of_all_and_of_some(desk: Desk, made: dict[str, dict[str, Any]]) -> None:
    dialog = select_all(desk)
    assert states(dialog) == {"returns": "true", "late": "mixed", "vip": "mixed"}
    expect(dialog.get_by_role("option", name="vip")).to_contain_text("1 of 3")


def test_only_changed_tags_are_written_and_undo_restores_each_conversation(
    desk: Desk, made: dict[str, dict[str, Any]]
) -> None:
    dialog = select_all(desk)
    dialog.get_by_role("option", name="returns").click()
    vip = dialog.get_by_role("option", name="vip")
    vip.click()
    expect(vip).to_have_attribute("aria-checked", "true")
    dialog.get_by_role("button", name="Save").click()
    changed = {"Ada": ["vip"], "Bea": ["vip"], "Cleo": ["late", "vip"]}
    desk.eventually(lambda: tags_of(desk.stage, made), changed)
    desk.page.keyboard.press("u")
    desk.eventually(lambda: tags_of(desk.stage, made), TAGS)


def test_mixed_tag_returns_to_mixed_after_two_more_presses(
    desk: Desk, made: dict[str, dict[str, Any]]
) -> None:
    dialog = select_all(desk)
    late = dialog.get_by_role("option", name="late")
    for state in ("true", "false", "mixed"):
        late.click()
        expect(late).to_have_attribute("aria-checked", state)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(desk.page.locator(".toast")).to_have_count(0)  # nothing was changed
    assert tags_of(desk.stage, made) == TAGS


def test_keys_alone_remove_a_tag_of_some_and_create_one_for_all(
    desk: Desk, made: dict[str, dict[str, Any]]
) -> None:
    dialog = select_all(desk)
    keyboard = desk.page.keyboard
    field = dialog.get_by_role("combobox")
    expect(field).to_be_focused()
    keyboard.type("vip")
    keyboard.press("Enter")
    keyboard.type("vip")
    keyboard.press("Enter")
    expect(dialog.get_by_role("option", name="vip")).to_have_attribute("aria-checked", "false")
    keyboard.type("new one")
    keyboard.press("Enter")
    expect(dialog.get_by_role("option", name="new one")).to_have_attribute("aria-checked", "true")
    keyboard.press("Control+Enter")
    changed = {"Ada": ["new one", "returns"], "Bea": ["new one", "returns"]}
    changed["Cleo"] = ["late", "new one", "returns"]
    desk.eventually(lambda: tags_of(desk.stage, made), changed)
    keyboard.press("u")
    desk.eventually(lambda: tags_of(desk.stage, made), TAGS)


def test_undo_keeps_the_tag_that_a_colleague_added_since(desk: Desk, made: dict[str, dict[str, Any]]) -> None:
    dialog = select_all(desk)
    dialog.get_by_role("option", name="returns").click()
    dialog.get_by_role("button", name="Save").click()
    desk.eventually(lambda: tags_of(desk.stage, made)["Bea"], [])
    bea = f"/conversations/{made['Bea']['id']}"
    desk.stage.owner.patch(bea, json={"tags": ["theirs"]}).raise_for_status()
    expect(desk.row("I am Bea")).to_contain_text("theirs")
    desk.page.keyboard.press("u")
    desk.eventually(lambda: tags_of(desk.stage, made), TAGS | {"Bea": ["returns", "theirs"]})


def test_dialog_of_one_conversation_adds_and_removes(desk: Desk, made: dict[str, dict[str, Any]]) -> None:
    desk.converse("I am Ada")
    desk.log.focus()
    desk.page.keyboard.press("t")
    dialog = desk.page.get_by_role("dialog", name="Tags", exact=True)
    dialog.get_by_role("button", name="Remove vip").click()
    dialog.get_by_role("option", name="late").click()
    dialog.get_by_role("button", name="Save").click()
    desk.eventually(lambda: tags_of(desk.stage, made)["Ada"], ["late", "returns"])


def test_axe_finds_nothing_in_the_dialog_at_390_pixels(browser: Browser, stage: Stage) -> None:
    make(stage)
    with opened(browser, stage, viewport={"width": 390, "height": 800}) as desk:
        desk.sign_in()
        desk.open("/desk")
        expect(desk.page.get_by_role("region", name="Conversations")).to_be_visible()
        desk.page.keyboard.press("g")
        desk.page.keyboard.press("u")
        dialog = select_all(desk)
        assert "mixed" in states(dialog).values()
        assert findings(desk.page) == []
        assert desk.page.evaluate("() => document.documentElement.scrollWidth") <= 390
