"""Contacts for agents through the wire (contract 2.2, decisions 3, 4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api.planted_texts import holding, overwritten
from tests.support.api.service import Service
from tests.support.api.staff import code, organisation_of, person

UNKNOWN = "con_00000000000000000000000000"


async def put(service: Service, user: str, **identity: str) -> dict[str, str]:
    """Put a contact; returns it."""
    answer = await service.http.put(f"/s2s/contacts/{user}", json=identity)
    assert answer.status_code == 200, answer.text
    contact: dict[str, str] = answer.json()
    return contact


def identity_of(contact: dict[str, Any]) -> dict[str, Any]:
    """The fields of a contact that `contact.updated` has."""
    return {name: each for name, each in contact.items() if name not in ("attributes", "tags", "blocked")}


async def found(service: Service, q: str) -> list[str]:
    """The user ids of those that a search finds."""
    answer = await service.dashboard.get("/contacts", params={"q": q})
    assert answer.status_code == 200, answer.text
    return [item["userId"] for item in answer.json()["items"]]


async def test_contacts_are_listed_newest_first_by_pages(service: Service) -> None:
    made = [await put(service, f"u{number}", name="Ada") for number in range(5)]
    for params in ({"limit": "2"}, {"limit": "2", "q": "ada"}):
        listed, cursor = [], ""
        while cursor is not None:
            page = (await service.dashboard.get("/contacts", params={**params, "cursor": cursor})).json()
            listed += page["items"]
            cursor = page["nextCursor"]
        assert listed == made[::-1]


async def test_a_contact_is_found_by_name_address_and_user_id(service: Service) -> None:
    await put(service, "crm-7", name="Ada Lovelace", email="countess@shop.example")
    await put(service, "crm-8", name="Jörg Müller")
    await put(service, "x9")
    assert await found(service, "LOVE ada") == ["crm-7"]
    assert await found(service, "countess@") == ["crm-7"]
    assert await found(service, "muller") == ["crm-8"]
    assert await found(service, "crm-") == ["crm-8", "crm-7"]
    assert await found(service, "lovelace crm-8") == []
    assert await found(service, " ") == []
    assert await found(service, "%") == await found(service, '"*') == []


async def test_changed_contact_is_found_by_its_present_values(service: Service) -> None:
    contact = await put(service, "u1", name="Ada Byron", email="ada@old.example")
    changed = await service.dashboard.patch(f"/contacts/{contact['id']}", json={"name": "Ada Lovelace"})
    assert changed.json() == {**contact, "name": "Ada Lovelace", "updatedAt": changed.json()["updatedAt"]}
    assert (await found(service, "byron"), await found(service, "lovelace")) == ([], ["u1"])
    await service.http.put("/s2s/contacts/u1", json={"name": "Countess"})
    assert (await found(service, "ada"), await found(service, "count")) == ([], ["u1"])


async def test_change_is_announced_once_on_every_channel(service: Service) -> None:
    contact = await put(service, "u1", name="Ada", phone="+1")
    path = f"/contacts/{contact['id']}"
    changed = await service.dashboard.patch(path, json={"name": "Bea", "phone": None})
    assert (changed.json()["name"], changed.json()["phone"]) == ("Bea", None)
    again = await service.dashboard.patch(path, json={"name": "Bea"})
    assert again.json() == changed.json() == (await service.dashboard.get(path)).json()
    assert changed.json() == (await service.http.get("/s2s/contacts/u1")).json()
    (event,) = await service.events()
    assert (event["type"], event["data"]) == ("contact.updated", {"contact": identity_of(changed.json())})


async def test_erased_contact_is_neither_found_nor_shown_and_leaves_no_text(service: Service) -> None:
    contact = await put(service, "u1", name="Zyxquorple Lovelace")
    assert await found(service, "zyxq") == ["u1"]
    assert (await service.http.delete("/s2s/contacts/u1")).is_success
    assert await found(service, "zyxq") == []
    for call in (
        service.dashboard.get(f"/contacts/{contact['id']}"),
        service.dashboard.patch(f"/contacts/{contact['id']}", json={"name": "Ada"}),
    ):
        assert code(await call) == (404, "contact_not_found")
    await overwritten(service)
    assert holding(service.directory, b"zyxquorple") == []


@pytest.mark.parametrize("role", ["viewer", "agent", "admin", "owner"])
async def test_all_members_read_contacts_and_agents_change_them(service: Service, role: str) -> None:
    contact = await put(service, "u1", name="Ada")
    path = f"/contacts/{contact['id']}"
    async with person(service, role) as one:
        one.http.headers["project"] = service.demo["projectId"]
        assert (await one.http.get("/contacts")).json()["items"] == [contact]
        assert (await one.http.get(path)).json() == contact
        changed = await one.http.patch(path, json={"name": "Bea"})
        if role == "viewer":
            assert code(changed) == (403, "permission_denied")
        else:
            assert changed.json()["name"] == "Bea"


async def test_contact_of_another_project_is_not_found(service: Service) -> None:
    contact = await put(service, "u1", name="Ada")
    path = f"/organisations/{await organisation_of(service)}/projects"
    other = (await service.dashboard.post(path, json={"name": "Other"})).json()
    headers = {"project": other["id"]}
    listed = await service.dashboard.get("/contacts", params={"q": "ada"}, headers=headers)
    assert listed.json()["items"] == []
    assert (await service.dashboard.get("/contacts", headers=headers)).json()["items"] == []
    one = f"/contacts/{contact['id']}"
    assert code(await service.dashboard.get(one, headers=headers)) == (404, "contact_not_found")
    changed = await service.dashboard.patch(one, json={"name": "x"}, headers=headers)
    assert code(changed) == (404, "contact_not_found")


@pytest.mark.parametrize("method", ["get", "patch"])
@pytest.mark.parametrize("identifier", [UNKNOWN, "u1", "con_x"])
async def test_an_unknown_contact_is_not_found(service: Service, method: str, identifier: str) -> None:
    await put(service, "u1")
    body = {"name": "Ada"} if method == "patch" else None
    answer = await service.dashboard.request(method, f"/contacts/{identifier}", json=body)
    assert code(answer) == (404, "contact_not_found")


async def test_problems_of_a_search_or_a_change_are_named(service: Service) -> None:
    contact = await put(service, "u1")
    query = {"q": "", "limit": "0", "cursor": "?", "sort": "name"}
    listed = await service.dashboard.get("/contacts", params=query)
    assert listed.status_code == 400
    assert sorted(problem["pointer"] for problem in listed.json()["errors"]) == [
        "/cursor",
        "/limit",
        "/q",
        "/sort",
    ]
    path = f"/contacts/{contact['id']}"
    body = {"name": "", "email": 7, "userId": "u2"}
    changed = await service.dashboard.patch(path, json=body)
    assert changed.status_code == 422
    assert sorted(problem["pointer"] for problem in changed.json()["errors"]) == [
        "/email",
        "/name",
        "/userId",
    ]
    assert code(await service.dashboard.patch(path, json={})) == (422, "invalid_input")


async def test_a_server_key_is_no_credential_for_agents_contacts(service: Service) -> None:
    contact = await put(service, "u1")
    for path in ("/contacts", f"/contacts/{contact['id']}"):
        assert (await service.http.get(path)).status_code == 401


async def test_an_admin_erases_a_contact_and_an_agent_may_not(service: Service) -> None:
    conversation = await service.create("gone", message={"text": "Forget me."})
    path = f"/contacts/{conversation['contact']['id']}"
    async with person(service, "agent") as agent:
        headers = {"project": service.demo["projectId"]}
        refused = await agent.http.delete(path, headers=headers)
    assert code(refused) == (403, "permission_denied")
    assert (await service.dashboard.get(path)).status_code == 200
    erased = await service.dashboard.delete(path)
    assert erased.json() == {"id": conversation["contact"]["id"], "deleted": True}
    assert (await service.dashboard.get(path)).status_code == 404
    assert (await service.dashboard.get(f"/conversations/{conversation['id']}")).status_code == 404
    assert code(await service.dashboard.delete(path)) == (404, "contact_not_found")
