"""Objects made by a machine credential at one node end at every node when it is revoked at another (ADR 70)."""

from __future__ import annotations

from typing import Any

from tests.api.accounts.test_machine_credentials import code, in_seconds
from tests.api.events.test_channels_agree import receiving
from tests.api.events.test_two_nodes import nodes
from tests.api.scopes.test_endpoints import ENDPOINTS, disabled, registered, shown
from tests.api.webhooks.test_deliveries import ended
from tests.support.api.machines import credentials_of, make, showing
from tests.support.api.service import Service

__all__ = ["nodes"]


async def test_a_revocation_at_one_node_ends_children_and_endpoints_at_all(
    nodes: tuple[Service, Service],
) -> None:
    here, there = nodes
    machine = await make(here, (*ENDPOINTS, "projects.manage"))
    async with receiving() as receiver, showing(there, machine["secret"]) as http:
        body: dict[str, Any] = {"name": "Child", "permissions": [*ENDPOINTS]}
        child = (await http.post(credentials_of(there), json=body)).json()
        async with showing(here, child["secret"]) as own:
            endpoint = await registered(own, receiver.url)
            await here.create("before")
            await receiver.wait(1)
            assert (await own.get("/s2s/webhooks")).status_code == 200
            revoked = await there.dashboard.delete(f"{credentials_of(there)}/{machine['id']}")
            assert revoked.status_code == 200
            for node in nodes:
                assert (await shown(node, endpoint))["status"] == "disabled"
            assert code(await own.get("/s2s/webhooks")) == (401, "revoked_machine_credential")
        for node in nodes:
            await node.create("after")
        await ended(here, endpoint, 3)
        assert len(receiver.requests) == 1


async def test_an_endpoint_is_disabled_once_when_its_credential_expires_at_all_nodes(
    nodes: tuple[Service, Service],
) -> None:
    here, there = nodes
    watch = {"url": "http://127.0.0.1:9999/", "events": ["webhook.disabled"]}
    machine = await make(here, ENDPOINTS, expiresAt=in_seconds(2))
    async with showing(here, machine["secret"]) as http:
        endpoint = await registered(http, "http://127.0.0.1:9999/own")
    assert (await there.http.post("/s2s/webhooks", json=watch)).status_code == 200
    found = await disabled(there, endpoint)
    assert "has expired" in found["statusReason"]
    told = await here.events(types="webhook.disabled")
    assert [each["data"]["endpoint"]["id"] for each in told] == [endpoint["id"]]
