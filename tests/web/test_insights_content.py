"""The pages of reports, translations and memory in the browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.insights import fits, head, shown, viewer
from tests.web.harness.stage import Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests, with a project in three languages."""
    path = f"/projects/{shared_stage.demo['projectId']}"
    settings = {"languages": ["en", "de", "fr"], "primaryLanguage": "en"}
    shared_stage.owner.patch(path, json={"settings": settings}).raise_for_status()
    return shared_stage


def entry(stage: Stage, key: str, language: str = "en", **fields: str) -> str:
    """Store an entry in one language; return its id."""
    path = f"/translations/entries/statictranslation:{key}"
    stage.owner.put(path, json={"language": language, "fields": fields}).raise_for_status()
    return f"statictranslation:{key}"


def fields_of(stage: Stage, entry_id: str, language: str) -> dict[str, str]:
    path = f"/translations/entries/{entry_id}"
    found: dict[str, str] = stage.owner.get(path, params={"language": language}).json()["fields"]
    return found


@pytest.mark.journey
def test_reports_show_days_and_agents(desk: Desk, stage: Stage, tmp_path: Path) -> None:
    conversation = stage.converse("report", "Hello?")
    path = f"/conversations/{conversation['id']}/messages"
    stage.owner.post(path, json={"text": "Good day."}).raise_for_status()
    desk.sign_in()
    shown(desk, "reports", "First response")
    page = desk.page
    expect(page.get_by_role("img", name="First response over time")).to_be_visible()
    page.get_by_role("button", name="As a table").click()
    expect(page.get_by_role("table", name="First response").get_by_role("row")).not_to_have_count(1)
    page.get_by_role("link", name="Volume").click()
    head(page, "Volume")
    page.get_by_role("combobox", name="By").select_option("Agent")
    expect(page.get_by_role("row").filter(has_text="Demo owner")).to_be_visible()
    expect(page).to_have_url(re.compile("metric=volume"))
    with page.expect_download() as kept:
        page.get_by_role("button", name="As CSV").click()
    kept.value.save_as(tmp_path / "volume.csv")
    assert "Demo owner" in (tmp_path / "volume.csv").read_text()
    for name in ("Time to close", "CSAT", "Backlog"):
        page.get_by_role("link", name=name).click()
        head(page, name)
        expect(page.locator("[aria-busy=true]")).to_have_count(0)


def test_keyboard_translates_missing_entries_in_turn(desk: Desk, stage: Stage) -> None:
    ids = [entry(stage, f"a/{name}", text=f"Text {name}", hint="A hint") for name in ("one", "two")]
    desk.sign_in()
    shown(desk, "translations?language=fr&q=a%2F", "Translations")
    page, keyboard = desk.page, desk.page.keyboard
    page.get_by_role("link", name="a/two").press("Enter")
    head(page, ids[1])
    expect(page.get_by_text("missing in fr")).to_be_visible()
    expect(page.get_by_text("Text two")).to_be_visible()
    page.get_by_label("text, fr").focus()
    keyboard.type("Texte deux")
    keyboard.press("Tab")
    keyboard.type("Une aide")
    keyboard.press("Tab")
    keyboard.press("Space")
    keyboard.press("Tab")
    keyboard.press("Enter")
    expect(page.get_by_text("Saved in fr.").last).to_be_visible()
    head(page, ids[0])
    assert fields_of(stage, ids[1], "fr") == {"text": "Texte deux", "hint": "Une aide"}
    expect(page.get_by_label("text, fr")).to_have_value("")


def test_translation_conflict_shows_both_versions(desk: Desk, stage: Stage) -> None:
    entry_id = entry(stage, "both", text="Pay")
    entry(stage, "both", "de", text="Zahlen")
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    shown(desk, f"translations?entry={entry_id}&language=de", entry_id)
    desk.page.get_by_label("text, de").fill("Bezahlen")
    entry(stage, "both", "de", text="Jetzt zahlen")
    desk.page.get_by_role("button", name="Save").click()
    dialog = desk.page.get_by_role("dialog", name="Someone else changed this")
    expect(dialog.get_by_role("row").filter(has_text="Jetzt zahlen")).to_contain_text("Bezahlen")
    assert fields_of(stage, entry_id, "de") == {"text": "Jetzt zahlen"}
    dialog.get_by_role("button", name="Save yours").click()
    expect(dialog).to_have_count(0)
    assert fields_of(stage, entry_id, "de") == {"text": "Bezahlen"}


def test_conflict_of_two_first_texts_shows_both(desk: Desk, stage: Stage) -> None:
    entry_id = entry(stage, "first", text="Pay")
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    shown(desk, f"translations?entry={entry_id}&language=de", entry_id)
    field, save = desk.page.get_by_label("text, de"), desk.page.get_by_role("button", name="Save")
    field.fill("Bezahlen")
    entry(stage, "first", "de", text="Zahlen")
    save.click()
    dialog = desk.page.get_by_role("dialog", name="Someone else changed this")
    expect(dialog.get_by_role("row").filter(has_text="Zahlen")).to_contain_text("Bezahlen")
    desk.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(field).to_have_value("Bezahlen")
    save.click()
    assert fields_of(stage, entry_id, "de") == {"text": "Zahlen"}
    dialog.get_by_role("button", name="Keep theirs").click()
    expect(field).to_have_value("Zahlen")
    field.fill("Jetzt bezahlen")
    save.click()
    expect(desk.page.get_by_text("Saved in de.").last).to_be_visible()
    assert fields_of(stage, entry_id, "de") == {"text": "Jetzt bezahlen"}


def test_new_entry_never_replaces_an_existing_one(desk: Desk, stage: Stage) -> None:
    entry_id = entry(stage, "taken", text="Already here")
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    shown(desk, "translations", "Translations")
    desk.page.get_by_role("button", name="New entry").click()
    dialog = desk.page.get_by_role("dialog", name="New entry")
    dialog.get_by_label("ID").fill("taken")
    dialog.get_by_label("Text, en").fill("Mine")
    dialog.get_by_role("button", name="Create").click()
    both = desk.page.get_by_role("dialog", name="Someone else changed this")
    expect(both.get_by_role("row").filter(has_text="Already here")).to_contain_text("Mine")
    both.get_by_role("button", name="Keep theirs").click()
    head(desk.page, entry_id)
    assert fields_of(stage, entry_id, "en") == {"text": "Already here"}


def test_entry_is_created_found_and_deleted(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    shown(desk, "translations?show=all", "Translations")
    page = desk.page
    page.get_by_role("button", name="New entry").click()
    dialog = page.get_by_role("dialog", name="New entry")
    dialog.get_by_label("ID").fill("made.here")
    dialog.get_by_label("Text, en").fill("Umbrella")
    dialog.get_by_role("button", name="Create").click()
    head(page, "statictranslation:made.here")
    shown(desk, "translations?show=all", "Translations")
    page.get_by_label("Search", exact=True).fill("umbrella")
    page.get_by_label("Search", exact=True).press("Enter")
    expect(page.get_by_text("Showing 1")).to_be_visible()
    page.get_by_role("link", name="made.here").click()
    page.get_by_role("button", name="Manage").click()
    page.get_by_role("menuitem", name="Delete the entry").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the entry").click()
    head(page, "Translations")
    assert stage.owner.get("/translations/entries/statictranslation:made.here").status_code == 404


def test_memory_is_added_changed_and_deleted(desk: Desk, stage: Stage) -> None:
    stage.converse("remembered", name="Mona Remembered")
    (contact,) = stage.owner.get("/contacts", params={"q": "Mona"}).raise_for_status().json()["items"]
    desk.sign_in()
    shown(desk, "memory?q=Mona", "Memory")
    page = desk.page
    page.get_by_role("link", name="Mona Remembered").click()
    head(page, "Mona Remembered")
    page.get_by_role("button", name="Add").click()
    dialog = page.get_by_role("dialog", name="Add")
    dialog.get_by_label("Name").fill("shoe size")
    dialog.get_by_label("Content").fill("43 <i>wide</i>")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row").filter(has_text="43 <i>wide</i>")).to_be_visible()
    page.get_by_role("button", name="shoe size").click()
    page.get_by_role("dialog").get_by_label("Content").fill("44")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_role("row").filter(has_text="44")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    gone = page.get_by_role("dialog", name="Delete")
    expect(gone).to_contain_text("shoe size")
    gone.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No memory entries yet")).to_be_visible()
    assert stage.owner.get(f"/sessions/{contact['id']}/memory").json()["items"] == []


def test_viewer_can_only_read_texts_and_memory(window: Callable[..., Desk], stage: Stage) -> None:
    entry_id = entry(stage, "seen", text="Look")
    stage.converse("seen", name="Sven Seen")
    (contact,) = stage.owner.get("/contacts", params={"q": "Sven"}).raise_for_status().json()["items"]
    stage.owner.post(f"/sessions/{contact['id']}/memory", json={"name": "pet", "content": "A cat"})
    desk = window(stage)
    viewer(desk, stage, "Vito")
    shown(desk, "translations?show=all", "Translations")
    expect(desk.page.get_by_role("button", name="New entry")).to_have_count(0)
    shown(desk, f"translations?entry={entry_id}&language=en", entry_id)
    assert desk.page.get_by_label("text, en").get_attribute("readonly") is not None
    expect(desk.page.get_by_role("button", name="Save")).to_have_count(0)
    shown(desk, f"memory/{contact['id']}", "Sven Seen")
    expect(desk.page.get_by_text("A cat")).to_be_visible()
    for name in ("Add", "Delete", "pet"):
        expect(desk.page.get_by_role("button", name=name)).to_have_count(0)


def test_axe_finds_nothing_on_reports_texts_and_memory(window: Callable[..., Desk], stage: Stage) -> None:
    entry_id = entry(stage, "axe", text="Look")
    stage.converse("axe", name="Axel")
    (contact,) = stage.owner.get("/contacts", params={"q": "Axel"}).json()["items"]
    stage.owner.post(f"/sessions/{contact['id']}/memory", json={"name": "pet", "content": "A cat"})
    desk = window(stage)
    desk.sign_in()
    for path, name in (
        ("reports", "First response"),
        ("reports?metric=volume&by=agent", "Volume"),
        ("translations", "Translations"),
        (f"translations?entry={entry_id}&language=de", entry_id),
        ("memory", "Memory"),
        (f"memory/{contact['id']}", "Axel"),
    ):
        shown(desk, path, name)
        assert findings(desk.page) == []


def test_reports_texts_and_memory_fit_320_pixels(window: Callable[..., Desk], stage: Stage) -> None:
    entry_id = entry(stage, "narrow", text="Look")
    desk = window(stage, viewport={"width": 320, "height": 640})
    desk.sign_in()
    for path, name in (
        ("reports", "First response"),
        ("translations", "Translations"),
        (f"translations?entry={entry_id}&language=de", entry_id),
        ("memory", "Memory"),
    ):
        shown(desk, path, name)
        fits(desk.page)
