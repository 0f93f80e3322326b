"""Tags are compared after folding, on both databases, and shown as written."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.contacts.test_merging import merged, put
from tests.api.contacts.test_merging import patch as patch_contact
from tests.support.api.inbox import patch, tags
from tests.support.api.service import Service

ALIKE = [
    ("доставка", "Доставка"),
    ("ärger", "ARGER"),
    ("caf\u00e9", "cafe\u0301"),
    ("vip", "\uff36\uff29\uff30"),
    ("\u0645\u0640\u0640\u0631\u062d\u0628\u0627", "\u0645\u0631\u062d\u0628\u0627"),
    ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u062e\u0648\u0627\u0647\u0645"),
]


async def found(service: Service, path: str, tag: str) -> list[str]:
    listed = await service.dashboard.get(path, params={"tag": tag})
    assert listed.status_code == 200, listed.text
    return [each["id"] for each in listed.json()["items"]]


@pytest.mark.parametrize(("written", "sought"), ALIKE)
async def test_a_tag_is_found_however_it_is_written(service: Service, written: str, sought: str) -> None:
    conversation, contact = await service.create(), await put(service, "u9")
    assert (await patch(service, conversation, tags=[written, sought]))["tags"] == [written]
    assert (await patch_contact(service, "u9", tags=[written]))["tags"] == [written]
    ticket = await service.dashboard.post("/tickets", json={"title": "T", "tags": [written]})
    assert ticket.json()["tags"] == [written]
    for tag in (written, sought):
        assert await found(service, "/conversations", tag) == [conversation["id"]]
        assert await found(service, "/contacts", tag) == [contact["id"]]
        assert await found(service, "/tickets", tag) == [ticket.json()["id"]]


async def test_tags_that_read_alike_are_counted_and_reported_as_one(service: Service) -> None:
    first, second, third = [await service.create(user=f"u{number}") for number in range(3)]
    for conversation, tag in ((first, "ärger"), (second, "arger"), (third, "zoll")):
        await patch(service, conversation, tags=[tag])
    assert (await tags(service))["items"] == [
        {"name": "arger", "conversations": 2},
        {"name": "zoll", "conversations": 1},
    ]
    page = await tags(service, limit="1")
    assert (page["items"], page["nextCursor"]) == ([{"name": "arger", "conversations": 2}], "arger")
    assert [each["name"] for each in (await tags(service, cursor="Ärger"))["items"]] == ["zoll"]
    report = await service.dashboard.get("/reports/volume", params={"by": "tag"})
    rows = [(row["key"], row["name"], row["conversationsCreated"]) for row in report.json()["rows"]]
    assert rows == [("arger", "arger", 2), ("zoll", "zoll", 1)]


async def test_a_page_of_a_list_by_several_alike_tags_has_each_conversation_once(service: Service) -> None:
    made = [(await service.create(user=f"u{number}")) for number in range(3)]
    for conversation in made:
        await patch(service, conversation, tags=["ärger"])
    assert sorted(await found(service, "/conversations", "ärger,ARGER")) == sorted(
        each["id"] for each in made
    )


async def test_merged_contacts_have_a_tag_once_as_the_target_has_it(service: Service) -> None:
    await put(service, "u1")
    await put(service, "u2")
    await patch_contact(service, "u1", tags=["ärger", "b"])
    await patch_contact(service, "u2", tags=["arger"])
    contact: Any = await merged(service, "u1", "u2")
    assert contact["tags"] == ["arger", "b"]


async def test_a_ticket_refuses_tags_that_read_alike(service: Service) -> None:
    refused = await service.dashboard.post("/tickets", json={"title": "T", "tags": ["VIP", "a", "víp"]})
    assert refused.status_code == 422
    assert "víp and VIP are the same tag" in refused.text
