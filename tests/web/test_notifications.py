"""Notifications of the desk: one for all tabs of a browser, none for a conversation on the screen or an own action; sound, title and icon; settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk

_SPY: Final = """
  window.tones = 0;
  const start = OscillatorNode.prototype.start;
  OscillatorNode.prototype.start = function (...given) { window.tones += 1; return start.apply(this, given); };
  window.away = false;
  document.hasFocus = () => !window.away;
  window.notified = [];
  const { showNotification, getNotifications } = ServiceWorkerRegistration.prototype;
  ServiceWorkerRegistration.prototype.showNotification = function (title, options) {
    window.notified.push({ title, ...options });
    return showNotification.call(this, title, options);
  };
  ServiceWorkerRegistration.prototype.getNotifications = async function (filter) {
    const closed = (each) => !filter?.tag || each.tag === filter.tag;
    window.notified = window.notified.filter((each) => !closed(each));
    return getNotifications.call(this, filter);
  };
"""
"""Lets a test take the focus away, which Playwright pretends for every page, and notes tones and notifications.

They are real, but headless Chromium loses some of those that it shows. The desk lists notifications only to close all of them.
"""
ALL: Final = {
    "mine": True,
    "teams": True,
    "unassigned": True,
    "mentions": True,
    "preview": True,
    "sound": True,
}
EVERY_DAY: Final = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """A window that may show notifications, with a user who wants all of them."""
    desk.context.grant_permissions(["notifications"], origin=desk.stage.url)
    desk.context.add_init_script(_SPY)
    put(desk)
    desk.sign_in()
    ready(desk.page)
    return desk


def put(desk: Desk, **changed: Any) -> None:
    settings = {**ALL, "quietHours": None, **changed}
    desk.stage.owner.put("/users/me/notifications", json=settings).raise_for_status()


def ready(page: Page) -> None:
    """Wait until one tab of the browser shows notifications."""
    page.wait_for_function(
        "async () => (await navigator.locks.query()).held.some((each) => each.name.startsWith('deskwire notify')) "
        "&& Boolean((await navigator.serviceWorker.getRegistration('/desk/'))?.active)"
    )
    expect(page.get_by_role("button", name="Connection: Live")).to_be_visible()


def shown(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate("notified")
    return found


def wait_for(desk: Desk, *titles: str) -> None:
    """Wait until exactly these notifications are shown."""
    desk.eventually(lambda: sorted(each["title"] for each in shown(desk.page)), sorted(titles))


def leave(page: Page) -> None:
    page.evaluate("() => { window.away = true; window.dispatchEvent(new Event('blur')); }")


def come_back(page: Page) -> None:
    page.evaluate("() => { window.away = false; window.dispatchEvent(new Event('focus')); }")


def assign(desk: Desk, conversation: Mapping[str, Any], user: str, client: Any = None) -> None:
    body = {"assignee": {"type": "user", "id": user}}
    path = f"/conversations/{conversation['id']}/assign"
    (client or desk.stage.owner).post(path, json=body).raise_for_status()


def me(desk: Desk) -> str:
    found: str = desk.stage.owner.get("/users/me").raise_for_status().json()["id"]
    return found


@pytest.mark.journey
def test_message_of_a_customer_is_shown_and_heard_once(desk: Desk) -> None:
    conversation = desk.stage.converse("ada", "My lamp is broken", name="Ada")
    wait_for(desk, "Ada")
    (one,) = shown(desk.page)
    assert one["body"] == "My lamp is broken"
    assert one["silent"] is True
    assert one["data"]["conversationId"] == conversation["id"]
    assert desk.page.evaluate("tones") == 2  # two tones are one sound


def test_two_tabs_show_one_notification_and_play_one_sound(desk: Desk) -> None:
    second = desk.context.new_page()
    desk.watch(second)
    second.goto(f"{desk.stage.url}/desk")
    expect(second.get_by_role("region", name="Conversations")).to_be_visible()
    second.get_by_role("region", name="Conversations").click()  # a page plays sounds only after a click
    ready(second)
    desk.stage.converse("ada", "Hello", name="Ada")
    expect(second.get_by_role("link", name="Unassigned 1")).to_be_visible()
    desk.eventually(lambda: [each["title"] for page in (desk.page, second) for each in shown(page)], ["Ada"])
    assert desk.page.evaluate("tones") + second.evaluate("tones") == 2
    desk.page.close()  # the other tab takes over
    desk.page = second
    ready(second)
    desk.stage.converse("bea", "Hi", name="Bea")
    desk.eventually(lambda: "Bea" in [each["title"] for each in shown(second)], True)


def test_focused_conversation_is_not_notified_in_any_tab(desk: Desk) -> None:
    conversation = desk.stage.converse("ada", "Hello", name="Ada")
    wait_for(desk, "Ada")
    second = desk.context.new_page()
    desk.watch(second)
    second.goto(f"{desk.stage.url}/desk/c/{conversation['id']}")
    expect(second.get_by_role("log")).to_be_visible()
    ready(second)
    assert shown(second) == []
    desk.stage.say(conversation, "Are you there?")
    expect(second.get_by_role("log")).to_contain_text("Are you there?")
    desk.stage.converse("bea", "Hi", name="Bea")
    wait_for(desk, "Ada", "Bea")
    leave(second)
    desk.stage.say(conversation, "Nobody there?")
    wait_for(desk, "Ada", "Ada", "Bea")


def test_title_and_icon_show_what_came_while_the_user_was_away(desk: Desk) -> None:
    leave(desk.page)
    ada = desk.stage.converse("ada", "Hello", name="Ada")
    desk.stage.say(ada, "Anyone?")
    expect(desk.page).to_have_title("(2) Deskwire")
    icon = desk.page.locator("link[rel=icon]")
    assert str(icon.get_attribute("href")).endswith("icon-new.svg")
    come_back(desk.page)
    expect(desk.page).to_have_title("Deskwire")
    assert str(icon.get_attribute("href")).endswith("icon.svg")


def test_assignment_by_a_colleague_is_notified_and_ones_own_is_not(desk: Desk) -> None:
    put(desk, unassigned=False)
    desk.page.reload()
    ready(desk.page)
    conversation = desk.stage.converse("ada", "Hello", name="Ada")
    assign(desk, conversation, me(desk))
    desk.stage.owner.post(f"/conversations/{conversation['id']}/unassign")
    grace = desk.stage.client(desk.stage.person("Grace", "agent"))
    other = desk.stage.converse("bea", "Hi", name="Bea")
    assign(desk, other, me(desk), grace)
    wait_for(desk, "Bea")
    assert shown(desk.page)[0]["body"] == "Grace assigned this conversation to you"


def test_quiet_hours_leave_the_title_only(desk: Desk) -> None:
    put(desk, quietHours={"days": EVERY_DAY, "timeZone": "UTC"})
    desk.page.reload()
    ready(desk.page)
    leave(desk.page)
    desk.stage.converse("ada", "Hello", name="Ada")
    expect(desk.page).to_have_title("(1) Deskwire")
    assert shown(desk.page) == []
    assert desk.page.evaluate("tones") == 0


def test_texts_are_hidden_without_preview(desk: Desk) -> None:
    put(desk, preview=False)
    desk.page.reload()
    ready(desk.page)
    desk.stage.converse("ada", "My card is 4111", name="Ada")
    wait_for(desk, "Ada")
    assert shown(desk.page)[0]["body"] == "New message"


def test_click_opens_the_conversation_in_the_open_window(desk: Desk) -> None:
    conversation = desk.stage.converse("ada", "Hello", name="Ada")
    wait_for(desk, "Ada")
    (worker,) = desk.context.service_workers
    # The browser permits a focus after a real click only, which Playwright can't make; the message goes before it.
    worker.evaluate(
        """async (data) => {
          const event = Object.assign(new Event("notificationclick"), { notification: { data, close() {} } });
          event.waitUntil = (promise) => promise.catch(() => {});
          self.dispatchEvent(event);
        }""",
        shown(desk.page)[0]["data"],
    )
    expect(desk.log).to_contain_text("Hello")
    assert desk.page.url.endswith(f"/c/{conversation['id']}")
    wait_for(desk)


def test_sign_out_removes_notifications_from_the_screen(desk: Desk) -> None:
    desk.stage.converse("ada", "Hello", name="Ada")
    wait_for(desk, "Ada")
    desk.page.get_by_role("button", name="You and your settings").click()
    desk.page.get_by_role("menuitem", name="Sign out").click()
    expect(desk.page.get_by_label("Email")).to_be_visible()
    wait_for(desk)


def test_old_events_are_not_shown_when_the_connection_returns(desk: Desk) -> None:
    desk.page.clock.install()
    desk.page.reload()
    ready(desk.page)
    desk.page.clock.set_system_time("2030-01-01T00:00:00Z")
    leave(desk.page)
    desk.stage.converse("ada", "Hello", name="Ada")
    expect(desk.page).to_have_title("(1) Deskwire")
    assert shown(desk.page) == []


class TestSettings:
    """The page of the settings."""

    def test_settings_are_saved_and_quiet_hours_are_checked(self, desk: Desk) -> None:
        page = desk.page
        page.get_by_role("button", name="You and your settings").click()
        page.get_by_role("menuitem", name="Notifications").click()
        expect(page.get_by_role("heading", name="Notifications", exact=True)).to_be_visible()
        page.get_by_label("Conversations assigned to no one").uncheck()
        page.get_by_label("From", exact=True).fill("20:00")
        desk.tolerated.append("Failed to load resource")
        page.get_by_role("button", name="Save changes").click()
        expect(page.get_by_role("alert").first).to_contain_text("both start and end")
        page.get_by_label("Until", exact=True).fill("08:00")
        page.get_by_label("Sunday").check()
        page.get_by_label("Time zone").select_option("Europe/Berlin")
        page.get_by_role("button", name="Save changes").click()
        expect(page.locator(".toasts")).to_contain_text("Notification settings saved.")
        stored = desk.stage.owner.get("/users/me/notifications").json()
        assert stored["unassigned"] is False
        assert stored["quietHours"] == {
            "start": "20:00",
            "end": "08:00",
            "days": ["sun"],
            "timeZone": "Europe/Berlin",
        }
        expect(page.get_by_label("Until", exact=True)).to_have_value("08:00")
        expect(page.locator(".toast")).to_have_count(0)
        assert findings(page) == []

    def test_browser_asks_on_a_click_only(self, desk: Desk) -> None:
        desk.context.clear_permissions()
        desk.context.add_init_script(
            "window.asked = 0; Notification.requestPermission = async () => { window.asked += 1; return 'default'; };"
        )
        desk.page.reload()
        desk.stage.converse("ada", "Hello", name="Ada")
        expect(desk.page.get_by_role("link", name="Unassigned 1")).to_be_visible()
        desk.open("/desk/settings/notifications")
        button = desk.page.get_by_role("button", name="Turn on in this browser")
        denied = desk.page.get_by_text("Notifications of this site are blocked")
        expect(button.or_(denied)).to_be_visible()
        assert desk.page.evaluate("asked") == 0

    def test_page_works_at_390_pixels_and_by_keyboard(self, desk: Desk) -> None:
        desk.page.set_viewport_size({"width": 390, "height": 800})
        desk.open("/desk/settings/notifications")
        tick = desk.page.get_by_label("Conversations assigned to no one")
        expect(tick).to_be_visible()
        assert desk.page.evaluate("document.documentElement.scrollWidth") <= 390
        tick.focus()
        desk.page.keyboard.press("Space")
        desk.page.get_by_role("button", name="Save changes").focus()
        desk.page.keyboard.press("Enter")
        expect(desk.page.locator(".toasts")).to_contain_text("Notification settings saved.")
        assert desk.stage.owner.get("/users/me/notifications").json()["unassigned"] is False
        expect(desk.page.locator(".toast")).to_have_count(0)
        assert findings(desk.page) == []
