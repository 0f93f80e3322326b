"""The public settings of a channel: without a credential, revalidated, and current at every node."""

from __future__ import annotations

from typing import Any

import httpx

from tests.api.channels.test_channels import made
from tests.api.events.test_two_nodes import nodes
from tests.support.api.service import Service
from tests.support.api.staff import code

__all__ = ["nodes"]


async def public(service: Service, channel: str, **headers: str) -> httpx.Response:
    """Fetch the public settings of a channel without a credential."""
    path = f"/customer/channels/{channel}"
    return await service.http.get(path, headers={"Authorization": "", **headers})


async def test_a_visitor_sees_the_public_settings_alone(service: Service) -> None:
    texts = {"de": {"title": "Fragen?", "greeting": "Schreiben Sie uns."}}
    shop = await made(
        service.dashboard,
        origins=["https://secret-project.example"],
        visitors={"ask": ["email"]},
        look={"colour": "#000000", "texts": texts},
    )
    assert (await public(service, shop["id"])).json() == {
        "id": shop["id"],
        "enabled": True,
        "name": "Shop",
        "identity": {"mode": "optional"},
        "visitors": {"allowed": True, "ask": ["email"]},
        "look": {"colour": "#000000", "position": "right", "texts": texts},
        "survey": None,
        "hours": None,
        "expectedWaitS": None,
    }


async def test_unchanged_settings_are_not_sent_again(service: Service) -> None:
    shop = await made(service.dashboard)
    first = await public(service, shop["id"])
    tag = first.headers["ETag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = await public(service, shop["id"], **{"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    await service.dashboard.patch(f"/channels/{shop['id']}", json={"look": {"colour": "#00ff00"}})
    fresh = await public(service, shop["id"], **{"If-None-Match": tag})
    assert (fresh.status_code, fresh.json()["look"]["colour"]) == (200, "#00ff00")


async def test_a_change_that_no_visitor_sees_keeps_the_tag(service: Service) -> None:
    shop = await made(service.dashboard)
    tag = (await public(service, shop["id"])).headers["ETag"]
    await service.dashboard.patch(f"/channels/{shop['id']}", json={"origins": ["https://a.example"]})
    assert (await public(service, shop["id"])).headers["ETag"] == tag


async def test_unknown_and_malformed_ids_are_not_found(service: Service) -> None:
    for channel in ("chn_00000000000000000000000000", "x", "chn_%2e%2e", "cnv_00000000000000000000000000"):
        assert code(await public(service, channel)) == (404, "channel_not_found")


async def test_a_change_at_one_node_is_seen_at_the_other_at_once(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    shop = await made(here.dashboard)
    for colour in ("#111111", "#222222", "#333333"):
        await public(there, shop["id"])  # now it is in the cache there
        body: dict[str, Any] = {"look": {"colour": colour}}
        assert (await here.dashboard.patch(f"/channels/{shop['id']}", json=body)).status_code == 200
        assert (await public(there, shop["id"])).json()["look"]["colour"] == colour
    assert (await here.dashboard.delete(f"/channels/{shop['id']}")).status_code == 200
    assert code(await public(there, shop["id"])) == (404, "channel_not_found")
