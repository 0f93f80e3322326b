"""The ends of server keys and machine credentials: refused after them, warned of before, and bounded by the operator."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from deskwire.engine.accounts import projects
from deskwire.engine.core.clock import iso, milliseconds, wall_clock
from tests.api.accounts.test_own_sessions import HOUR_MS, SetClock
from tests.api.stream.test_revocation import Streams, project_channel, revoke
from tests.support.api.audit_trail import trail
from tests.support.api.openapi_check import caller
from tests.support.api.service import Service, running
from tests.support.api.staff import code, person
from tests.support.log_leaks import plant
from tests.support.sockets.admin_socket import operate

DAY_MS = 24 * HOUR_MS


async def make_key(service: Service, **body: Any) -> httpx.Response:
    path = f"/projects/{service.demo['projectId']}/keys"
    answer = await service.dashboard.post(path, json={"label": "CRM", **body})
    plant(answer.json().get("key", ""))
    return answer


async def make_credential(service: Service, **body: Any) -> httpx.Response:
    path = f"/projects/{service.demo['projectId']}/credentials"
    answer = await service.dashboard.post(path, json={"name": "BI", "permissions": ["tickets.read"], **body})
    plant(answer.json().get("secret", ""))
    return answer


def in_days(days: float) -> str:
    return iso(wall_clock() + int(days * DAY_MS))


async def health(service: Service) -> list[dict[str, Any]]:
    answer = await service.dashboard.get(f"/projects/{service.demo['projectId']}/health")
    found: list[dict[str, Any]] = answer.json()["credentialsEnding"]
    return found


async def test_a_key_shows_its_end_and_is_refused_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(monkeypatch)
    async with running(tmp_path) as service:
        ends = in_days(30)
        made = (await make_key(service, expiresAt=ends)).json()
        assert made["expiresAt"] == ends
        listed = (await service.dashboard.get(f"/projects/{service.demo['projectId']}/keys")).json()["items"]
        assert [each["expiresAt"] for each in listed] == [ends, None]
        (record,) = await trail(service, action="key.created", object=made["id"])
        assert record["changes"]["expiresAt"] == {"before": None, "after": ends}
        async with caller(service.url, {"Authorization": f"Bearer {made['key']}"}) as backend:
            assert (await backend.get("/v3/s2s/project")).status_code == 200
            clock.ahead_ms = 30 * DAY_MS + 1_000
            refused = await backend.get("/v3/s2s/project")
            assert code(refused) == (401, "key_expired")
            assert ends in refused.json()["detail"]
            assert (await service.http.get("/s2s/project")).status_code == 200, "the other key has no end"


async def test_an_expired_key_leaves_its_open_streams_and_a_revoked_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(monkeypatch)
    async with running(tmp_path) as service, AsyncExitStack() as stack:
        made = (await make_key(service, expiresAt=in_days(30))).json()
        opened = await Streams(service, stack).open(made["key"])
        await opened.subscribe(project_channel(service))
        clock.ahead_ms = 31 * DAY_MS
        await service.create("after-the-end")
        assert (await opened.peer.message())["event"] == "conversation.created"
        await revoke(service, made)
        assert (await opened.ended())[0] == 4009


async def test_the_end_of_a_key_lies_ahead_and_a_repeated_request_makes_no_second_key(
    service: Service,
) -> None:
    refused = await make_key(service, label="", expiresAt=in_days(-1))
    assert refused.status_code == 422
    assert {each["pointer"] for each in refused.json()["errors"]} == {"/label", "/expiresAt"}
    assert (await make_key(service, expiresAt="tomorrow")).status_code == 422
    path, body = f"/projects/{service.demo['projectId']}/keys", {"label": "CRM", "expiresAt": in_days(30)}
    once, again = [
        (await service.dashboard.post(path, json=body, headers={"Idempotency-Key": "k1"})).json()
        for _ in "ab"
    ]
    plant(once["key"])
    assert (once["id"], once["expiresAt"]) == (again["id"], again["expiresAt"])
    assert again["key"] == f"sk_…{once['key'][-4:]}"


async def test_expired_keys_do_not_count_to_the_limit_of_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "SERVER_KEYS_MAX", 2)
    clock = SetClock(monkeypatch)
    async with running(tmp_path) as service:
        assert (await make_key(service, expiresAt=in_days(1))).status_code == 200
        assert code(await make_key(service)) == (409, "key_limit_reached")
        clock.ahead_ms = 2 * DAY_MS
        assert (await make_key(service)).status_code == 200


async def test_credentials_that_end_within_a_week_are_in_the_health_and_the_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(monkeypatch)
    async with running(tmp_path) as service:
        key = (await make_key(service, expiresAt=in_days(30))).json()
        made = (await make_credential(service, expiresAt=in_days(29))).json()
        gone = (await make_key(service, label="Old", expiresAt=in_days(28))).json()
        await revoke(service, gone)
        await make_credential(service, name="Forever")
        assert await health(service) == []
        assert await metrics(service, "ending") == {"server_key": 0, "machine_credential": 0}
        assert await metrics(service, "endless") == {"server_key": 1, "machine_credential": 1}
        clock.ahead_ms = 24 * DAY_MS
        await make_key(service, label="For a day", expiresAt=in_days(25))
        assert await health(service) == [
            {"type": "machine_credential", "id": made["id"], "name": "BI", "expiresAt": made["expiresAt"]},
            {"type": "server_key", "id": key["id"], "name": "CRM", "expiresAt": key["expiresAt"]},
        ]
        assert await metrics(service, "ending") == {"server_key": 1, "machine_credential": 1}
        async with person(service, "agent") as agent:
            answer = await agent.http.get(f"/projects/{service.demo['projectId']}/health")
            assert answer.json()["credentialsEnding"] == [], "agents do not manage credentials"
        clock.ahead_ms = 31 * DAY_MS
        assert await health(service) == []


async def test_the_operator_bounds_the_life_of_new_credentials(tmp_path: Path) -> None:
    async with running(tmp_path, credential_max_s=90 * 86_400.0) as service:
        for make in (make_key, make_credential):
            latest = (await make(service)).json()
            assert 89.9 < days_until(latest["expiresAt"]) <= 90
            sooner = in_days(60)
            assert (await make(service, expiresAt=sooner)).json()["expiresAt"] == sooner
            refused = await make(service, expiresAt=in_days(91))
            assert refused.status_code == 422
            (problem,) = refused.json()["errors"]
            assert (problem["pointer"], problem["code"]) == ("/expiresAt", "too_late")
        path = f"/projects/{service.demo['projectId']}/credentials/{latest['id']}"
        cleared = (await service.dashboard.patch(path, json={"expiresAt": None})).json()
        assert 89.9 < days_until(cleared["expiresAt"]) <= 90, "without a time it is the latest one"
        assert (await service.dashboard.patch(path, json={"name": "B"})).json()["expiresAt"] == cleared[
            "expiresAt"
        ]
        assert (await service.dashboard.patch(path, json={"expiresAt": in_days(91)})).status_code == 422


@pytest.mark.sqlite  # with PostgreSQL the command has settings of its own
async def test_the_operator_bounds_the_life_of_keys_that_a_command_makes(tmp_path: Path) -> None:
    async with running(tmp_path, credential_max_s=90 * 86_400.0) as service:
        by_command = await operate(service, "key.create", label="x")
        plant(by_command["key"])
        assert 89.9 < days_until(by_command["expiresAt"]) <= 90
        ended = await operate(service, "key.create", label="x", expiresAt=in_days(3))
        plant(ended["key"])
        assert 2.9 < days_until(ended["expiresAt"]) <= 3


def days_until(time: str) -> float:
    return (milliseconds(time) - wall_clock()) / DAY_MS


async def metrics(service: Service, what: str) -> dict[str, float]:
    """Return the gauge of credentials by their type."""
    text = (await service.http.get(f"{service.url}/metrics")).text
    found = re.findall(rf'^deskwire_credentials_{what}{{kind="(\w+)"}} (\S+)$', text, re.MULTILINE)
    return {kind: float(value) for kind, value in found}
