"""Any node accepts a replay or a recovery, and the node that delivers to the endpoint sends the deliveries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from tests.api.events.test_channels_agree import receiving
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.node_processes import Nodes, running_nodes
from tests.support.postgres_nodes import rows
from tests.support.sockets.receivers import Receiver, Request, answering

pytestmark = pytest.mark.long

_SETTINGS: Final = {
    "DESKWIRE_WEBHOOK_RETRY_AFTER_S": "0.1,0.1,0.1",
    "DESKWIRE_WEBHOOK_CIRCUIT_FAILURES": "4",
    "DESKWIRE_WEBHOOK_CIRCUIT_S": "0",
}
_SOON_S: Final = 8.0
"""Without a request the next probe comes 10 s after the circuit was opened."""


def couriers(nodes: Nodes) -> dict[str, int]:
    """The number of the node that delivers to each endpoint, by the endpoint's id."""
    found = rows(
        nodes.url,
        "SELECT e.id, n.node FROM couriers c JOIN nodes n ON n.incarnation = c.incarnation "
        "JOIN endpoints e ON e.rowid = c.endpoint",
    )
    return {endpoint: "ab".index(name) for endpoint, name in found}


async def until(receiver: Receiver, condition: Callable[[], object], within_s: float) -> None:
    """Return when the condition holds for the receiver's requests."""
    with trio.fail_after(within_s):
        while not condition():
            await receiver.wait(len(receiver.requests) + 1)


async def until_all(http: httpx.AsyncClient, endpoint: str, status: str) -> list[dict[str, Any]]:
    """The deliveries to an endpoint, once all have this status."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            answer = await http.get(f"/s2s/webhooks/{endpoint}/deliveries")
            found: list[dict[str, Any]] = answer.json()["items"]
            if {each["status"] for each in found} == {status}:
                return found
            await trio.sleep(0.05)  # poll: there is no notification


def has_more(receiver: Receiver, before: int) -> bool:
    return len(receiver.requests) > before


def sent(receiver: Receiver, delivery: str) -> list[Request]:
    return [each for each in receiver.requests if each.headers["Service-Delivery-Id"] == delivery]


async def until_ended(http: httpx.AsyncClient, endpoint: str) -> list[dict[str, Any]]:
    """The deliveries to an endpoint, once none is pending and the newest is of the newest message."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            found: list[dict[str, Any]] = (await http.get(f"/s2s/webhooks/{endpoint}/deliveries")).json()[
                "items"
            ]
            if len({each["eventId"] for each in found}) == 2 and all(each["endedAt"] for each in found):
                return found
            await trio.sleep(0.05)  # poll: there is no notification


async def test_replays_requested_at_any_node_are_sent_by_the_endpoints_courier(
    tmp_path: Path,
) -> None:
    async with (
        receiving() as receiver,
        running_nodes(tmp_path, "ab", _SETTINGS) as nodes,
        nodes.client(0, nodes.key) as first,
        nodes.client(1, nodes.key) as second,
    ):
        clients = (first, second)
        for number in range(5):
            made = await first.post(
                "/s2s/webhooks",
                json={"url": f"{receiver.url}&number={number}", "events": ["message.created"]},
            )
            assert made.status_code == 200, made.text
        with trio.fail_after(HANG_TIMEOUT_S):
            while sorted(Counter((where := couriers(nodes)).values()).values()) != [2, 3]:  # noqa: ASYNC110
                await trio.sleep(0.05)  # poll: there is no notification; the shares stay
        conversation = (await first.post("/s2s/conversations", json={"contact": {"userId": "u"}})).json()[
            "id"
        ]
        messages = f"/s2s/conversations/{conversation}/messages"
        await first.post(messages, json={"text": "delivered"})
        for endpoint, courier in where.items():
            other = clients[1 - courier]
            (delivered,) = await until_all(other, endpoint, "delivered")
            again = await other.post(f"/s2s/deliveries/{delivered['id']}/redeliver")
            assert again.status_code == 200, again.text
            made_id = again.json()["id"]
            await until(receiver, partial(sent, receiver, made_id), _SOON_S)
            for http in clients:
                found = await until_all(http, endpoint, "delivered")
                assert {each["redeliveryOf"] for each in found} == {None, delivered["id"]}
            assert len(sent(receiver, made_id)) == 1, "by one node alone"
            assert json.loads(sent(receiver, made_id)[0].body)["id"] == delivered["eventId"]

        receiver.behaviour = answering("500 No")
        last = (await first.get("/s2s/events?limit=200")).json()["items"][-1]["id"]
        await second.post(messages, json={"text": "dropped"})
        dropped = {
            endpoint: next(each for each in await until_ended(first, endpoint) if each["status"] == "dropped")
            for endpoint in where
        }
        for endpoint in where:
            assert (await first.get(f"/s2s/webhooks/{endpoint}")).json()["circuit"] != "closed"
        receiver.behaviour = answering("200 OK")
        assert where == couriers(nodes)
        for endpoint, courier in where.items():
            other, before = clients[1 - courier], len(receiver.requests)
            recovered = await other.post(f"/s2s/webhooks/{endpoint}/recover", json={"since": last})
            assert recovered.json() == {"count": 1, "notStored": 0, "dryRun": False}
            await until(receiver, partial(has_more, receiver, before), _SOON_S)
            for http in clients:
                found = await until_ended(http, endpoint)
                (remade,) = [each for each in found if each["redeliveryOf"] == dropped[endpoint]["id"]]
                assert remade["status"] == "delivered"
            assert len(receiver.requests) == before + 1, "by one node alone, and nothing else"
