"""Features of all pages: addresses, navigation, frame, states, dialogs, and API calls."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import Stage

SESSIONS = "/desk/settings/sessions"


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests, which do not affect each other."""
    return shared_stage


def _head(page: Page, name: str) -> None:
    expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()


@pytest.mark.journey
def test_page_opens_by_link_and_closes_by_back(desk: Desk) -> None:
    desk.sign_in()
    desk.page.get_by_text("Settings", exact=True).first.click()
    desk.page.get_by_role("link", name="Your sessions").click()
    _head(desk.page, "Your sessions")
    expect(desk.page).to_have_url(f"{desk.stage.url}/desk/{desk.stage.demo['projectId']}/settings/sessions")
    expect(desk.page).to_have_title(re.compile("Your sessions"))
    expect(desk.page.get_by_role("link", name="Your sessions")).to_have_attribute("aria-current", "page")
    expect(desk.page.get_by_role("region", name="Conversations")).to_have_count(0)
    desk.page.go_back()
    expect(desk.page.get_by_role("region", name="Conversations")).to_be_visible()
    desk.page.go_forward()
    _head(desk.page, "Your sessions")


def test_page_opens_by_its_address(desk: Desk) -> None:
    desk.sign_in()
    desk.open(SESSIONS)
    _head(desk.page, "Your sessions")
    expect(desk.page.get_by_role("row").filter(has_text="current")).to_be_visible()


def test_conversation_keys_do_nothing_on_pages(desk: Desk, stage: Stage) -> None:
    conversation = stage.converse("keys", "Stay open.", name="Kay Still")
    desk.sign_in()
    desk.view()
    desk.row("Kay Still").click(modifiers=["Control"])
    desk.run_command("Your sessions", "your sessions")
    _head(desk.page, "Your sessions")
    desk.page.keyboard.press("e")
    expect(desk.page.get_by_role("status").filter(has_text="No conversation is open")).to_be_attached()
    found = stage.owner.get(f"/conversations/{conversation['id']}").raise_for_status().json()
    assert found["status"] == "OPEN"


def test_unknown_address_links_to_the_inbox(desk: Desk) -> None:
    desk.sign_in()
    desk.open("/desk/no/such/page")
    expect(desk.page.get_by_text("Page not found")).to_be_visible()
    desk.page.get_by_role("link", name="Go to the inbox").click()
    expect(desk.page.get_by_role("region", name="Conversations")).to_be_visible()


def test_confirm_dialog_lists_the_effects(desk: Desk, stage: Stage) -> None:
    user = stage.demo["user"]
    stage.client(user["email"], user["password"])
    proof = {"email": user["email"], "password": user["password"]}
    stage.owner.post("/auth/session", json=proof).raise_for_status()
    desk.sign_in()
    desk.open(SESSIONS)
    row = desk.page.get_by_role("row").filter(has_text="httpx")
    row.get_by_role("button", name="End").first.click()
    dialog = desk.page.get_by_role("dialog", name="End this session")
    expect(dialog).to_contain_text("ends with its next call")
    desk.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(row).to_have_count(1)
    row.get_by_role("button", name="End").click()
    dialog.get_by_role("button", name="End", exact=True).click()
    expect(row).to_have_count(0)


def test_page_shows_its_calls_as_json_and_curl(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    desk.open(SESSIONS)
    desk.page.get_by_role("button", name="API calls of this page").click()
    desk.page.get_by_role("menuitem", name="As JSON").click()
    expect(desk.page.get_by_role("dialog", name="As JSON")).to_contain_text('"lastSeenAt"')
    desk.page.keyboard.press("Escape")
    desk.page.get_by_role("button", name="API calls of this page").click()
    desk.page.get_by_role("menuitem", name="As curl").click()
    dialog = desk.page.get_by_role("dialog", name="As curl")
    expect(dialog).to_contain_text(f"curl -s '{stage.url}/v3/users/me/sessions?limit=50'")
    expect(dialog).to_contain_text("$DESKWIRE_TOKEN")


def test_failed_page_reloads_once_the_service_is_back(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    desk.context.route("**/v3/users/me/sessions*", lambda route: route.abort())
    desk.page.get_by_text("Settings", exact=True).first.click()
    desk.page.get_by_role("link", name="Your sessions").click()
    expect(desk.page.get_by_text("Couldn't load the data")).to_be_visible()
    desk.context.unroute("**/v3/users/me/sessions*")
    desk.page.get_by_role("button", name="Try again").click()
    expect(desk.page.get_by_role("row").filter(has_text="current")).to_be_visible()


def test_axe_finds_nothing_on_sessions_page_and_dialog(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage)

    desk.sign_in()
    desk.open(SESSIONS)
    expect(desk.page.get_by_role("row").filter(has_text="current")).to_be_visible()
    assert findings(desk.page) == []
    desk.page.get_by_role("button", name="API calls of this page").click()
    desk.page.get_by_role("menuitem", name="As curl").click()
    expect(desk.page.get_by_role("dialog")).to_be_visible()
    assert findings(desk.page) == []


def test_sessions_page_fits_320_pixels(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, viewport={"width": 320, "height": 640})
    desk.sign_in()
    desk.open(SESSIONS)
    _head(desk.page, "Your sessions")
    expect(desk.page.get_by_role("row").nth(1)).to_be_visible()
    assert desk.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    desk.page.get_by_role("button", name="Navigation").click()
    desk.view()
    expect(desk.page.get_by_role("region", name="Conversations")).to_be_visible()


SHOW_CHART = """async () => {
  const root = performance.getEntriesByType("resource").find(each => each.name.endsWith("/app.js")).name.replace("app.js", "");
  const [{ Chart }, { html, render }] = await Promise.all([import(`${root}ui/chart.js`), import(`${root}vendor/preact.js`)]);
  const at = Array.from({ length: 24 }, (_, hour) => `2026-11-24T${String(hour).padStart(2, "0")}:00:00.000Z`);
  const series = [{ label: "Delivered", values: at.map((_, i) => i * i) }, { label: "Dropped", values: at.map(() => 7), colour: "--bad" }];
  render(html`<${Chart} title="Deliveries" at=${at} series=${series} summary="They grow." />`, document.querySelector("main").appendChild(document.createElement("div")));
}"""


def test_chart_works_under_the_policy_and_has_a_table(desk: Desk) -> None:
    desk.sign_in()
    desk.open(SESSIONS)
    _head(desk.page, "Your sessions")
    desk.page.evaluate(SHOW_CHART)
    chart = desk.page.get_by_role("img", name="They grow.")
    expect(chart).to_be_visible()
    desk.page.get_by_role("button", name="As a table").click()
    expect(desk.page.get_by_role("row").filter(has_text="529")).to_contain_text("7")
    expect(chart).to_have_count(0)


def test_navigation_of_a_viewer_has_only_permitted_pages(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage)
    desk.sign_in(stage.person("Vera", "viewer"), "a password of an agent, long enough")
    desk.page.get_by_text("Settings", exact=True).first.click()
    expect(desk.page.get_by_role("link", name="Your sessions")).to_be_visible()
    for name in ("Server keys", "Members", "Webhooks"):
        expect(desk.page.get_by_role("link", name=name)).to_have_count(0)
