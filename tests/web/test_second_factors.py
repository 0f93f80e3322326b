"""Second factors: their set-up, the second step of a sign-in, and organisations that require one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk, opened
from tests.web.harness.keyboard import Keys
from tests.web.harness.sign_in import (
    App,
    enrolled,
    fill_sign_in,
    signed_in,
    staged_at_localhost,
    virtual_passkeys,
)
from tests.web.harness.stage import PASSWORD, Stage

ACCOUNT = "/desk/settings/account"
CODE = "Code from your authenticator app"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A service shared by these tests; each has its own person."""
    with staged_at_localhost(tmp_path_factory.mktemp("factors")) as stage:
        yield stage


def confirm(page: Page, label: str, value: str) -> None:
    """Fill in the field of the second step, and send it."""
    page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Confirm").click()


def set_up_app(page: Page) -> tuple[App, list[str]]:
    """Set up an authenticator app on the page of the account; return it with the recovery codes."""
    page.get_by_role("button", name="Set up an app").click()
    dialog = page.get_by_role("dialog", name="Set up an app")
    image = dialog.get_by_role("img", name="QR code for your authenticator app")
    expect(image).to_be_visible()
    assert image.evaluate("each => each.complete && each.naturalWidth > 50")
    app = App(dialog.get_by_role("region", name="Secret").inner_text().strip())
    confirm_in = dialog.get_by_label(CODE)
    confirm_in.fill("12345")
    dialog.get_by_role("button", name="Confirm").click()
    expect(dialog.get_by_role("alert").or_(dialog.locator("[aria-invalid=true]")).first).to_be_visible()
    confirm_in.fill(app.code())
    dialog.get_by_role("button", name="Confirm").click()
    shown = page.get_by_role("dialog", name="Your recovery codes")
    codes = shown.get_by_role("region", name="Recovery codes").inner_text().split()
    assert len(codes) == len(set(codes)) == 10
    page.keyboard.press("Escape")
    expect(shown).to_be_visible()
    with page.expect_download() as download:
        shown.get_by_role("button", name="Download").click()
    assert Path(download.value.path()).read_text().split() == codes
    shown.get_by_role("button", name="I saved the codes").click()
    expect(shown).to_have_count(0)
    return app, codes


def sign_out(page: Page) -> None:
    """Sign out by the menu."""
    page.get_by_role("button", name="You and your settings").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_label("Email")).to_be_visible()


@pytest.mark.journey
def test_app_is_set_up_and_its_codes_sign_in_once_each(desk: Desk, stage: Stage) -> None:
    email = stage.person("Anna", "agent")
    desk.tolerated.append(NETWORK)
    desk.sign_in(email, PASSWORD)
    desk.open(ACCOUNT)
    app, codes = set_up_app(desk.page)
    expect(desk.page.get_by_text("10 codes left")).to_be_visible()
    assert not any(each in desk.page.content() for each in codes)
    sign_out(desk.page)
    fill_sign_in(desk, email)
    step = desk.page.get_by_label(CODE)
    expect(step).to_be_focused()
    assert "deskwire" not in {each["name"] for each in desk.context.cookies()}
    confirm(desk.page, CODE, "abc")
    expect(desk.page.get_by_role("alert")).to_contain_text("This code is wrong or was used before")
    expect(step).to_be_focused()
    code = app.code()
    confirm(desk.page, CODE, code)
    signed_in(desk)
    sign_out(desk.page)
    fill_sign_in(desk, email)
    confirm(desk.page, CODE, code)
    expect(desk.page.get_by_role("alert")).to_contain_text("wrong or was used before")
    desk.page.get_by_role("button", name="Use a recovery code").click()
    confirm(desk.page, "Recovery code", f" {codes[0].upper()} ")
    signed_in(desk)
    desk.open(ACCOUNT)
    expect(desk.page.get_by_text("9 codes left")).to_be_visible()


def test_used_recovery_code_is_refused(desk: Desk, stage: Stage) -> None:
    email = stage.person("Rolf", "agent")
    _, codes = enrolled(stage, email)
    desk.tolerated.append(NETWORK)
    for number in range(2):
        fill_sign_in(desk, email)
        desk.page.get_by_role("button", name="Use a recovery code").click()
        confirm(desk.page, "Recovery code", codes[0])
        if number == 0:
            signed_in(desk)
            sign_out(desk.page)
    expect(desk.page.get_by_role("alert")).to_have_text("This recovery code is wrong or was used before.")


def test_five_wrong_codes_end_the_step(desk: Desk, stage: Stage) -> None:
    email = stage.person("Otto", "agent")
    app, _ = enrolled(stage, email)
    desk.tolerated.append(NETWORK)
    fill_sign_in(desk, email)
    for _ in range(5):
        confirm(desk.page, CODE, "12345")
        expect(desk.page.get_by_role("alert")).to_be_visible()
    confirm(desk.page, CODE, app.code())
    expect(desk.page.get_by_role("alert")).to_contain_text("Sign in again.")
    expect(desk.page.get_by_label("Password", exact=True)).to_be_visible()
    expect(desk.page.get_by_role("region", name="Conversations")).to_have_count(0)


def test_two_tabs_with_one_challenge_make_one_session(desk: Desk, stage: Stage) -> None:
    email = stage.person("Zwei", "agent")
    app, _ = enrolled(stage, email)
    desk.tolerated.append(NETWORK)
    challenges: list[str] = []
    fill_sign_in(desk, email)
    expect(desk.page.get_by_label(CODE)).to_be_visible()
    desk.page.on(
        "request",
        lambda sent: (
            challenges.append(sent.post_data or "") if sent.url.endswith("/session/factor") else None
        ),
    )
    code = app.code()
    desk.page.get_by_label(CODE).fill(code)
    desk.page.evaluate(PRESS_TWICE)
    signed_in(desk)
    body = re.search(r'"challenge":"([^"]+)"', challenges[0])
    assert body is not None
    again = {"challenge": body[1], "code": app.code()}
    answer = desk.context.request.post(f"{stage.url}/v3/auth/session/factor", data=again)
    assert (answer.status, answer.json()["code"]) == (401, "challenge_ended")
    sessions = desk.page.evaluate(
        "async () => (await (await fetch('/v3/users/me/sessions')).json()).items.length"
    )
    assert sessions == 1


PRESS_TWICE = (
    "() => { const form = document.querySelector('form.proof'); form.requestSubmit(); form.requestSubmit(); }"
)


def test_second_tab_follows_when_the_first_finishes_the_step(desk: Desk, stage: Stage) -> None:
    email = stage.person("Tabs", "agent")
    app, _ = enrolled(stage, email)
    desk.tolerated.append(NETWORK)
    other = desk.context.new_page()
    desk.watch(other)
    for page in (desk.page, other):
        page.goto(f"{stage.url}/desk")
        page.get_by_label("Email").fill(email)
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page.get_by_label(CODE)).to_be_visible()
    confirm(desk.page, CODE, app.code())
    signed_in(desk)
    expect(other.get_by_role("region", name="Conversations")).to_be_visible()


def test_passkey_is_added_used_as_second_step_and_removed(desk: Desk, stage: Stage) -> None:
    email = stage.person("Pass", "agent")
    virtual_passkeys(desk.page)
    desk.sign_in(email, PASSWORD)
    page = desk.page
    desk.open(ACCOUNT)
    page.get_by_role("button", name="Add a passkey").click()
    dialog = page.get_by_role("dialog", name="Add a passkey")
    dialog.get_by_label("Name").fill("<b>Laptop</b>")
    dialog.get_by_role("button", name="Add a passkey").click()
    page.get_by_role("dialog", name="Your recovery codes").get_by_role("button", name="I saved").click()
    row = page.get_by_role("row").filter(has_text="<b>Laptop</b>")
    expect(row).to_contain_text("never")
    page.get_by_role("button", name="Add a passkey").click()
    dialog.get_by_label("Name").fill("Again")
    dialog.get_by_role("button", name="Add a passkey").click()
    expect(dialog.get_by_role("alert")).to_contain_text("This device already has a passkey")
    dialog.get_by_role("button", name="Cancel").click()
    sign_out(page)
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Confirm that it's you")).to_be_visible()
    expect(page.get_by_label(CODE)).to_have_count(0)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("button", name="You and your settings")).to_be_visible()
    desk.open(ACCOUNT)
    expect(row).not_to_contain_text("never")
    row.get_by_role("button", name="Remove").click()
    removal = page.get_by_role("dialog", name="Remove this passkey")
    expect(removal).to_contain_text("your account has only its password")
    removal.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)
    expect(page.get_by_text("Only your password protects your account.")).to_be_visible()


def test_new_recovery_codes_replace_the_old_ones(desk: Desk, stage: Stage) -> None:
    email = stage.person("Neu", "agent")
    desk.tolerated.append(NETWORK)
    desk.sign_in(email, PASSWORD)
    desk.open(ACCOUNT)
    _, old = set_up_app(desk.page)
    desk.page.get_by_role("button", name="New recovery codes").click()
    desk.page.get_by_role("dialog").get_by_role("button", name="New recovery codes").click()
    shown = desk.page.get_by_role("dialog", name="Your recovery codes")
    new = shown.get_by_role("region", name="Recovery codes").inner_text().split()
    assert len(new) == 10
    assert not set(new) & set(old)
    shown.get_by_role("button", name="I saved the codes").click()
    desk.page.get_by_role("button", name="Remove the app").click()
    desk.page.get_by_role("dialog", name="Remove the app").get_by_role(
        "button", name="Remove", exact=True
    ).click()
    expect(desk.page.get_by_role("button", name="Set up an app")).to_be_visible()
    expect(desk.page.get_by_role("button", name="New recovery codes")).to_have_count(0)


def test_organisation_that_requires_a_factor_shows_the_set_up_and_then_the_desk(
    browser: Browser, tmp_path: Path
) -> None:
    with staged_at_localhost(tmp_path) as stage, opened(browser, stage) as desk:
        email = stage.person("Lara", "agent")
        stage.converse("ada", "Hello from Ada", name="Ada")
        desk.tolerated.append(NETWORK)
        desk.sign_in(email, PASSWORD)
        desk.converse("Ada")
        desk.box.fill("Half a sentence")
        owner = stage.demo["user"]
        enrolled(stage, owner["email"], owner["password"])
        (organisation,) = stage.owner.get("/organisations").json()["items"]
        rules = {"requireSecondFactor": True}
        stage.owner.patch(f"/organisations/{organisation['id']}", json=rules).raise_for_status()
        heading = desk.page.get_by_role("heading", level=1, name="Set up a second factor")
        expect(heading).to_be_visible()  # the end of the stream shows it, without a reload
        expect(desk.page.get_by_text("Hello from Ada")).to_have_count(0)
        desk.page.reload()
        expect(heading).to_be_visible()
        assert findings(desk.page) == []
        set_up_app(desk.page)
        expect(desk.said("Hello from Ada")).to_be_visible()
        expect(desk.box).to_have_value("Half a sentence")


def test_axe_finds_nothing_in_the_steps_at_390_pixels(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, viewport={"width": 390, "height": 800})
    email = stage.person("Axel", "agent")
    desk.sign_in(email, PASSWORD)
    problems = {}

    def look(where: str) -> None:
        desk.page.evaluate("Promise.allSettled(document.getAnimations().map((each) => each.finished))")
        if found := findings(desk.page):
            problems[where] = found
        if desk.page.evaluate("document.documentElement.scrollWidth - innerWidth") > 0:
            problems[f"{where}, sideways"] = ["too wide"]

    desk.open(ACCOUNT)
    expect(desk.page.get_by_role("button", name="Set up an app")).to_be_visible()
    look("account")
    desk.page.get_by_role("button", name="Set up an app").click()
    expect(desk.page.get_by_role("img", name="QR code")).to_be_visible()
    look("QR code")
    desk.page.keyboard.press("Escape")
    enrolled(stage, email)
    desk.page.reload()
    expect(desk.page.get_by_role("button", name="Remove the app")).to_be_visible()
    look("account with an app")
    desk.context.clear_cookies()
    fill_sign_in(desk, email)
    expect(desk.page.get_by_label(CODE)).to_be_visible()
    look("second step")
    assert problems == {}


def test_second_step_works_by_keys_alone(desk: Desk, stage: Stage) -> None:
    email = stage.person("Kiki", "agent")
    app, _ = enrolled(stage, email)
    keys = Keys(desk.page)
    desk.open()
    keys.stands_at(desk.page.get_by_label("Email"))
    keys.type(email)
    keys.press("Tab")
    keys.type(PASSWORD)
    keys.press("Enter")
    keys.stands_at(desk.page.get_by_label(CODE))
    keys.type(app.code())
    keys.press("Enter")
    signed_in(desk)
