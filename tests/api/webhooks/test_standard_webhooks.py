"""Standard Webhooks: the published Python library verifies all kinds of deliveries over real sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from standardwebhooks import Webhook, WebhookVerificationError

from tests.api.events.test_channels_agree import receiving, register
from tests.support.api.service import Service
from tests.support.api.staff import organisation_of
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver, Request, answering


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


def accepts(secret: str, request: Request, body: bytes | None = None) -> bool:
    """Return the library's verdict on a delivery, with another body if one is given."""
    try:
        Webhook(secret).verify(request.body if body is None else body, request.headers)
    except WebhookVerificationError:
        return False
    return True


async def test_library_verifies_deliveries_with_the_secret_as_shown(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url)
    await service.create(message={"text": "Grüße 👋"})
    await receiver.wait(2)
    for request in receiver.requests:
        event = json.loads(request.body)
        assert Webhook(endpoint["secret"]).verify(request.body, request.headers) == event
        assert request.headers["webhook-id"] == event["id"]
        t = request.headers["Service-Signature"].partition(",")[0]
        assert t == f"t={request.headers['webhook-timestamp']}"


async def test_library_refuses_tampered_deliveries(service: Service, receiver: Receiver) -> None:
    endpoint = await register(service, receiver.url)
    await service.create()
    await receiver.wait(1)
    request = receiver.requests[0]
    assert not accepts(endpoint["secret"], request, request.body.replace(b"OPEN", b"SHUT"))
    for name, value in (("webhook-id", "evt_" + "0" * 26), ("webhook-timestamp", "1")):
        altered = Request(0, "POST", "/", {**request.headers, name: value}, request.body, 0)
        assert not accepts(endpoint["secret"], altered)


async def test_both_secrets_verify_during_the_overlap_of_a_rotation(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url)
    first, path = endpoint["secret"], f"/s2s/webhooks/{endpoint['id']}/rotate-secret"
    second = (await service.http.post(path)).json()["secret"]
    await service.create()
    await receiver.wait(1)
    third = (await service.http.post(path)).json()["secret"]
    await service.create()
    await receiver.wait(2)
    verdicts = [[accepts(secret, each) for secret in (first, second, third)] for each in receiver.requests]
    assert verdicts == [[True, True, False], [False, True, True]]
    assert len(receiver.requests[0].headers["webhook-signature"].split(" ")) == 2


async def delivered(service: Service, endpoint: dict[str, Any]) -> str:
    """Return the id of the endpoint's newest delivery once it was delivered."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            newest = (await service.http.get(f"/s2s/webhooks/{endpoint['id']}/deliveries")).json()["items"][0]
            if newest["status"] == "delivered":
                return str(newest["id"])
            await trio.sleep(0.02)  # poll: there is no notification when the outcome is stored


async def test_id_stays_over_attempts_redelivery_replay_and_endpoints(
    service: Service, receiver: Receiver
) -> None:
    """A receiver removes duplicates by `webhook-id`, and a redelivery is a delivery of its own."""
    accept, refuse = receiver.behaviour, answering("500 No")

    async def refuse_first_attempts(stream: trio.abc.Stream, request: Request) -> None:
        await (refuse if request.headers["Service-Attempt"] == "1" else accept)(stream, request)

    receiver.behaviour = refuse_first_attempts
    endpoint = await register(service, receiver.url, events=["conversation.created"])
    other = await register(service, receiver.url + "&other", events=["conversation.created"])
    conversation = await service.create()
    await receiver.wait(4)  # the second attempt of each
    receiver.behaviour = accept
    answer = await service.http.post(f"/s2s/deliveries/{await delivered(service, endpoint)}/redeliver")
    assert answer.status_code == 200, answer.text
    await delivered(service, other)  # a replay leaves out pending deliveries
    answer = await service.http.post(
        f"/s2s/webhooks/{other['id']}/replay", json={"conversationId": conversation["id"]}
    )
    assert answer.status_code == 200, answer.text
    await receiver.wait(6)
    assert len({each.headers["Service-Delivery-Id"] for each in receiver.requests}) == 4
    (event_id,) = {each.headers["webhook-id"] for each in receiver.requests}
    assert event_id == json.loads(receiver.requests[0].body)["id"]
    secrets = (endpoint["secret"], other["secret"])
    assert all(any(accepts(secret, each) for secret in secrets) for each in receiver.requests)


async def test_tests_and_typing_events_carry_the_headers(service: Service, receiver: Receiver) -> None:
    conversation = await service.create()
    endpoint = await register(service, receiver.url, events=["agent.typing.started"])
    await service.http.post(f"/s2s/webhooks/{endpoint['id']}/test")
    await service.dashboard.post(f"/conversations/{conversation['id']}/typing", json={"typing": True})
    await receiver.wait(2)
    assert {each.headers["Service-Event"] for each in receiver.requests} == {
        "webhook.test",
        "agent.typing.started",
    }
    for request in receiver.requests:
        assert accepts(endpoint["secret"], request)
        assert request.headers["webhook-id"] == json.loads(request.body)["id"]


async def test_endpoints_with_a_secret_of_the_first_release_verify_too(
    service: Service, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 0.1.0 made 43 characters, which are base64 without padding."""
    old = "whsec_4fzCwFMCBvyqXbTV9vXSKlcJTUGcRh3n5WtGWTiMpkL"
    monkeypatch.setattr("deskwire.http.resources.webhooks.endpoints.new_secret", lambda: old)
    endpoint = await register(service, receiver.url)
    assert endpoint["secret"] == old
    await service.create()
    await receiver.wait(1)
    assert accepts(old, receiver.requests[0])


async def test_audit_pushes_carry_an_id_for_their_records(service: Service, receiver: Receiver) -> None:
    """A batch that begins with the same record but carries more has another id, so that no record is skipped."""
    path = f"/organisations/{await organisation_of(service)}/audit/push"
    accept, receiver.behaviour = receiver.behaviour, answering("500 No")
    push: dict[str, Any] = (await service.dashboard.put(path, json={"url": receiver.url})).json()
    await receiver.wait(1)
    rotated = (await service.dashboard.post(f"{path}/rotate-secret")).json()["secret"]
    receiver.behaviour = accept
    with trio.fail_after(HANG_TIMEOUT_S):
        while len(json.loads(receiver.requests[-1].body)["records"]) < 2:
            await receiver.wait(len(receiver.requests) + 1)
    assert accepts(push["secret"], receiver.requests[0])
    last = receiver.requests[-1]
    assert accepts(rotated, last)
    assert accepts(push["secret"], last)
    ids = {each.body: each.headers["webhook-id"] for each in receiver.requests}
    assert len(set(ids.values())) == len(ids) > 1
    assert all(value.startswith("aud_") and "." not in value for value in ids.values())
