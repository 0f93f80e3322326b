"""Attributes and tags of contacts, and lists of contacts by them and by change (ADR 19)."""

from __future__ import annotations

from typing import Any

import pytest

from deskwire.engine.core.clock import iso, wall_clock
from tests.api.contacts.test_merging import patch, put
from tests.support.api.service import Service
from tests.support.api.staff import code, person


async def users(service: Service, **params: str) -> list[str]:
    """The user ids of a whole list, page by page."""
    listed: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await service.http.get("/s2s/contacts", params={"limit": "2", **params, "cursor": cursor})
        assert page.status_code == 200, page.text
        listed += [each["userId"] for each in page.json()["items"]]
        cursor = page.json()["nextCursor"]
    return listed


async def test_patch_changes_only_the_named_fields_and_a_put_the_identity(service: Service) -> None:
    made = await put(service, "u1", name="Ada", phone="+1")
    assert (made["attributes"], made["tags"]) == ({}, [])
    changed = await patch(
        service, "u1", email="a@x.example", attributes={"plan": "pro", "n": 1}, tags=[" VIP", "vip"]
    )
    assert (changed["name"], changed["email"], changed["tags"]) == ("Ada", "a@x.example", ["vip"])
    changed = await patch(service, "u1", attributes={"n": None, "deep": {"a": [1]}})
    assert (changed["attributes"], changed["tags"]) == ({"plan": "pro", "deep": {"a": [1]}}, ["vip"])
    kept = await put(service, "u1", name="Bea")
    assert (kept["email"], kept["attributes"], kept["tags"]) == (None, changed["attributes"], ["vip"])
    assert kept == (await service.http.get("/s2s/contacts/u1")).json()


async def test_agents_and_the_backend_have_one_set_of_tags_and_attributes(service: Service) -> None:
    contact = await put(service, "u1")
    await patch(service, "u1", tags=["a"], attributes={"x": 1})
    path = f"/contacts/{contact['id']}"
    changed = await service.dashboard.patch(path, json={"tags": ["b"], "attributes": {"y": 2}})
    assert (changed.json()["tags"], changed.json()["attributes"]) == (["b"], {"x": 1, "y": 2})
    assert changed.json() == (await service.http.get("/s2s/contacts/u1")).json()


async def test_attributes_and_tags_are_in_no_conversation_and_in_no_event(service: Service) -> None:
    conversation = await service.create("u1", message={"text": "Hi"})
    before = await service.events()
    await patch(service, "u1", tags=["vip"], attributes={"plan": "pro"})
    assert await service.events() == before
    assert await service.fetch(conversation) == conversation | {
        name: (await service.fetch(conversation))[name] for name in ("lastMessageAt", "sequence", "updatedAt")
    }


async def test_a_patch_that_changes_nothing_leaves_the_time_of_change(service: Service) -> None:
    await put(service, "u1", name="Ada")
    first = await patch(service, "u1", name="Ada", tags=["vip"], attributes={"a": 1})
    assert await patch(service, "u1", name="Ada", tags=["VIP"], attributes={"a": 1}) == first


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, [""]),
        ({"tags": None, "attributes": None}, ["/attributes", "/tags"]),
        ({"tags": ["a,b", ""]}, ["/tags/0", "/tags/1"]),
        ({"tags": [f"t{number}" for number in range(21)]}, ["/tags"]),
        ({"attributes": {"": 1}}, ["/attributes/"]),
        ({"attributes": {f"k{number}": 1 for number in range(60)}}, ["/attributes"]),
    ],
)
async def test_all_that_is_wrong_with_a_patch_is_named(
    service: Service, body: dict[str, Any], pointers: list[str]
) -> None:
    await put(service, "u1")
    await patch(service, "u1", attributes={f"j{number}": 1 for number in range(60)})
    answer = await service.http.patch("/s2s/contacts/u1", json=body)
    assert (answer.status_code, sorted(each["pointer"] for each in answer.json()["errors"])) == (
        422,
        pointers,
    )


async def test_patch_creates_no_contact(service: Service) -> None:
    answer = await service.http.patch("/s2s/contacts/u1", json={"name": "Ada"})
    assert (answer.status_code, answer.json()["code"]) == (404, "contact_not_found")


async def test_contacts_are_found_by_tag_attribute_address_and_words(service: Service) -> None:
    await put(service, "u1", name="Ada Lovelace", email="Ada@Shop.example")
    await put(service, "u2", name="Ada Byron", email="ada@shop.example.org")
    await put(service, "u3")
    await patch(
        service, "u1", tags=["vip", "web"], attributes={"plan": "pro", "seats": 3, "beta": True, "a:b": "x:y"}
    )
    await patch(service, "u2", tags=["web"], attributes={"plan": "free", "seats": 3.0})
    assert await users(service, q="ada") == ["u1", "u2"]
    assert await users(service, email="ada@shop.example") == ["u1"]
    assert await users(service, tag="web") == ["u1", "u2"]
    assert await users(service, tag="VIP,none") == ["u1"]
    assert await users(service, attribute="plan:pro") == ["u1"]
    assert await users(service, attribute="seats:3") == ["u1", "u2"]
    assert await users(service, attribute="beta:true") == ["u1"]
    assert await users(service, attribute="plan:pr") == await users(service, attribute="x:1") == []
    assert await users(service, q="ada", tag="web", attribute="plan:free") == ["u2"]
    await patch(service, "u1", tags=[], attributes={"plan": None})
    assert await users(service, tag="vip") == await users(service, attribute="plan:pro") == []
    listed = await service.dashboard.get("/contacts", params={"tag": "web", "attribute": "plan:free"})
    assert [each["userId"] for each in listed.json()["items"]] == ["u2"]


async def test_list_by_change_begins_with_the_oldest_as_of_the_first_page(
    service: Service,
) -> None:
    for number in range(5):
        await put(service, f"u{number}", name="Ada")
    await service.create("u9", message={"text": "Hi"})
    await patch(service, "u1", tags=["vip"])
    assert await users(service) == ["u0", "u2", "u3", "u4", "u9", "u1"]
    assert await users(service, order="desc") == ["u1", "u9", "u4", "u3", "u2", "u0"]
    assert await users(service, sort="created") == ["u0", "u1", "u2", "u3", "u4", "u9"]
    first = (await service.http.get("/s2s/contacts", params={"limit": "3"})).json()
    assert first["asOf"] == (await service.events())[-1]["id"]
    await patch(service, "u0", name="Bea")
    second = await service.http.get("/s2s/contacts", params={"limit": "9", "cursor": first["nextCursor"]})
    assert second.json()["asOf"] == first["asOf"]
    assert [each["userId"] for each in second.json()["items"]] == ["u4", "u9", "u1", "u0"]
    behind = await service.http.get("/s2s/events", params={"after": first["asOf"]})
    assert [each["type"] for each in behind.json()["items"]] == ["contact.updated"]


async def test_a_list_is_bounded_by_the_time_of_change(service: Service) -> None:
    first = await put(service, "u1")
    later = iso(wall_clock() + 3_600_000)
    assert await users(service, updatedSince=first["updatedAt"]) == ["u1"]
    assert await users(service, updatedSince=later) == []
    assert await users(service, updatedBefore=later) == ["u1"]
    answer = await service.http.get("/s2s/contacts", params={"updatedSince": later, "updatedBefore": later})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        {"attribute": "plan"},
        {"attribute": ":x"},
        {"tag": ","},
        {"sort": "name"},
        {"email": "x"},
        {"cursor": "x"},
    ],
)
async def test_a_filter_that_can_not_be_is_refused(service: Service, query: dict[str, str]) -> None:
    for answer in (
        await service.http.get("/s2s/contacts", params=query),
        await service.dashboard.get("/contacts", params=query),
    ):
        assert answer.status_code == 400
        assert [each["pointer"] for each in answer.json()["errors"]] == [f"/{next(iter(query))}"]


async def test_a_cursor_is_good_for_its_own_list_alone(service: Service) -> None:
    for number in range(3):
        await put(service, f"u{number}")
    cursor = (await service.http.get("/s2s/contacts", params={"limit": "1"})).json()["nextCursor"]
    answer = await service.http.get("/s2s/contacts", params={"cursor": cursor, "sort": "created"})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_query")


async def test_a_viewer_of_contacts_changes_and_merges_none(service: Service) -> None:
    contact, other = await put(service, "u1"), await put(service, "u2")
    path, project = f"/contacts/{contact['id']}", {"project": service.demo["projectId"]}
    async with person(service, "viewer") as viewer:
        for answer in (
            await viewer.http.patch(path, json={"tags": ["x"]}, headers=project),
            await viewer.http.post(f"{path}/merge", json={"from": other["id"]}, headers=project),
        ):
            assert code(answer) == (403, "permission_denied")
