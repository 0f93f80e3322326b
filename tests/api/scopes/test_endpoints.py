"""Webhook endpoints that machine credentials make or change: they deliver what these may read, and end with them (ADR 70)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import trio

from tests.api.accounts.test_machine_credentials import code, in_seconds, records
from tests.api.events.test_channels_agree import receiving, register
from tests.api.webhooks.test_deliveries import ask, deliveries, ended
from tests.support.api.machines import credentials_of, make, showing
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver
from tests.support.sockets.server_process import free_port

ENDPOINTS = ("webhooks.manage", "conversations.read")


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as started:
        yield started


async def registered(http: httpx.AsyncClient, url: str, **fields: Any) -> dict[str, Any]:
    answer = await http.post("/s2s/webhooks", json={"url": url, **fields})
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def shown(service: Service, endpoint: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await service.http.get(f"/s2s/webhooks/{endpoint['id']}")).json()
    return found


async def disabled(service: Service, endpoint: dict[str, Any]) -> dict[str, Any]:
    """Return the endpoint once it is disabled."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while (found := await shown(service, endpoint))["status"] == "enabled":  # noqa: ASYNC110
            await trio.sleep(0.02)  # poll: there is no notification
    return found


async def test_credential_registers_only_events_that_it_may_read(service: Service) -> None:
    secret = (await make(service, ("webhooks.manage",)))["secret"]
    async with showing(service, secret) as http:
        for prefix in ("/s2s", ""):
            for events in ([], ["message.created"], ["contact.updated"], ["agent.typing.started"]):
                body = {"url": "http://localhost:9000/", "events": events}
                refused = await http.post(f"{prefix}/webhooks", json=body)
                assert code(refused) == (403, "permission_denied"), events
                assert "conversations.read" in refused.json()["detail"]
            for name in ("ticket.created", "survey.deleted", "contact.changed"):
                body = {"url": "http://localhost:9000/", "events": [name]}
                assert code(await http.post(f"{prefix}/webhooks", json=body)) == (403, "permission_denied")
        await registered(http, "http://localhost:9000/", events=["webhook.disabled"])
    assert len((await service.http.get("/s2s/webhooks")).json()["items"]) == 1


async def test_redirecting_an_endpoint_needs_the_right_to_read_its_events(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url)
    conversation = await service.create("ada", title="mk-title")
    (delivery,) = await ended(service, endpoint, 1)
    path = f"/s2s/webhooks/{endpoint['id']}"
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("PATCH", path, {"url": "http://localhost:9000/"}),
        ("PATCH", path, {"events": []}),
        ("PATCH", path, {"internal": True}),
        ("PATCH", path, {"status": "enabled"}),
        ("POST", f"{path}/rotate-secret", {}),
        ("POST", f"{path}/test", {}),
        ("POST", f"{path}/replay", {"conversationId": conversation["id"]}),
        ("POST", f"{path}/replay", {"conversationId": conversation["id"], "dryRun": True}),
        ("POST", f"{path}/recover", {"since": "2020-01-01T00:00:00.000Z"}),
        ("POST", f"/s2s/deliveries/{delivery['id']}/redeliver", {}),
    ]
    async with showing(service, (await make(service, ("webhooks.manage",)))["secret"]) as http:
        for method, at, body in calls:
            for one in (at, at.replace("/s2s", "", 1)):
                refused = await http.request(method, one, json=body)
                assert code(refused) == (403, "permission_denied"), (method, one, body)
        assert (await http.get(f"{path}/deliveries")).status_code == 200
        assert (await http.patch(path, json={"description": "The shop's"})).status_code == 200
        assert (await http.patch(path, json={"status": "disabled"})).status_code == 200
    unchanged = await shown(service, endpoint)
    assert (unchanged["url"], unchanged["events"], unchanged["credentialId"]) == (receiver.url, [], None)
    assert unchanged["secret"] == f"whsec_…{endpoint['secret'][-4:]}"


@pytest.mark.parametrize("end", ["revoked", "parent", "expired", "reading", "managing"])
async def test_an_endpoint_stops_when_its_credential_ends_until_a_person_enables_it(
    service: Service, receiver: Receiver, end: str
) -> None:
    fields = {"expiresAt": in_seconds(1.5)} if end == "expired" else {}
    owner = maker = await make(service, (*ENDPOINTS, "projects.manage"), name="Relay", **fields)
    if end == "parent":
        async with showing(service, owner["secret"]) as http:
            body = {"name": "Relay", "permissions": [*ENDPOINTS]}
            maker = (await http.post(credentials_of(service), json=body)).json()
    async with showing(service, maker["secret"]) as http:
        endpoint = await registered(http, receiver.url)
    assert endpoint["credentialId"] == maker["id"]
    await service.create("before")
    await receiver.wait(1)
    one = f"{credentials_of(service)}/{owner['id']}"
    match end:
        case "expired":
            said = "has expired"
        case "reading" | "managing":
            left = ["webhooks.manage"] if end == "reading" else ["conversations.read"]
            assert (await service.dashboard.patch(one, json={"permissions": left})).status_code == 200
            lost = "conversations.read" if end == "reading" else "webhooks.manage"
            said = f"does not have the permission {lost}"
        case _:
            assert (await service.dashboard.delete(one)).status_code == 200
            said = "was revoked"
    found = await shown(service, endpoint) if end != "expired" else await disabled(service, endpoint)
    assert found["status"] == "disabled", "in the same commit"
    assert found["statusReason"] == f"its machine credential 'Relay' ({maker['id']}) {said}"
    await service.create("after")
    (skipped, _) = await ended(service, endpoint, 2)
    assert skipped["status"] == "skipped"
    assert "machine credential" in skipped["reason"]
    (record,) = await records(service, action="webhook.disabled")
    assert record["object"]["id"] == endpoint["id"]
    restored = await service.dashboard.patch(f"/webhooks/{endpoint['id']}", json={"status": "enabled"})
    assert (restored.json()["status"], restored.json()["credentialId"]) == ("enabled", None)
    (owned,) = await records(service, action="webhook.changed")
    assert owned["changes"] == {"credentialId": {"before": maker["id"], "after": None}}
    await service.create("again")
    await receiver.wait(2)
    subjects = [
        orjson.loads(each.body)["data"]["conversation"]["contact"]["userId"] for each in receiver.requests
    ]
    assert subjects == ["before", "again"]


async def test_a_credential_that_ended_while_nothing_ran_delivers_nothing_after_a_start(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with running(tmp_path) as service:
        machine = await make(service, ENDPOINTS, expiresAt=in_seconds(2))
        async with showing(service, machine["secret"]) as http:
            endpoint = await registered(http, f"http://127.0.0.1:{free_port()}/")
        await service.create("waits")
    await trio.sleep(2.1)
    async with running(tmp_path) as service:
        found = await shown(service, endpoint)
        assert (found["status"], "has expired" in found["statusReason"]) == ("disabled", True)
        (skipped,) = await ended(service, endpoint, 1)
        assert skipped["status"] in ("skipped", "dropped")


@pytest.mark.parametrize("way", ["url", "events", "secret", "enable"])
async def test_endpoint_belongs_to_the_credential_that_chose_its_events(
    service: Service, receiver: Receiver, way: str
) -> None:
    endpoint = await register(service, receiver.url)
    machine = await make(service, ENDPOINTS)
    path = f"/s2s/webhooks/{endpoint['id']}"
    async with showing(service, machine["secret"]) as http:
        match way:
            case "url":
                await http.patch(path, json={"url": f"{receiver.url}mine"})
            case "events":
                await http.patch(path, json={"events": ["message.created"]})
            case "secret":
                await http.post(f"{path}/rotate-secret", json={})
            case _:
                await http.patch(path, json={"status": "disabled"})
                assert (await shown(service, endpoint))["credentialId"] is None
                await http.patch(path, json={"status": "enabled"})
    assert (await shown(service, endpoint))["credentialId"] == machine["id"]
    await service.dashboard.delete(f"{credentials_of(service)}/{machine['id']}")
    assert (await shown(service, endpoint))["status"] == "disabled"


async def test_a_credential_gets_no_event_that_an_endpoint_listed_only_before(
    service: Service, receiver: Receiver
) -> None:
    """A credential that takes over an endpoint for tickets gets neither its missed messages nor replays of messages."""
    endpoint = await register(
        service, f"http://127.0.0.1:{free_port()}/", events=["message.created", "ticket.created"]
    )
    await ask(service, "PATCH", f"/webhooks/{endpoint['id']}", status="disabled")
    await service.create("ada", message={"text": "mk-secret"})
    await service.dashboard.post("/tickets", json={"title": "Parcel"})
    await ask(service, "PATCH", f"/webhooks/{endpoint['id']}", events=["ticket.created"])
    machine = await make(service, ("webhooks.manage", "tickets.read"))
    path = f"/s2s/webhooks/{endpoint['id']}"
    async with showing(service, machine["secret"]) as http:
        taken = await http.patch(path, json={"url": receiver.url, "status": "enabled"})
        assert taken.status_code == 200, taken.text
        recovered = await http.post(f"{path}/recover", json={"since": "2020-01-01T00:00:00.000Z"})
        assert recovered.status_code == 200, recovered.text
        await receiver.wait(1)
        for each in await deliveries(service, endpoint):
            if each["eventType"] == "message.created" and each["redeliveryOf"] is None:
                await http.post(f"/s2s/deliveries/{each['id']}/redeliver")
        await ended(service, endpoint, 5)
    assert not [each for each in receiver.requests if b"mk-secret" in each.body]
    assert [each.headers["Service-Event"] for each in receiver.requests] == ["ticket.created"]


async def test_repeated_request_respects_lost_permissions(service: Service) -> None:
    machine = await make(service, (*ENDPOINTS, "conversations.reply"))
    one = f"{credentials_of(service)}/{machine['id']}"
    body = {"contact": {"userId": "ada", "email": "mk@example.org"}, "title": "Parcel"}
    hook = {"url": "http://localhost:9000/"}
    async with showing(service, machine["secret"]) as http:
        first = await http.post("/s2s/conversations", json=body, headers={"Idempotency-Key": "c"})
        assert first.json()["contact"]["email"] == "mk@example.org"
        made = await http.post("/s2s/webhooks", json=hook, headers={"Idempotency-Key": "w"})
        assert made.status_code == 200
        await service.dashboard.patch(one, json={"permissions": ["conversations.reply", "webhooks.manage"]})
        again = await http.post("/s2s/conversations", json=body, headers={"Idempotency-Key": "c"})
        assert again.headers["Idempotent-Replayed"] == "true"
        assert again.json()["id"] == first.json()["id"]
        assert again.json()["contact"] == {**first.json()["contact"], "name": None, "email": None}
        refused = await http.post("/s2s/webhooks", json=hook, headers={"Idempotency-Key": "w"})
        assert code(refused) == (403, "permission_denied")
