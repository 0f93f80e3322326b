"""A contact that is merged into another one: its moved objects, events and remains (ADR 19)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from tests.api.events.test_channels_agree import consuming, receiving, register
from tests.support.api.service import Service
from tests.support.api.staff import code
from tests.support.api.surveys import respond, survey


async def put(service: Service, user: str, **identity: str) -> dict[str, Any]:
    """Put a contact; returns it."""
    answer = await service.http.put(f"/s2s/contacts/{user}", json=identity)
    assert answer.status_code == 200, answer.text
    contact: dict[str, Any] = answer.json()
    return contact


async def patch(service: Service, user: str, **fields: Any) -> dict[str, Any]:
    """Change a contact; returns it."""
    answer = await service.http.patch(f"/s2s/contacts/{user}", json=fields)
    assert answer.status_code == 200, answer.text
    contact: dict[str, Any] = answer.json()
    return contact


async def merged(service: Service, source: str = "visitor", target: str = "known") -> dict[str, Any]:
    """Merge one contact into another; returns that one."""
    answer = await service.http.post(f"/s2s/contacts/{target}/merge", json={"from": source})
    assert answer.status_code == 200, answer.text
    contact: dict[str, Any] = answer.json()
    return contact


async def remember(service: Service, contact: dict[str, Any], name: str, content: str) -> None:
    entry = {"name": name, "content": content}
    answer = await service.dashboard.post(f"/sessions/{contact['id']}/memory", json=entry)
    assert answer.status_code == 200, answer.text


async def remembered(service: Service, contact: dict[str, Any]) -> dict[str, str]:
    page = (await service.dashboard.get(f"/sessions/{contact['id']}/memory")).json()
    return {entry["name"]: entry["content"] for entry in page["items"]}


async def test_all_that_belongs_to_the_visitor_becomes_the_known_users(service: Service) -> None:
    known = await put(service, "known", name="Ada")
    visitor = await put(service, "visitor", name="A visitor", email="ada@example.org")
    own = await service.create("known", message={"text": "mine"})
    moved = await service.create("visitor", title="Order", message={"text": "visiting"})
    await remember(service, known, "tone", "kind")
    await remember(service, visitor, "tone", "rough")
    await remember(service, visitor, "plan", "pro")
    ticket = {"title": "Refund", "contactId": visitor["id"]}
    loose = (await service.dashboard.post("/tickets", json=ticket)).json()
    linked = await service.dashboard.post("/tickets", json={"title": "T", "conversationId": moved["id"]})
    await respond(service, await survey(service), "visitor", answers={"score": 9})
    survivor = await merged(service)
    assert (survivor["id"], survivor["name"], survivor["email"]) == (known["id"], "Ada", "ada@example.org")
    listed = (await service.http.get("/s2s/contacts/known/conversations")).json()["items"]
    assert {each["id"] for each in listed} == {own["id"], moved["id"]}
    contact = {"id": known["id"], "userId": "known", "name": "Ada", "email": "ada@example.org"}
    assert all(each["contact"] == contact for each in listed)
    assert await remembered(service, known) == {"tone": "kind", "plan": "pro"}
    for each in (loose, linked.json()):
        found = (await service.dashboard.get(f"/tickets/{each['id']}")).json()
        assert found["contactId"] == known["id"]
    export = (await service.http.get("/s2s/contacts/known/export")).json()
    assert [each["answers"] for each in export["surveyResponses"]] == [{"score": 9}]
    assert len(export["conversations"]) == 2


async def test_attributes_and_tags_are_united_and_the_known_users_value_wins(
    service: Service,
) -> None:
    await put(service, "known")
    await put(service, "visitor")
    await patch(service, "known", attributes={"plan": "pro"}, tags=["vip"])
    await patch(service, "visitor", attributes={"plan": "free", "seen": 3}, tags=["web", "vip"])
    survivor = await merged(service)
    assert (survivor["attributes"], survivor["tags"]) == ({"plan": "pro", "seen": 3}, ["vip", "web"])
    for query in ({"tag": "web"}, {"attribute": "seen:3"}):
        found = (await service.http.get("/s2s/contacts", params=query)).json()["items"]
        assert [each["userId"] for each in found] == ["known"]


async def test_events_name_the_moved_objects_in_order_on_every_channel(service: Service) -> None:
    await put(service, "known", name="Ada")
    visitor = await put(service, "visitor", email="ada@example.org")
    moved = await service.create("visitor", message={"text": "visiting"})
    hidden = await service.create("visitor", visible=False)
    before = len(await service.events())
    async with receiving() as receiver, consuming(service) as project:
        await register(service, receiver.url, events=[])
        await project.subscribe("c1")
        survivor = await merged(service)
        events = (await service.events())[before:]
        await receiver.wait(len(events))
        frames = [json.loads((await project.receive())["data"]) for _ in events]
        assert frames == events
        posted = sorted((json.loads(each.body) for each in receiver.requests), key=lambda each: each["id"])
        assert posted == events
    assert [each["type"] for each in events] == ["contact.updated", "conversation.updated", "contact.updated"]
    identity = {
        name: each for name, each in survivor.items() if name not in ("attributes", "tags", "blocked")
    }
    assert events[0]["data"] == {"contact": identity}
    assert (events[1]["sequence"], events[1]["data"]["changed"]) == (3, ["contact"])
    assert events[1]["data"]["conversation"] == await service.fetch(moved)
    gone = events[2]["data"]["contact"]
    assert (gone["id"], gone["userId"]) == (visitor["id"], "visitor")
    assert [gone[name] for name in ("name", "email", "phone", "avatar")] == [None] * 4
    assert (await service.fetch(hidden))["contact"]["userId"] == "known"
    assert (await service.fetch(hidden))["sequence"] == 0


async def test_calls_for_the_merged_visitor_name_the_known_contact(service: Service) -> None:
    known = await put(service, "known")
    visitor = await put(service, "visitor", name="Visitor")
    await merged(service)
    for answer in (
        await service.http.get("/s2s/contacts/visitor"),
        await service.http.patch("/s2s/contacts/visitor", json={"name": "x"}),
        await service.http.delete("/s2s/contacts/visitor"),
        await service.http.get("/s2s/contacts/visitor/conversations"),
        await service.http.get("/s2s/contacts/visitor/export"),
        await service.http.post("/s2s/contacts/visitor/merge", json={"from": "known"}),
        await service.dashboard.get(f"/contacts/{visitor['id']}"),
    ):
        assert code(answer) == (404, "contact_merged")
        assert answer.json()["mergedInto"] == {"id": known["id"], "userId": "known"}
    listed = (await service.http.get("/s2s/contacts")).json()["items"]
    assert [each["userId"] for each in listed] == ["known"]
    again = await put(service, "visitor", name="Another")
    assert again["id"] != visitor["id"]
    assert (await service.http.get("/s2s/contacts/visitor/conversations")).json()["items"] == []


async def test_repeated_merge_returns_the_first_result(service: Service) -> None:
    await put(service, "known")
    await put(service, "visitor")
    first = await merged(service)
    events = await service.events()
    assert await merged(service) == first
    assert await service.events() == events


async def test_merges_follow_each_other_and_everything_ends_at_the_last_one(service: Service) -> None:
    for user in ("a", "b", "c"):
        await put(service, user)
        await service.create(user, message={"text": f"of {user}"})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(merged, service, "a", "b")
        nursery.start_soon(
            service.say, (await service.http.get("/s2s/contacts/b/conversations")).json()["items"][0], "x"
        )
    await merged(service, "b", "c")
    listed = (await service.http.get("/s2s/contacts/c/conversations")).json()["items"]
    assert len(listed) == 3
    answer = await service.http.get("/s2s/contacts/a")
    assert code(answer) == (404, "contact_merged")
    assert answer.json()["mergedInto"]["userId"] == "c"


@pytest.mark.parametrize(
    ("target", "source", "status", "said"),
    [
        ("known", "known", 422, "same"),
        ("known", "nobody", 422, "unknown"),
        ("nobody", "known", 404, "contact_not_found"),
    ],
)
async def test_invalid_merges_are_refused(
    service: Service, target: str, source: str, status: int, said: str
) -> None:
    await put(service, "known")
    answer = await service.http.post(f"/s2s/contacts/{target}/merge", json={"from": source})
    assert answer.status_code == status
    told = answer.json()
    assert said in (told["code"], *(each["code"] for each in told.get("errors", ())))


async def test_contact_that_is_already_merged_is_named_as_such(service: Service) -> None:
    for user in ("known", "other", "visitor"):
        await put(service, user)
    await merged(service)
    answer = await service.http.post("/s2s/contacts/other/merge", json={"from": "visitor"})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (422, "merged")


async def test_two_that_have_too_much_together_are_not_merged(service: Service) -> None:
    for number, user in enumerate(("known", "visitor")):
        await put(service, user)
        await patch(service, user, attributes={f"k{number}{each}": 1 for each in range(60)})
        await patch(service, user, tags=[f"t{number}{each}" for each in range(15)])
    answer = await service.http.post("/s2s/contacts/known/merge", json={"from": "visitor"})
    assert answer.status_code == 422
    assert [each["code"] for each in answer.json()["errors"]] == ["too_many", "too_many"]
    assert (await service.http.get("/s2s/contacts/visitor")).status_code == 200


async def test_agents_merge_contacts_by_id_and_receive_the_event(service: Service) -> None:
    known, visitor = await put(service, "known"), await put(service, "visitor", name="Ada")
    answer = await service.dashboard.post(f"/contacts/{known['id']}/merge", json={"from": visitor["id"]})
    assert (answer.status_code, answer.json()["name"]) == (200, "Ada")
    refused = await service.dashboard.post(f"/contacts/{known['id']}/merge", json={"from": "con_x"})
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "unknown")


async def test_visitor_who_writes_during_the_merge_loses_no_message(service: Service) -> None:
    await put(service, "known")
    made = [await service.create("visitor", message={"text": "0"}) for _ in range(20)]
    said: list[str] = []

    async def write(conversation: dict[str, Any]) -> None:
        for number in range(4):
            said.append((await service.say(conversation, str(number)))["id"])

    async with trio.open_nursery() as nursery:
        for conversation in made:
            nursery.start_soon(write, conversation)
        nursery.start_soon(merged, service)
    seen: list[str] = []
    for conversation in made:
        now = await service.fetch(conversation)
        assert now["contact"]["userId"] == "known"
        path = f"/s2s/conversations/{conversation['id']}"
        messages = (await service.http.get(f"{path}/messages")).json()["items"]
        seen += [each["id"] for each in messages]
        events = [
            each
            for each in await service.events()
            if each["data"].get("conversation", {}).get("id") == now["id"]
        ]
        del events
    assert set(said) <= set(seen)
    assert len(seen) == len(set(seen)) == 20 * 5


async def test_earlier_events_stay_on_the_visitors_channel(service: Service) -> None:
    await put(service, "known")
    await service.create("known", message={"text": "mine"})
    moved = await service.create("visitor", message={"text": "visiting"})
    start = (await service.events())[0]["id"]
    async with consuming(
        service
    ) as consumer:  # authorized for both before the merge, and subscribed after it
        channels = {user: f"private-contact-{user}" for user in ("known", "visitor")}
        auth = {
            user: (await consumer.authorize(f"c-{user}", channel, resume=start)).json()["auth"]
            for user, channel in channels.items()
        }
        await merged(service)
        await service.say(moved, "later")
        events = await service.events()
        of = {user: [e["id"] for e in events if user_of(e) == user and e["id"] > start] for user in channels}
        assert len(of["visitor"]) == 3
        for user, wanted in of.items():
            told = await consumer.present(channels[user], auth[user])
            assert told["event"] == "pusher_internal:subscription_succeeded", told
            assert [json.loads((await consumer.receive())["data"])["id"] for _ in wanted] == wanted
        refused = await consumer.authorize("c", channels["visitor"])
        assert (refused.status_code, refused.json()["code"]) == (404, "contact_merged")
        assert refused.json()["mergedInto"]["userId"] == "known"


def user_of(event: dict[str, Any]) -> str:
    data = event["data"]
    user: str = data.get("conversation", data)["contact"]["userId"]
    return user
