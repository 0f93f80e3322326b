"""An agent sees customers and work; webhooks and the console belong to those who run the service."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.web.harness.axe import findings
from tests.web.harness.customer import Customer, channel_of
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.keyboard import Keys
from tests.web.harness.stage import PASSWORD, Stage, staged

QUICK = {"DESKWIRE_WEBHOOK_RETRY_AFTER_S": "0.1,0.1,0.1"}
PAGES = {
    "Tickets", "Contacts", "Scheduled", "Surveys", "Reports", "Memory", "Snippets", "Your account", "Notifications", "Your sessions",
}  # fmt: skip


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A service without retry delays, shared by these tests; each has its own contacts."""
    with staged(tmp_path_factory.mktemp("agents"), **QUICK) as stage:
        yield stage


@pytest.fixture(scope="module")
def grace(stage: Stage) -> str:
    """The email address of an agent."""
    return stage.person("Grace", "agent")


@pytest.fixture
def only(stage: Stage) -> Callable[[int], None]:
    """Replaces all endpoints by one that responds with a status."""

    def replace(status: int) -> None:
        for each in stage.owner.get("/webhooks").raise_for_status().json()["items"]:
            stage.owner.delete(f"/webhooks/{each['id']}").raise_for_status()
        stage.endpoint("crm", status)

    return replace


def statuses(stage: Stage, conversation: dict[str, Any]) -> set[str]:
    """Return the statuses of the deliveries of a conversation."""
    path = f"/conversations/{conversation['id']}/deliveries"
    return {each["status"] for each in stage.owner.get(path).raise_for_status().json()["items"]}


def visible(desk: Desk, name: str) -> float:
    """Return the opacity of the words of the last receipts."""
    return float(desk.log.locator(name).last.evaluate("each => getComputedStyle(each).opacity"))


@pytest.mark.journey
def test_agent_sees_one_tick_and_no_endpoints(
    desk: Desk, stage: Stage, grace: str, only: Callable[[int], None]
) -> None:
    only(200)
    conversation = stage.converse("ticked", "Where is it?", name="Tia Ticked")
    desk.sign_in(grace, PASSWORD)
    desk.converse("Tia Ticked")
    desk.reply("On its way.")
    truth = desk.log.locator(".run.out .truth").last
    expect(truth.get_by_role("img")).to_have_accessible_name("Sent")
    desk.eventually(lambda: statuses(stage, conversation), {"delivered"})
    expect(desk.log.locator(".run.in .truth")).to_have_count(0)
    expect(truth).to_have_text(re.compile(r"^\s*✓\s*Sent\s*$"))  # the words are shown with the focus
    expect(truth.locator(".tick-words")).to_be_hidden()
    truth.get_by_role("img").focus()
    expect(truth.locator(".tick-words")).to_be_visible()
    expect(desk.log).not_to_contain_text("crm")
    expect(desk.page.get_by_role("link", name="Time travel")).to_have_count(0)
    assert findings(desk.page) == []


def test_failing_endpoint_is_for_operators_only(
    window: Callable[..., Desk], stage: Stage, grace: str, only: Callable[[int], None]
) -> None:
    only(503)
    conversation = stage.converse("mute", "Hello!", name="Mia Mute")
    agent, owner = window(stage), window(stage)
    agent.sign_in(grace, PASSWORD)
    agent.converse("Mia Mute")
    agent.reply("Did you get this?")
    agent.eventually(lambda: statuses(stage, conversation), {"dropped"})
    owner.sign_in()
    owner.converse("Mia Mute")
    for each in (agent, owner):
        expect(each.log.get_by_text("Not delivered to the customer")).to_be_visible()
    expect(agent.log.locator(".trouble")).to_have_count(0)
    expect(agent.log).not_to_contain_text("crm")
    expect(owner.log.locator(".trouble")).to_contain_text("not delivered to crm")


def test_operator_sees_receipts_with_pointer_and_keyboard(
    desk: Desk, stage: Stage, only: Callable[[int], None]
) -> None:
    only(200)
    stage.converse("seen", "Anyone?", name="Sia Seen")
    desk.sign_in()
    desk.converse("Sia Seen")
    desk.reply("We are.")
    why = desk.log.locator(".run.out .why").last
    expect(why).to_contain_text(re.compile(r"Saved in \d+ ms\s*→ Delivered to crm"))
    desk.page.mouse.move(2, 2)
    assert visible(desk, ".why-words") == 0
    desk.log.locator(".run.out").last.hover()
    expect(why.locator(".why-words")).to_have_css("opacity", "1")
    desk.page.mouse.move(2, 2)
    expect(why.locator(".why-words")).to_have_css("opacity", "0")
    Keys(desk.page).to(why, "Shift+Tab")
    expect(why.locator(".why-words")).to_have_css("opacity", "1")
    desk.page.keyboard.press("Enter")
    expect(desk.page.get_by_role("link", name="Delivery log")).to_be_visible()
    desk.page.keyboard.press("Escape")
    assert findings(desk.page) == []


def test_reply_that_no_browser_has_says_so_after_a_minute(desk: Desk, stage: Stage, grace: str) -> None:
    channel = channel_of(stage, "Away")
    customer = Customer(stage, channel, sub="away", name="Ana Away")
    conversation = customer.start("I must go.")
    desk.page.clock.install()
    desk.sign_in(grace, PASSWORD)
    desk.converse("Ana Away")
    desk.reply("Come back soon.")
    truth = desk.log.locator(".run.out .truth").last
    expect(truth.get_by_role("img")).to_be_visible()
    expect(truth.get_by_text("Not yet in the customer's browser", exact=True)).to_have_count(0)
    desk.page.clock.run_for(80_000)
    expect(truth.get_by_text("Not yet in the customer's browser", exact=True)).to_be_visible()
    customer.confirm(conversation, reached=customer.newest(conversation)["id"])
    expect(truth.get_by_text("Not yet in the customer's browser", exact=True)).to_have_count(0)


def links(desk: Desk) -> Locator:
    """The links of the navigation, after its groups are open."""
    navigation = desk.page.get_by_role("navigation", name="Views")
    for group in ("Settings",):
        summary = navigation.locator("details:not([open]) > summary", has_text=group)
        if summary.count():
            summary.click()
    return navigation.locator(".places a")


def test_navigation_of_an_agent_has_the_pages_of_its_role(desk: Desk, stage: Stage, grace: str) -> None:
    desk.sign_in(grace, PASSWORD)
    expect(links(desk)).to_have_count(len(PAGES))
    assert set(links(desk).all_inner_texts()) == PAGES
    desk.page.keyboard.press("Control+k")
    desk.page.keyboard.type("live log")
    expect(desk.page.get_by_role("option")).to_have_count(0)


def test_own_role_decides_page_by_page(desk: Desk, stage: Stage) -> None:
    (organisation,) = stage.owner.get("/organisations").raise_for_status().json()["items"]
    path = f"/organisations/{organisation['id']}"
    permissions = ["conversations.read", "tickets.read", "webhooks.manage", "translations.read"]
    body = {"name": "Integrator", "permissions": permissions}
    role = stage.owner.post(f"{path}/roles", json=body).raise_for_status().json()
    desk.sign_in(stage.person("Ines", role["id"]), PASSWORD)
    expect(links(desk).filter(has_text="Time travel")).to_be_visible()
    assert set(links(desk).all_inner_texts()) == {
        "Tickets", "Reports", "Health", "Webhooks", "Stream consumers", "Live log", "Time travel",
        "Your account", "Notifications", "Your sessions",
    }  # fmt: skip
    assert desk.remaining() == []
    desk.tolerated.append(NETWORK)  # a call of the old page may be on its way
    stage.owner.patch(f"{path}/roles/{role['id']}", json={"permissions": permissions[:1]}).raise_for_status()
    desk.page.reload()
    expect(links(desk).filter(has_text="Reports")).to_be_visible()
    assert set(links(desk).all_inner_texts()) == {"Reports", "Your account", "Notifications", "Your sessions"}


def test_role_that_reads_no_conversations_starts_on_its_first_page(desk: Desk, stage: Stage) -> None:
    (organisation,) = stage.owner.get("/organisations").raise_for_status().json()["items"]
    path = f"/organisations/{organisation['id']}"
    body = {"name": "Researcher", "permissions": ["surveys.read"]}
    role = stage.owner.post(f"{path}/roles", json=body).raise_for_status().json()
    desk.start_session(stage.person("Rosa", role["id"]), PASSWORD)
    desk.open()
    heading = desk.page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Surveys")
    pages = {"Surveys", "Your account", "Notifications", "Your sessions"}
    desk.eventually(lambda: set(links(desk).all_inner_texts()), pages)
    expect(desk.page.get_by_role("link", name="Mine")).to_have_count(0)
    expect(desk.page.get_by_role("button", name=re.compile("Connection"))).to_have_count(0)
    desk.open("/desk/c/cnv_01h00000000000000000000000")
    expect(desk.page.get_by_text("conversations.read")).to_be_visible()
    desk.page.get_by_role("link", name="Go to the first page").click()
    expect(heading).to_have_text("Surveys")
    assert desk.remaining() == []
    stage.owner.patch(
        f"{path}/roles/{role['id']}", json={"permissions": ["conversations.read"]}
    ).raise_for_status()
    desk.open("/desk/inbox/all")
    expect(desk.page.get_by_role("button", name=re.compile("Connection: Live"))).to_be_visible()


@pytest.mark.parametrize("height", [900, 560])
def test_connection_and_user_stay_in_sight(window: Callable[..., Desk], stage: Stage, height: int) -> None:
    desk = window(stage, viewport={"width": 1440, "height": height})
    known = len(stage.owner.get("/teams").raise_for_status().json()["items"])
    for number in range(known, 9):
        stage.owner.post("/teams", json={"name": f"Team {number}"}).raise_for_status()
    desk.sign_in()
    desk.page.get_by_text("Settings", exact=True).click()
    expect(desk.page.get_by_role("link", name="Audit trail")).to_be_attached()
    expect(desk.page.get_by_role("button", name=re.compile("Connection: Live"))).to_be_in_viewport(ratio=1)
    expect(desk.page.get_by_role("button", name=re.compile("You and your settings"))).to_be_in_viewport(
        ratio=1
    )
    desk.page.get_by_role("link", name="Audit trail").click()
    expect(desk.page.get_by_role("heading", level=1, name="Audit trail")).to_be_visible()
    expect(desk.page.get_by_role("button", name=re.compile("Connection: Live"))).to_be_in_viewport(ratio=1)
