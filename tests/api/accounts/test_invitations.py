"""Invitations: created, listed, renewed, revoked and accepted, with the inviter's right checked twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from deskwire.engine.core.clock import wall_clock
from tests.api.accounts.test_second_factor import EMAIL, clock, enrolled, finish
from tests.support.api.audit_trail import trail
from tests.support.api.browsers import browser
from tests.support.api.links import INVITED, inspect, invite, invited, token_of, use
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, client, code, hire, organisation_of, person, sign_in
from tests.support.sockets.admin_socket import operate
from tests.support.stores import beside

__all__ = ["clock"]


async def path_of(service: Service) -> str:
    """Return the path of the organisation's invitations."""
    return f"/organisations/{await organisation_of(service)}/invitations"


async def listed(service: Service) -> list[dict[str, Any]]:
    """Return the open invitations."""
    found: list[dict[str, Any]] = (await service.dashboard.get(await path_of(service))).json()["items"]
    return found


async def test_new_person_joins_with_a_password_of_their_own(service: Service) -> None:
    invitation = await invited(service, name="Ada")
    seen = await inspect(service, invitation["url"])
    assert seen.json() == {
        "purpose": "invitation",
        "email": INVITED,
        "organisationName": "Demo organisation",
        "name": "Ada",
        "nameNeeded": True,
        "account": False,
        "methods": {"password": True, "oidc": []},
    }
    used = await use(service, invitation["url"])
    assert used.status_code == 200, used.text
    assert used.json()["user"]["name"] == "Ada"
    assert [each["role"] for each in used.json()["projects"]] == ["agent"]
    assert "HttpOnly" in used.headers["set-cookie"]
    assert (await sign_in(service, INVITED, PASSWORD)).status_code == 200
    assert await listed(service) == []


async def test_link_works_once_and_looks_the_same_however_it_ended(service: Service) -> None:
    used, replaced, revoked = [
        await invited(service, f"{name}@example.com", name="X") for name in ("a", "b", "c")
    ]
    path = await path_of(service)
    assert (await use(service, used["url"])).status_code == 200
    renewed = (await service.dashboard.post(f"{path}/{replaced['id']}/renew")).json()
    token_of(renewed["url"])
    assert (await service.dashboard.delete(f"{path}/{revoked['id']}")).status_code == 200
    made_up = f"{service.url}/desk/link#{'x' * 43}"
    answers = [
        answer
        for url in (used["url"], replaced["url"], revoked["url"], made_up, f"{service.url}/desk/link#short")
        for answer in (await inspect(service, url), await use(service, url))
    ]
    assert {code(each) for each in answers} == {(410, "link_ended")}
    assert len({each.json()["detail"] for each in answers}) == 1
    assert (await use(service, renewed["url"])).status_code == 200


async def test_one_of_many_concurrent_uses_wins(service: Service) -> None:
    invitation, outcomes = await invited(service, name="Ada"), list[tuple[int, str | None]]()

    async def attempt() -> None:
        answer = await use(service, invitation["url"])
        outcomes.append((answer.status_code, answer.json().get("code")))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(attempt)
    assert {each for each in outcomes if each[0] != 200} <= {(410, "link_ended"), (503, "sign_in_busy")}
    assert [each for each in outcomes if each[0] == 200] == [(200, None)]


async def test_account_joins_with_its_own_password_only(service: Service) -> None:
    await operate(service, "org.create", name="Globex")
    await operate(
        service, "user.create", email=INVITED, organisation="Globex", role="agent", password=PASSWORD
    )
    invitation = await invited(service)
    seen = (await inspect(service, invitation["url"])).json()
    assert (seen["account"], seen["nameNeeded"], seen["name"]) == (True, False, None)
    assert code(await use(service, invitation["url"], "another long password")) == (401, "invalid_login")
    assert (await sign_in(service, INVITED, PASSWORD)).status_code == 200  # the password is as before
    used = await use(service, invitation["url"])
    assert used.status_code == 200, used.text
    async with client(service, (await sign_in(service, INVITED, PASSWORD)).json()["token"]) as http:
        assert len((await http.get("/organisations")).json()["items"]) == 2
    # Neither organisation's managers can set the password of the account, which the other one relies on.
    member = f"/organisations/{await organisation_of(service)}/members/{used.json()['user']['id']}"
    for way in ("password", "password-link"):
        assert code(await service.dashboard.post(f"{member}/{way}")) == (409, "member_elsewhere")


async def test_one_time_password_accepts_no_invitation(service: Service) -> None:
    await operate(service, "org.create", name="Globex")
    made = await operate(service, "user.create", email=INVITED, organisation="Globex", role="agent")
    invitation = await invited(service)
    refused = await use(service, invitation["url"], made["password"])
    assert code(refused) == (403, "password_change_required")
    await sign_in(service, INVITED, made["password"], PASSWORD)
    assert (await use(service, invitation["url"])).status_code == 200


async def test_guesses_of_an_accounts_password_by_a_link_are_throttled(service: Service) -> None:
    await operate(service, "org.create", name="Globex")
    await operate(
        service, "user.create", email=INVITED, organisation="Globex", role="agent", password=PASSWORD
    )
    invitation = await invited(service)
    answers = [code(await use(service, invitation["url"], f"a wrong guess {n}")) for n in range(11)]
    assert answers == [(401, "invalid_login")] * 10 + [(429, "too_many_sign_ins")]


@pytest.mark.parametrize("change", ["viewer", "removed"])
async def test_inviter_who_lost_the_right_lets_no_one_in(service: Service, change: str) -> None:
    async with person(service, "admin") as admin:
        invitation = (await invite(service, http=admin.http, name="Ada")).json()
        token_of(invitation["url"])
        member = f"/organisations/{await organisation_of(service)}/members/{admin.id}"
        if change == "removed":
            await service.dashboard.delete(member)
        else:
            await service.dashboard.patch(member, json={"role": change})
        for answer in (await inspect(service, invitation["url"]), await use(service, invitation["url"])):
            assert code(answer) == (403, "inviter_not_permitted")
        renewed = await service.dashboard.post(f"{await path_of(service)}/{invitation['id']}/renew")
        assert (await use(service, renewed.json()["url"])).status_code == 200


async def test_admin_invites_no_owner_and_an_agent_no_one(service: Service) -> None:
    async with person(service, "admin") as admin, person(service, "agent") as agent:
        assert code(await invite(service, role="owner", http=admin.http)) == (403, "owner_protected")
        assert code(await invite(service, http=agent.http)) == (403, "permission_denied")
        assert code(await agent.http.get(await path_of(service))) == (403, "permission_denied")
        owner = await invited(service, role="owner")
        renewal = f"{await path_of(service)}/{owner['id']}/renew"
        assert code(await admin.http.post(renewal)) == (403, "owner_protected")
    assert await listed(service) == [{**owner, "url": None}]


async def test_refused_invitations_say_why(service: Service) -> None:
    await hire(service, "agent", "agent@example.com")
    await invited(service)
    cases = {
        "agent@example.com": "already_member",
        "AGENT@example.com": "already_member",
        INVITED: "invitation_exists",
        INVITED.upper(): "invitation_exists",
        "agént@example.com": "email_in_use",
    }
    assert {email: code(await invite(service, email)) for email in cases} == {
        email: (409, reason) for email, reason in cases.items()
    }


async def test_bad_fields_are_all_named(service: Service) -> None:
    answer = await invite(service, "no address", "king", name=" ")
    assert {each["pointer"] for each in answer.json()["errors"]} == {"/email", "/role", "/name"}


async def test_new_account_needs_a_name_and_a_strong_password(service: Service) -> None:
    invitation = await invited(service)
    cases = [
        (await use(service, invitation["url"]), "/name"),
        (await use(service, invitation["url"], "short", name="Ada"), "/password"),
        (await use(service, invitation["url"], "ada@example.com", name="Ada"), "/password"),
    ]
    for answer, pointer in cases:
        assert answer.status_code == 422
        assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]
    assert (await use(service, invitation["url"], name="Ada")).status_code == 200


async def test_invitations_of_an_organisation_are_limited(tmp_path: Path) -> None:
    async with running(tmp_path, members_per_hour=2) as service:
        first = await invited(service, "a@example.com")
        await invited(service, "b@example.com")
        assert code(await invite(service, "c@example.com")) == (429, "too_many_members")
        renewal = f"{await path_of(service)}/{first['id']}/renew"
        assert code(await service.dashboard.post(renewal)) == (429, "too_many_members")


async def test_expired_invitation_stays_listed_and_can_be_renewed(service: Service) -> None:
    invitation = await invited(service, name="Ada")
    a_minute_ago = wall_clock() - 60_000
    with beside(service.directory) as connection:
        connection.execute("UPDATE one_time_links SET expires_at = ?", (a_minute_ago,))
        connection.execute("UPDATE invitations SET expires_at = ?", (a_minute_ago,))
    assert code(await use(service, invitation["url"])) == (410, "link_ended")
    (found,) = await listed(service)
    renewed = await service.dashboard.post(f"{await path_of(service)}/{found['id']}/renew")
    assert renewed.json()["expiresAt"] > found["expiresAt"]
    assert (await use(service, renewed.json()["url"])).status_code == 200


async def test_deleted_organisation_and_erased_account_take_their_invitations_along(service: Service) -> None:
    invitation = await invited(service, name="Ada")
    await operate(service, "user.create", email=INVITED, password=PASSWORD)
    await operate(service, "user.delete", user=INVITED)
    assert await listed(service) == []
    assert code(await use(service, invitation["url"])) == (410, "link_ended")
    with beside(service.directory) as connection:
        assert connection.execute("SELECT count(*) FROM one_time_links").fetchone()[0] == 0


async def test_trail_names_no_address_and_no_token(service: Service) -> None:
    kept, gone = await invited(service, name="Ada"), await invited(service, "b@example.com")
    path = await path_of(service)
    renewed = (await service.dashboard.post(f"{path}/{kept['id']}/renew")).json()
    await service.dashboard.delete(f"{path}/{gone['id']}")
    user = (await use(service, renewed["url"])).json()["user"]["id"]
    records = [each for each in await trail(service) if each["action"].startswith("invitation.")]
    assert [(each["action"], each["actor"]["type"]) for each in records] == [
        ("invitation.accepted", "user"),
        ("invitation.revoked", "user"),
        ("invitation.renewed", "user"),
        ("invitation.created", "user"),
        ("invitation.created", "user"),
    ]
    assert records[0]["actor"]["id"] == user
    assert records[0]["details"] == {"user": user}
    stored = [[each[name] for name in ("object", "changes", "details")] for each in records]
    assert INVITED not in str(stored)


async def test_page_of_another_origin_uses_no_link(service: Service) -> None:
    invitation = await invited(service, name="Ada")
    body = {"token": invitation["url"].partition("#")[2], "password": PASSWORD}
    async with httpx.AsyncClient(base_url=f"{service.url}/v3") as http:
        foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        answer = await http.post("/auth/links/use", json=body, headers=foreign)
        assert code(answer) == (403, "cross_site_request")
    assert (await use(service, invitation["url"])).status_code == 200


async def test_account_with_a_factor_joins_when_the_factor_is_proved(service: Service) -> None:
    """Else a thief of the password could make its owner a member of any organisation."""
    async with enrolled(service, "agent") as (_, phone, _), browser(service) as page:
        await operate(service, "org.create", name="Elsewhere")
        boss = await operate(
            service, "user.create", email="boss@elsewhere.example", organisation="Elsewhere", role="owner"
        )
        token = (await operate(service, "token.create", user=boss["id"], ttlS=60))["token"]
        async with client(service, token) as http:
            (elsewhere,) = (await http.get("/organisations")).json()["items"]
            path = f"/organisations/{elsewhere['id']}/invitations"

            async def challenge() -> tuple[str, str]:
                """Invite the account; return the invitation's path and the challenge of its link's use."""
                made = (await http.post(path, json={"email": EMAIL, "role": "viewer"})).json()
                waiting = (await use(service, made["url"], PASSWORD)).json()
                assert waiting["user"] is None
                return f"{path}/{made['id']}", waiting["challenge"]["id"]

            async def members() -> set[str]:
                found = (await http.get(f"/organisations/{elsewhere['id']}/members")).json()["items"]
                return {each["email"] for each in found}

            invitation, waiting = await challenge()
            assert code(await finish(page, waiting, code="000000")) == (401, "invalid_code")
            assert await members() == {boss["email"]}
            assert (await http.delete(invitation)).status_code == 200
            shown = phone.code()
            assert code(await finish(page, waiting, code=shown)) == (410, "link_ended")
            assert await members() == {boss["email"]}
            _, waiting = await challenge()
            done = await finish(page, waiting, code=shown)
            assert done.status_code == 200, "the refused sign-in has used up no code"
            assert await members() == {boss["email"], EMAIL}
            assert (await http.get(path)).json()["items"] == []
