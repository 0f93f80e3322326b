"""Channels of contacts whose user id a channel name can't have are named by the contact's own id (decisions 5)."""

from __future__ import annotations

import json

from tests.api.events.test_channels_agree import consuming
from tests.support.api.service import Service

USER_ID = "auth0|ada lovelace"


async def test_a_channel_by_contact_id_carries_the_events_of_its_user(service: Service) -> None:
    conversation = await service.create(USER_ID)
    channel = f"private-contact-{conversation['contact']['id']}"
    async with consuming(service) as consumer:
        assert (await consumer.subscribe(channel=channel))[
            "event"
        ] == "pusher_internal:subscription_succeeded"
        await service.create("another")
        await service.say(conversation, "Hello")
        frame = await consumer.receive()
        assert (frame["channel"], frame["event"]) == (channel, "message.created")
        assert json.loads(frame["data"])["data"]["message"]["text"] == "Hello"


async def test_a_channel_by_contact_id_resumes_after_a_break(service: Service) -> None:
    conversation = await service.create(USER_ID)
    channel = f"private-contact-{conversation['contact']['id']}"
    async with consuming(service) as consumer:
        await consumer.subscribe(channel=channel)
    for text in ("one", "two"):
        await service.say(conversation, text)
    async with consuming(service) as consumer:
        answer = await consumer.subscribe(channel=channel)
        assert json.loads(answer["data"])["gap"] is False
        frames = [await consumer.receive() for _ in range(2)]
    assert [json.loads(each["data"])["data"]["message"]["text"] for each in frames] == ["one", "two"]


async def test_channel_by_contact_id_is_taken_over_and_ended(service: Service) -> None:
    conversation = await service.create(USER_ID)
    channel = f"private-contact-{conversation['contact']['id']}"
    async with consuming(service) as first, consuming(service) as second:
        await first.subscribe("c1", channel)
        await second.subscribe("c2", channel)
        assert (await first.receive())["data"]["code"] == 4009
        ended = await service.http.delete("/s2s/stream/consumers/c2")
        assert ended.status_code == 200, ended.text
    async with consuming(service) as third:
        await third.subscribe("c3", channel)
        await service.say(conversation, "Hello")
        assert (await third.receive())["event"] == "message.created"


async def test_a_user_id_that_looks_like_a_contact_id_names_its_own_contact(service: Service) -> None:
    ada = await service.create(USER_ID)
    impostor = await service.create(ada["contact"]["id"])
    async with consuming(service) as consumer:
        await consumer.subscribe(channel=f"private-contact-{ada['contact']['id']}")
        await service.say(ada, "Not here")
        await service.say(impostor, "Here")
        assert json.loads((await consumer.receive())["data"])["data"]["message"]["text"] == "Here"


async def test_an_erased_contact_leaves_no_consumer_of_its_id(service: Service) -> None:
    conversation = await service.create(USER_ID)
    channel = f"private-contact-{conversation['contact']['id']}"
    async with consuming(service) as consumer:
        await consumer.subscribe(channel=channel)
    listed = (await service.http.get("/s2s/stream/consumers")).json()["items"]
    assert [each["channel"] for each in listed] == [channel]
    assert (await service.http.delete("/s2s/contacts/auth0%7Cada%20lovelace")).status_code == 200
    assert (await service.http.get("/s2s/stream/consumers")).json()["items"] == []
