"""Sign-in at the published `oidc-provider` of npm, at its own pages and another site than the desk's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.api.openid_npm import NpmProvider
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.openid_npm import staged_with_npm_provider
from tests.web.harness.sign_in import age_proofs, signed_in
from tests.web.harness.stage import Stage
from tests.web.test_step_up import KEYS, create, labels

BUTTON = "Continue with Example Ltd"
FONTS = "https://fonts.googleapis.com/**"
"""The address of a font that the provider's pages name. No test asks for it."""
CALL = "async (path) => { const answer = await fetch(path); return [answer.status, await answer.json()]; }"


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, NpmProvider]]:
    """A service with the provider, shared by the tests."""
    with staged_with_npm_provider(tmp_path_factory.mktemp("company")) as both:
        yield both


@pytest.fixture(scope="module")
def stage(company: tuple[Stage, NpmProvider]) -> Stage:
    """The service."""
    return company[0]


@pytest.fixture
def provider(company: tuple[Stage, NpmProvider]) -> NpmProvider:
    """The provider."""
    return company[1]


@pytest.fixture
def visitor(window: Callable[..., Desk], stage: Stage) -> Callable[[], Desk]:
    """Opens windows that may go to the provider."""

    def open_one() -> Desk:
        desk = window(stage)
        desk.tolerated += [NETWORK, "request to another origin"]
        desk.context.route(FONTS, lambda route: route.abort())
        return desk

    return open_one


def enter(page: Page, subject: str) -> None:
    """Fill in the provider's form for signing in."""
    page.get_by_placeholder("Enter any login").fill(subject)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()


def consent(page: Page) -> None:
    """Agree at the provider's page, which asks after the first sign-in and after a logout."""
    page.get_by_role("button", name="Continue", exact=True).click()


def sign_in(desk: Desk, subject: str) -> None:
    """Sign in from the desk's page at the provider's."""
    desk.open()
    desk.page.get_by_role("button", name=BUTTON).click()
    enter(desk.page, subject)
    consent(desk.page)
    signed_in(desk)


def sign_out_at(provider: NpmProvider, desk: Desk) -> None:
    """Sign out at the provider in another tab, and wait until it has reported that."""
    tab = desk.context.new_page()
    tab.goto(provider.logout_url)
    tab.get_by_role("button", name="Yes, sign me out").click()
    assert provider.output() == "reported"


def session_is_over(desk: Desk) -> None:
    """Check that the stream and the session end within a second."""
    expect(desk.page.get_by_role("dialog", name="Sign in again")).to_be_visible(timeout=1_000)
    status, refusal = desk.page.evaluate(CALL, "/v3/users/me")
    assert (status, refusal["code"]) == (401, "session_ended")


@pytest.mark.journey
def test_verified_address_binds_the_account_and_signing_out_keeps_the_providers_session(
    visitor: Callable[[], Desk], stage: Stage, provider: NpmProvider
) -> None:
    email = stage.person("Olga", "agent")
    provider.person("olga", email=email, email_verified=True, name="Olga")
    desk = visitor()
    desk.open("/desk/settings/account")
    desk.page.get_by_role("button", name=BUTTON).click()
    enter(desk.page, "olga")
    consent(desk.page)
    expect(desk.page.get_by_role("heading", level=1, name="Your account")).to_be_visible()
    _, session = desk.page.evaluate(CALL, "/v3/auth/session")
    assert (session["signedInBy"], session["user"]["email"]) == ("oidc", email)
    _, identities = desk.page.evaluate(CALL, "/v3/users/me/identities")
    assert [(each["provider"], each["subject"]) for each in identities["items"]] == [("oidc", "olga")]
    desk.page.get_by_role("button", name="You and your settings").click()
    desk.page.get_by_role("menuitem", name="Sign out").click()
    expect(desk.page.get_by_label("Email")).to_be_visible()
    assert desk.page.evaluate(CALL, "/v3/users/me")[0] == 401
    provider.person("olga", email="renamed@elsewhere.example")
    desk.page.get_by_role("button", name=BUTTON).click()  # the provider knows the browser
    expect(desk.page.get_by_role("button", name="You and your settings")).to_contain_text("Olga")


def test_unverified_address_and_a_cancelled_sign_in_are_sentences(
    visitor: Callable[[], Desk], stage: Stage, provider: NpmProvider
) -> None:
    provider.person("ulla", email=stage.person("Ulla", "agent"), email_verified=False)
    desk = visitor()
    desk.open()
    desk.page.get_by_role("button", name=BUTTON).click()
    desk.page.get_by_role("link", name="Cancel").click()
    expect(desk.page.get_by_role("alert")).to_contain_text("refused the request, or it was cancelled")
    desk.page.get_by_role("button", name=BUTTON).click()
    enter(desk.page, "ulla")
    consent(desk.page)
    expect(desk.page.get_by_role("alert")).to_contain_text("has no verified email address")


def with_old_proof(desk: Desk, stage: Stage, provider: NpmProvider, name: str) -> None:
    """Sign in as a new person, with a proof that is too old, and open the page of keys."""
    provider.person(name.lower(), email=stage.person(name, "admin"), email_verified=True)
    sign_in(desk, name.lower())
    age_proofs(desk)
    desk.open(KEYS)


def test_new_sign_in_at_the_provider_proves_it(
    visitor: Callable[[], Desk], stage: Stage, provider: NpmProvider
) -> None:
    desk = visitor()
    with_old_proof(desk, stage, provider, "Pia")
    create(desk, "by npm").get_by_role("button", name=BUTTON).click()
    enter(desk.page, "pia")  # the provider asks again, because the desk wants a new sign-in
    expect(desk.page.get_by_role("heading", level=1, name="Server keys")).to_be_visible()
    desk.page.get_by_role("button", name="New server key").click()
    form = desk.page.get_by_role("dialog", name="New server key")
    expect(form.get_by_label("Label")).to_have_value("by npm")
    form.get_by_role("button", name="Create").click()
    expect(desk.page.get_by_role("dialog", name="The server key by npm")).to_be_visible()
    assert labels(stage).count("by npm") == 1


def test_sign_in_of_somebody_else_proves_nothing_and_ends_the_session(
    visitor: Callable[[], Desk], stage: Stage, provider: NpmProvider
) -> None:
    provider.person("otto", email=stage.person("Otto", "admin"), email_verified=True)
    desk = visitor()
    with_old_proof(desk, stage, provider, "Mia")
    create(desk, "by somebody else").get_by_role("button", name=BUTTON).click()
    enter(desk.page, "otto")
    assert provider.output() == "reported"  # the provider ends Mia's session
    consent(desk.page)
    expect(desk.page.get_by_role("alert")).to_contain_text("another company account")
    assert desk.page.evaluate(CALL, "/v3/users/me")[0] == 401
    assert "by somebody else" not in labels(stage)


def test_logout_at_the_provider_ends_that_session_of_the_desk_within_a_second(
    visitor: Callable[[], Desk], stage: Stage, provider: NpmProvider
) -> None:
    provider.person("lena", email=stage.person("Lena", "agent"), email_verified=True)
    ends, stays = visitor(), visitor()
    sign_in(ends, "lena")
    sign_in(stays, "lena")  # a session of its own at the provider, too
    sign_out_at(provider, ends)
    session_is_over(ends)
    assert stays.page.evaluate(CALL, "/v3/users/me")[0] == 200
    ends.page.get_by_role("dialog").get_by_role("button", name=BUTTON).click()
    enter(ends.page, "lena")
    consent(ends.page)
    signed_in(ends)


def test_logout_ends_a_session_that_was_last_proved_in_another_session_of_the_provider(
    visitor: Callable[[], Desk], stage: Stage, provider: NpmProvider
) -> None:
    desk = visitor()
    with_old_proof(desk, stage, provider, "Nora")
    desk.context.clear_cookies(domain="127.0.0.1")  # the provider's session has expired
    create(desk, "by a new session").get_by_role("button", name=BUTTON).click()
    enter(desk.page, "nora")
    consent(desk.page)
    expect(desk.page.get_by_role("heading", level=1, name="Server keys")).to_be_visible()
    sign_out_at(provider, desk)
    session_is_over(desk)
