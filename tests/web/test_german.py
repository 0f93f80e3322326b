"""The desk in German, and the choice of its language."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.overflow import PAGES, overflow
from tests.web.harness.stage import PASSWORD, Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    conversation = shared_stage.converse("ada", "Hallo! Wo ist mein Paket?", name="Ada Lovelace")
    path = f"/conversations/{conversation['id']}/messages"
    shared_stage.owner.post(path, json={"text": "Ich sehe nach."}).raise_for_status()
    shared_stage.person("Grace", "admin")
    return shared_stage


def language(page: Page) -> Locator:
    return page.locator("html")


def settings(page: Page, menu: str, entry: str) -> Locator:
    """Open the settings of the browser, and return their dialog."""
    page.get_by_role("button", name=menu).click()
    page.get_by_role("menuitem", name=entry, exact=True).click()
    return page.get_by_role("dialog")


@pytest.mark.journey
def test_browser_in_german_gets_the_desk_in_german(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, locale="de-AT")
    page = desk.page
    desk.open()
    expect(language(page)).to_have_attribute("lang", "de")
    page.get_by_label("E-Mail").fill("grace@demo.example")
    page.get_by_label("Passwort", exact=True).fill("falsch")
    page.get_by_role("button", name="Anmelden", exact=True).click()
    desk.tolerated.append(NETWORK)
    expect(page.get_by_role("alert")).to_have_text("E-Mail oder Passwort ist falsch.")
    page.get_by_label("Passwort", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Anmelden", exact=True).click()
    expect(page.get_by_role("region", name="Konversationen")).to_be_visible()
    page.get_by_role("navigation", name="Ansichten").get_by_role("link", name=re.compile("^Alle")).click()
    desk.row("Ada Lovelace").click()
    desk.box.fill("Es ist unterwegs.")
    page.get_by_role("button", name="Senden", exact=True).click()
    expect(page.get_by_text("Es ist unterwegs.").first).to_be_visible()
    page.locator(".thread-head").get_by_role("button", name="Schließen", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Ada Lovelace: geschlossen")
    desk.open(f"/desk/{stage.demo['projectId']}/settings/members")
    expect(page.get_by_role("heading", level=1, name="Mitglieder")).to_be_visible()
    assert findings(page) == []


def test_choice_is_kept_and_costs_no_draft(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, locale="en-GB")
    page = desk.page
    desk.sign_in()
    desk.converse("Ada Lovelace")
    desk.box.fill("A draft that stays")
    settings(page, "You and your settings", "Settings").get_by_label("Language").select_option("Deutsch")
    expect(language(page)).to_have_attribute("lang", "de")
    expect(desk.box).to_have_value("A draft that stays")
    page.reload()
    expect(language(page)).to_have_attribute("lang", "de")
    choice = settings(page, "Sie und Ihre Einstellungen", "Einstellungen").get_by_label("Sprache")
    expect(choice).to_have_value("de")
    choice.select_option("Wie im Browser")
    expect(language(page)).to_have_attribute("lang", "en")
    assert page.evaluate("document.cookie") == ""
    expect(desk.box).to_have_value("A draft that stays")


def test_language_can_be_chosen_before_sign_in(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, locale="en-GB")
    desk.open()
    desk.page.get_by_label("Language").select_option("Deutsch")
    expect(desk.page.get_by_role("heading", name="Bei Deskwire anmelden")).to_be_visible()


def test_numbers_and_dates_are_those_of_the_users_country(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, locale="de-AT")
    desk.open()
    expect(language(desk.page)).to_have_attribute("lang", "de")
    texts = """() => import(document.querySelector('link[href*="core/texts.js"]').href)
      .then(({ locale, number }) => [locale, number(1234567.5)])"""
    assert desk.page.evaluate(texts) == ["de-AT", "1\u00a0234\u00a0567,5"]


def test_german_words_fit_on_a_phone(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, locale="de-DE", viewport={"width": 390, "height": 800}, reduced_motion="reduce")
    desk.open()
    assert overflow(desk.page) == []
    desk.page.get_by_label("E-Mail").fill("grace@demo.example")
    desk.page.get_by_label("Passwort", exact=True).fill(PASSWORD)
    desk.page.get_by_role("button", name="Anmelden", exact=True).click()
    expect(desk.page.get_by_role("region", name="Konversationen")).to_be_visible()
    wide = {}
    for path in PAGES:
        desk.open(f"/desk/{stage.demo['projectId']}/{path}")
        if found := overflow(desk.page):
            wide[path] = found
    assert wide == {}


def test_overflow_finds_what_reaches_out_of_the_window(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, locale="de-DE", viewport={"width": 390, "height": 800})
    desk.open()
    expect(desk.page.get_by_role("heading", level=1)).to_be_visible()
    desk.page.evaluate("""() => {
      const wide = document.createElement("p");
      wide.textContent = "x".repeat(200);
      document.querySelector("main").append(wide);
    }""")
    assert any("xxx" in each for each in overflow(desk.page))
