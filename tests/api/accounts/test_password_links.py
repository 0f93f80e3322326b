"""Links for a new password that managers make, and the link for the first owner of an installation."""

from __future__ import annotations

import pytest

from tests.support.api.browsers import browser, enter, staff
from tests.support.api.links import INVITED, inspect, invited, token_of, use
from tests.support.api.service import Service
from tests.support.api.staff import PASSWORD, client, code, hire, organisation_of, person, sign_in
from tests.support.sockets.admin_socket import operate

NEW = "seven tidy otters swim"


async def link_for(service: Service, user: str) -> str:
    """Return the URL of a new link for a member, made by the owner."""
    path = f"/organisations/{await organisation_of(service)}/members/{user}/password-link"
    made = (await service.dashboard.post(path)).json()
    token_of(made["url"])
    return str(made["url"])


async def test_member_chooses_a_password_which_ends_every_session(service: Service) -> None:
    hired = await staff(service, "agent")
    async with (
        browser(service) as page,
        client(service, (await sign_in(service, hired["email"], PASSWORD)).json()["token"]) as token,
    ):
        await enter(page, hired["email"])
        url = await link_for(service, hired["id"])
        seen = (await inspect(service, url)).json()
        assert (seen["purpose"], seen["email"], seen["nameNeeded"]) == ("password", hired["email"], False)
        assert (await page.get("/users/me")).status_code == 200  # nothing has changed yet
        assert (await use(service, url, NEW)).json()["user"]["id"] == hired["id"]
        assert code(await page.get("/users/me")) == (401, "session_ended")
        assert (await token.get("/users/me")).status_code == 401
    assert code(await sign_in(service, hired["email"], PASSWORD)) == (401, "invalid_login")
    assert (await sign_in(service, hired["email"], NEW)).status_code == 200
    assert code(await use(service, url, PASSWORD)) == (410, "link_ended")


async def test_newer_link_and_changed_password_end_a_link(service: Service) -> None:
    hired = await staff(service, "agent")
    first, second = [await link_for(service, hired["id"]) for _ in range(2)]
    assert code(await inspect(service, first)) == (410, "link_ended")
    async with client(service, (await sign_in(service, hired["email"], PASSWORD)).json()["token"]) as http:
        body = {"password": PASSWORD, "newPassword": NEW}
        assert (await http.post("/users/me/password", json=body)).status_code == 200
    assert code(await use(service, second, PASSWORD)) == (410, "link_ended")


@pytest.mark.parametrize("change", ["viewer", "removed"])
async def test_link_ends_with_the_right_of_the_manager_who_made_it(service: Service, change: str) -> None:
    hired = await staff(service, "agent")
    organisation = await organisation_of(service)
    async with person(service, "admin") as admin:
        path = f"/organisations/{organisation}/members/{hired['id']}/password-link"
        url = (await admin.http.post(path)).json()["url"]
        token_of(url)
        manager = f"/organisations/{organisation}/members/{admin.id}"
        if change == "removed":
            await service.dashboard.delete(manager)
        else:
            await service.dashboard.patch(manager, json={"role": change})
    assert code(await use(service, url, NEW)) == (410, "link_ended")
    assert (await sign_in(service, hired["email"], PASSWORD)).status_code == 200


async def test_link_of_one_organisation_opens_no_account_that_has_joined_another(service: Service) -> None:
    hired = await staff(service, "agent", INVITED)
    url = await link_for(service, hired["id"])
    await operate(service, "org.create", name="Globex")
    await operate(service, "user.add", user=INVITED, organisation="Globex", role="agent", password="keep")
    assert code(await use(service, url, NEW)) == (410, "link_ended")
    assert (await sign_in(service, INVITED, PASSWORD)).status_code == 200


async def test_refused_links_say_why(service: Service) -> None:
    organisation = await organisation_of(service)
    members = f"/organisations/{organisation}/members"
    me = (await service.dashboard.get("/users/me")).json()["id"]
    agent = await hire(service, "agent")
    async with person(service, "admin") as admin:
        assert code(await service.dashboard.post(f"{members}/{me}/password-link")) == (403, "own_password")
        assert code(await admin.http.post(f"{members}/{me}/password-link")) == (403, "owner_protected")
    async with person(service, "viewer") as viewer:
        refused = await viewer.http.post(f"{members}/{agent['id']}/password-link")
        assert code(refused) == (403, "permission_denied")


async def test_mail_link_is_refused_without_mail_settings(service: Service) -> None:
    methods = (await service.dashboard.get("/auth/methods")).json()
    assert (methods["forgottenPassword"], methods["setUp"]) == ("administrator", False)
    answer = await service.dashboard.post("/auth/password-links", json={"email": INVITED})
    assert code(answer) == (403, "mail_disabled")


async def test_lost_password_of_an_invited_account_is_given_back_by_a_link(service: Service) -> None:
    used = (await use(service, (await invited(service, name="Ada"))["url"])).json()
    url = await link_for(service, used["user"]["id"])
    assert (await use(service, url, NEW)).status_code == 200
    assert (await sign_in(service, INVITED, NEW)).status_code == 200
