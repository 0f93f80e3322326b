"""The sign-in page shows the ways that work, says why one failed, and loses no draft over an open desk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.sockets.server_process import Server
from tests.web.harness.axe import findings
from tests.web.harness.background import Background
from tests.web.harness.desk import NETWORK, Desk, opened
from tests.web.harness.keyboard import Keys
from tests.web.harness.openid import Provider, staged_with_provider
from tests.web.harness.sign_in import fill_sign_in, signed_in, staged_at_localhost, virtual_passkeys
from tests.web.harness.stage import PASSWORD, QUICK, Stage

FAILURES = {
    "no_account": "Ask an administrator of your organisation to invite you.",
    "account_elsewhere": "Sign in with your password or a passkey.",
    "no_role": "Your company account has no role here.",
    "provider_refused": "refused the request, or it was cancelled",
    "provider_unreachable": "is not responding",
    "sign_in_expired": "took too long",
    "started_elsewhere": "Another website started the sign-in",
    "address_not_verified": "has no verified email address",
    "a_code_of_tomorrow": "The sign-in with your company account failed.",
    "<img src=x onerror=alert(1)>": "The sign-in with your company account failed.",
    "constructor": "The sign-in with your company account failed.",
}


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Provider]]:
    """A service with an OpenID provider, shared by the tests."""
    with staged_with_provider(tmp_path_factory.mktemp("company")) as both:
        yield both


@pytest.fixture(scope="module")
def stage(company: tuple[Stage, Provider]) -> Stage:
    """The service."""
    return company[0]


@pytest.fixture
def provider(company: tuple[Stage, Provider]) -> Provider:
    """The provider."""
    return company[1]


def end_sessions(stage: Stage, email: str) -> None:
    """End all sessions of a user, like an administrator."""
    (organisation,) = stage.owner.get("/organisations").json()["items"]
    members = f"/organisations/{organisation['id']}/members"
    (member,) = [each for each in stage.owner.get(members).json()["items"] if each["email"] == email]
    stage.owner.delete(f"{members}/{member['id']}/sessions").raise_for_status()


def draft_over_an_ended_session(desk: Desk, email: str, name: str) -> None:
    """Write a draft for a contact, and end the session below it."""
    desk.tolerated.append(NETWORK)
    desk.stage.converse(name, f"I am {name}", name=name)
    if desk.page.url == "about:blank":
        desk.sign_in(email, PASSWORD)
    desk.converse(name)
    desk.box.fill("Half a sentence")
    end_sessions(desk.stage, email)
    expect(desk.page.get_by_role("dialog", name="Sign in again")).to_be_visible()


@pytest.mark.journey
def test_page_has_a_button_for_each_way(desk: Desk) -> None:
    desk.open()
    page = desk.page
    expect(page.get_by_label("Email")).to_be_focused()
    expect(page.get_by_label("Password", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Continue with Example Ltd")).to_be_visible()
    expect(page.get_by_role("button", name="Use a passkey")).to_be_visible()
    page.get_by_role("button", name="Forgot your password?").click()
    expect(page.get_by_text("Ask an administrator of your organisation for a one-time link")).to_be_visible()
    page.get_by_role("button", name="Back to sign-in").click()
    expect(page.get_by_label("Email")).to_be_visible()


@pytest.mark.parametrize("code", FAILURES)
def test_failure_at_the_provider_is_a_sentence_and_leaves_the_address(desk: Desk, code: str) -> None:
    desk.page.goto(f"{desk.stage.url}/desk?signIn={code}")
    alert = desk.page.get_by_role("alert")
    expect(alert).to_contain_text(FAILURES[code])
    expect(alert.locator("img")).to_have_count(0)
    expect(desk.page).to_have_url(f"{desk.stage.url}/desk")


def test_provider_signs_in_and_leads_back_to_the_place(desk: Desk, stage: Stage, provider: Provider) -> None:
    provider.person("grace", email=stage.person("Grace", "agent"), email_verified=True)
    desk.tolerated += ["request to another origin", NETWORK]
    desk.open("/desk/settings/sessions")
    desk.page.get_by_role("button", name="Continue with Example Ltd").click()
    provider.approve(desk.page, "grace")
    expect(desk.page.get_by_role("heading", level=1, name="Your sessions")).to_be_visible()
    expect(desk.page.get_by_role("row").filter(has_text="current")).to_contain_text(
        re.compile("oidc|Example")
    )


def test_stranger_of_the_provider_reads_why_there_is_no_account(desk: Desk, provider: Provider) -> None:
    provider.person("stranger", email="stranger@elsewhere.example", email_verified=True)
    desk.tolerated += ["request to another origin", NETWORK]
    desk.open()
    desk.page.get_by_role("button", name="Continue with Example Ltd").click()
    provider.approve(desk.page, "stranger")
    expect(desk.page.get_by_role("alert")).to_contain_text("No account here belongs to your company account")
    desk.page.get_by_role("button", name="Continue with Example Ltd").click()
    provider.deny(desk.page)
    expect(desk.page.get_by_role("alert")).to_contain_text("refused the request, or it was cancelled")


@pytest.mark.journey
def test_passkey_signs_in_alone(desk: Desk, stage: Stage) -> None:
    email = stage.person("Pat", "agent")
    virtual_passkeys(desk.page)
    desk.sign_in(email, PASSWORD)
    desk.open("/desk/settings/account")
    desk.page.get_by_role("button", name="Add a passkey").click()
    dialog = desk.page.get_by_role("dialog", name="Add a passkey")
    dialog.get_by_label("Name").fill("Pat's laptop")
    dialog.get_by_role("button", name="Add a passkey").click()
    desk.page.get_by_role("dialog", name="Your recovery codes").get_by_role(
        "button", name="I saved the codes"
    ).click()
    expect(desk.page.get_by_role("row").filter(has_text="Pat's laptop")).to_be_visible()
    desk.page.get_by_role("button", name="You and your settings").click()
    desk.page.get_by_role("menuitem", name="Sign out").click()
    desk.page.get_by_role("button", name="Use a passkey").click()
    expect(desk.page.get_by_role("button", name="You and your settings")).to_contain_text("Pat")
    session = desk.page.evaluate("async () => (await (await fetch('/v3/auth/session')).json())")
    assert session["signedInBy"] == "passkey"


def test_cancelled_passkey_is_a_sentence(desk: Desk) -> None:
    cdp = virtual_passkeys(desk.page)
    cdp.send("WebAuthn.enable", {"enableUI": False})
    desk.open()
    desk.page.get_by_role("button", name="Use a passkey").click()  # the authenticator has none
    expect(desk.page.get_by_role("alert")).to_contain_text("No passkey was used")
    expect(desk.page.get_by_label("Email")).to_be_visible()


def test_sign_in_in_one_tab_opens_the_other(desk: Desk, stage: Stage) -> None:
    email = stage.person("Tabea", "agent")
    other = desk.context.new_page()
    desk.watch(other)
    other.goto(f"{stage.url}/desk")
    expect(other.get_by_label("Email")).to_be_visible()
    fill_sign_in(desk, email)
    signed_in(desk)
    expect(other.get_by_role("region", name="Conversations")).to_be_visible()


def test_provider_signs_in_again_and_the_draft_is_there(desk: Desk, stage: Stage, provider: Provider) -> None:
    email = stage.person("Olga", "agent")
    provider.person("olga", email=email, email_verified=True)
    desk.tolerated += ["request to another origin", NETWORK]
    draft_over_an_ended_session(desk, email, "Ada")
    desk.page.get_by_role("dialog").get_by_role("button", name="Continue with Example Ltd").click()
    provider.approve(desk.page, "olga")
    expect(desk.box).to_have_value("Half a sentence")


def test_passkey_signs_in_again_and_the_draft_is_there(desk: Desk, stage: Stage) -> None:
    email = stage.person("Ines", "agent")
    virtual_passkeys(desk.page)
    desk.sign_in(email, PASSWORD)
    desk.page.evaluate(ENROL)
    draft_over_an_ended_session(desk, email, "Bob")
    desk.page.get_by_role("dialog").get_by_role("button", name="Use a passkey").click()
    expect(desk.box).to_have_value("Half a sentence")


ENROL = """async () => {
  const call = async (path, body) => {
    const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    return (await fetch(`/v3/users/me/factors/${path}`, options)).json();
  };
  const { challenge, publicKey } = await call("passkeys/options", {});
  const options = PublicKeyCredential.parseCreationOptionsFromJSON(publicKey);
  const credential = (await navigator.credentials.create({ publicKey: options })).toJSON();
  return call("passkeys", { challenge, credential, name: "Laptop" });
}"""
"""Adds a passkey to the signed-in user."""


def test_axe_finds_nothing_on_the_sign_in_page_at_390_pixels(
    window: Callable[..., Desk], stage: Stage
) -> None:
    desk = window(stage, viewport={"width": 390, "height": 800})
    desk.page.goto(f"{stage.url}/desk?signIn=no_role")
    expect(desk.page.get_by_role("alert")).to_be_visible()
    found = findings(desk.page)
    desk.page.get_by_role("button", name="Forgot your password?").click()
    found += findings(desk.page)
    assert found == []
    assert desk.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_sign_in_works_by_keys_alone(desk: Desk, stage: Stage) -> None:
    email = stage.person("Kay", "agent")
    keys = Keys(desk.page)
    desk.open()
    page = desk.page
    keys.stands_at(page.get_by_label("Email"))
    keys.to(page.get_by_role("button", name="Use a passkey"))
    keys.to(page.get_by_label("Email"), "Shift+Tab")
    keys.type(email)
    keys.to(page.get_by_label("Password", exact=True))
    keys.type(PASSWORD)
    keys.press("Enter")
    signed_in(desk)


def test_session_id_from_before_the_sign_in_is_never_used(desk: Desk, stage: Stage) -> None:
    email = stage.person("Fix", "agent")
    name = "deskwire"
    desk.context.add_cookies([{"name": name, "value": "f" * 43, "url": stage.url}])
    desk.tolerated.append(NETWORK)
    desk.sign_in(email, PASSWORD)
    first = next(each["value"] for each in desk.context.cookies() if each["name"] == name)
    assert first != "f" * 43
    fill_sign_in_again = "async ([email, password]) => (await fetch('/v3/auth/session', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email, password }) })).status"
    assert desk.page.evaluate(fill_sign_in_again, [email, PASSWORD]) == 200
    second = next(each["value"] for each in desk.context.cookies() if each["name"] == name)
    assert second != first
    assert len(stage.client(email).get("/users/me/sessions").json()["items"]) == 1


def test_only_the_provider_is_shown_without_own_passwords(browser: Browser, tmp_path: Path) -> None:
    with (
        staged_with_provider(tmp_path, DESKWIRE_OWN_TOKENS="false") as (stage, _),
        opened(browser, stage) as desk,
    ):
        desk.open()
        expect(desk.page.get_by_role("button", name="Continue with Example Ltd")).to_be_visible()
        expect(desk.page.get_by_label("Password")).to_have_count(0)
        expect(desk.page.get_by_role("button", name="Forgot")).to_have_count(0)


MAIL = {
    "DESKWIRE_SMTP_HOST": "127.0.0.1",
    "DESKWIRE_SMTP_PORT": "9",
    "DESKWIRE_SMTP_FROM": "desk@example.com",
    "DESKWIRE_SMTP_SECURITY": "none",
}
"""Settings of a mail server that is not there, which the request of a link does not wait for."""


def test_forgotten_password_asks_for_the_address_where_mail_is_sent(browser: Browser, tmp_path: Path) -> None:
    with staged_at_localhost(tmp_path, **MAIL) as stage, opened(browser, stage) as desk:
        desk.open()
        desk.page.get_by_role("button", name="Forgot your password?").click()
        desk.page.get_by_label("Email").fill("stranger@nowhere.example")
        desk.page.get_by_role("button", name="Send the link").click()
        expect(desk.page.get_by_role("status")).to_contain_text("If stranger@nowhere.example has an account")


def test_page_of_a_service_without_an_owner_points_to_the_log(tmp_path: Path, browser: Browser) -> None:
    server = Server(tmp_path, "--no-demo", environ=QUICK)
    with Background() as background:
        background.call(server.start)
        try:
            page = browser.new_page()
            page.goto(f"{server.url}/desk")
            expect(page.get_by_text("This service has no owner yet.")).to_be_visible()
            page.close()
        finally:
            background.call(server.stop)
