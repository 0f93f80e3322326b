"""Access of members: invitations, links, sessions and factors in the desk, and changes while pages are open."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.sign_in import enrolled, signed_in, staged_at_localhost
from tests.web.harness.stage import PASSWORD, Stage
from tests.web.test_one_time_links import OWN, organisation

MEMBERS = "/desk/settings/members"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A service shared by these tests."""
    with staged_at_localhost(tmp_path_factory.mktemp("members")) as stage:
        yield stage


@pytest.fixture
def admin(desk: Desk) -> Desk:
    """The owner, on the page of members."""
    desk.sign_in()
    desk.open(MEMBERS)
    expect(desk.page.get_by_role("heading", level=1, name="Members")).to_be_visible()
    return desk


def member(stage: Stage, email: str) -> str:
    """Return the path of a member."""
    found = stage.owner.get(f"{organisation(stage)}/members", params={"limit": "100"}).json()["items"]
    return f"{organisation(stage)}/members/{next(each['id'] for each in found if each['email'] == email)}"


def pick(desk: Desk, of: str, item: str) -> None:
    """Choose an item of a row's menu."""
    desk.page.get_by_role("button", name=f"Actions for {of}", exact=True).click()
    desk.page.get_by_role("menuitem", name=item).click()


def shown_link(dialog: Locator) -> str:
    """Return the link in a dialog, and close the dialog."""
    link: str = dialog.get_by_role("region", name="One-time link").inner_text().strip()
    dialog.get_by_role("button", name="Done").click()
    expect(dialog).to_have_count(0)
    return link


@pytest.mark.journey
def test_member_is_invited_renewed_and_joins(admin: Desk, window: Callable[..., Desk]) -> None:
    page, email = admin.page, "ina@invited.example"
    page.get_by_role("button", name="Invite a member").click()
    form = page.get_by_role("dialog", name="Invite a member")
    form.get_by_label("Email").fill(email)
    form.get_by_label("Name").fill("Ina")
    form.get_by_label("Role").select_option("viewer")
    form.get_by_role("button", name="Invite").click()
    dialog = page.get_by_role("dialog", name=f"Invitation of {email}")
    expect(dialog).to_contain_text(f"Share this link with {email}")
    page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    first = shown_link(dialog)
    row = page.get_by_role("row").filter(has_text=email)
    expect(row).to_contain_text("Viewer")
    assert urlsplit(first).fragment not in page.content()
    pick(admin, email, "New link")
    second = shown_link(dialog)
    assert second != first
    other = window(admin.stage)
    other.tolerated.append(NETWORK)
    other.page.goto(first)
    expect(other.page.get_by_role("heading", level=1, name="This link doesn't work")).to_be_visible()
    other.page.goto("about:blank")
    other.page.goto(second)
    expect(other.page.get_by_label("Your name")).to_have_value("Ina")
    for field in ("Password", "Confirm password"):
        other.page.get_by_label(field, exact=True).fill(OWN)
    other.page.get_by_role("button", name="Join").click()
    signed_in(other)
    page.reload()
    joined = page.get_by_role("table", name="Members").get_by_role("row").filter(has_text=email)
    expect(joined).to_contain_text("Viewer")
    expect(page.get_by_text("No open invitations.")).to_be_visible()


@pytest.mark.journey
def test_invitation_is_revoked(admin: Desk) -> None:
    path, email = f"{organisation(admin.stage)}/invitations", "rev@invited.example"
    admin.stage.owner.post(path, json={"email": email, "role": "agent"}).raise_for_status()
    admin.page.reload()
    pick(admin, email, "Revoke")
    admin.page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(admin.page.get_by_role("row").filter(has_text=email)).to_have_count(0)


def test_second_invitation_of_an_address_is_refused_in_words(admin: Desk) -> None:
    admin.tolerated.append(NETWORK)
    path, email = f"{organisation(admin.stage)}/invitations", "twice@invited.example"
    admin.stage.owner.post(path, json={"email": email, "role": "agent"}).raise_for_status()
    admin.page.get_by_role("button", name="Invite a member").click()
    form = admin.page.get_by_role("dialog", name="Invite a member")
    form.get_by_label("Email").fill(email)
    form.get_by_role("button", name="Invite").click()
    expect(form.get_by_role("alert")).to_be_visible()


def test_link_for_a_new_password_replaces_the_carried_one(admin: Desk, window: Callable[..., Desk]) -> None:
    email = admin.stage.person("Lia", "agent")
    admin.page.reload()
    pick(admin, "Lia", "Link for a new password")
    admin.page.get_by_role("dialog").get_by_role("button", name="Create the link").click()
    link = shown_link(admin.page.get_by_role("dialog", name="One-time link for Lia"))
    other = window(admin.stage)
    other.page.goto(link)
    expect(other.page.get_by_label("Email")).to_have_value(email)
    for field in ("Password", "Confirm password"):
        other.page.get_by_label(field, exact=True).fill(OWN)
    other.page.get_by_role("button", name="Save and sign in").click()
    signed_in(other)


def test_sessions_of_a_member_are_listed_and_end_one_by_one(admin: Desk, window: Callable[..., Desk]) -> None:
    email = admin.stage.person("Sam", "agent")
    first, second = window(admin.stage), window(admin.stage)
    for each in (first, second):
        each.tolerated.append(NETWORK)
        each.sign_in(email, PASSWORD)
    admin.page.reload()
    pick(admin, "Sam", "Sessions")
    dialog = admin.page.get_by_role("dialog", name="Sessions of Sam")
    rows = dialog.get_by_role("row").filter(has_text="Password")
    expect(rows).to_have_count(2)
    rows.first.get_by_role("button", name="End").click()
    admin.page.get_by_role("dialog", name="End this session").get_by_role(
        "button", name="End", exact=True
    ).click()
    expect(rows).to_have_count(1)
    again = [each.page.get_by_role("dialog", name="Sign in again") for each in (first, second)]
    admin.eventually(lambda: sum(each.count() for each in again), 1)
    dialog.get_by_role("button", name="End all sessions").click()
    ends = admin.page.get_by_role("dialog", name="End all sessions")
    ends.get_by_role("button", name="End", exact=True).click()
    expect(dialog.get_by_text("No sessions")).to_be_visible()
    for shown in again:
        expect(shown).to_be_visible()


def test_second_factor_of_a_member_is_reset(admin: Desk, window: Callable[..., Desk]) -> None:
    email = admin.stage.person("Resi", "agent")
    enrolled(admin.stage, email)
    admin.page.reload()
    pick(admin, "Resi", "Reset second factor")
    dialog = admin.page.get_by_role("dialog", name="Reset second factor")
    expect(dialog).to_contain_text("Be sure that it is Resi who asks")
    dialog.get_by_role("button", name="Reset", exact=True).click()
    expect(dialog).to_have_count(0)
    other = window(admin.stage)
    other.sign_in(email, PASSWORD)


def test_removed_member_sees_nothing_more_in_all_tabs(desk: Desk, stage: Stage) -> None:
    email = stage.person("Gero", "agent")
    stage.converse("ada", "I want my parrot back", name="Ada Secretson")
    desk.tolerated.append(NETWORK)
    desk.sign_in(email, PASSWORD)
    desk.converse("Ada Secretson")
    expect(desk.said("I want my parrot back")).to_be_visible()
    other = desk.context.new_page()
    desk.watch(other)
    other.goto(f"{stage.url}/desk/contacts")
    expect(other.get_by_role("link", name="Ada Secretson")).to_be_visible()
    stage.owner.delete(member(stage, email)).raise_for_status()
    for page in (desk.page, other):
        expect(
            page.get_by_role("heading", level=1, name=re.compile("not a member|don't have access"))
        ).to_be_visible()
        expect(page.get_by_text("Ada Secretson")).to_have_count(0)
        assert "parrot" not in page.content()


def test_page_follows_a_role_that_changes_while_it_is_open(desk: Desk, stage: Stage) -> None:
    email = stage.person("Rolle", "admin")
    desk.tolerated.append(NETWORK)
    desk.sign_in(email, PASSWORD)
    desk.open("/desk/settings/keys")
    page = desk.page
    page.get_by_role("button", name="New server key").click()
    page.get_by_role("dialog").get_by_label("Label").fill("too late")
    stage.owner.patch(member(stage, email), json={"role": "viewer"}).raise_for_status()
    expect(page.get_by_text("Your role can't open this page")).to_be_visible()
    expect(page.get_by_role("button", name="New server key")).to_have_count(0)
    expect(page.get_by_role("link", name="Server keys")).to_have_count(0)
    stage.owner.patch(member(stage, email), json={"role": "admin"}).raise_for_status()
    expect(page.get_by_role("button", name="New server key")).to_be_visible()


def test_refused_call_shows_the_new_role_where_the_stream_is_cut(desk: Desk, stage: Stage) -> None:
    email = stage.person("Tauber", "admin")
    desk.tolerated.append(NETWORK)
    desk.sign_in(email, PASSWORD)
    desk.page.add_init_script("delete globalThis.SharedWorker")  # so that the page opens the stream itself
    desk.page.route("**/v3/stream**", lambda route: route.abort())
    desk.open("/desk/settings/keys")
    desk.page.get_by_role("button", name="New server key").click()
    desk.page.get_by_role("dialog").get_by_label("Label").fill("refused")
    stage.owner.patch(member(stage, email), json={"role": "viewer"}).raise_for_status()
    desk.page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(desk.page.get_by_text("Your role can't open this page")).to_be_visible()


def test_rules_of_the_organisation_are_saved(admin: Desk, stage: Stage) -> None:
    admin.tolerated.append(NETWORK)
    admin.open("/desk/settings/organisation")
    page = admin.page
    page.get_by_label("Sign out after hours without use").fill("1.5")
    page.get_by_label("Sign out after hours at the latest").fill("12")
    page.get_by_role("button", name="Save these rules").click()
    expect(page.locator(".toasts")).to_contain_text("Organisation saved.")
    kept = stage.owner.get(organisation(stage)).json()
    assert (kept["sessionIdleS"], kept["sessionMaxS"], kept["requireSecondFactor"]) == (5400, 43_200, False)
    page.get_by_label("Sign out after hours without use").fill("")
    page.get_by_label("Sign out after hours at the latest").fill("")
    page.get_by_role("button", name="Save these rules").click()
    admin.eventually(lambda: stage.owner.get(organisation(stage)).json()["sessionIdleS"], None)
    page.get_by_label("Require a second factor").check()
    page.get_by_role("button", name="Save these rules").click()
    expect(page.get_by_role("alert").first).to_be_visible()  # the owner has none, and would be locked out
    page.get_by_label("Name", exact=True).fill("Renamed Ltd")
    page.get_by_role("button", name="Save changes").click()
    admin.eventually(lambda: stage.owner.get(organisation(stage)).json()["name"], "Renamed Ltd")


def test_key_that_ends_within_a_week_is_named(desk: Desk, stage: Stage) -> None:
    path = f"/projects/{stage.demo['projectId']}/keys"
    soon = (datetime.now(UTC) + timedelta(days=3)).isoformat()
    stage.owner.post(path, json={"label": "old shop", "expiresAt": soon}).raise_for_status()
    desk.sign_in()
    desk.open("/desk/settings/keys")
    page = desk.page
    expect(page.get_by_role("status").filter(has_text="within a week: old shop")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="old shop")).to_contain_text("soon")
    page.get_by_role("button", name="New server key").click()
    form = page.get_by_role("dialog", name="New server key")
    form.get_by_label("Label").fill("new shop")
    form.get_by_label("Expires").fill("2099-01-02T03:04")
    form.get_by_role("button", name="Create").click()
    page.get_by_role("dialog", name="The server key new shop").get_by_role("button", name="Close").click()
    expect(page.get_by_role("row").filter(has_text="new shop")).to_contain_text("2099")


def test_axe_finds_nothing_in_the_dialogs_of_members_at_390_pixels(
    window: Callable[..., Desk], stage: Stage
) -> None:
    desk = window(stage, viewport={"width": 390, "height": 800})
    name = "Axel"
    stage.person(name, "agent")
    desk.sign_in()
    problems = {}

    def look(where: str) -> None:
        if found := findings(desk.page):
            problems[where] = found
        if desk.page.evaluate("document.documentElement.scrollWidth - innerWidth") > 0:
            problems[f"{where}, sideways"] = ["too wide"]

    desk.open(MEMBERS)
    for item in ("Sessions", "Link for a new password", "Reset second factor"):
        pick(desk, name, item)
        expect(desk.page.get_by_role("dialog")).to_be_visible()
        look(item)
        desk.page.keyboard.press("Escape")
        expect(desk.page.get_by_role("dialog")).to_have_count(0)
    pick(desk, name, "Link for a new password")
    desk.page.get_by_role("dialog").get_by_role("button", name="Create the link").click()
    expect(desk.page.get_by_role("region", name="One-time link")).to_be_visible()
    look("link")
    desk.open("/desk/settings/organisation")
    expect(desk.page.get_by_role("button", name="Save these rules")).to_be_visible()
    look("organisation")
    assert problems == {}
