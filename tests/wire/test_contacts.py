"""Contacts through the wire (decisions 4)."""

from __future__ import annotations

from urllib.parse import quote

from .conftest import Service


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
    assert [(event["type"], event["sequence"]) for event in events] == [("contact.updated", None)] * 2
    assert events[-1]["data"] == {"contact": second}
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
    assert [event["data"]["contact"]["name"] for event in updated] == ["Bea"]
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
