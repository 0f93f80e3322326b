"""A sensitive call without a recent proof opens one dialog, and is repeated once after the proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk, opened
from tests.web.harness.keyboard import Keys
from tests.web.harness.openid import staged_with_provider
from tests.web.harness.sign_in import age_proofs, enrolled, staged_at_localhost, virtual_passkeys
from tests.web.harness.stage import PASSWORD, Stage
from tests.web.test_sign_in_ways import ENROL

KEYS = "/desk/settings/keys"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A service shared by these tests; each has its own person."""
    with staged_at_localhost(tmp_path_factory.mktemp("step-up")) as stage:
        yield stage


def labels(stage: Stage) -> list[str]:
    """Return the labels of the project's server keys."""
    path = f"/projects/{stage.demo['projectId']}/keys"
    return [each["label"] for each in stage.owner.get(path).raise_for_status().json()["items"]]


def with_old_proof(desk: Desk, name: str, role: str = "admin") -> str:
    """Sign in as a new person, with a proof that is too old, and open the page of keys."""
    email = desk.stage.person(name, role)
    desk.tolerated.append(NETWORK)
    desk.sign_in(email, PASSWORD)
    age_proofs(desk)
    desk.open(KEYS)
    return email


def create(desk: Desk, label: str) -> Locator:
    """Send the form of a new key; return the dialog of the proof."""
    page = desk.page
    page.get_by_role("button", name="New server key").click()
    page.get_by_role("dialog").get_by_label("Label").fill(label)
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    proof = page.get_by_role("dialog", name="Confirm that it's you")
    expect(proof).to_be_visible()
    return proof


def confirm(proof: Locator, label: str, value: str) -> None:
    """Fill in the field of the proof, and send it."""
    proof.get_by_label(label, exact=True).fill(value)
    proof.get_by_role("button", name="Confirm").click()


@pytest.mark.journey
def test_password_proves_it_and_the_call_is_made_once(desk: Desk, stage: Stage) -> None:
    with_old_proof(desk, "Pia")
    proof = create(desk, "by password")
    assert "by password" not in labels(stage)
    confirm(proof, "Password", "a wrong password, long enough")
    expect(proof.get_by_role("alert")).to_have_text("Wrong password.")
    expect(proof.get_by_label("Password")).to_be_focused()
    confirm(proof, "Password", PASSWORD)
    shown = desk.page.get_by_role("dialog", name="The server key by password")
    expect(shown).to_be_visible()
    assert labels(stage).count("by password") == 1
    shown.get_by_role("button", name="Close").click()
    desk.page.get_by_role("button", name="New server key").click()  # the proof lasts
    desk.page.get_by_role("dialog").get_by_label("Label").fill("soon after")
    desk.page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(desk.page.get_by_role("dialog", name="The server key soon after")).to_be_visible()


def test_cancelled_proof_leaves_the_form_and_changes_nothing(desk: Desk, stage: Stage) -> None:
    with_old_proof(desk, "Cora")
    proof = create(desk, "cancelled")
    desk.page.keyboard.press("Escape")
    expect(proof).to_have_count(0)
    form = desk.page.get_by_role("dialog", name="New server key")
    expect(form.get_by_label("Label")).to_have_value("cancelled")
    expect(form.get_by_role("alert")).to_be_visible()
    assert "cancelled" not in labels(stage)


def test_code_of_the_app_proves_it_and_the_password_does_not(desk: Desk, stage: Stage) -> None:
    email = with_old_proof(desk, "Tom")
    app, _ = enrolled(stage, email)
    proof = create(desk, "by code")
    expect(proof.get_by_label("Password")).to_have_count(0)
    code = app.code()
    confirm(proof, "Code from your authenticator app", f"{code[:3]} {code[3:]}")
    expect(desk.page.get_by_role("dialog", name="The server key by code")).to_be_visible()


def test_used_code_proves_nothing(desk: Desk, stage: Stage) -> None:
    email = stage.person("Una", "admin")
    app, _ = enrolled(stage, email)
    desk.tolerated.append(NETWORK)
    desk.open()
    sign_in_with_code(desk, email, code := app.code())
    age_proofs(desk)
    desk.open(KEYS)
    proof = create(desk, "by a used code")
    confirm(proof, "Code from your authenticator app", code)
    expect(proof.get_by_role("alert")).to_contain_text("wrong or was used before")
    assert "by a used code" not in labels(stage)


def sign_in_with_code(desk: Desk, email: str, code: str) -> None:
    """Sign in with the password and a code."""
    page = desk.page
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_label("Code from your authenticator app").fill(code)
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("region", name="Conversations")).to_be_visible()


def test_passkey_proves_it(desk: Desk, stage: Stage) -> None:
    virtual_passkeys(desk.page)
    email = stage.person("Paul", "admin")
    desk.tolerated.append(NETWORK)
    desk.sign_in(email, PASSWORD)
    desk.page.evaluate(ENROL)
    age_proofs(desk)
    desk.open(KEYS)
    proof = create(desk, "by passkey")
    proof.get_by_role("button", name="Use a passkey").click()
    expect(desk.page.get_by_role("dialog", name="The server key by passkey")).to_be_visible()


def test_two_calls_share_one_dialog_and_both_are_made(desk: Desk, stage: Stage) -> None:
    with_old_proof(desk, "Twin")
    path = f"projects/{stage.demo['projectId']}/keys"
    desk.page.evaluate(TWO_CALLS, path)
    proof = desk.page.get_by_role("dialog", name="Confirm that it's you")
    expect(proof).to_have_count(1)
    confirm(proof, "Password", PASSWORD)
    desk.eventually(lambda: desk.page.evaluate("window.made"), ["first of two", "second of two"])
    assert sorted(each for each in labels(stage) if each.endswith("of two")) == [
        "first of two",
        "second of two",
    ]
    expect(proof).to_have_count(0)


TWO_CALLS = """async (path) => {
  const module = performance.getEntriesByType("resource").map(each => each.name).find(each => each.endsWith("/core/api.js"));
  const { call, newKey } = await import(module);
  const make = (label) => call("POST", path, { key: newKey(), body: { label } });
  Promise.all([make("first of two"), make("second of two")]).then(made => (window.made = made.map(each => each.label)));
}"""
"""Makes two calls at the same time, by the desk's own function."""


def test_call_is_not_repeated_for_another_user(desk: Desk, stage: Stage) -> None:
    with_old_proof(desk, "Mia")
    ken = stage.person("Ken", "admin")
    proof = create(desk, "for another user")
    body = {"email": ken, "password": PASSWORD}
    answer = desk.context.request.post(f"{stage.url}/v3/auth/session", data=body)  # as another tab does
    assert answer.ok, answer.text()
    confirm(proof, "Password", PASSWORD)
    expect(proof.get_by_role("alert")).to_contain_text("Someone else is signed in now")
    assert "for another user" not in labels(stage)


def test_end_of_the_session_replaces_the_dialog_by_the_sign_in(desk: Desk, stage: Stage) -> None:
    email = with_old_proof(desk, "Eve")
    proof = create(desk, "after the session")
    stage.client(email).delete("/users/me/sessions", params={"others": "true"}).raise_for_status()
    expect(desk.page.get_by_role("dialog", name="Sign in again")).to_be_visible()
    expect(proof).to_have_count(0)
    assert "after the session" not in labels(stage)


def test_proof_works_by_keys_alone(desk: Desk) -> None:
    with_old_proof(desk, "Kai")
    keys, page = Keys(desk.page), desk.page
    page.get_by_role("button", name="New server key").focus()
    keys.press("Enter")
    page.keyboard.type("by keys")
    keys.press("Enter")
    proof = page.get_by_role("dialog", name="Confirm that it's you")
    keys.stands_at(proof.get_by_label("Password"))
    page.keyboard.type(PASSWORD)
    keys.press("Enter")
    expect(page.get_by_role("dialog", name="The server key by keys")).to_be_visible()


def test_axe_finds_nothing_in_the_proof_at_390_pixels(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage, viewport={"width": 390, "height": 800})
    with_old_proof(desk, "Axel")
    create(desk, "never made")
    assert findings(desk.page) == []
    assert desk.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_provider_proves_it_and_the_form_keeps_its_text(tmp_path: Path, browser: Browser) -> None:
    with staged_with_provider(tmp_path) as (stage, provider), opened(browser, stage) as desk:
        provider.person("olga", email=stage.person("Olga", "admin"), email_verified=True)
        desk.tolerated += [NETWORK, "request to another origin"]
        desk.open()
        desk.page.get_by_role("button", name="Continue with Example Ltd").click()
        provider.approve(desk.page, "olga")
        expect(desk.page.get_by_role("region", name="Conversations")).to_be_visible()
        age_proofs(desk)
        desk.open(KEYS)
        proof = create(desk, "by provider")
        proof.get_by_role("button", name="Continue with Example Ltd").click()
        provider.approve(desk.page, "olga")
        expect(desk.page.get_by_role("heading", level=1, name="Server keys")).to_be_visible()
        desk.page.get_by_role("button", name="New server key").click()
        form = desk.page.get_by_role("dialog", name="New server key")
        expect(form.get_by_label("Label")).to_have_value("by provider")
        form.get_by_role("button", name="Create").click()
        expect(desk.page.get_by_role("dialog", name="The server key by provider")).to_be_visible()


def test_refused_proof_at_the_provider_is_a_notice(tmp_path: Path, browser: Browser) -> None:
    with staged_with_provider(tmp_path) as (stage, provider), opened(browser, stage) as desk:
        provider.person("olga", email=stage.person("Olga", "admin"), email_verified=True)
        desk.tolerated += [NETWORK, "request to another origin"]
        desk.open()
        desk.page.get_by_role("button", name="Continue with Example Ltd").click()
        provider.approve(desk.page, "olga")
        expect(desk.page.get_by_role("region", name="Conversations")).to_be_visible()
        age_proofs(desk)
        desk.open(KEYS)
        create(desk, "refused").get_by_role("button", name="Continue with Example Ltd").click()
        provider.deny(desk.page)
        expect(desk.page.locator(".toast.bad")).to_contain_text("refused the request, or it was cancelled")
        expect(desk.page).not_to_have_url("signIn=")
        assert "refused" not in labels(stage)
