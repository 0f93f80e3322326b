"""Members and roles of an organisation, through the wire (contract 2.7; decisions 3)."""

from __future__ import annotations

import pytest

from tests.support.api.service import Service
from tests.support.api.staff import PASSWORD, client, code, hire, organisation_of, person, sign_in
from tests.support.sockets.admin_socket import operate


async def test_new_member_uses_the_one_time_password_only_to_replace_it(service: Service) -> None:
    hired = await hire(service, "agent")
    assert hired.keys() == {
        "id",
        "email",
        "name",
        "role",
        "assignable",
        "mentionable",
        "joinedAt",
        "password",
        "passwordEndsAt",
    }
    assert code(await sign_in(service, hired["email"], hired["password"])) == (
        403,
        "password_change_required",
    )
    signed = await sign_in(service, hired["email"], hired["password"], PASSWORD)
    async with client(service, signed.json()["token"]) as http:
        assert (await http.get("/users/me")).json()["id"] == hired["id"]
    assert code(await sign_in(service, hired["email"], hired["password"])) == (401, "invalid_login")
    assert (await sign_in(service, hired["email"], PASSWORD)).status_code == 200


async def test_the_one_time_password_is_in_no_list(service: Service) -> None:
    hired = await hire(service, "agent")
    listed = await service.dashboard.get(f"/organisations/{await organisation_of(service)}/members")
    assert hired["password"] not in listed.text
    assert [each["role"] for each in listed.json()["items"]] == ["owner", "agent"]


async def test_members_are_listed_page_by_page(service: Service) -> None:
    for number in range(4):
        await hire(service, "viewer", f"v{number}@example.com")
    path, seen, cursor = f"/organisations/{await organisation_of(service)}/members", [], None
    while True:
        page = (
            await service.dashboard.get(path, params={"limit": "2"} | ({"cursor": cursor} if cursor else {}))
        ).json()
        seen += [each["email"] for each in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == ["owner@demo.example", *(f"v{number}@example.com" for number in range(4))]


@pytest.mark.parametrize(
    ("role", "may"), [("viewer", False), ("agent", False), ("admin", True), ("owner", True)]
)
async def test_only_owners_and_admins_change_members(service: Service, role: str, may: bool) -> None:
    organisation = await organisation_of(service)
    members = f"/organisations/{organisation}/members"
    other = await hire(service, "viewer", "other@example.com")
    async with person(service, role) as someone:
        calls = (
            await someone.http.post(members, json={"email": "new@example.com", "role": "agent"}),
            await someone.http.patch(f"{members}/{other['id']}", json={"role": "agent"}),
            await someone.http.patch(f"/organisations/{organisation}", json={"name": "Renamed"}),
            await someone.http.delete(f"{members}/{other['id']}"),
        )
        assert [call.status_code for call in calls] == [200 if may else 403] * 4, [
            call.text for call in calls
        ]
        assert (await someone.http.get(members)).status_code == 200


async def test_a_role_that_is_changed_holds_from_the_next_call_on(service: Service) -> None:
    members = f"/organisations/{await organisation_of(service)}/members"
    async with person(service, "admin") as someone:
        assert (await someone.http.get(f"/projects/{service.demo['projectId']}/keys")).status_code == 200
        await service.dashboard.patch(f"{members}/{someone.id}", json={"role": "viewer"})
        assert code(await someone.http.get(f"/projects/{service.demo['projectId']}/keys")) == (
            403,
            "permission_denied",
        )
        await service.dashboard.delete(f"{members}/{someone.id}")
        assert code(await someone.http.get(members)) == (404, "organisation_not_found")
        assert code(await someone.http.get("/users/me/permissions")) == (404, "role_not_found")


async def test_only_an_owner_makes_or_unmakes_an_owner(service: Service) -> None:
    members = f"/organisations/{await organisation_of(service)}/members"
    owner = (await service.dashboard.get("/users/me")).json()["id"]
    async with person(service, "admin") as admin:
        grab = await admin.http.patch(f"{members}/{admin.id}", json={"role": "owner"})
        assert code(grab) == (403, "owner_protected")
        assert code(await admin.http.patch(f"{members}/{owner}", json={"role": "viewer"})) == (
            403,
            "owner_protected",
        )
        assert code(await admin.http.delete(f"{members}/{owner}")) == (403, "owner_protected")
        invite = await admin.http.post(members, json={"email": "x@example.com", "role": "owner"})
        assert code(invite) == (403, "owner_protected")


async def test_an_owner_hands_over_and_the_last_one_stays(service: Service) -> None:
    members = f"/organisations/{await organisation_of(service)}/members"
    owner = (await service.dashboard.get("/users/me")).json()["id"]
    assert code(await service.dashboard.delete(f"{members}/{owner}")) == (409, "last_owner")
    assert code(await service.dashboard.patch(f"{members}/{owner}", json={"role": "admin"})) == (
        409,
        "last_owner",
    )
    async with person(service, "admin") as heir:
        await service.dashboard.patch(f"{members}/{heir.id}", json={"role": "owner"})
        assert code(await heir.http.patch(f"{members}/{owner}", json={"role": "agent"})) == (
            403,
            "owner_protected",
        )
        stepped = await service.dashboard.patch(f"{members}/{owner}", json={"role": "agent"})
        assert stepped.json()["role"] == "agent"
        assert (await heir.http.delete(f"{members}/{owner}")).json() == {"id": owner, "deleted": True}


async def test_any_member_may_leave(service: Service) -> None:
    members = f"/organisations/{await organisation_of(service)}/members"
    owner = (await service.dashboard.get("/users/me")).json()["id"]
    async with person(service, "viewer") as someone:
        assert code(await someone.http.delete(f"{members}/{owner}")) == (403, "permission_denied")
        assert (await someone.http.delete(f"{members}/{someone.id}")).status_code == 200
        assert code(await someone.http.get(members)) == (404, "organisation_not_found")


async def test_member_who_leaves_and_returns_is_in_no_team(
    service: Service,
) -> None:
    members = f"/organisations/{await organisation_of(service)}/members"
    hired = await hire(service, "agent")
    team = (await service.dashboard.post("/teams", json={"name": "Night", "members": [hired["id"]]})).json()
    assert [each["id"] for each in team["members"]] == [hired["id"]]
    await service.dashboard.delete(f"{members}/{hired['id']}")
    assert (await service.dashboard.get(f"/teams/{team['id']}")).json()["members"] == []
    await hire(service, "agent")
    assert (await service.dashboard.get(f"/teams/{team['id']}")).json()["members"] == []


async def test_an_account_of_another_organisation_cannot_be_taken(service: Service) -> None:
    """Hold that the maker of the account may not own the address (ADR 15)."""
    await operate(service, "org.create", name="Elsewhere")
    await operate(
        service, "user.create", email="Boss@elsewhere.example", organisation="Elsewhere", role="owner"
    )
    members = f"/organisations/{await organisation_of(service)}/members"
    taken = await service.dashboard.post(members, json={"email": "boss@ELSEWHERE.example", "role": "agent"})
    assert code(taken) == (409, "email_in_use")
    again = await service.dashboard.post(
        members, json={"email": service.demo["user"]["email"], "role": "agent"}
    )
    assert code(again) == (409, "already_member")


async def test_account_without_memberships_gets_a_new_password_on_its_return(service: Service) -> None:
    members = f"/organisations/{await organisation_of(service)}/members"
    async with person(service, "agent") as someone:
        await service.dashboard.delete(f"{members}/{someone.id}")
        assert (await someone.http.get("/users/me")).status_code == 200
        back = await hire(service, "viewer", someone.email)
        assert back["id"] == someone.id
        assert code(await someone.http.get("/users/me")) == (401, "token_expired")
    assert code(await sign_in(service, back["email"], PASSWORD)) == (401, "invalid_login")
    assert (await sign_in(service, back["email"], back["password"], PASSWORD)).status_code == 200


async def test_everything_wrong_with_a_new_member_is_named(service: Service) -> None:
    members = f"/organisations/{await organisation_of(service)}/members"
    body = {"email": "nobody at home", "role": "boss", "name": " \u0007", "colour": "red"}
    answer = await service.dashboard.post(members, json=body)
    assert code(answer) == (422, "invalid_input")
    pointers = {each["pointer"] for each in answer.json()["errors"]}
    assert pointers == {"/email", "/role", "/name", "/colour"}


async def test_a_stranger_learns_nothing_about_an_organisation(service: Service) -> None:
    organisation, project = await organisation_of(service), service.demo["projectId"]
    await operate(service, "org.create", name="Elsewhere")
    stranger = await operate(
        service, "user.create", email="boss@elsewhere.example", organisation="Elsewhere", role="owner"
    )
    token = (await operate(service, "token.create", user=stranger["id"], ttlS=3600))["token"]
    me = (await service.dashboard.get("/users/me")).json()["id"]
    nowhere = {organisation: "org_00000000000000000000000000", project: "prj_00000000000000000000000000"}
    calls = [
        ("GET", f"/organisations/{organisation}", None),
        ("PATCH", f"/organisations/{organisation}", {"name": "Mine"}),
        ("GET", f"/organisations/{organisation}/members", None),
        ("POST", f"/organisations/{organisation}/members", {"email": "a@b.example", "role": "owner"}),
        ("GET", f"/organisations/{organisation}/members/{me}", None),
        ("PATCH", f"/organisations/{organisation}/members/{me}", {"role": "viewer"}),
        ("DELETE", f"/organisations/{organisation}/members/{me}", None),
        ("GET", f"/organisations/{organisation}/projects", None),
        ("POST", f"/organisations/{organisation}/projects", {"name": "Mine"}),
        ("GET", f"/projects/{project}", None),
        ("PATCH", f"/projects/{project}", {"name": "Mine"}),
        ("DELETE", f"/projects/{project}", None),
        ("GET", f"/projects/{project}/keys", None),
        ("POST", f"/projects/{project}/keys", {"label": "Mine"}),
        ("GET", f"/users/me/permissions?organisationId={organisation}", None),
    ]
    async with client(service, token) as http:
        for method, path, body in calls:
            unknown = path
            for known, other in nowhere.items():
                unknown = unknown.replace(known, other)
            foreign, missing = [await http.request(method, each, json=body) for each in (path, unknown)]
            assert foreign.status_code == 404, path
            assert {**foreign.json(), "requestId": ""} == {**missing.json(), "requestId": ""}
        for path in ("/organisations", "/projects"):
            assert service.demo["projectId"] not in (await http.get(path)).text
            assert organisation not in (await http.get(path)).text


@pytest.mark.parametrize(
    ("role", "target", "refused"),
    [
        ("owner", "owner", None),
        ("admin", "agent", None),
        ("admin", "owner", "owner_protected"),
        ("agent", "viewer", "permission_denied"),
    ],
)
async def test_member_who_has_forgotten_the_password_gets_a_new_one(
    service: Service, role: str, target: str, refused: str | None
) -> None:
    lost = "lost@example.com"
    hired = await hire(service, target, lost)
    signed = await sign_in(service, lost, hired["password"], PASSWORD)
    path = f"/organisations/{await organisation_of(service)}/members/{hired['id']}/password"
    async with person(service, role) as someone, client(service, signed.json()["token"]) as before:
        answer = await someone.http.post(path)
        still = (await before.get("/users/me")).status_code
    if refused is not None:
        assert (code(answer), still) == ((403, refused), 200)
        return
    given = answer.json()
    assert (given["id"], given["email"], given["role"]) == (hired["id"], lost, target)
    assert still == 401
    assert code(await sign_in(service, lost, PASSWORD)) == (401, "invalid_login")
    assert code(await sign_in(service, lost, given["password"])) == (403, "password_change_required")
    assert (await sign_in(service, lost, given["password"], f"{PASSWORD} 2")).is_success


async def test_password_reset_is_refused_for_oneself_and_for_accounts_shared_with_others(
    service: Service,
) -> None:
    """ADR 15: the right to reset an account's password would be the right to sign in to all its organisations."""
    elsewhere = await operate(service, "org.create", name="Elsewhere")
    boss = await operate(
        service, "user.create", email="boss@elsewhere.example", organisation="Elsewhere", role="owner"
    )
    shared = (await hire(service, "agent", "shared@example.com"))["id"]
    await operate(service, "user.add", user=shared, organisation="Elsewhere", role="viewer", password="keep")
    members = f"/organisations/{await organisation_of(service)}/members"
    me = (await service.dashboard.get("/users/me")).json()["id"]
    given = {
        "own": await service.dashboard.post(f"{members}/{me}/password"),
        "shared": await service.dashboard.post(f"{members}/{shared}/password"),
        "stranger": await service.dashboard.post(f"{members}/{boss['id']}/password"),
        "elsewhere": await service.dashboard.post(
            f"/organisations/{elsewhere['id']}/members/{boss['id']}/password"
        ),
    }
    assert {name: code(answer) for name, answer in given.items()} == {
        "own": (403, "own_password"),
        "shared": (409, "member_elsewhere"),
        "stranger": (404, "member_not_found"),
        "elsewhere": (404, "organisation_not_found"),
    }
