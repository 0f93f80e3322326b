"""The page of a one-time link: invitations, new passwords and the first account."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.support.sockets.server_process import Server
from tests.web.harness.axe import findings
from tests.web.harness.background import Background
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.keyboard import Keys
from tests.web.harness.sign_in import change, enrolled, fill_sign_in, signed_in, staged_at_localhost
from tests.web.harness.stage import PASSWORD, QUICK, Stage

OWN = "a password of their own, long enough"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A service shared by these tests."""
    with staged_at_localhost(tmp_path_factory.mktemp("links")) as stage:
        yield stage


def organisation(stage: Stage) -> str:
    """Return the path of the demo's organisation."""
    (found,) = stage.owner.get("/organisations").raise_for_status().json()["items"]
    return f"/organisations/{found['id']}"


def invitation(stage: Stage, email: str, role: str = "agent") -> str:
    """Invite a person; return the link."""
    body = {"email": email, "role": role}
    url: str = (
        stage.owner.post(f"{organisation(stage)}/invitations", json=body).raise_for_status().json()["url"]
    )
    assert url.startswith(f"{stage.url}/desk/link#"), url
    return url


def password_link(stage: Stage, email: str) -> str:
    """Return a link by which a member chooses another password."""
    members = stage.owner.get(f"{organisation(stage)}/members").json()["items"]
    member = next(each["id"] for each in members if each["email"] == email)
    answer = stage.owner.post(f"{organisation(stage)}/members/{member}/password-link").raise_for_status()
    return str(answer.json()["url"])


@pytest.mark.journey
def test_invited_person_joins_and_the_token_is_nowhere(desk: Desk, stage: Stage) -> None:
    link = invitation(stage, "nina@new.example")
    token = urlsplit(link).fragment
    seen: list[str] = []
    desk.page.on("request", lambda sent: seen.append(f"{sent.url} {sent.headers.get('referer')}"))
    desk.page.goto(link)
    page = desk.page
    expect(page.get_by_role("heading", level=1, name="Join your team")).to_be_visible()
    expect(page).to_have_url(f"{stage.url}/desk/link")
    expect(page.get_by_label("Email")).to_have_value("nina@new.example")
    page.get_by_label("Your name").fill("Nina")
    page.get_by_label("Password", exact=True).fill(OWN)
    page.get_by_label("Confirm password").fill("something else, long enough")
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_text("The passwords do not match.")).to_be_visible()
    page.get_by_label("Confirm password").fill(OWN)
    page.get_by_role("button", name="Join").click()
    signed_in(desk)
    expect(page.get_by_role("button", name="You and your settings")).to_contain_text("Nina")
    assert not any(token in each for each in seen)
    assert token not in page.content()
    stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, history.state])")
    assert token not in stored
    page.go_back()
    assert token not in page.url


def test_used_link_and_lost_token_are_sentences(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    link = invitation(stage, "once@new.example")
    body = {"token": urlsplit(link).fragment, "name": "Once", "password": OWN}
    stage.owner.post("/auth/links/use", json=body).raise_for_status()
    desk.page.goto(link)
    expect(desk.page.get_by_role("heading", level=1, name="This link doesn't work")).to_be_visible()
    desk.page.reload()
    expect(desk.page.get_by_role("heading", level=1, name="The link is incomplete")).to_be_visible()
    desk.page.get_by_role("button", name="Go to sign-in").click()
    expect(desk.page.get_by_label("Email")).to_be_visible()
    expect(desk.page).to_have_url(f"{stage.url}/desk")


@pytest.mark.parametrize("token", ["x", "%00", "<script>alert(1)</script>", "a" * 190, "../../v3/users/me"])
def test_made_up_token_is_refused_with_a_sentence(desk: Desk, stage: Stage, token: str) -> None:
    desk.tolerated.append(NETWORK)
    desk.page.goto(f"{stage.url}/desk/link#{token}")
    expect(desk.page.get_by_role("heading", level=1, name="This link doesn't work")).to_be_visible()
    expect(desk.page).to_have_url(f"{stage.url}/desk/link")


def test_revoked_and_expired_invitations_are_refused(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    path = f"{organisation(stage)}/invitations"
    revoked = stage.owner.post(path, json={"email": "gone@new.example", "role": "agent"}).json()
    stage.owner.delete(f"{path}/{revoked['id']}").raise_for_status()
    desk.page.goto(revoked["url"])
    expect(desk.page.get_by_role("heading", level=1, name="This link doesn't work")).to_be_visible()
    late = invitation(stage, "late@new.example")
    change(stage, "UPDATE one_time_links SET expires_at = 1")
    desk.page.goto("about:blank")
    desk.page.goto(late)
    expect(desk.page.get_by_role("heading", level=1, name="This link doesn't work")).to_be_visible()


def test_link_pasted_into_the_open_page_replaces_the_first(desk: Desk, stage: Stage) -> None:
    desk.page.goto(invitation(stage, "first@new.example"))
    expect(desk.page.get_by_label("Email")).to_have_value("first@new.example")
    desk.page.goto(invitation(stage, "second@new.example"))
    expect(desk.page.get_by_label("Email")).to_have_value("second@new.example")
    expect(desk.page).to_have_url(f"{stage.url}/desk/link")


def test_new_password_ends_the_other_sessions(window: Callable[..., Desk], stage: Stage) -> None:
    email = stage.person("Vera", "agent")
    old, new = window(stage), window(stage)
    old.tolerated.append(NETWORK)
    old.sign_in(email, PASSWORD)
    new.page.goto(password_link(stage, email))
    expect(new.page.get_by_role("heading", level=1, name="Choose a new password")).to_be_visible()
    new.page.get_by_label("Password", exact=True).fill(OWN)
    new.page.get_by_label("Confirm password").fill(OWN)
    new.page.get_by_role("button", name="Save and sign in").click()
    signed_in(new)
    dialog = old.page.get_by_role("dialog", name="Sign in again")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Password", exact=True).fill(PASSWORD)
    dialog.get_by_role("button", name="Sign in", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_text("Wrong email or password.")
    dialog.get_by_label("Password", exact=True).fill(OWN)
    dialog.get_by_role("button", name="Sign in", exact=True).click()
    signed_in(old)


def test_new_password_does_not_skip_the_second_factor(desk: Desk, stage: Stage) -> None:
    email = stage.person("Fred", "agent")
    app, _ = enrolled(stage, email)
    desk.page.goto(password_link(stage, email))
    desk.page.get_by_label("Password", exact=True).fill(OWN)
    desk.page.get_by_label("Confirm password").fill(OWN)
    desk.page.get_by_role("button", name="Save and sign in").click()
    step = desk.page.get_by_label("Code from your authenticator app")
    expect(step).to_be_visible()
    session = "async () => (await (await fetch('/v3/auth/session')).json()).user"
    assert desk.page.evaluate(session) is None
    step.fill(app.code())
    desk.page.get_by_role("button", name="Confirm").click()
    signed_in(desk)
    expect(desk.page).to_have_url(re.compile(r"/desk/prj_\w+(/inbox/mine)?/?$"))


def test_weak_password_is_refused_beside_the_field(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    desk.page.goto(invitation(stage, "weak@new.example"))
    desk.page.get_by_label("Your name").fill("Weak")
    for field in ("Password", "Confirm password"):
        desk.page.get_by_label(field, exact=True).fill("short")
    desk.page.get_by_role("button", name="Join").click()
    expect(desk.page.get_by_label("Password", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(desk.page.get_by_label("Password", exact=True)).to_be_focused()


def test_owner_of_an_account_joins_with_its_password(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    email = stage.person("Rita", "agent")
    members = stage.owner.get(f"{organisation(stage)}/members").json()["items"]
    member = next(each["id"] for each in members if each["email"] == email)
    stage.owner.delete(f"{organisation(stage)}/members/{member}").raise_for_status()
    desk.page.goto(invitation(stage, email, "admin"))
    expect(desk.page.get_by_label("Confirm password")).to_have_count(0)
    desk.page.get_by_label("Your password").fill("not the password of Rita")
    desk.page.get_by_role("button", name="Join").click()
    expect(desk.page.get_by_role("alert")).to_be_visible()
    desk.page.get_by_label("Your password").fill(PASSWORD)
    desk.page.get_by_role("button", name="Join").click()
    signed_in(desk)


def test_link_over_the_session_of_another_user_says_so_and_replaces_it(desk: Desk, stage: Stage) -> None:
    email = stage.person("Hugo", "agent")
    desk.sign_in(email, PASSWORD)
    other = desk.context.new_page()
    desk.watch(other)
    other.goto(invitation(stage, "paula@new.example"))
    expect(other.get_by_text(f"You are signed in as {email}.")).to_be_visible()
    other.get_by_label("Your name").fill("Paula")
    for field in ("Password", "Confirm password"):
        other.get_by_label(field, exact=True).fill(OWN)
    other.get_by_role("button", name="Join").click()
    for page in (other, desk.page):
        expect(page.get_by_role("button", name="You and your settings")).to_contain_text("Paula")
    assert stage.client(email).get("/users/me/sessions").json()["items"] == []


def test_first_owner_is_made_by_the_link_of_the_log(tmp_path: Path, browser: Browser) -> None:
    server = Server(tmp_path, "--no-demo", environ=QUICK)
    with Background() as background:
        background.call(server.start)
        try:
            background.call(server.wait_for_log, "/desk/link#")  # written after the service is ready
            found = re.search(r"https?://[^\s\"]+/desk/link#[\w-]+", server.log())
            assert found is not None, server.log()
            page = browser.new_page()
            page.goto(found[0].replace(urlsplit(found[0]).netloc, urlsplit(server.url).netloc))
            page.get_by_label("Email").fill("first@company.example")
            page.get_by_label("Your name").fill("First")
            page.get_by_label("Organisation").fill("Company")
            for field in ("Password", "Confirm password"):
                page.get_by_label(field, exact=True).fill(OWN)
            page.get_by_role("button", name="Create the account").click()
            expect(page.get_by_role("region", name="Conversations")).to_be_visible()
            page.close()
        finally:
            background.call(server.stop)


def test_axe_finds_nothing_on_the_page_of_a_link_at_390_pixels(
    window: Callable[..., Desk], stage: Stage
) -> None:
    desk = window(stage, viewport={"width": 390, "height": 800})
    desk.tolerated.append(NETWORK)
    desk.page.goto(invitation(stage, "axe@new.example"))
    expect(desk.page.get_by_role("button", name="Join")).to_be_visible()
    found = findings(desk.page)
    wide = desk.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    desk.page.goto("about:blank")
    desk.page.goto(f"{stage.url}/desk/link#made-up")
    expect(desk.page.get_by_role("heading", level=1, name="This link doesn't work")).to_be_visible()
    assert (found + findings(desk.page), max(wide, 0)) == ([], 0)


def test_invitation_is_accepted_by_keys_alone(desk: Desk, stage: Stage) -> None:
    desk.page.goto(invitation(stage, "keys@new.example"))
    keys, page = Keys(desk.page), desk.page
    keys.to(page.get_by_label("Your name"))
    keys.type("Keys")
    for field in ("Password", "Confirm password"):
        keys.to(page.get_by_label(field, exact=True))
        keys.type(OWN)
    keys.press("Enter")
    signed_in(desk)


def test_link_page_opens_before_the_session_is_known(desk: Desk, stage: Stage) -> None:
    link = invitation(stage, "slow@new.example")
    desk.page.route("**/v3/auth/session", lambda route: route.abort())
    desk.tolerated.append(NETWORK)
    desk.page.goto(link)
    expect(desk.page.get_by_label("Email")).to_have_value("slow@new.example")
    expect(desk.page).to_have_url(f"{stage.url}/desk/link")


def test_old_password_signs_in_until_the_link_is_used(desk: Desk, stage: Stage) -> None:
    email = stage.person("Willi", "agent")
    password_link(stage, email)
    fill_sign_in(desk, email)
    signed_in(desk)
