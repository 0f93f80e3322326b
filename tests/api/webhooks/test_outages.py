"""Outages of receivers as the API shows and handles them (decisions 6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.api.events.test_channels_agree import receiving, register
from tests.api.webhooks.test_deliveries import FAILING, LOOK_S, WORKING, ask, deliveries, ended
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver, answering
from tests.support.sockets.server_process import free_port


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


@pytest.fixture
def nobody() -> str:
    """Return a URL without a server."""
    return f"http://127.0.0.1:{free_port()}/"


@pytest.fixture
async def touchy(tmp_path: Path) -> AsyncIterator[Service]:
    """Yield a service that opens circuits at the third consecutive failure."""
    async with running(tmp_path, webhook_circuit_failures=3, webhook_circuit_s=0.0) as started:
        yield started


async def look(
    service: Service, endpoint: dict[str, Any], wanted: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    """Return the endpoint when it is in the expected state."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            shown = await ask(service, "GET", f"/webhooks/{endpoint['id']}")
            if wanted(shown):
                return shown
            await trio.sleep(LOOK_S)  # poll: there is no notification


def is_open(shown: dict[str, Any]) -> bool:
    return bool(shown["circuit"] == "open")


def has_caught_up(shown: dict[str, Any]) -> bool:
    return shown["held"] is None and shown["missed"] is None


async def test_the_circuit_is_shown_with_its_reason_and_held_deliveries(touchy: Service, nobody: str) -> None:
    endpoint = await register(touchy, nobody)
    shown = {name: endpoint[name] for name in ("circuitReason", "circuitOpenUntil", "failingSince", "held")}
    assert endpoint["circuit"] == "closed"
    assert set(shown.values()) == {None}
    for user in range(3):
        await touchy.create(f"u{user}")
    shown = await look(touchy, endpoint, is_open)
    assert shown["circuitReason"].startswith("3 attempts in a row failed within 0 s")
    assert shown["circuitReason"].endswith("connection refused")
    assert shown["circuitOpenUntil"] > shown["failingSince"] > endpoint["createdAt"]
    oldest = (await deliveries(touchy, endpoint))[-1]
    assert (shown["held"], shown["missed"]) == ({"count": 3, "since": oldest["createdAt"]}, None)
    listed = (await touchy.http.get("/s2s/webhooks")).json()["items"]
    assert listed == [shown]
    enabled = await ask(touchy, "PATCH", f"/webhooks/{endpoint['id']}", url=f"{nobody}another")
    assert (enabled["circuit"], enabled["circuitReason"]) == ("closed", None)


async def test_a_new_url_gets_the_held_deliveries(touchy: Service, receiver: Receiver, nobody: str) -> None:
    endpoint = await register(touchy, nobody)
    for user in range(3):
        await touchy.create(f"u{user}")
    await look(touchy, endpoint, is_open)
    await ask(touchy, "PATCH", f"/webhooks/{endpoint['id']}", url=receiver.url)
    await receiver.wait(3)
    assert [each["status"] for each in await ended(touchy, endpoint, 3)] == ["delivered"] * 3
    await look(touchy, endpoint, has_caught_up)


async def test_a_test_and_a_redelivery_are_sent_at_once_though_the_circuit_is_open(
    touchy: Service, receiver: Receiver
) -> None:
    endpoint = await register(touchy, receiver.url)
    await touchy.create("u0")
    first = (await ended(touchy, endpoint, 1))[0]
    receiver.behaviour = FAILING
    for user in (1, 2, 3):
        await touchy.create(f"u{user}")
    await look(touchy, endpoint, is_open)
    failed = await ask(touchy, "POST", f"/webhooks/{endpoint['id']}/test")
    assert [each["error"] for each in failed["attempts"]] == ["status 500"]
    sent = len(receiver.requests)
    receiver.behaviour = WORKING
    again = await ask(touchy, "POST", f"/deliveries/{first['id']}/redeliver")
    await ended(touchy, endpoint, 6)
    assert receiver.requests[sent].headers["Service-Delivery-Id"] == again["id"]
    assert (await look(touchy, endpoint, has_caught_up))["circuit"] == "closed"


async def test_missed_deliveries_are_shown_and_sent_again(service: Service, receiver: Receiver) -> None:
    receiver.behaviour = FAILING
    endpoint = await register(service, receiver.url)
    await service.create("u1")
    (dropped,) = await ended(service, endpoint, 1)
    shown = await ask(service, "GET", f"/webhooks/{endpoint['id']}")
    assert (shown["circuit"], shown["held"]) == ("closed", None)
    assert shown["missed"] == {"count": 1, "since": dropped["createdAt"]}
    receiver.behaviour = WORKING
    await service.create("u2")
    redelivery, newer, before = await ended(service, endpoint, 3)
    assert [each["status"] for each in (redelivery, newer, before)] == ["delivered", "delivered", "dropped"]
    assert (redelivery["redeliveryOf"], before["redeliveredAs"]) == (dropped["id"], redelivery["id"])
    assert (await look(service, endpoint, has_caught_up))["failingSince"] is None


async def test_catching_up_is_turned_off_and_on(service: Service, receiver: Receiver) -> None:
    receiver.behaviour = FAILING
    endpoint = await register(service, receiver.url, catchUp="off")
    path = f"/webhooks/{endpoint['id']}"
    assert endpoint["catchUp"] == "off"
    await service.create("u1")
    (dropped,) = await ended(service, endpoint, 1)
    assert dropped["reason"] == "4 attempts failed; the last: status 500"
    assert (await ask(service, "GET", path))["missed"] is None
    assert (await ask(service, "PATCH", path, catchUp="automatic"))["catchUp"] == "automatic"
    for value in ("never", None):
        answer = await service.http.patch(f"/s2s{path}", json={"catchUp": value})
        assert answer.status_code == 422
        assert [each["pointer"] for each in answer.json()["errors"]] == ["/catchUp"]


async def test_a_pause_that_the_receiver_asks_for_is_shown(service: Service, receiver: Receiver) -> None:
    receiver.behaviour = answering("429 Too Many Requests", extra=b"Retry-After: 60\r\n")
    endpoint = await register(service, receiver.url)
    await service.create("u1")
    await receiver.wait(1)
    shown = await look(service, endpoint, lambda shown: shown["pausedUntil"])
    (delivery,) = await deliveries(service, endpoint)
    assert (shown["circuit"], shown["failingSince"]) == ("closed", None)
    assert delivery["nextAttemptAt"] == shown["pausedUntil"]
    assert [each["number"] for each in delivery["attempts"]] == [1]
