"""Refused calls in the audit trail: counted by credential, or by network where none is known (ADR 45)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import trio

from deskwire.config.parsers import networks
from deskwire.engine.audit.refusals import PENDING_MAX, RefusedCall, RefusedCalls
from deskwire.engine.audit.trail import ChangeOrigin
from deskwire.engine.core.actor import ANONYMOUS, Actor
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.errors import Unavailable
from tests.support.api.audit_trail import Record, trail, whole
from tests.support.api.browsers import PAGE, browser, enter, staff
from tests.support.api.machines import make
from tests.support.api.service import Service, running, tapping
from tests.support.api.staff import PASSWORD, client, person
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.log_leaks import plant

LOCAL: Final = networks("127.0.0.0/8")
FROM: Final = {"X-Forwarded-For": "203.0.113.7"}


async def counted(look: Callable[[], Any], calls: int) -> list[Record]:
    """Return the records of refused calls once they count that many."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            found: list[Record] = await look()
            if sum(each["count"] for each in found) >= calls:
                return found
            await trio.sleep(0.05)  # poll: they are written every few seconds, without a notification


async def refused(service: Service, calls: int) -> list[Record]:
    return await counted(lambda: trail(service, action="access.refused"), calls)


async def test_refused_calls_of_a_viewer_are_counted(tmp_path: Path) -> None:
    async with running(tmp_path, trusted_proxies=LOCAL) as service, person(service, "viewer") as viewer:
        project = service.demo["projectId"]
        viewer.http.headers.update(FROM)
        for _ in range(3):
            answer = await viewer.http.post(f"/projects/{project}/keys", json={"label": "L"})
            assert answer.status_code == 403
        (record,) = await refused(service, 3)
        assert record["actor"] == {"type": "user", "id": viewer.id, "name": viewer.email}
        assert record["details"] == {"reason": "permission_denied", "route": "createKey"}
        assert (record["count"], record["address"]) == (3, "203.0.113.7")
        assert record["projectId"] == project


async def test_refused_calls_of_a_machine_are_counted_under_its_id(service: Service) -> None:
    made = await make(service, ["tickets.read"])
    async with client(service, made["secret"]) as http:
        assert (await http.get("/s2s/conversations")).status_code == 403
    (record,) = await refused(service, 1)
    assert record["actor"] == {"type": "machine", "id": made["id"], "name": made["name"]}
    assert record["details"]["route"] == "listConversations"


async def test_revoked_credentials_are_counted_under_their_ids(service: Service) -> None:
    project = f"/projects/{service.demo['projectId']}"
    key = (await service.dashboard.post(f"{project}/keys", json={"label": "Old"})).json()
    machine = await make(service, ["tickets.read"])
    await service.dashboard.post(f"{project}/keys/{key['id']}/revoke")
    await service.dashboard.delete(f"{project}/credentials/{machine['id']}")
    for secret in (plant(key["key"]), machine["secret"]):
        async with client(service, secret) as http:
            assert (await http.get("/s2s/conversations")).status_code == 401
    found = {each["actor"]["id"]: each["details"]["reason"] for each in await refused(service, 2)}
    assert found == {key["id"]: "revoked_server_key", machine["id"]: "revoked_machine_credential"}


async def test_unknown_secrets_are_counted_by_network_for_the_operator(tmp_path: Path) -> None:
    async with running(tmp_path, trusted_proxies=LOCAL) as service:
        for secret, address in (
            ("sk_" + "1" * 43, "203.0.113.7"),
            ("sk_" + "2" * 43, "203.0.113.7"),
            ("mk_" + "3" * 43, "2001:db8::1"),
            ("mk_" + "4" * 43, "2001:db8::2"),
            ("eyJhbGciOiJub25lIn0.e30.", "203.0.113.7"),
        ):
            async with client(service, secret) as http:
                headers = {"X-Forwarded-For": address, "project": service.demo["projectId"]}
                path = "/conversations" if secret.startswith("ey") else "/s2s/conversations"
                assert (await http.get(path, headers=headers)).status_code == 401
        found = await counted(lambda: whole(service, action="access.refused"), 5)
        said = {(each["details"]["reason"], each["address"]): each["count"] for each in found}
        assert sorted(said.values()) == [1, 2, 2]
        assert {each["actor"]["type"] for each in found} == {"anonymous"}
        assert {each["organisationId"] for each in found} == {None}
        assert await trail(service, action="access.refused") == [], "it is in no organisation's"


async def test_a_cookie_from_another_site_is_counted_under_its_user(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service, PAGE) as page:
        assert (await enter(page, hired["email"], PASSWORD)).status_code == 200
        assert (await page.get("/users/me")).status_code == 200
        headers = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        answer = await page.patch("/users/me", json={"name": "Eve"}, headers=headers)
        assert answer.status_code == 403
    (record,) = await refused(service, 1)
    assert record["actor"]["id"] == hired["id"]
    assert record["details"] == {"reason": "cross_site_request", "route": "changeMe"}


async def test_anonymous_calls_and_failed_sign_ins_do_not_count_as_refused(
    service: Service,
) -> None:
    assert (await service.http.get("/s2s/project", headers={"Authorization": ""})).status_code == 401
    wrong = {"email": "nobody@example.com", "password": "certainly wrong words"}
    answer = await service.http.post("/auth/token", json=wrong, headers={"Authorization": ""})
    assert answer.status_code == 401
    async with client(service, "sk_" + "5" * 43) as http:
        assert (await http.get("/s2s/project")).status_code == 401
    (record,) = await counted(lambda: whole(service, action="access.refused"), 1)
    assert record["details"]["reason"] == "invalid_server_key"


async def test_flood_of_refusals_takes_bounded_space_and_loses_no_count(
    tmp_path: Path, monkeypatch: Any
) -> None:
    stores = tapping(monkeypatch)
    async with running(tmp_path) as service:
        calls, now = RefusedCalls(stores[0]), wall_clock()
        for number in range(PENDING_MAX + 500):
            network = f"198.51.{number // 256}.{number % 256}"
            kind = RefusedCall(now // 900_000, ANONYMOUS, "invalid_server_key", network)
            calls.note(kind, ChangeOrigin(ANONYMOUS, now, network), "getProject")
        known = RefusedCall(now // 900_000, Actor("server_key", "key_x"), "permission_denied", "192.0.2.1")
        calls.note(known, ChangeOrigin(known.actor, now, "192.0.2.1"), "getProject")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(calls.run)
            found = await counted(lambda: whole(service, action="access.refused"), PENDING_MAX + 501)
            nursery.cancel_scope.cancel()
        assert sum(each["count"] for each in found) == PENDING_MAX + 501
        assert len(found) <= 203, "two hundred networks, and one record each for all others"
        (own,) = [each for each in found if each["actor"]["id"] == "key_x"]
        assert own["address"] is None


class FullOnce:
    """A store whose disk is full at the first write."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.refused = 0

    async def write(self, job: Any) -> Any:
        if not self.refused:
            self.refused += 1
            raise Unavailable("The disk is full.", code="storage_failed")
        return await self._store.write(job)


async def test_a_full_disk_loses_no_count_of_refusals(tmp_path: Path, monkeypatch: Any) -> None:
    stores = tapping(monkeypatch)
    async with running(tmp_path) as service:
        full: Any = FullOnce(stores[0])
        calls, now = RefusedCalls(full), wall_clock()
        kind = RefusedCall(now // 900_000, Actor("server_key", "key_x"), "permission_denied", "192.0.2.1")
        for _ in range(3):
            calls.note(kind, ChangeOrigin(kind.actor, now, "192.0.2.1"), "getProject")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(calls.run)
            (record,) = await counted(lambda: whole(service, action="access.refused"), 3)
            nursery.cancel_scope.cancel()
        assert (full.refused, record["count"]) == (1, 3)


async def test_refusals_that_wait_are_written_when_the_service_stops(tmp_path: Path) -> None:
    async with running(tmp_path) as service, client(service, "sk_" + "6" * 43) as http:
        for _ in range(3):
            assert (await http.get("/s2s/project")).status_code == 401
    async with running(tmp_path) as service:
        (record,) = await whole(service, action="access.refused")
        assert record["count"] == 3
