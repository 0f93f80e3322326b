"""Notifications while the desk is closed: turned on by a click, delivered encrypted, shown by the service worker, and ended by the sign-out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk
from tests.web.harness.push_endpoint import PushEndpoint, push_endpoint
from tests.web.test_notifications import put

_ON: Final = "Notify me when the desk is closed"
_OFF: Final = "Turn off while the desk is closed"

_RECEIVE: Final = """async ([payload, existing]) => {
  const shown = [];
  const registration = self.registration;
  registration.getNotifications = async () => existing;
  registration.showNotification = async (title, options) => void shown.push({ title, ...options });
  const waits = [];
  const event = new PushEvent("push", { data: JSON.stringify(payload) });
  event.waitUntil = (promise) => waits.push(promise);
  self.dispatchEvent(event);
  await Promise.all(waits);
  delete registration.getNotifications;
  delete registration.showNotification;
  return shown;
}"""
"""Has the service worker receive a push, and returns the notifications that it shows."""


@pytest.fixture
def push() -> Iterator[PushEndpoint]:
    with push_endpoint() as made:
        yield made


@pytest.fixture
def desk(desk: Desk, push: PushEndpoint) -> Desk:
    """A window on the settings, in a browser that can subscribe."""
    desk.context.grant_permissions(["notifications"], origin=desk.stage.url)
    desk.context.add_init_script(push.script)
    put(desk)
    desk.sign_in()
    desk.open("/desk/settings/notifications")
    return desk


def turn_on(desk: Desk) -> None:
    desk.page.get_by_role("button", name=_ON).click()
    expect(
        desk.page.get_by_text("This browser notifies you when the desk is closed, until you sign out.")
    ).to_be_visible()


def received(desk: Desk, payload: dict[str, Any], existing: list[Any] | None = None) -> list[dict[str, Any]]:
    (worker,) = desk.context.service_workers
    found: list[dict[str, Any]] = worker.evaluate(_RECEIVE, [payload, existing or []])
    return found


@pytest.mark.journey
def test_message_reaches_the_browser_after_the_desk_was_closed(desk: Desk, push: PushEndpoint) -> None:
    turn_on(desk)
    assert findings(desk.page) == []
    keep = desk.context.new_page()
    desk.page.close()
    desk.page = keep
    conversation = desk.stage.converse("ada", "My lamp is broken", name="Ada")
    desk.eventually(lambda: len(push.bodies), 1)
    (payload,) = push.payloads
    project = desk.stage.demo["projectId"]
    (one,) = received(desk, payload)
    assert (one["title"], one["body"]) == ("Ada", "My lamp is broken")
    assert one["tag"] == f"{project} {conversation['id']}", "as the open desk has it"
    assert one["data"]["conversationId"] == conversation["id"]
    again = [{"data": {"eventId": payload["eventId"]}}]
    assert received(desk, payload, again) == [], "the open desk has shown this event"


def test_open_desk_gets_no_push_and_the_log_says_why(desk: Desk, push: PushEndpoint) -> None:
    turn_on(desk)
    desk.stage.converse("ada", "Hello", name="Ada")
    page = desk.page

    def reasons() -> list[str]:
        script = (
            "async () => (await (await fetch('/v3/users/me/pushes')).json()).items.map((each) => each.reason)"
        )
        found: list[str] = page.evaluate(script)
        return found

    desk.eventually(reasons, ["deskOpen"])
    page.reload()
    page.get_by_text("Recent notifications").first.click()
    expect(page.get_by_text("Not sent: the desk was open in this browser")).to_be_visible()
    assert findings(page) == []
    assert push.bodies == []


def test_it_is_turned_off_by_a_click_and_by_the_sign_out(desk: Desk) -> None:
    script = (
        "async () => (await (await fetch('/v3/users/me/push-subscription')).json()).subscription !== null"
    )
    turn_on(desk)
    assert desk.page.evaluate(script) is True
    desk.page.reload()
    desk.page.get_by_role("button", name=_OFF).click()
    expect(desk.page.get_by_role("button", name=_ON)).to_be_visible()
    assert desk.page.evaluate(script) is False
    assert desk.page.evaluate("localStorage.getItem('test push')") is None
    turn_on(desk)
    desk.page.get_by_role("button", name="You and your settings").click()
    desk.page.get_by_role("menuitem", name="Sign out").click()
    expect(desk.page.get_by_label("Email")).to_be_visible()
    desk.eventually(lambda: desk.page.evaluate("localStorage.getItem('test push')"), None)


def test_lost_subscription_is_renewed_when_the_desk_is_opened(desk: Desk) -> None:
    turn_on(desk)
    desk.page.evaluate(
        "async () => void (await fetch('/v3/users/me/push-subscription', { method: 'DELETE' }))"
    )
    desk.open("/desk")
    script = (
        "async () => (await (await fetch('/v3/users/me/push-subscription')).json()).subscription !== null"
    )
    desk.eventually(lambda: desk.page.evaluate(script), True)


def test_browser_without_its_push_service_says_so(desk: Desk) -> None:
    desk.page.evaluate("window.pushFails = true")
    desk.page.get_by_role("button", name=_ON).click()
    expect(desk.page.locator(".toasts")).to_contain_text("The browser could not reach its push service.")
    expect(desk.page.get_by_role("button", name=_ON)).to_be_visible()


def test_browser_without_push_says_so_at_390_pixels(desk: Desk) -> None:
    desk.context.add_init_script("delete window.PushManager;")
    desk.page.set_viewport_size({"width": 390, "height": 800})
    desk.page.reload()
    expect(desk.page.get_by_text("add the desk to the Home Screen first")).to_be_visible()
    assert desk.page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(desk.page.get_by_role("button", name=_ON)).to_have_count(0)
