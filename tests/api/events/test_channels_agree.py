"""Events on all channels: signed deliveries and ordered frames of the same bytes, over real sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import stripe
import trio
import trio_websocket

from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver
from tests.support.stores import stored


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Yield a webhook receiver that responds with 204 to everything."""

    async def accept(stream: trio.abc.Stream, _: Any) -> None:
        await stream.send_all(b"HTTP/1.1 204 No Content\r\n\r\n")

    receiver = Receiver(accept)
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        receiver.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, receiver.serve, [listener])
        yield receiver
        nursery.cancel_scope.cancel()


class Consumer:
    """A stream consumer on the wire."""

    def __init__(self, service: Service, socket: trio_websocket.WebSocketConnection) -> None:
        self.service, self.socket, self.socket_id = service, socket, ""

    async def receive(self) -> dict[str, Any]:
        """The next frame."""
        with trio.fail_after(HANG_TIMEOUT_S):
            frame: dict[str, Any] = json.loads(await self.socket.get_message())
        return frame

    async def subscribe(
        self, consumer_id: str = "c1", channel: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """Authorize in JSON and subscribe; return the server's response."""
        name = channel or f"private-project-{self.service.demo['projectId']}"
        answer = await self.authorize(consumer_id, name, **more)
        assert answer.status_code == 200, answer.text
        assert answer.json().keys() == {"auth"}
        return await self.present(name, answer.json()["auth"])

    async def authorize(self, consumer_id: str, channel: str, **more: Any) -> httpx.Response:
        """Request an authorization; return the response."""
        body = {"socket_id": self.socket_id, "channel_name": channel, "consumerId": consumer_id, **more}
        return await self.service.http.post("/s2s/stream/auth", json=body)

    async def present(self, channel: str, auth: str) -> dict[str, Any]:
        """Subscribe with an authorization; return the server's response."""
        data = {"channel": channel, "auth": auth}
        await self.socket.send_message(json.dumps({"event": "pusher:subscribe", "data": data}))
        return await self.receive()


@asynccontextmanager
async def consuming(service: Service) -> AsyncIterator[Consumer]:
    """Yield a connection to the stream."""
    url = f"{service.url.replace('http', 'ws')}/app/{service.demo['streamKey']}?protocol=7&client=test"
    async with trio_websocket.open_websocket_url(url, message_queue_size=1_000) as socket:
        consumer = Consumer(service, socket)
        hello = await consumer.receive()
        assert hello["event"] == "pusher:connection_established"
        consumer.socket_id = json.loads(hello["data"])["socket_id"]
        try:
            yield consumer
        finally:  # without the closing handshake, because a ping during it fails the client and hides the test's own failure
            await trio.aclose_forcefully(socket._stream)


async def register(service: Service, url: str, **fields: Any) -> dict[str, Any]:
    answer = await service.http.post("/s2s/webhooks", json={"url": url, **fields})
    assert answer.status_code == 200, answer.text
    endpoint: dict[str, Any] = answer.json()
    return endpoint


async def test_every_channel_has_the_same_bytes_in_order(service: Service) -> None:
    """Contract 6: identical types and envelopes; 6.3: any verifier of the scheme accepts the signature."""
    async with receiving() as receiver, consuming(service) as consumer:
        endpoint = await register(service, receiver.url, events=[])
        assert (await consumer.subscribe())["event"] == "pusher_internal:subscription_succeeded"
        conversation = await service.create(message={"text": "Grüße 👋"})
        await service.say(conversation, "Hello", author={"type": "agent"})
        await service.do(conversation, "close")
        await service.say(conversation, "Wait")

        feed = (await service.http.get("/s2s/events")).content.rstrip()
        count = len(json.loads(feed)["items"])
        assert count == 6
        frames = [await consumer.receive() for _ in range(count)]
        await receiver.wait(count)

    assert (
        b",".join(frame["data"].encode() for frame in frames)
        == feed[len(b'{"items":[') : -len(b'],"nextCursor":null}')]
    )
    bodies = {json.loads(request.body)["sequence"]: request for request in receiver.requests}
    assert [bodies[number].body.decode() for number in range(1, count + 1)] == [
        frame["data"] for frame in frames
    ]
    for number, request in bodies.items():
        event = stripe.Webhook.construct_event(
            request.body, request.headers["Service-Signature"], endpoint["secret"]
        )
        assert event["type"] == request.headers["Service-Event"]
        assert request.headers["Service-Delivery-Id"].startswith("dlv_")
        assert request.headers["Service-Previous-Sequence"] == str(number - 1)
        assert request.headers["User-Agent"].startswith("Deskwire/")


async def test_endpoint_gets_only_listed_types_and_can_detect_filtered_events(service: Service) -> None:
    """Contract 6.2.3, decisions 6."""
    async with receiving() as receiver:
        await register(service, receiver.url, events=["message.created"])
        conversation = await service.create()
        await service.say(conversation, "one")
        await service.do(conversation, "close")
        await service.say(conversation, "two")
        await receiver.wait(2)
    got = [
        (json.loads(r.body)["sequence"], r.headers["Service-Previous-Sequence"]) for r in receiver.requests
    ]
    assert got == [(2, "0"), (5, "2")]


async def test_secret_is_shown_once_and_masked_afterwards(service: Service) -> None:
    """Contract 2.9 and 4.5."""
    endpoint = await register(
        service, "http://127.0.0.1:19999/", events=["conversation.created"], description="mine"
    )
    assert endpoint["secret"].startswith("whsec_")
    assert (endpoint["status"], endpoint["circuit"], endpoint["lastDelivery"]) == ("enabled", "closed", None)
    masked = f"whsec_…{endpoint['secret'][-4:]}"
    listed = (await service.http.get("/s2s/webhooks")).json()
    assert listed["items"] == [{**endpoint, "secret": masked}]
    assert (await service.http.get(f"/s2s/webhooks/{endpoint['id']}")).json()["secret"] == masked
    assert endpoint["secret"].encode() not in stored(service.directory)
    deleted = await service.http.delete(f"/s2s/webhooks/{endpoint['id']}")
    assert deleted.json() == {"id": endpoint["id"], "deleted": True}
    for method in ("GET", "DELETE"):
        gone = await service.http.request(method, f"/s2s/webhooks/{endpoint['id']}")
        assert (gone.status_code, gone.json()["code"]) == (404, "webhook_not_found")


async def test_the_sixth_endpoint_is_refused(service: Service) -> None:
    """Contract 6.2.1."""
    for number in range(5):
        await register(service, f"http://127.0.0.1:19999/{number}")
    answer = await service.http.post("/s2s/webhooks", json={"url": "http://127.0.0.1:19999/6"})
    assert (answer.status_code, answer.json()["code"]) == (409, "webhook_limit_reached")


async def test_unknown_event_types_and_bad_urls_are_named_together(service: Service) -> None:
    body = {"url": "ftp://user@host:22/#x", "events": ["message.created", "message.creatd", "nope"]}
    answer = await service.http.post("/s2s/webhooks", json=body)
    assert answer.status_code == 422
    pointers = [each["pointer"] for each in answer.json()["errors"]]
    assert {"/events/1", "/events/2", "/url"} <= set(pointers)
    assert pointers.count("/url") >= 3


async def test_a_private_address_is_refused_unless_it_is_allowed(tmp_path: Any) -> None:
    """Contract 6.2.2: public https only."""
    from tests.support.api.service import running

    async with running(tmp_path, allow_private_webhooks=False) as service:
        for url in (
            "https://127.0.0.1/",
            "https://10.0.0.1:8443/",
            "https://[::ffff:127.0.0.1]/",
            "http://192.0.2.1/",
        ):
            answer = await service.http.post("/s2s/webhooks", json={"url": url})
            assert answer.status_code == 422, url
            assert {each["pointer"] for each in answer.json()["errors"]} == {"/url"}


async def test_new_consumer_takes_over_and_the_previous_one_is_notified(service: Service) -> None:
    """Contract 4.4."""
    async with consuming(service) as first, consuming(service) as second:
        await first.subscribe("one")
        await second.subscribe("two")
        told = await first.receive()
        assert (told["event"], told["data"]["code"]) == ("pusher:error", 4009)
        with pytest.raises(trio_websocket.ConnectionClosed) as closed:
            await first.receive()
        assert closed.value.reason is not None
        assert closed.value.reason.code == 4009
        await service.create()
        assert (await second.receive())["event"] == "conversation.created"
        consumers = (await service.http.get("/s2s/stream/consumers")).json()["items"]
        assert [(each["consumerId"], each["connected"]) for each in consumers] == [("two", True)]


async def test_returning_consumer_gets_missed_events(service: Service) -> None:
    """Decisions 5."""
    async with consuming(service) as consumer:
        await consumer.subscribe("one")
        conversation = await service.create()
        assert (await consumer.receive())["event"] == "conversation.created"
    sent = [(await service.say(conversation, str(number)))["id"] for number in range(20)]
    async with consuming(service) as consumer:
        answer = await consumer.subscribe("one")
        assert json.loads(answer["data"])["gap"] is False
        received: list[str] = []
        while len(received) < len(sent):
            frame = await consumer.receive()
            if frame["event"] == "message.created":
                received.append(json.loads(frame["data"])["data"]["message"]["id"])
    assert received == sent


async def test_channel_of_one_conversation_carries_only_its_events(service: Service) -> None:
    wanted, other = await service.create(), await service.create(user="u2")
    async with consuming(service) as consumer:
        await consumer.subscribe("one", channel=f"private-conversation-{wanted['id']}")
        await service.say(other, "no")
        await service.say(wanted, "yes")
        await service.http.delete(f"/s2s/conversations/{wanted['id']}")
        frames = [await consumer.receive(), await consumer.receive()]
    assert [frame["event"] for frame in frames] == ["message.created", "conversation.deleted"]


@pytest.mark.parametrize(
    "form",
    [
        {"content": "socket_id=1.2&channel_name={channel}&consumerId=c1&typingEvents=true"},
        {"content": "socket_id=1.2&channel_name={channel}", "query": "?consumerId=c1&typingEvents=1"},
        {"content": '{{"socket_id":"1.2","channel_name":"{channel}","consumerId":"c1","typingEvents":true}}'},
    ],
    ids=["form", "form-and-query", "json"],
)
async def test_authorization_accepts_every_form_that_clients_send(
    service: Service, form: dict[str, str]
) -> None:
    """Contract 4.4, decisions 5; Pusher protocol, authorization: exactly 200, only `auth`, and no CORS headers."""
    channel = f"private-project-{service.demo['projectId']}"
    content = form["content"].format(channel=channel)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://shop.test"}
    answer = await service.http.post(
        f"/s2s/stream/auth{form.get('query', '')}", content=content, headers=headers
    )
    assert answer.status_code == 200, answer.text
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert list(answer.json()) == ["auth"]
    assert answer.json()["auth"].startswith(f"{service.demo['streamKey']}:")


async def test_an_unknown_query_parameter_of_an_authorization_is_a_bad_request_that_names_it(
    service: Service,
) -> None:
    body = {"socket_id": "1.2", "channel_name": "x", "consumerId": "c"}
    answer = await service.http.post("/s2s/stream/auth?wat=1&consumerId=c", json=body)
    assert answer.status_code == 400
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/wat"]


async def test_another_projects_channel_is_refused(service: Service) -> None:
    body = {"socket_id": "1.2", "channel_name": "private-project-prj_x", "consumerId": "c"}
    answer = await service.http.post("/s2s/stream/auth", json=body)
    assert (answer.status_code, answer.json()["code"]) == (403, "unknown_channel")
    bad = await service.http.post("/s2s/stream/auth", json={"socket_id": "x", "channel_name": 7, "wat": 1})
    assert bad.status_code == 422
    assert {each["pointer"] for each in bad.json()["errors"]} == {
        "/socket_id",
        "/channel_name",
        "/consumerId",
        "/wat",
    }
