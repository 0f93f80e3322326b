"""Sign-ins in the audit trail: whose, why they failed, and at what cost (ADR 45)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import httpx
import pytest

from deskwire.config.parsers import networks
from deskwire.engine.audit.trail import UNKNOWN_ACCOUNT_NETWORKS_MAX
from tests.support.api.audit_trail import trail, whole
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, client, code, hire, person, sign_in
from tests.support.log_leaks import plant
from tests.support.sockets.admin_socket import operate
from tests.support.stores import stored

WRONG: Final = plant("certainly not the password")
LOCAL: Final = networks("127.0.0.0/8")


async def attempt(service: Service, email: str, password: str, address: str) -> httpx.Response:
    headers = {"Authorization": "", "X-Forwarded-For": address}
    return await service.http.post(
        "/auth/token", json={"email": email, "password": password}, headers=headers
    )


async def test_failures_record_reason_network_and_count_and_never_the_password(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, trusted_proxies=LOCAL) as service, person(service, "agent") as agent:
        for address in ("203.0.113.7", "203.0.113.7", "2001:db8::1", "2001:db8::2", "198.51.100.1"):
            assert (await attempt(service, agent.email, WRONG, address)).status_code == 401
        failed = await trail(service, action="sign_in.failed", object=agent.id)
        assert [(each["address"], each["count"]) for each in reversed(failed)] == [
            ("203.0.113.7", 2),
            ("2001:db8::1", 2),  # a customer's /64 is one place
            ("198.51.100.1", 1),
        ]
        for each in failed:
            assert each["actor"] == {"type": "anonymous", "id": None, "name": None}
            assert each["details"] == {"reason": "invalid_login"}
            assert each["lastAt"] >= each["at"]
        assert WRONG not in str(await whole(service))


async def test_sign_in_to_an_unknown_account_is_recorded_for_the_operator_only(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, trusted_proxies=LOCAL) as service:
        for name in ("nobody@example.com", "My-Password-In-The-Wrong-Field"):
            assert (await attempt(service, name, WRONG, "203.0.113.7")).status_code == 401
        (record,) = [each for each in await whole(service) if each["action"] == "sign_in.failed"]
        assert record["object"] == {"type": "account", "id": None, "name": None}
        assert (record["organisationId"], record["count"]) == (None, 2)
        assert "nobody" not in str(record)
        assert await trail(service, action="sign_in.failed") == []
    assert b"My-Password-In-The-Wrong-Field" not in stored(tmp_path)


@pytest.mark.long
async def test_a_flood_of_failures_takes_a_bounded_number_of_records(tmp_path: Path) -> None:
    """Send attempts from more networks than there is room for, at accounts of which one exists."""
    many = UNKNOWN_ACCOUNT_NETWORKS_MAX + 30
    async with running(tmp_path, trusted_proxies=LOCAL, auth_failures_per_minute=0) as service:
        for number in range(many):
            address = f"203.0.{number // 250}.{number % 250}"
            assert (await attempt(service, f"a{number}@example.com", WRONG, address)).status_code == 401
        user = service.demo["user"]["email"]
        assert (await attempt(service, user, WRONG, "198.51.100.1")).status_code == 401
        failed = [each for each in await whole(service) if each["action"] == "sign_in.failed"]
        nobodys = [each for each in failed if each["object"]["id"] is None]
        assert sum(each["count"] for each in nobodys) == many
        assert len(nobodys) <= 2 * (
            UNKNOWN_ACCOUNT_NETWORKS_MAX + 1
        )  # the flood may pass a quarter of an hour's end
        assert None in {each["address"] for each in nobodys}
        (known,) = [each for each in failed if each["object"]["id"] is not None]
        assert known["address"] == "198.51.100.1"  # no flood of others' hides it


async def test_refusals_of_a_throttled_client_are_recorded_once_without_a_write_each(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, trusted_proxies=LOCAL, auth_failures_per_minute=0) as service:
        user = service.demo["user"]["email"]
        answers = [await attempt(service, user, WRONG, "203.0.113.7") for _ in range(30)]
        assert {each.status_code for each in answers} == {401, 429}
        reasons = {
            each["details"]["reason"]: each["count"] for each in await trail(service, action="sign_in.failed")
        }
        assert reasons["too_many_sign_ins"] <= 2  # the same at a quarter of an hour's end
        refused = sum(each.status_code == 429 for each in answers)
        assert reasons["invalid_login"] == 30 - refused


async def test_one_time_password_sign_in_is_a_failure_until_its_replacement(
    service: Service,
) -> None:
    hired = await hire(service, "agent")
    assert code(await sign_in(service, hired["email"], hired["password"])) == (
        403,
        "password_change_required",
    )
    await sign_in(service, hired["email"], hired["password"], PASSWORD)
    succeeded, changed, failed, *_ = await trail(service, object=hired["id"])
    assert failed["details"] == {"reason": "password_change_required"}
    assert changed["action"] == "account.password_changed"
    assert changed["changes"] == {"passwordTemporary": {"before": True, "after": False}}
    assert succeeded["action"] == "sign_in.succeeded"
    user = {"type": "user", "id": hired["id"], "name": hired["email"]}
    assert changed["actor"] == succeeded["actor"] == user
    assert failed["actor"]["type"] == "anonymous"


async def test_only_the_organisations_of_a_member_see_its_sign_ins(service: Service) -> None:
    hired = await hire(service, "agent")
    for name in ("Second", "Third"):
        await operate(service, "org.create", name=name)
    await operate(
        service, "user.add", user=hired["id"], organisation="Second", role="viewer", password="keep"
    )
    await sign_in(service, hired["email"], hired["password"], PASSWORD)
    seen = {
        name: [
            each["action"]
            for each in await whole(service, organisation=name, target=hired["id"])
            if each["action"].startswith("sign_in")
        ]
        for name in ("Demo organisation", "Second", "Third")
    }
    assert seen == {
        "Demo organisation": ["sign_in.succeeded"],
        "Second": ["sign_in.succeeded"],
        "Third": [],
    }


async def test_many_sign_ins_in_a_row_share_a_record(service: Service) -> None:
    user = service.demo["user"]
    for _ in range(3):
        assert (await sign_in(service, user["email"], user["password"])).status_code == 200
    found = await trail(service, action="sign_in.succeeded")
    assert sum(each["count"] for each in found) == 3
    assert len(found) <= 2


async def test_wrong_password_of_a_signed_in_user_counts_too(service: Service) -> None:
    async with person(service, "agent") as agent, client(service, agent.token) as http:
        body = {"password": WRONG, "newPassword": plant("another long password")}
        assert code(await http.post("/users/me/password", json=body)) == (401, "invalid_login")
        (failed,) = await trail(service, action="sign_in.failed")
        assert failed["actor"]["id"] == failed["object"]["id"] == agent.id
