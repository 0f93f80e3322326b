"""Webhooks, deliveries and consumers for users, under their role's permissions.

Source: ADR 10.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.api.accounts.test_tenants import stranger
from tests.api.events.test_channels_agree import consuming, receiving, register
from tests.support.api.service import Service, running
from tests.support.api.staff import code, person
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver, answering

LOOK_S = 0.02


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Yield a service that retries quickly."""
    async with running(tmp_path, webhook_retry_after_s=(0.01, 0.01, 0.01)) as started:
        yield started


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Yield a receiver that accepts everything."""
    async with receiving() as started:
        yield started


async def deliveries(service: Service, endpoint: dict[str, Any], count: int, **params: Any) -> list[Any]:
    """Return the endpoint's log when this many deliveries have ended."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            answer = await service.dashboard.get(f"/webhooks/{endpoint['id']}/deliveries", params=params)
            assert answer.status_code == 200, answer.text
            items: list[Any] = answer.json()["items"]
            if len(items) >= count and all(each["status"] != "pending" for each in items):
                return items
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def test_a_user_registers_an_endpoint_tests_changes_rotates_and_deletes_it(
    service: Service, receiver: Receiver
) -> None:
    made = (
        await service.dashboard.post("/webhooks", json={"url": receiver.url, "description": "CRM"})
    ).json()
    assert made["secret"].startswith("whsec_")
    assert "…" not in made["secret"]
    path = f"/webhooks/{made['id']}"
    assert (await service.dashboard.get(path)).json()["secret"].startswith("whsec_…")
    tested = (await service.dashboard.post(f"{path}/test")).json()
    assert (tested["status"], tested["eventType"]) == ("delivered", "webhook.test")
    rotated = (await service.dashboard.post(f"{path}/rotate-secret")).json()
    assert rotated["secret"] != made["secret"]
    changed = (await service.dashboard.patch(path, json={"status": "disabled"})).json()
    assert changed["status"] == "disabled"
    assert (await service.dashboard.delete(path)).json() == {"id": made["id"], "deleted": True}
    assert (await service.dashboard.get("/webhooks")).json()["items"] == []


async def test_users_and_server_keys_see_the_same_endpoints_and_deliveries(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url)
    await service.create(message={"text": "Hi"})
    (latest, *_) = await deliveries(service, endpoint, 2)
    for path in ("webhooks", f"webhooks/{endpoint['id']}", f"deliveries/{latest['id']}"):
        ours, theirs = await service.dashboard.get(f"/{path}"), await service.http.get(f"/s2s/{path}")
        assert ours.json() == theirs.json()
    again = (await service.dashboard.post(f"/deliveries/{latest['id']}/redeliver")).json()
    assert again["redeliveryOf"] == latest["id"]


async def test_the_audit_trail_names_the_user_who_changed_an_endpoint(
    service: Service, receiver: Receiver
) -> None:
    async with person(service, "admin") as admin:
        headers = {"project": service.demo["projectId"]}
        made = await admin.http.post("/webhooks", json={"url": receiver.url}, headers=headers)
        assert made.status_code == 200
    organisation = (await service.dashboard.get("/organisations")).json()["items"][0]["id"]
    trail = (await service.dashboard.get(f"/organisations/{organisation}/audit")).json()["items"]
    (found,) = [each for each in trail if each["action"] == "webhook.created"]
    assert (found["actor"]["type"], found["actor"]["id"]) == ("user", admin.id)


@pytest.mark.parametrize("role", ["viewer", "agent"])
async def test_users_without_permission_see_neither_urls_nor_secrets(
    service: Service, receiver: Receiver, role: str
) -> None:
    endpoint = await register(service, f"{receiver.url}hook?key=s3cret")
    await service.create(message={"text": "Hi"})
    (latest, *_) = await deliveries(service, endpoint, 2)
    async with person(service, role) as somebody:
        somebody.http.headers["project"] = service.demo["projectId"]
        own = f"/webhooks/{endpoint['id']}"
        for method, path in (
            ("GET", "/webhooks"),
            ("GET", own),
            ("GET", f"{own}/deliveries"),
            ("GET", f"{own}/figures"),
            ("GET", f"/deliveries/{latest['id']}"),
            ("POST", f"{own}/test"),
            ("POST", f"{own}/rotate-secret"),
            ("POST", f"/deliveries/{latest['id']}/redeliver"),
            ("GET", "/stream/consumers"),
        ):
            answer = await somebody.http.request(method, path)
            assert code(answer) == (403, "permission_denied"), (method, path)
            assert "s3cret" not in answer.text


async def test_an_endpoint_of_another_project_is_not_found(service: Service, receiver: Receiver) -> None:
    endpoint = await register(service, receiver.url)
    conversation = await service.create(message={"text": "Hi"})
    (latest, *_) = await deliveries(service, endpoint, 2)
    async with stranger(service) as other:
        for method, path, expected in (
            ("GET", f"/webhooks/{endpoint['id']}", "webhook_not_found"),
            ("GET", f"/webhooks/{endpoint['id']}/deliveries", "webhook_not_found"),
            ("GET", f"/webhooks/{endpoint['id']}/figures", "webhook_not_found"),
            ("POST", f"/webhooks/{endpoint['id']}/test", "webhook_not_found"),
            ("GET", f"/deliveries/{latest['id']}", "delivery_not_found"),
            ("POST", f"/deliveries/{latest['id']}/redeliver", "delivery_not_found"),
            ("GET", f"/events/{latest['eventId']}", "event_not_found"),
            ("GET", f"/conversations/{conversation['id']}/consumers", "conversation_not_found"),
        ):
            answer = await other.agent.request(method, f"/v3{path}")
            assert code(answer) == (404, expected), (method, path)


async def test_figures_count_the_outcomes_of_each_hour(service: Service, receiver: Receiver) -> None:
    endpoint = await register(service, receiver.url)
    async with receiving() as broken:
        broken.behaviour = answering("500 Internal Server Error")
        failing = await register(service, broken.url)
        await service.create(message={"text": "Hi"})
        await deliveries(service, endpoint, 2)
        await deliveries(service, failing, 2)
    found = (await service.dashboard.get(f"/webhooks/{endpoint['id']}/figures")).json()
    assert found["bucket"] == "hour"
    assert 24 <= len(found["items"]) <= 26
    assert sum(each["delivered"] for each in found["items"]) == 2
    assert found["latency"]["deliveries"] == 2
    assert 0 <= found["latency"]["p50Ms"] <= found["latency"]["p99Ms"] < 60_000
    dropped = (
        await service.dashboard.get(f"/webhooks/{failing['id']}/figures", params={"bucket": "day"})
    ).json()
    assert 1 <= len(dropped["items"]) <= 2
    assert sum(each["dropped"] for each in dropped["items"]) == 2
    assert dropped["latency"] == {"deliveries": 0, "p50Ms": None, "p99Ms": None}
    bad = await service.dashboard.get(
        f"/webhooks/{failing['id']}/figures", params={"bucket": "week", "since": "soon"}
    )
    assert bad.status_code == 400
    assert {each["pointer"] for each in bad.json()["errors"]} == {"/bucket", "/since"}


async def test_users_with_permission_list_and_end_consumers(service: Service) -> None:
    async with consuming(service) as consumer:
        await consumer.subscribe("mirror-1")
        (found,) = (await service.dashboard.get("/stream/consumers")).json()["items"]
        assert (found["consumerId"], found["connected"]) == ("mirror-1", True)
        ended = (await service.dashboard.delete("/stream/consumers/mirror-1")).json()
        assert ended["ended"] == [found["channel"]]
