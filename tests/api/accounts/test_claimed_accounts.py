"""No access to an organisation through an account that another organisation has created (ADR 15).

Acme has registered the address of a Globex employee, and knows the password. Globex then adds that address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.api.accounts.test_passkeys import add, by_passkey, options_of, origin_of, page_at
from tests.api.accounts.test_second_factor import clock, enrol
from tests.support.api.audit_trail import whole
from tests.support.api.browsers import enter
from tests.support.api.service import Service
from tests.support.api.staff import PASSWORD, client, code, hire, organisation_of, sign_in
from tests.support.authenticator import Authenticator
from tests.support.sockets.admin_socket import operate

__all__ = ["clock"]

VICTIM = "victim@globex.example"
KNOWN = "known to acme from the start"


@dataclass
class Case:
    """The attack: Acme has a token and the password of the account, and Globex the project under attack."""

    service: Service
    token: str
    globex: dict[str, Any]
    project: str

    async def sees_globex(self, token: str) -> bool:
        """Return whether a token opens the project of Globex."""
        async with client(self.service, token) as http:
            answer = await http.get(f"/projects/{self.project}")
        assert answer.status_code in (200, 401, 404)
        return answer.status_code == 200

    async def signed_in(self, password: str, new: str | None = None) -> httpx.Response:
        """Return the response to a sign-in as the victim."""
        return await sign_in(self.service, VICTIM, password, new)

    async def add(self, handover: str | None = "new") -> dict[str, Any]:
        """Have the operator add the account to Globex."""
        more = {} if handover is None else {"password": handover}
        return await operate(
            self.service, "user.add", user=VICTIM, organisation="Globex", role="agent", **more
        )


@pytest.fixture
async def case(service: Service) -> Case:
    """Acme is the demo's organisation; its admin makes the account and replaces the one-time password."""
    hired = await hire(service, "agent", VICTIM)
    token = (await sign_in(service, VICTIM, hired["password"], KNOWN)).json()["token"]
    globex = await operate(service, "org.create", name="Globex")
    project = await operate(service, "project.create", organisation="Globex", project={"name": "P"})
    return Case(service, token, globex, project["id"])


async def test_former_password_gives_no_access_to_the_other_organisation(case: Case) -> None:
    added = await case.add()
    assert not await case.sees_globex(case.token)
    assert code(await case.signed_in(KNOWN)) == (401, "invalid_login")
    assert code(await case.signed_in(KNOWN, "another long password")) == (401, "invalid_login")
    owner = await case.signed_in(added["password"], PASSWORD)
    assert await case.sees_globex(owner.json()["token"])


async def test_passkey_of_the_former_organisation_gives_no_access_to_the_other_one(case: Case) -> None:
    """Acme has signed in as the victim, and has added its own passkey and authenticator app."""
    service = case.service
    async with page_at(service) as acme:
        await enter(acme, VICTIM, KNOWN)
        passkey = Authenticator(origin_of(service))
        assert (await add(acme, passkey)).status_code == 200
        await enrol(acme)
        added = await case.add()
        options = await options_of(acme)
        signed = await by_passkey(acme, options, passkey.get(options["publicKey"]))
        assert code(signed) == (401, "invalid_passkey")
    victim = await case.signed_in(added["password"], PASSWORD)
    assert victim.status_code == 200, "no factor of Acme keeps the victim out"
    assert await case.sees_globex(victim.json()["token"])
    seen = await whole(service, target=added["id"], action="account.factors_reset")
    assert {each["actor"]["type"] for each in seen} == {"operator"}


async def test_passkey_of_an_account_without_memberships_ends_when_it_is_added_again(case: Case) -> None:
    service = case.service
    async with page_at(service) as former:
        await enter(former, VICTIM, KNOWN)
        passkey = Authenticator(origin_of(service))
        assert (await add(former, passkey)).status_code == 200
        members = f"/organisations/{await organisation_of(service)}/members"
        mine = (await former.get("/users/me")).json()["id"]
        assert (await service.dashboard.delete(f"{members}/{mine}")).status_code == 200
        added = await service.dashboard.post(members, json={"email": VICTIM, "role": "agent"})
        assert added.status_code == 200, added.text
        options = await options_of(former)
        signed = await by_passkey(former, options, passkey.get(options["publicKey"]))
        assert code(signed) == (401, "invalid_passkey")


async def test_earlier_memberships_stay(case: Case) -> None:
    added = await case.add()
    token = (await case.signed_in(added["password"], PASSWORD)).json()["token"]
    async with client(case.service, token) as http:
        names = [each["name"] for each in (await http.get("/organisations")).json()["items"]]
    assert len(names) == 2
    members = f"/organisations/{await organisation_of(case.service)}/members"
    assert VICTIM in (await case.service.dashboard.get(members)).text


async def test_former_organisation_can_not_take_the_account_back(case: Case) -> None:
    """Not by adding the address again, not after ending the membership, and not by deleting what it signs in as."""
    added = await case.add()
    members = f"/organisations/{await organisation_of(case.service)}/members"
    invite = {"email": VICTIM, "role": "agent"}
    assert code(await case.service.dashboard.post(members, json=invite)) == (409, "already_member")
    assert (await case.service.dashboard.delete(f"{members}/{added['id']}")).status_code == 200
    assert code(await case.service.dashboard.post(members, json=invite)) == (409, "email_in_use")
    async with client(case.service, case.token) as http:
        assert (await http.delete("/users/me")).status_code == 401
    assert await case.sees_globex((await case.signed_in(added["password"], PASSWORD)).json()["token"])


async def test_an_admin_of_the_other_organisation_can_not_take_it_either(case: Case) -> None:
    """Or it would come into the first one in the same way: adding an account from elsewhere is the operator's."""
    boss = await operate(
        case.service, "user.create", email="boss@globex.example", organisation="Globex", role="owner"
    )
    token = (await operate(case.service, "token.create", user=boss["id"], ttlS=60))["token"]
    async with client(case.service, token) as http:
        path = f"/organisations/{case.globex['id']}/members"
        taken = await http.post(path, json={"email": VICTIM.upper(), "role": "agent"})
        assert code(taken) == (409, "email_in_use")
    assert (await case.signed_in(KNOWN)).status_code == 200


async def test_account_is_not_added_without_a_decision(case: Case) -> None:
    with pytest.raises(AssertionError, match="other_home"):
        await case.add(None)
    assert not await case.sees_globex(case.token)
    assert (await case.signed_in(KNOWN)).status_code == 200


async def test_account_that_its_home_gave_up_gives_no_access_either(case: Case) -> None:
    """Acme ends the membership first, so that the account is a member of nothing, and waits."""
    members = f"/organisations/{await organisation_of(case.service)}/members"
    (victim,) = [
        each
        for each in (await case.service.dashboard.get(members)).json()["items"]
        if each["email"] == VICTIM
    ]
    assert (await case.service.dashboard.delete(f"{members}/{victim['id']}")).status_code == 200
    with pytest.raises(AssertionError, match="other_home"):
        await case.add(None)
    await case.add()
    assert not await case.sees_globex(case.token)
    assert code(await case.signed_in(KNOWN)) == (401, "invalid_login")


async def test_account_without_a_home_belongs_to_the_admin_who_adds_it(case: Case) -> None:
    """The operator has made it for Globex, and Acme's admin is faster."""
    await operate(case.service, "user.create", email="loner@globex.example")
    taken = await hire(case.service, "viewer", "loner@globex.example")
    with pytest.raises(AssertionError, match="other_home"):
        await operate(case.service, "user.add", user=taken["id"], organisation="Globex", role="agent")


async def test_a_third_organisation_is_asked_again(case: Case) -> None:
    """Hold the case that the holder of the one-time password is at Globex."""
    first = await case.add()
    await operate(case.service, "org.create", name="Initech")
    order = {"user": VICTIM, "organisation": "Initech", "role": "viewer"}
    with pytest.raises(AssertionError, match="Globex"):
        await operate(case.service, "user.add", **order)
    second = await operate(case.service, "user.add", **order, password="new")
    assert code(await case.signed_in(first["password"], PASSWORD)) == (401, "invalid_login")
    assert (await case.signed_in(second["password"], PASSWORD)).status_code == 200


async def test_operator_can_keep_the_known_password(case: Case) -> None:
    added = await case.add("keep")
    assert "password" not in added
    assert await case.sees_globex(case.token)


async def test_existing_member_keeps_everything(case: Case) -> None:
    await case.add("keep")
    with pytest.raises(AssertionError, match="already_member"):
        await case.add("new")
    assert (await case.signed_in(KNOWN)).status_code == 200
