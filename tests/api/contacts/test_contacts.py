"""Contacts through the wire (decisions 4)."""

from __future__ import annotations

import json
from urllib.parse import quote

import trio

from tests.api.contacts.test_contacts_for_agents import identity_of
from tests.api.events.test_channels_agree import consuming, receiving, register
from tests.support.api.service import Service
from tests.support.api.surveys import respond, survey


async def test_putting_a_contact_replaces_its_identity_and_announces_changes_only(service: Service) -> None:
    first = (
        await service.http.put("/s2s/contacts/u1", json={"name": "Ada", "email": "ada@x.example"})
    ).json()
    assert (first["name"], first["email"], first["phone"]) == ("Ada", "ada@x.example", None)
    same = (await service.http.put("/s2s/contacts/u1", json={"name": "Ada", "email": "ada@x.example"})).json()
    assert same == first
    second = (await service.http.put("/s2s/contacts/u1", json={"name": "Ada L."})).json()
    assert (second["id"], second["name"], second["email"]) == (first["id"], "Ada L.", None)
    events = await service.events()
    assert [(event["type"], event["sequence"]) for event in events] == [("contact.updated", None)]
    assert events[-1]["data"] == {"contact": identity_of(second)}
    assert (await service.http.get("/s2s/contacts/u1")).json() == second


async def test_a_conversation_shows_its_contact_as_it_is_now(service: Service) -> None:
    conversation = await service.create(user="u1")
    await service.http.put("/s2s/contacts/u1", json={"name": "Ada"})
    assert (await service.fetch(conversation))["contact"]["name"] == "Ada"
    await service.say(conversation, "Hi")
    assert (await service.events())[-1]["data"]["message"]["author"]["name"] == "Ada"


async def test_a_new_conversation_updates_the_contact_in_front_of_itself(service: Service) -> None:
    await service.create(user="u1")
    answer = await service.http.post("/s2s/conversations", json={"contact": {"userId": "u1", "phone": "+1"}})
    assert answer.status_code == 200
    assert await service.types() == ["conversation.created", "contact.updated", "conversation.created"]


async def test_a_contacts_conversations_are_listed_by_newest_activity(service: Service) -> None:
    """Contract 6.4.6."""
    made = [await service.create(user="u1") for _ in range(5)]
    await service.create(user="u2")
    await service.say(made[1], "bump")
    await service.do(made[3], "close")
    seen, cursor = [], None
    for _ in range(3):
        params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = (await service.http.get("/s2s/contacts/u1/conversations", params=params)).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["nextCursor"]
    assert cursor is None
    assert seen[0] == made[1]["id"]
    assert sorted(seen) == sorted(item["id"] for item in made)
    closed = await service.http.get("/s2s/contacts/u1/conversations", params={"status": "CLOSED"})
    assert [item["id"] for item in closed.json()["items"]] == [made[3]["id"]]


async def test_erasing_a_contact_deletes_its_conversations_and_frees_its_user_id(service: Service) -> None:
    made = [await service.create(user="u1", message={"text": "hello"}) for _ in range(3)]
    other = await service.create(user="u2")
    await service.http.put("/s2s/contacts/u1", json={"name": "Ada"})
    await service.http.put("/s2s/contacts/u2", json={"name": "Bea"})
    answer = await service.http.delete("/s2s/contacts/u1")
    assert answer.json() == {"id": made[0]["contact"]["id"], "deleted": True}
    for conversation in made:
        assert (await service.http.get(f"/s2s/conversations/{conversation['id']}")).status_code == 404
    assert (await service.http.get("/s2s/contacts/u1")).status_code == 404
    assert (await service.http.delete("/s2s/contacts/u1")).status_code == 404
    deletions = [event for event in await service.events() if event["type"] == "conversation.deleted"]
    assert {event["data"]["reason"] for event in deletions} == {"gdpr"}
    assert {event["data"]["conversation"]["id"] for event in deletions} == {item["id"] for item in made}
    updated = [event for event in await service.events() if event["type"] == "contact.updated"]
    assert [(event["data"]["contact"]["userId"], event["data"]["contact"]["name"]) for event in updated] == [
        ("u2", "Bea"),
        ("u1", None),
    ]
    assert (await service.fetch(other))["contact"]["name"] == "Bea"
    again = await service.create(user="u1")
    assert again["contact"]["id"] != made[0]["contact"]["id"]


async def test_user_ids_may_hold_any_characters(service: Service) -> None:
    for user in ("auth0|7", "a/b", "ü 1", "x" * 255):
        conversation = await service.create(user=user)
        path = f"/s2s/contacts/{quote(user, safe='')}"
        assert (await service.http.get(path)).json()["userId"] == user
        listed = (await service.http.get(f"{path}/conversations")).json()["items"]
        assert [item["id"] for item in listed] == [conversation["id"]]
    assert (await service.http.put(f"/s2s/contacts/{'x' * 256}", json={})).status_code == 422


async def test_new_contact_has_no_event_of_its_own(service: Service) -> None:
    """Contract 6.1: `contact.updated` says that identity fields changed; before, there were none."""
    assert (await service.http.put("/s2s/contacts/u1", json={"name": "Ada", "phone": "+1"})).is_success
    await service.create(user="u2", message={"text": "Hi"})
    made = await survey(service)
    await respond(service, made, "u3", answers={"score": 9})
    assert await service.types() == ["conversation.created", "message.created"]
    assert (await service.http.put("/s2s/contacts/u2", json={})).is_success  # known, and nothing changes
    assert await service.types() == ["conversation.created", "message.created"]


async def test_erasure_ends_with_one_event_of_a_contact_without_data(service: Service) -> None:
    """Compare webhook, stream and feed, which have the same bytes; in the log the event follows all deletions."""
    name = "mkname"
    put = await service.http.put("/s2s/contacts/u1", json={"name": "before", "email": "a@x.example"})
    await service.http.put(
        "/s2s/contacts/u1",
        json={"name": name, "email": "a@x.example", "avatar": f"https://pictures.example/{name}"},
    )
    made = [await service.create(user="u1") for _ in range(20)]
    async with receiving() as receiver, consuming(service) as live, consuming(service) as project:
        await register(service, receiver.url, events=["contact.updated"])
        await live.subscribe("c1", "private-contact-u1")
        await project.subscribe("c2")
        assert (await service.http.delete("/s2s/contacts/u1")).is_success
        await receiver.wait(1)
        frames = [[await each.receive() for _ in range(len(made) + 1)] for each in (live, project)]
        events = await service.events()
        assert [event["type"] for event in events] == [
            *["conversation.deleted"] * len(made),
            "contact.updated",
        ]
        last = events[-1]
        contact = {
            "id": put.json()["id"],
            "userId": "u1",
            **dict.fromkeys(("name", "email", "phone", "avatar")),
            "createdAt": put.json()["createdAt"],
            "updatedAt": last["data"]["contact"]["updatedAt"],
        }
        assert (last["sequence"], last["data"]) == (None, {"contact": contact})
        for seen in frames:
            assert [json.loads(frame["data"])["id"] for frame in seen] == [event["id"] for event in events]
            assert json.loads(seen[-1]["data"]) == last
        assert [json.loads(request.body) for request in receiver.requests] == [last]
        refused = await service.http.delete("/s2s/contacts/u1")
        assert (refused.status_code, refused.json()["code"]) == (404, "contact_not_found")
        assert await service.events() == events
    async with consuming(service) as later:
        await later.subscribe("c3", resume=events[-3]["id"])  # the contact's own channel no longer exists
        replayed = [json.loads((await later.receive())["data"]) for _ in range(2)]
        assert replayed == events[-2:]


async def test_of_erasures_at_once_one_is_announced(service: Service) -> None:
    await service.create(user="u1", message={"text": "Hi"})
    answers = []

    async def erase() -> None:
        answers.append((await service.http.delete("/s2s/contacts/u1")).status_code)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(erase)
    assert 200 in answers
    assert set(answers) <= {200, 404}
    assert await service.types() == ["conversation.deleted", "contact.updated"]


async def test_contacts_before_and_after_an_erasure_have_different_ids(service: Service) -> None:
    first = (await service.http.put("/s2s/contacts/u1", json={"name": "Ada"})).json()
    await service.http.delete("/s2s/contacts/u1")
    second = (await service.http.put("/s2s/contacts/u1", json={"name": "Bea"})).json()
    assert second["id"] != first["id"]
    contacts = [event["data"]["contact"] for event in await service.events()]
    assert [(contact["id"], contact["name"]) for contact in contacts] == [(first["id"], None)]


async def test_the_erasure_of_a_contact_without_conversations_reaches_every_channel(service: Service) -> None:
    await service.http.put("/s2s/contacts/u1", json={"name": "Ada"})
    async with receiving() as receiver, consuming(service) as live, consuming(service) as project:
        await register(service, receiver.url, events=[])
        await live.subscribe("c1", "private-contact-u1")
        await project.subscribe("c2")
        assert (await service.http.delete("/s2s/contacts/u1")).is_success
        await receiver.wait(1)
        (event,) = await service.events()
        assert (event["type"], event["data"]["contact"]["name"]) == ("contact.updated", None)
        for each in (live, project):
            assert json.loads((await each.receive())["data"]) == event
        assert [json.loads(request.body) for request in receiver.requests] == [event]
