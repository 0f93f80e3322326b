"""Signing in, one's own account, and permissions (contract 2.7, 4.8; decisions 2 and 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from deskwire.engine.accounts.people import PERMISSIONS, BuiltInRole
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, client, code, hire, person, sign_in
from tests.support.sockets.admin_socket import operate


async def permissions(
    http: httpx.AsyncClient, organisation: str | None = None, project: str | None = None
) -> httpx.Response:
    """Return the response to a request for permissions."""
    params = {} if organisation is None else {"organisationId": organisation}
    headers = {} if project is None else {"project": project}
    return await http.get("/users/me/permissions", params=params, headers=headers)


@pytest.mark.parametrize("role", ["viewer", "agent", "admin"])
async def test_permissions_are_those_of_the_role_sorted(service: Service, role: BuiltInRole) -> None:
    async with person(service, role) as someone:
        answer = await permissions(someone.http)
    assert answer.json() == {"permissions": sorted(PERMISSIONS[role]), "roles": [role]}


async def test_the_scope_is_the_organisation_else_the_project_else_the_oldest_membership(
    service: Service,
) -> None:
    """Contract 4.8."""
    second = await operate(service, "org.create", name="Second")
    project = await operate(service, "project.create", organisation="Second", project={"name": "P"})
    adding = {"user": "owner@demo.example", "organisation": "Second", "role": "viewer"}
    await operate(service, "user.add", **adding, password="keep")
    first = await organisation_of_first(service)
    async with client(service, service.demo["token"]) as http:
        assert (await permissions(http)).json()["roles"] == ["owner"]
        assert (await permissions(http, project=project["id"])).json()["roles"] == ["viewer"]
        assert (await permissions(http, organisation=second["id"])).json()["roles"] == ["viewer"]
        assert (await permissions(http, first, project["id"])).json()["roles"] == ["owner"]
        assert (await permissions(http, second["id"], "prj_nonsense")).json()["roles"] == ["viewer"]


async def organisation_of_first(service: Service) -> str:
    """The id of the oldest of the owner's organisations."""
    return str((await service.dashboard.get("/organisations")).json()["items"][0]["id"])


async def test_unresolvable_reference_is_not_found_whether_it_exists_or_not(service: Service) -> None:
    """Contract 4.8 and 7."""
    foreign = await operate(service, "org.create", name="Foreign")
    project = await operate(service, "project.create", organisation="Foreign", project={"name": "P"})
    loner = await operate(service, "user.create", email="loner@example.com")
    token = (await operate(service, "token.create", user=loner["id"], ttlS=60))["token"]
    async with client(service, service.demo["token"]) as http:
        for organisation in (foreign["id"], "org_00000000000000000000000000", "org_x", "", "é"):
            answer = await permissions(http, organisation, service.demo["projectId"])
            assert code(answer) == (404, "organisation_not_found"), organisation
        for named in (project["id"], "prj_00000000000000000000000000", "nonsense"):
            assert code(await permissions(http, project=named)) == (404, "project_not_found")
        assert code(await http.get("/users/me/permissions?organisation=x")) == (400, "bad_query")
    async with client(service, token) as http:
        assert code(await permissions(http)) == (404, "role_not_found")


async def test_one_reads_and_renames_oneself(service: Service) -> None:
    async with person(service, "agent") as someone:
        me = (await someone.http.get("/users/me")).json()
        assert me.keys() == {"id", "email", "name", "createdAt"}
        renamed = await someone.http.patch("/users/me", json={"name": "Grace"})
        assert renamed.json() == {**me, "name": "Grace"}
        assert (await someone.http.get("/users/me")).json() == renamed.json()
        refused = await someone.http.patch("/users/me", json={"email": "x@y.example"})
        assert code(refused) == (422, "invalid_input")


async def test_a_new_password_needs_the_old_one_and_ends_all_tokens(service: Service) -> None:
    async with person(service, "agent") as someone:
        body = {"password": "wrong", "newPassword": "another long password"}
        assert code(await someone.http.post("/users/me/password", json=body)) == (401, "invalid_login")
        short = {"password": PASSWORD, "newPassword": "short"}
        assert code(await someone.http.post("/users/me/password", json=short)) == (422, "invalid_input")
        changed = await someone.http.post("/users/me/password", json={**body, "password": PASSWORD})
        assert code(await someone.http.get("/users/me")) == (401, "token_expired")
        async with client(service, changed.json()["token"]) as again:
            assert (await again.get("/users/me")).status_code == 200
        assert code(await sign_in(service, someone.email, PASSWORD)) == (401, "invalid_login")


async def test_of_two_simultaneous_password_changes_one_wins_and_one_fails(service: Service) -> None:
    hired = await hire(service, "agent")
    answers: dict[str, httpx.Response] = {}

    async def change(new: str) -> None:
        answers[new] = await sign_in(service, hired["email"], hired["password"], new)

    async with trio.open_nursery() as nursery:
        for new in ("the first password", "the second password"):
            nursery.start_soon(change, new)
    won = [new for new, answer in answers.items() if answer.status_code == 200]
    assert len(won) == 1
    assert [answer.status_code for new, answer in answers.items() if new not in won] in ([409], [401])
    assert (await sign_in(service, hired["email"], won[0])).status_code == 200


async def test_guessing_is_stopped_and_says_when_to_come_back(service: Service) -> None:
    email = service.demo["user"]["email"]
    guesses = [await sign_in(service, email, "guess") for _ in range(10)]
    assert {code(guess) for guess in guesses} == {(401, "invalid_login")}
    stopped = await sign_in(service, email, service.demo["user"]["password"])
    assert code(stopped) == (429, "too_many_sign_ins")
    assert 0 < int(stopped.headers["Retry-After"]) <= 900
    assert code(await sign_in(service, email.upper(), "guess")) == (429, "too_many_sign_ins")
    unknown = [await sign_in(service, "nobody@example.com", "guess") for _ in range(11)]
    assert [code(guess)[0] for guess in unknown] == [401] * 10 + [429]
    assert code(await sign_in(service, "else@example.com", "guess")) == (401, "invalid_login")


async def test_guesses_side_by_side_do_not_slip_through(service: Service) -> None:
    codes: list[int] = []

    async def guess() -> None:
        codes.append((await sign_in(service, "nobody@example.com", "guess")).status_code)

    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(guess)
    assert sorted(codes) == [401] * 10 + [429] * 20


async def test_a_good_sign_in_forgets_the_bad_ones_before(service: Service) -> None:
    user = service.demo["user"]
    for _ in range(3):
        for _ in range(9):
            assert (await sign_in(service, user["email"], "guess")).status_code == 401
        assert (await sign_in(service, user["email"], user["password"])).status_code == 200


async def test_installation_without_passwords_reports_it_and_makes_accounts_without_one(
    tmp_path: Path,
) -> None:
    keys = await public_keys(tmp_path)
    async with running(tmp_path / "data") as service:
        project = service.demo["projectId"]
        admin = await operate(service, "user.create", email="admin@example.com", role="owner")
    async with running(tmp_path / "data", own_tokens=False, **keys[0]) as service:
        user = service.demo["user"]
        assert code(await sign_in(service, user["email"], user["password"])) == (403, "sign_in_disabled")
        assert code(await service.dashboard.get(f"/projects/{project}")) == (401, "invalid_token")
        async with client(service, keys[1](admin["id"])) as http:
            assert (await http.get(f"/projects/{project}")).status_code == 200
            (organisation,) = (await http.get("/organisations")).json()["items"]
            path = f"/organisations/{organisation['id']}/members"
            made = await http.post(path, json={"email": "new@example.com", "role": "agent"})
            assert made.json()["password"] is None


async def public_keys(directory: Path) -> tuple[dict[str, Any], Any]:
    """Settings for tokens of an identity provider, and what makes such a token for a user."""
    from tests.support.sockets.identity_provider import Signer

    signer = Signer("RS256")
    file = directory / "public.pem"
    file.write_bytes(signer.pem())
    return {"jwt_public_key_file": file}, lambda user: signer.token(sub=user)


async def test_a_password_that_guessers_try_first_is_refused_wherever_one_is_chosen(service: Service) -> None:
    hired = await hire(service, "agent", "ada.lovelace@example.com")
    for weak in ("Password123!", "adalovelace1815", "deskwire2026"):
        refused = await sign_in(service, hired["email"], hired["password"], weak)
        assert code(refused) == (422, "invalid_input")
        (problem,) = refused.json()["errors"]
        assert (problem["pointer"], problem["code"]) == ("/newPassword", "too_guessable")
        assert weak not in refused.text
    token = (await sign_in(service, hired["email"], hired["password"], PASSWORD)).json()["token"]
    async with client(service, token) as http:
        body = {"password": PASSWORD, "newPassword": "qwertyuiop"}
        refused = await http.post("/users/me/password", json=body)
        assert refused.json()["errors"][0]["code"] == "too_guessable"
        assert "keys" in refused.json()["errors"][0]["message"] or "common" in refused.text
        assert (await http.get("/users/me")).status_code == 200
    assert (await sign_in(service, hired["email"], PASSWORD)).status_code == 200


async def test_a_one_time_password_does_not_replace_itself(service: Service) -> None:
    """Refuse it, because the admin who set it knows it."""
    hired = await hire(service, "agent")
    refused = await sign_in(service, hired["email"], hired["password"], hired["password"])
    assert refused.json()["errors"][0]["code"] == "unchanged"
    assert code(await sign_in(service, hired["email"], hired["password"])) == (
        403,
        "password_change_required",
    )


async def test_strength_of_a_new_password_is_checked_after_the_present_password(
    service: Service,
) -> None:
    hired = await hire(service, "agent")
    assert code(await sign_in(service, hired["email"], "wrong", "Password123!")) == (401, "invalid_login")
