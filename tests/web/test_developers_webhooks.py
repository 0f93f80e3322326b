"""Webhook pages: reasons of failed deliveries, recovery and replay."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from playwright.sync_api import Locator, Page, expect

from deskwire.storage.sqlite.directory import FILE_NAME
from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.endpoint import Endpoint
from tests.web.harness.stage import PASSWORD, Stage, staged

QUICK = {"DESKWIRE_WEBHOOK_RETRY_AFTER_S": "0.1,0.1,0.1"}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A service without retry delays, shared by these tests."""
    with staged(tmp_path_factory.mktemp("why"), **QUICK) as stage:
        yield stage


def id_of(stage: Stage, name: str) -> str:
    """Return the id of the endpoint of this description."""
    items = stage.owner.get("/webhooks").raise_for_status().json()["items"]
    return next(str(each["id"]) for each in items if each["description"] == name)


def log_of(page: Page) -> Locator:
    return page.get_by_role("region", name="Deliveries").get_by_role("row")


def failing(stage: Stage, name: str) -> Endpoint:
    """Replace all endpoints by one that responds with 503."""
    for each in stage.owner.get("/webhooks").raise_for_status().json()["items"]:
        stage.owner.delete(f"/webhooks/{each['id']}").raise_for_status()
    return stage.endpoint(name, 503)


def dropped(stage: Stage, name: str, desk: Desk) -> None:
    """Wait until all deliveries of the endpoint were dropped."""
    path = f"/webhooks/{id_of(stage, name)}/deliveries"
    desk.eventually(
        lambda: {each["status"] for each in stage.owner.get(path).raise_for_status().json()["items"]},
        {"dropped"},
    )


@pytest.mark.journey
def test_message_shows_a_failed_delivery_and_resends_it(desk: Desk, stage: Stage) -> None:
    crm = failing(stage, "crm")
    stage.converse("lack", "Where is my order?", name="Lena Lack")
    dropped(stage, "crm", desk)
    crm.status = 200
    desk.sign_in()
    desk.converse("Lena Lack")
    desk.log.get_by_role("button", name=re.compile("crm ✗")).click()
    receipts = desk.page.get_by_label("Delivery of this message")
    expect(receipts).to_contain_text("Not delivered to crm")
    expect(receipts).to_contain_text("answered 503")
    receipts.get_by_role("button", name="Send again").click()
    expect(desk.log.get_by_role("button", name=re.compile(r"Delivered to crm"))).to_be_visible()
    assert "Where is my order?" in [each["data"].get("message", {}).get("text") for each in crm.events]


def test_health_agrees_with_a_failing_endpoint(desk: Desk, stage: Stage) -> None:
    """Health, the list, and the endpoint's page agree, while it fails and after it recovers."""
    crm = failing(stage, "crm")
    stage.converse("health", "Is anybody there?")
    dropped(stage, "crm", desk)
    desk.sign_in()
    for path in ("/desk/webhooks", f"/desk/webhooks/{id_of(stage, 'crm')}", "/desk/console"):
        desk.open(path)
        expect(desk.page.get_by_text("failing", exact=True)).to_be_visible()
        expect(desk.page.get_by_text(re.compile("No attempt has succeeded since"))).to_be_visible()
        expect(desk.page.get_by_text("healthy", exact=True)).to_have_count(0)
    expect(desk.page.get_by_role("status").filter(has_text="Some deliveries are failing.")).to_be_visible()
    expect(desk.page.get_by_text("All deliveries succeed.")).to_have_count(0)
    desk.open("/desk/webhooks")
    expect(desk.page.get_by_role("row").filter(has_text="crm")).to_contain_text("0.0 %")
    crm.status = 200
    path = f"/webhooks/{id_of(stage, 'crm')}"
    stage.owner.post(f"{path}/test").raise_for_status()  # after a success, all missed events are resent
    desk.eventually(lambda: stage.owner.get(path).json()["healthy"], True)
    desk.open("/desk/console")
    expect(desk.page.get_by_text("All deliveries succeed.")).to_be_visible()
    expect(desk.page.get_by_text("healthy", exact=True)).to_be_visible()
    desk.open("/desk/webhooks")
    expect(desk.page.get_by_text("healthy", exact=True)).to_be_visible()


def test_single_dropped_event_is_shown_by_health_and_list(desk: Desk, stage: Stage) -> None:
    crm = failing(stage, "crm")
    crm.status, crm.refuses = 200, "This one"
    stage.converse("lost", "This one is not taken.", "Another one is.")
    path = f"/webhooks/{id_of(stage, 'crm')}"
    desk.eventually(lambda: stage.owner.get(path).json()["dropped"], 1)
    stage.owner.post(f"{path}/test").raise_for_status()  # the newest attempt is a success
    desk.eventually(lambda: stage.owner.get(path).json()["healthCode"], "dropped")
    desk.sign_in()
    for page in ("/desk/webhooks", f"/desk{path}", "/desk/console"):
        desk.open(page)
        expect(desk.page.get_by_text("events lost", exact=True)).to_be_visible()
        expect(desk.page.get_by_text("1 delivery of the last 24 hours failed.")).to_be_visible()
    expect(desk.page.get_by_text("All deliveries succeed.")).to_have_count(0)


def test_delivery_log_shows_attempts_and_redelivers(desk: Desk, stage: Stage) -> None:
    crm = failing(stage, "crm")
    conversation = stage.converse("attempts", "Four attempts, please.")
    dropped(stage, "crm", desk)
    crm.status = 200
    desk.sign_in()
    desk.page.get_by_role("link", name="Webhooks").click()
    desk.page.get_by_role("link", name="crm", exact=True).click()
    expect(log_of(desk.page).filter(has_text="message.created")).to_contain_text("dropped")
    log_of(desk.page).filter(has_text="message.created").get_by_role("button").first.click()
    delivery = desk.page.get_by_role("dialog", name="Delivery")
    expect(delivery.get_by_role("listitem")).to_have_count(4)
    expect(delivery.get_by_role("listitem").first).to_contain_text("503")
    delivery.get_by_text("Event data").click()
    expect(delivery.get_by_role("region", name="Event data")).to_contain_text("Four attempts")
    expect(desk.page).to_have_url(re.compile("delivery=dlv_"))
    before = delivery.get_by_text(re.compile("^dlv_")).last.inner_text()
    delivery.get_by_role("button", name="Send again").click()
    expect(delivery.get_by_text("Repeats")).to_be_visible()
    expect(delivery.get_by_text(before)).to_be_visible()
    expect(delivery).to_contain_text("delivered")
    delivery.get_by_role("link", name=conversation["id"]).click()
    expect(desk.box).to_be_visible()


def test_delivery_log_filters_are_in_the_address(desk: Desk, stage: Stage) -> None:
    failing(stage, "crm")
    one, _ = stage.converse("filter-1", "This one."), stage.converse("filter-2", "Another one.")
    dropped(stage, "crm", desk)
    desk.sign_in()
    desk.open(f"/desk/webhooks/{id_of(stage, 'crm')}?conversation={one['id']}&type=message.created")
    expect(log_of(desk.page).filter(has_text="message.created")).to_have_count(1)
    expect(log_of(desk.page).filter(has_text="conversation.created")).to_have_count(0)
    desk.page.get_by_label("Outcome").select_option("delivered")
    expect(desk.page.get_by_text("No deliveries match these filters")).to_be_visible()
    expect(desk.page).to_have_url(re.compile("status=delivered"))
    desk.page.get_by_role("button", name="Clear filters").click()
    expect(log_of(desk.page).filter(has_text="message.created")).to_have_count(2)


def test_recovery_follows_a_dry_run(desk: Desk, stage: Stage) -> None:
    crm = failing(stage, "crm")
    stage.converse("recover", "One.", "Two.")
    dropped(stage, "crm", desk)
    crm.status = 200
    sent = len(crm.events)
    desk.sign_in()
    desk.open(f"/desk/webhooks/{id_of(stage, 'crm')}")
    desk.page.get_by_role("button", name="Recover…").click()
    dialog = desk.page.get_by_role("dialog", name="Recover failed deliveries")
    expect(dialog).to_contain_text("3 events would be sent.")
    assert len(crm.events) == sent
    dialog.get_by_role("button", name="Send 3 events again").click()
    expect(log_of(desk.page).filter(has_text="delivered")).to_have_count(3)
    expect(dialog).to_have_count(0)


def test_keyboard_replays_a_conversation(desk: Desk, stage: Stage) -> None:
    crm = failing(stage, "crm")
    crm.status = 200
    conversation = stage.converse("replay", "Again, please.")
    desk.eventually(lambda: len(crm.events), 2)
    desk.sign_in()
    desk.open(f"/desk/webhooks/{id_of(stage, 'crm')}?conversation={conversation['id']}")
    expect(log_of(desk.page).filter(has_text="delivered")).to_have_count(2)
    keyboard = desk.page.keyboard
    desk.page.get_by_role("button", name="Replay…").focus()
    keyboard.press("Enter")
    dialog = desk.page.get_by_role("dialog", name="Send a conversation again")
    expect(dialog).to_contain_text("2 events would be sent.")
    expect(dialog.get_by_label("Conversation")).to_be_focused()
    send = dialog.get_by_role("button", name="Send 2 events again")
    for _ in range(8):
        keyboard.press("Tab")
        if send.evaluate("button => button === document.activeElement"):
            break
    keyboard.press("Enter")
    desk.eventually(lambda: len(crm.events), 4)
    expect(desk.page.get_by_role("button", name="Replay…")).to_be_focused()
    assert [each["sequence"] for each in crm.events[2:]] == [1, 2]


def test_endpoint_lifecycle_from_registration_to_deletion(desk: Desk, stage: Stage) -> None:
    crm = failing(stage, "first")
    crm.status = 200
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    desk.open("/desk/webhooks")
    desk.page.get_by_role("button", name="Register an endpoint").click()
    form = desk.page.get_by_role("dialog", name="Register an endpoint")
    form.get_by_label("Address").fill("ftp://nowhere.example")
    form.get_by_label("Name").fill("mirror")
    form.get_by_role("button", name="Register", exact=True).click()
    expect(form.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Address").fill(crm.url)
    form.get_by_role("button", name="Register", exact=True).click()
    shown = desk.page.get_by_role("dialog", name="Endpoint registered")
    secret = shown.get_by_role("region", name="Secret").inner_text()
    assert re.fullmatch(r"whsec_[\w-]+", secret.strip())
    shown.get_by_role("button", name="Close").click()
    desk.page.get_by_role("link", name="mirror", exact=True).click()
    expect(desk.page.get_by_role("heading", level=1, name=re.compile("mirror"))).to_be_visible()
    assert secret.strip() not in desk.page.content()
    desk.page.get_by_role("button", name="Send a test").click()
    delivery = desk.page.get_by_role("dialog", name="Delivery")
    expect(delivery).to_contain_text("webhook.test")
    expect(delivery).to_contain_text("delivered")
    delivery.get_by_role("button", name="Close").last.click()

    def choose(name: str) -> None:
        desk.page.get_by_role("button", name="More").last.click()
        desk.page.get_by_role("menuitem", name=name).click()

    choose("Replace the secret")
    desk.page.get_by_role("dialog").get_by_role("button", name="Replace the secret").click()
    expect(desk.page.get_by_role("dialog")).to_contain_text("both secrets sign")
    assert desk.page.get_by_role("region", name="Secret").inner_text().strip() != secret.strip()
    desk.page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(desk.page.get_by_text("the previous one also signs until")).to_be_visible()
    choose("Disable")
    desk.page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(desk.page.get_by_text("disabled", exact=True)).to_be_visible()
    choose("Enable")
    expect(desk.page.get_by_text("healthy", exact=True)).to_be_visible()
    choose("Delete")
    gone = desk.page.get_by_role("dialog", name="Delete")
    gone.get_by_label("Type “mirror” to confirm").fill("mirror")
    gone.get_by_role("button", name="Delete").click()
    expect(desk.page.get_by_role("heading", level=1, name="Webhooks")).to_be_visible()
    expect(desk.page.get_by_role("link", name="mirror", exact=True)).to_have_count(0)


def test_delivery_log_follows_new_deliveries(desk: Desk, stage: Stage) -> None:
    crm = failing(stage, "crm")
    desk.sign_in()
    desk.open(f"/desk/webhooks/{id_of(stage, 'crm')}")
    expect(desk.page.get_by_text("No deliveries yet")).to_be_visible()
    crm.status = 200
    stage.converse("live", "While somebody looks.")
    expect(log_of(desk.page).filter(has_text="delivered")).to_have_count(2)


@pytest.mark.parametrize("role", ["viewer", "agent"])
def test_agent_sees_neither_receipts_nor_addresses_of_endpoints(
    window: Callable[..., Desk], stage: Stage, role: str
) -> None:
    crm = failing(stage, "crm")
    stage.converse(f"role-{role}", "Who may send this?", name=f"Rolf {role}")
    desk = window(stage)
    dropped(stage, "crm", desk)
    desk.sign_in(stage.person(f"P{role}", role), PASSWORD)
    desk.view()
    desk.row(f"Rolf {role}").click()
    expect(desk.log).to_contain_text("Who may send this?")
    expect(desk.page.get_by_role("link", name=re.compile("Live log|Webhooks"))).to_have_count(0)
    expect(desk.log.get_by_role("button", name=re.compile("crm"))).to_have_count(0)
    assert crm.url not in desk.page.content()
    desk.open(f"/desk/webhooks/{id_of(stage, 'crm')}")
    expect(desk.page.get_by_text("It requires the permission webhooks.manage.")).to_be_visible()


def test_endpoint_of_another_project_is_hidden(desk: Desk, stage: Stage) -> None:
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    desk.open("/desk/webhooks/whk_00000000000000000000000000")
    expect(desk.page.get_by_text("Not found")).to_be_visible()


def test_axe_finds_nothing_on_webhooks(window: Callable[..., Desk], stage: Stage) -> None:
    failing(stage, "crm")
    stage.converse("axe", "Look at me.")
    desk = window(stage)
    dropped(stage, "crm", desk)

    desk.sign_in()
    desk.open("/desk/webhooks")
    expect(desk.page.get_by_role("link", name="crm", exact=True)).to_be_visible()
    assert findings(desk.page) == []
    desk.open(f"/desk/webhooks/{id_of(stage, 'crm')}")
    expect(log_of(desk.page).filter(has_text="dropped").first).to_be_visible()
    expect(desk.page.locator("figure.chart .drawing")).to_be_visible()
    assert findings(desk.page) == []
    desk.page.get_by_role("button", name="Recover…").click()
    expect(desk.page.get_by_role("dialog")).to_contain_text("would be sent")
    assert findings(desk.page) == []
    desk.page.keyboard.press("Escape")
    log_of(desk.page).filter(has_text="dropped").get_by_role("button").first.click()
    expect(desk.page.get_by_role("dialog", name="Delivery").get_by_role("listitem")).to_have_count(4)
    assert findings(desk.page) == []


def test_endpoint_fits_320_pixels(window: Callable[..., Desk], stage: Stage) -> None:
    failing(stage, "crm")
    stage.converse("narrow", "Narrow.")
    desk = window(stage, viewport={"width": 320, "height": 640})
    desk.sign_in()
    desk.open(f"/desk/webhooks/{id_of(stage, 'crm')}")
    expect(log_of(desk.page).nth(1)).to_be_visible()
    assert desk.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


# A log of 30,000 rows, inserted while the service is stopped, because only its writer assigns positions.
_LONG_LOG = """
WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 30000)
INSERT INTO deliveries (position, id, endpoint, event, lane, previous, status, attempts, due_at, created_at, ended_at,
    event_id, type, sequence)
SELECT d.position + n, substr(d.id, 1, 20) || printf('%010d', n), endpoint, event, lane, previous, 'delivered', attempts, due_at,
    created_at, created_at, event_id, 'message.created', sequence
FROM (SELECT * FROM deliveries ORDER BY position DESC LIMIT 1) AS d, n
"""


def test_search_in_a_long_log_continues_and_shows_its_progress(desk: Desk, stage: Stage) -> None:
    failing(stage, "crm").status = 200
    stage.converse("long", "Once, long ago.")
    path = f"/webhooks/{id_of(stage, 'crm')}/deliveries"
    desk.eventually(lambda: {each["status"] for each in stage.owner.get(path).json()["items"]}, {"delivered"})
    stage.kill()
    with closing(sqlite3.connect(stage.server.directory / "data" / FILE_NAME)) as database, database:
        database.execute(_LONG_LOG)
    stage.start()
    desk.sign_in()
    asked: list[str] = []
    desk.page.on("request", lambda request: asked.append(request.url) if "type=conv" in request.url else None)
    desk.open(f"/desk/webhooks/{id_of(stage, 'crm')}?type=conversation.created")
    expect(log_of(desk.page).filter(has_text="conversation.created")).to_have_count(1)
    assert len([url for url in asked if "cursor=" in url]) >= 3
    desk.page.get_by_label("Event").select_option("conversation.closed")
    expect(desk.page.get_by_text("No deliveries match these filters")).to_be_visible()
    desk.page.route("**/deliveries?*cursor=*", lambda route: None)  # the second page never arrives
    desk.page.get_by_label("Event").select_option("conversation.created")
    expect(desk.page.get_by_text("Searching older entries")).to_be_visible()
    expect(desk.page.get_by_text("Searched back to today")).to_be_visible()
