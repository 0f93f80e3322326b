"""Tags and snoozes: the normal form of tags, the end of a snooze, and their events."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api.inbox import activity, later, patch, pointers, tags, told, until_awake, view
from tests.support.api.service import Service, running


async def test_tags_are_kept_in_one_form_and_order_and_counted(service: Service) -> None:
    first, second = await service.create(), await service.create(user="u2")
    assert (await patch(service, first, tags=["VIP", "returns  Desk", " vip", "É"]))["tags"] == [
        "returns desk",
        "vip",
        "é",
    ]
    await patch(service, second, tags=["vip"])
    counted = [(each["name"], each["conversations"]) for each in (await tags(service))["items"]]
    assert counted == [("é", 1), ("returns desk", 1), ("vip", 2)]
    await patch(service, first, tags=[])
    assert (await tags(service))["items"] == [{"name": "vip", "conversations": 1}]
    await service.http.delete(f"/s2s/conversations/{second['id']}")
    assert (await tags(service))["items"] == []


async def test_tags_are_paged_by_name(service: Service) -> None:
    conversation = await service.create()
    names = [f"t{number}" for number in range(5)]
    await patch(service, conversation, tags=names)
    seen: list[str] = []
    params: dict[str, str] = {"limit": "2"}
    while True:
        page = await tags(service, **params)
        seen += [each["name"] for each in page["items"]]
        if page["nextCursor"] is None:
            break
        params["cursor"] = page["nextCursor"]
    assert seen == names


@pytest.mark.parametrize(
    "tag",
    ["", "   ", "x" * 41, "word " * 4_000, "a\u202eb", "a\u200bb", "a\x00b", "\u2066vip\u2069", "İ" * 40],
    ids=["empty", "blank", "long", "very long", "bidi override", "zero width", "nul", "isolate", "grows"],
)
async def test_invalid_tag_is_refused_by_its_position(service: Service, tag: str) -> None:
    conversation = await service.create()
    path = f"/conversations/{conversation['id']}"
    answer = await service.dashboard.patch(path, json={"tags": ["fine", tag]})
    assert list(pointers(answer)) == ["/tags/1"]
    assert (await view(service, conversation))["tags"] == []


async def test_a_patch_names_every_problem_and_changes_nothing(service: Service) -> None:
    conversation = await service.create()
    path = f"/conversations/{conversation['id']}"
    many = {"tags": [str(number) for number in range(21)], "snoozedUntil": later(-5), "title": ""}
    assert pointers(await service.dashboard.patch(path, json=many)) == {
        "/tags": "too_many",
        "/snoozedUntil": "not_ahead",
        "/title": "too_short",
    }
    for body, found in (
        ({"tags": None}, {"/tags": "not_nullable"}),
        ({"snoozedUntil": later(367 * 86_400)}, {"/snoozedUntil": "too_large"}),
        ({"snoozedUntil": "tomorrow"}, {"/snoozedUntil": "invalid"}),
        ({}, {"": "required"}),
    ):
        assert pointers(await service.dashboard.patch(path, json=body)) == found, body
    backend = await service.http.patch(f"/s2s{path}", json={"tags": ["x"]})
    assert pointers(backend) == {"/tags": "unknown_field"}


async def test_tags_and_snoozes_cause_no_public_event_and_leave_the_public_object_alone(
    service: Service,
) -> None:
    conversation = await service.create()
    before = await service.fetch(conversation)
    await patch(service, conversation, tags=["vip"], snoozedUntil=later(3_600))
    assert await service.fetch(conversation) == before
    assert await service.types() == ["conversation.created"]
    (changed,) = told(service)
    assert (changed["type"], changed["sequence"]) == ("conversation.changed", None)
    assert sorted(changed["data"]["changed"]) == ["snoozedUntil", "tags"]
    assert changed["data"]["conversation"]["tags"] == ["vip"]
    assert changed["data"]["actor"]["type"] == "user"
    assert {"mine", "asOf"}.isdisjoint(changed["data"]["conversation"])


async def test_a_snooze_ends_with_the_contacts_message_and_with_a_close(service: Service) -> None:
    conversation = await service.create()
    assert (await patch(service, conversation, snoozedUntil=later(3_600)))["snoozedUntil"] is not None
    await service.say(conversation, "I am back")
    assert (await view(service, conversation))["snoozedUntil"] is None
    await patch(service, conversation, snoozedUntil=later(3_600))
    assert (await patch(service, conversation, snoozedUntil=None))["snoozedUntil"] is None
    await patch(service, conversation, snoozedUntil=later(3_600))
    await service.do(conversation, "close")
    assert (await view(service, conversation))["snoozedUntil"] is None
    refused = await service.dashboard.patch(
        f"/conversations/{conversation['id']}", json={"snoozedUntil": later(3_600)}
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "conversation_closed")


async def test_snoozed_conversation_wakes_automatically(service: Service) -> None:
    conversation = await service.create()
    await patch(service, conversation, snoozedUntil=later(1.2))
    await until_awake(service, conversation)
    newest = (await activity(service, conversation))["items"][0]
    assert (newest["actor"]["type"], newest["changes"][0]["field"]) == ("system", "snoozedUntil")
    assert newest["changes"][0]["to"] is None
    assert newest["eventId"] == told(service)[-1]["id"]


async def test_a_snooze_survives_a_restart(tmp_path: Any) -> None:
    async with running(tmp_path) as service:
        conversation = await service.create()
        await patch(service, conversation, snoozedUntil=later(0.5))
    async with running(tmp_path) as service:
        await until_awake(service, conversation)
        assert told(service)[-1]["data"]["actor"]["type"] == "system"
