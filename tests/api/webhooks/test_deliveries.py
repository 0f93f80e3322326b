"""Delivery log, test events, redelivery, recovery and changes of endpoints.

Source: decisions 6.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import stripe
import trio

from deskwire.storage.tables.webhooks import delivery_log
from tests.api.events.test_channels_agree import receiving, register
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver, answering
from tests.support.sockets.server_process import free_port

FAILING = answering("500 Internal Server Error", b"out of order")
WORKING = answering("204 No Content")
LOOK_S = 0.02  # only the log shows that a delivery is recorded


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


async def deliveries(service: Service, endpoint: dict[str, Any], **params: str) -> list[dict[str, Any]]:
    """Return a page of the endpoint's log."""
    answer = await service.http.get(f"/s2s/webhooks/{endpoint['id']}/deliveries", params=params)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def ended(service: Service, endpoint: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Return the endpoint's log when it has that many deliveries and none is pending."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            found = await deliveries(service, endpoint, limit="200")
            if len(found) >= count and all(each["status"] != "pending" for each in found):
                return found
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def ask(service: Service, method: str, path: str, **body: Any) -> dict[str, Any]:
    """Make a call that must succeed, and return its response."""
    answer = await service.http.request(method, f"/s2s{path}", json=body)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def refusal(service: Service, method: str, path: str, **body: Any) -> tuple[int, str]:
    """Make a call that must be refused, and return the status and code."""
    answer = await service.http.request(method, f"/s2s{path}", json=body)
    return answer.status_code, answer.json()["code"]


async def test_the_log_shows_the_outcome_and_reason_of_each_delivery(
    service: Service, receiver: Receiver
) -> None:
    receiver.behaviour = FAILING
    endpoint = await register(service, receiver.url)
    conversation = await service.create()
    (delivery,) = await ended(service, endpoint, 1)
    (event,) = await service.events()
    assert delivery["eventId"] == event["id"]
    assert (delivery["endpointId"], delivery["eventType"]) == (endpoint["id"], "conversation.created")
    assert (delivery["conversationId"], delivery["sequence"]) == (conversation["id"], 1)
    assert (delivery["status"], delivery["nextAttemptAt"]) == ("dropped", None)
    assert delivery["reason"] == (
        "4 attempts failed; the last: status 500; it is sent again after the next success"
    )
    assert [each["number"] for each in delivery["attempts"]] == [1, 2, 3, 4]
    attempt = delivery["attempts"][0]
    assert (attempt["status"], attempt["error"], attempt["answer"]) == (500, "status 500", "out of order")
    assert attempt["latencyMs"] >= 0
    assert delivery["createdAt"] <= attempt["at"] <= delivery["endedAt"]
    assert await ask(service, "GET", f"/deliveries/{delivery['id']}") == delivery
    last = (await service.http.get(f"/s2s/webhooks/{endpoint['id']}")).json()["lastDelivery"]
    assert last == {"at": delivery["endedAt"], "status": "dropped"}


async def test_the_log_is_listed_newest_first_by_pages_and_filters(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url)
    one, two = await service.create("u1"), await service.create("u2")
    for text in ("a", "b", "c"):
        await service.say(one, text)
    await service.do(two, "close")
    everything = await ended(service, endpoint, 6)
    assert [each["eventType"] for each in everything] == [
        "conversation.closed",
        "message.created",
        "message.created",
        "message.created",
        "conversation.created",
        "conversation.created",
    ]
    paged: list[dict[str, Any]] = []
    params = {"limit": "4"}
    while True:
        answer = (await service.http.get(f"/s2s/webhooks/{endpoint['id']}/deliveries", params=params)).json()
        paged += answer["items"]
        if answer["nextCursor"] is None:
            break
        params["cursor"] = answer["nextCursor"]
    assert paged == everything
    of_two = await deliveries(service, endpoint, conversation=two["id"])
    assert [each["eventType"] for each in of_two] == ["conversation.closed", "conversation.created"]
    assert await deliveries(service, endpoint, type="conversation.closed") == everything[:1]
    assert await deliveries(service, endpoint, status="delivered") == everything
    assert await deliveries(service, endpoint, status="dropped", conversation=two["id"]) == []
    assert await deliveries(service, endpoint, conversation="cnv_00000000000000000000000000") == []
    middle = everything[3]["createdAt"]
    assert await deliveries(service, endpoint, since=middle) == everything[:4]
    assert await deliveries(service, endpoint, until=middle) == everything[4:]


async def test_a_search_for_a_rare_type_is_followed_by_its_cursor_and_says_how_far_it_has_looked(
    service: Service, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "SEARCH_MAX", 3)
    endpoint = await register(service, receiver.url)
    conversation = await service.create()
    for text in ("a", "b", "c", "d"):
        await service.say(conversation, text)
    everything = await ended(service, endpoint, 5)
    path, params = f"/s2s/webhooks/{endpoint['id']}/deliveries", {"type": "conversation.created"}
    first = (await service.http.get(path, params=params)).json()
    assert (first["items"], first["searchedTo"]) == ([], everything[2]["createdAt"])
    second = (await service.http.get(path, params={**params, "cursor": first["nextCursor"]})).json()
    assert second == {"items": everything[4:], "nextCursor": None}
    full = (await service.http.get(path, params={"type": "message.created", "limit": "2"})).json()
    assert (full["items"], set(full)) == (everything[:2], {"items", "nextCursor"})
    assert set((await service.http.get(path)).json()) == {"items", "nextCursor"}


@pytest.mark.parametrize(
    "params",
    [
        {"status": "lost"},
        {"type": "message.lost"},
        {"since": "yesterday"},
        {"until": "2026-13-01"},
        {"limit": "0"},
        {"cursor": "x"},
        {"color": "red"},
    ],
)
async def test_a_bad_filter_is_named(service: Service, nobody: str, params: dict[str, str]) -> None:
    endpoint = await register(service, nobody)
    answer = await service.http.get(f"/s2s/webhooks/{endpoint['id']}/deliveries", params=params)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_query")
    assert [each["pointer"] for each in answer.json()["errors"]] == [f"/{name}" for name in params]


async def test_an_erased_conversation_leaves_only_its_deletion_in_the_log(
    service: Service, receiver: Receiver
) -> None:
    receiver.behaviour = answering("500 Internal Server Error", b"SECRET-ECHO")
    endpoint = await register(service, receiver.url)
    conversation = await service.create(message={"text": "Hello"})
    await ended(service, endpoint, 2)
    receiver.behaviour = WORKING
    await service.http.delete(f"/s2s/conversations/{conversation['id']}")
    (deletion,) = await ended(service, endpoint, 1)
    assert (deletion["eventType"], deletion["conversationId"]) == ("conversation.deleted", conversation["id"])


async def test_a_test_answers_with_its_first_attempt_and_is_on_no_feed(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url)
    delivery = await ask(service, "POST", f"/webhooks/{endpoint['id']}/test")
    assert (delivery["status"], delivery["eventType"]) == ("delivered", "webhook.test")
    assert (delivery["conversationId"], delivery["sequence"]) == (None, None)
    assert [each["status"] for each in delivery["attempts"]] == [204]
    request = receiver.requests[0]
    sent = stripe.Webhook.construct_event(
        request.body, request.headers["Service-Signature"], endpoint["secret"]
    )
    assert (sent["type"], sent["data"]["endpointId"]) == ("webhook.test", endpoint["id"])
    assert "Service-Previous-Sequence" not in request.headers
    assert await service.events() == []
    receiver.behaviour = FAILING
    failed = await ask(service, "POST", f"/webhooks/{endpoint['id']}/test")
    assert failed["status"] in ("pending", "dropped")
    assert failed["attempts"][0]["error"] == "status 500"


async def test_a_test_can_not_be_subscribed_to(service: Service, nobody: str) -> None:
    body = {"url": nobody, "events": ["webhook.test"]}
    assert await refusal(service, "POST", "/webhooks", **body) == (422, "invalid_input")


async def test_a_delivery_is_sent_again_as_a_new_one_with_the_same_bytes(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url)
    conversation = await service.create()
    await service.say(conversation, "Hello")
    first = (await ended(service, endpoint, 2))[0]
    again = await ask(service, "POST", f"/deliveries/{first['id']}/redeliver")
    assert again["id"] != first["id"]
    assert (again["redeliveryOf"], again["eventId"]) == (first["id"], first["eventId"])
    await ended(service, endpoint, 3)
    assert receiver.requests[2].body == receiver.requests[1].body
    headers = receiver.requests[2].headers
    assert (headers["Service-Delivery-Id"], headers["Service-Attempt"]) == (again["id"], "1")
    assert headers["Service-Previous-Sequence"] == "1"
    assert (await ask(service, "GET", f"/deliveries/{first['id']}"))["redeliveredAs"] == again["id"]


async def test_an_impossible_redelivery_is_refused_with_its_reason(tmp_path: Path) -> None:
    async with receiving() as receiver, running(tmp_path) as service:
        receiver.behaviour = FAILING
        endpoint = await register(service, receiver.url)
        await service.create()
        await receiver.wait(1)
        (pending,) = await deliveries(service, endpoint)
        path = f"/deliveries/{pending['id']}/redeliver"
        assert await refusal(service, "POST", path) == (409, "delivery_pending")
        await ask(service, "PATCH", f"/webhooks/{endpoint['id']}", status="disabled")
        await ended(service, endpoint, 1)
        assert await refusal(service, "POST", path) == (409, "webhook_disabled")
        unknown = "/deliveries/dlv_00000000000000000000000000"
        assert await refusal(service, "GET", unknown) == (404, "delivery_not_found")
        assert await refusal(service, "POST", f"{unknown}/redeliver") == (404, "delivery_not_found")
        assert await refusal(service, "GET", "/deliveries/nonsense") == (404, "delivery_not_found")
        for action in ("test", "recover"):
            body = {"since": "2026-01-01T00:00:00Z"} if action == "recover" else {}
            answer = await refusal(service, "POST", f"/webhooks/{endpoint['id']}/{action}", **body)
            assert answer == (409, "webhook_disabled")


async def test_all_that_failed_is_sent_again_in_its_order(service: Service, receiver: Receiver) -> None:
    receiver.behaviour = FAILING
    endpoint = await register(service, receiver.url)
    conversation = await service.create()
    for text in ("a", "b"):
        await service.say(conversation, text)
    failed = await ended(service, endpoint, 3)
    receiver.behaviour = WORKING
    sent = len(receiver.requests)
    path = f"/webhooks/{endpoint['id']}/recover"
    begin = {"since": "2026-01-01T00:00:00Z"}
    assert await ask(service, "POST", path, **begin, dryRun=True) == {
        "count": 3,
        "notStored": 0,
        "dryRun": True,
    }
    assert len(receiver.requests) == sent
    after_first = await ask(service, "POST", path, since=failed[-1]["eventId"], dryRun=True)
    assert after_first["count"] == 2
    assert (await ask(service, "POST", path, **begin))["count"] == 3
    await ended(service, endpoint, 6)
    assert [request.headers["Service-Event"] for request in receiver.requests[sent:]] == [
        "conversation.created",
        "message.created",
        "message.created",
    ]
    assert (await ask(service, "POST", path, **begin))["count"] == 0


@pytest.mark.parametrize("since", ["yesterday", "evt_1", "", 5, None])
async def test_a_bad_begin_of_a_recovery_is_named(service: Service, nobody: str, since: Any) -> None:
    endpoint = await register(service, nobody)
    answer = await service.http.post(f"/s2s/webhooks/{endpoint['id']}/recover", json={"since": since})
    assert answer.status_code == 422
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/since"]


async def test_an_enabled_endpoint_recovers_its_skipped_deliveries(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url)
    conversation = await service.create()
    await ended(service, endpoint, 1)
    path = f"/webhooks/{endpoint['id']}"
    disabled = await ask(service, "PATCH", path, status="disabled")
    assert (disabled["status"], disabled["statusReason"]) == ("disabled", "by the API")
    await service.say(conversation, "While it was away")
    missed = (await ended(service, endpoint, 2))[0]
    assert (missed["status"], missed["reason"]) == ("skipped", "the endpoint is disabled: by the API")
    enabled = await ask(service, "PATCH", path, status="enabled")
    assert (enabled["status"], enabled["statusReason"]) == ("enabled", None)
    await service.say(conversation, "Back")
    await receiver.wait(2)
    assert (
        receiver.requests[1].headers["Service-Previous-Sequence"] == "2"
    )  # so that the receiver can distinguish them
    assert (await ask(service, "POST", f"{path}/recover", since="2026-01-01T00:00:00Z"))["count"] == 1
    await receiver.wait(3)
    assert b"While it was away" in receiver.requests[2].body


async def test_a_changed_endpoint_continues_with_its_new_fields(service: Service, receiver: Receiver) -> None:
    async with receiving() as other:
        endpoint = await register(service, receiver.url, description="CRM")
        path = f"/webhooks/{endpoint['id']}"
        assert (await ask(service, "PATCH", path))["updatedAt"] == endpoint["updatedAt"]
        changed = await ask(
            service, "PATCH", path, url=other.url, events=["conversation.closed"], description=None
        )
        assert (changed["url"], changed["events"], changed["description"]) == (
            other.url,
            ["conversation.closed"],
            None,
        )
        assert changed["secret"].startswith("whsec_…")
        assert changed["updatedAt"] > endpoint["updatedAt"]
        assert (await service.http.get(f"/s2s{path}")).json() == changed
        conversation = await service.create()
        await service.do(conversation, "close")
        await other.wait(1)
        assert other.requests[0].headers["Service-Event"] == "conversation.closed"
        assert receiver.requests == []


async def test_everything_wrong_with_a_change_is_named(service: Service, nobody: str) -> None:
    endpoint = await register(service, nobody)
    path = f"/s2s/webhooks/{endpoint['id']}"
    for body, pointers in (
        ({"url": None, "events": None, "status": None}, ["/url", "/events", "/status"]),
        ({"url": "ftp://x/#y", "events": ["no", "nope"]}, ["/events/0", "/events/1", "/url", "/url"]),
        ({"status": "asleep", "colour": 1}, ["/status", "/colour"]),
    ):
        answer = await service.http.patch(path, json=body)
        assert answer.status_code == 422
        assert sorted(each["pointer"] for each in answer.json()["errors"]) == sorted(pointers)
    assert await refusal(service, "PATCH", "/webhooks/whk_none", url=nobody) == (
        404,
        "webhook_not_found",
    )


async def test_a_rotated_secret_is_shown_once_and_signs_with_the_old_one(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url)
    path = f"/webhooks/{endpoint['id']}"
    rotated = await ask(service, "POST", f"{path}/rotate-secret")
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != endpoint["secret"]
    assert rotated["oldSecretUntil"] is not None
    shown = (await service.http.get(f"/s2s{path}")).json()
    assert shown["secret"] == f"whsec_…{rotated['secret'][-4:]}"
    await ask(service, "POST", f"{path}/test")
    request = receiver.requests[0]
    for secret in (endpoint["secret"], rotated["secret"]):
        assert stripe.Webhook.construct_event(request.body, request.headers["Service-Signature"], secret)


async def test_a_removed_endpoint_is_gone_with_its_log_and_leaves_room_for_another(
    service: Service, receiver: Receiver
) -> None:
    endpoints = [await register(service, receiver.url) for _ in range(5)]
    delivery = await ask(service, "POST", f"/webhooks/{endpoints[0]['id']}/test")
    await ask(service, "DELETE", f"/webhooks/{endpoints[0]['id']}")
    assert await refusal(service, "GET", f"/webhooks/{endpoints[0]['id']}") == (404, "webhook_not_found")
    assert await refusal(service, "GET", f"/deliveries/{delivery['id']}") == (404, "delivery_not_found")
    await register(service, receiver.url)
    assert await refusal(service, "POST", "/webhooks", url=receiver.url) == (409, "webhook_limit_reached")
