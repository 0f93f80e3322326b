"""Splits by the API: threads of both conversations, events, receipts of clients, refusals, erasure and repeated requests."""

from __future__ import annotations

from typing import Any, Final

import httpx
import pytest

from tests.api.conversations.test_merging import merge, texts, unmerge
from tests.support.api.inbox import activity, patch, reply, told, view
from tests.support.api.service import Service
from tests.support.api.staff import code, person
from tests.support.stores import beside

KEY: Final = {"Idempotency-Key": "split-1"}
_UNKNOWN: Final = "msg_00000000000000000000000000"


async def split(
    service: Service, conversation: dict[str, Any], *messages: str, **more: Any
) -> httpx.Response:
    path = f"/conversations/{conversation['id']}/split"
    headers = more.pop("headers", None)
    return await service.dashboard.post(path, json={"messageIds": [*messages], **more}, headers=headers)


async def asked(service: Service) -> tuple[dict[str, Any], list[str]]:
    """Return a conversation with three messages of the customer, and their ids."""
    conversation = await service.create(message={"text": "Where is my order?"})
    await service.say(conversation, "And my address has changed.")
    await service.say(conversation, "To 12 Elm Street.")
    listed = await service.http.get(f"/s2s/conversations/{conversation['id']}/messages")
    return conversation, [each["id"] for each in listed.json()["items"]]


async def separated(service: Service) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Split the last two messages off; return both conversations, and the ids of the messages."""
    source, ids = await asked(service)
    answer = await split(service, source, *ids[1:], title="My address")
    assert answer.status_code == 200, answer.text
    return source, answer.json(), ids


async def test_each_list_shows_the_messages_in_both_conversations(service: Service) -> None:
    source, new, ids = await separated(service)
    assert (new["splitFrom"], new["title"], new["status"]) == (source["id"], "My address", "OPEN")
    assert new["contact"] == source["contact"]
    assert (await service.fetch(source))["splitInto"] == [new["id"]]
    await reply(service, new, text="Changed.")
    shown = [(source["id"], "And my address has changed."), (source["id"], "To 12 Elm Street.")]
    expected = [*shown, (new["id"], "Changed.")]
    path = f"/conversations/{new['id']}/messages"
    assert await texts(service.dashboard, path) == expected
    assert await texts(service.dashboard, path, order="desc") == expected[::-1]
    assert await texts(service.http, f"/s2s{path}") == expected
    assert await texts(service.http, f"/s2s{path}", after=ids[1]) == expected[1:]
    assert await texts(service.dashboard, path, before=ids[2]) == expected[:1]
    own = f"/conversations/{source['id']}/messages"
    assert await texts(service.dashboard, own) == [(source["id"], "Where is my order?"), *shown]
    for client, at in ((service.dashboard, own), (service.http, f"/s2s{own}"), (service.dashboard, path)):
        marks = {each["id"]: each.get("splitInto") for each in (await client.get(at)).json()["items"]}
        assert {each: marks.get(each) for each in ids} == {
            ids[0]: None,
            ids[1]: new["id"],
            ids[2]: new["id"],
        }
    unknown = await service.dashboard.get(path, params={"after": ids[0]})
    assert code(unknown) == (404, "message_not_found")


async def test_wait_tags_and_assignee_are_those_of_the_messages(service: Service) -> None:
    source, ids = await asked(service)
    await patch(service, source, tags=["vip"])
    before = await view(service, source)
    new = (await split(service, source, *ids[1:])).json()
    source_view, new_view = await view(service, source), await view(service, new)
    assert source_view["waitingSince"] == before["waitingSince"]
    assert (new_view["tags"], new_view["title"], new_view["lastMessage"]["text"]) == (
        ["vip"],
        None,
        "To 12 Elm Street.",
    )
    assert new_view["waitingSince"] > before["waitingSince"]
    waiting = (
        await service.dashboard.get("/conversations", params={"view": "agent", "sort": "waiting"})
    ).json()
    assert {each["id"] for each in waiting["items"]} == {source["id"], new["id"]}
    await reply(service, new, text="Changed.")
    assert (await view(service, new))["waitingSince"] is None
    assert (await view(service, source))["waitingSince"] == before["waitingSince"]


async def test_events_show_the_split_in_both_sequences(service: Service) -> None:
    source, new, ids = await separated(service)
    events = (await service.http.get("/s2s/events", params={"limit": 100})).json()["items"]
    created = next(
        each
        for each in events
        if each["type"] == "conversation.created" and each["data"]["conversation"]["id"] == new["id"]
    )
    assert created["data"]["conversation"]["splitFrom"] == source["id"]
    assert (created["sequence"], created["data"]["splitOffMessageIds"]) == (1, ids[1:])
    updated = [each for each in events if each["data"].get("changed") == ["splitInto"]]
    assert [each["data"]["conversation"]["splitInto"] for each in updated] == [[new["id"]]]
    assert [each["type"] for each in events].count("message.created") == len(ids)
    changed = {
        each["data"]["conversation"]["id"]: (each["data"]["changed"], each["data"]["actor"]["type"])
        for each in told(service)
        if each["type"] == "conversation.changed"
    }
    assert changed == {new["id"]: (["created"], "user"), source["id"]: (["splitInto"], "user")}
    (started,) = (await activity(service, new))["items"]
    assert (started["action"], started["changes"]) == (
        "started",
        [{"field": "splitFrom", "from": None, "to": source["id"]}],
    )
    newest = (await activity(service, source))["items"][0]
    assert newest["changes"] == [{"field": "splitInto", "from": [], "to": [new["id"]]}]
    assert newest["actor"]["type"] == started["actor"]["type"] == "user"


async def test_unknown_messages_are_all_named(service: Service) -> None:
    source, ids = await asked(service)
    other = await service.create("u2", message={"text": "Another customer"})
    path = f"/s2s/conversations/{other['id']}/messages"
    foreign = (await service.http.get(path)).json()["items"][0]["id"]
    refused = await split(service, source, _UNKNOWN, ids[0], foreign, "no id at all")
    assert refused.status_code == 422
    assert [(each["pointer"], each["code"]) for each in refused.json()["errors"]] == [
        (f"/messageIds/{place}", "unknown") for place in (0, 2, 3)
    ]
    assert "splitInto" not in await service.fetch(source)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messageIds": []},
        {"messageIds": "msg_1"},
        {"messageIds": [7]},
        {"messageIds": [None]},
        {"messageIds": [_UNKNOWN, _UNKNOWN]},
        {"messageIds": [f"msg_{each:026}" for each in range(101)]},
        {"messageIds": ["x" * 41]},
        {"messageIds": ["msg_\u0000"]},
        {"messageIds": [_UNKNOWN], "title": "  "},
        {"messageIds": [_UNKNOWN], "title": "x" * 501},
        {"messageIds": [_UNKNOWN], "subject": "x"},
    ],
)
async def test_body_that_can_not_be_is_refused(service: Service, body: dict[str, Any]) -> None:
    source, _ = await asked(service)
    refused = await service.dashboard.post(f"/conversations/{source['id']}/split", json=body)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"]
    assert "splitInto" not in await service.fetch(source)


async def test_states_that_allow_no_split_are_refused(service: Service) -> None:
    source, new, ids = await separated(service)
    again = await split(service, source, *ids)
    assert code(again) == (409, "message_split")
    assert again.json()["splitInto"] == new["id"]
    of_other = await split(service, new, ids[1])
    assert code(of_other) == (422, "invalid_input")
    noted = (await reply(service, source, text="A note", internal=True)).json()
    alone = await split(service, source, noted["id"])
    assert [each["code"] for each in alone.json()["errors"]] == ["no_public_message"]
    unknown = await split(service, {"id": "cnv_00000000000000000000000000"}, ids[0])
    assert code(unknown) == (404, "conversation_not_found")
    await merge(service, new, source)
    refused = await split(service, new, ids[0])
    assert code(refused) == (409, "conversation_merged")
    assert refused.json()["mergedInto"] == source["id"]


async def test_split_takes_the_permission_to_manage(service: Service) -> None:
    source, ids = await asked(service)
    async with person(service, "viewer") as viewer:
        headers = {"project": service.demo["projectId"]}
        path, body = f"/conversations/{source['id']}/split", {"messageIds": ids[:1]}
        refused = await viewer.http.post(path, json=body, headers=headers)
    assert code(refused) == (403, "permission_denied")
    assert "splitInto" not in await service.fetch(source)


async def test_repeated_request_is_answered_with_the_same_conversation(service: Service) -> None:
    source, ids = await asked(service)
    first = await split(service, source, ids[1], headers=KEY)
    again = await split(service, source, ids[1], headers=KEY)
    assert (first.status_code, again.json()) == (200, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (await service.fetch(source))["splitInto"] == [first.json()["id"]]


async def test_merge_undoes_a_split_and_the_messages_can_be_split_off_again(service: Service) -> None:
    source, new, ids = await separated(service)
    await reply(service, new, text="Changed.")
    assert (await merge(service, new, source)).status_code == 200
    path = f"/conversations/{source['id']}/messages"
    assert [text for _, text in await texts(service.dashboard, path)] == [
        "Where is my order?",
        "And my address has changed.",
        "To 12 Elm Street.",
        "Changed.",
    ]
    again = await split(service, source, ids[1])
    assert again.status_code == 200, again.text
    assert (await unmerge(service, new)).status_code == 200
    assert await texts(service.dashboard, f"/conversations/{new['id']}/messages") == [
        (source["id"], "To 12 Elm Street."),
        (new["id"], "Changed."),
    ]


async def test_redaction_and_deletion_reach_both_threads(service: Service) -> None:
    source, new, ids = await separated(service)
    at = f"/conversations/{source['id']}/messages"
    redacted = await service.dashboard.post(f"{at}/{ids[1]}/redact", json={"text": True})
    assert redacted.status_code == 200, redacted.text
    assert (await service.dashboard.delete(f"{at}/{ids[2]}")).status_code == 200
    assert await texts(service.dashboard, f"/conversations/{new['id']}/messages") == [(source["id"], "")]
    elsewhere = await service.dashboard.delete(f"/conversations/{new['id']}/messages/{ids[1]}")
    assert code(elsewhere) == (404, "message_not_found")


async def test_deletion_of_either_leaves_the_other(service: Service) -> None:
    source, new, ids = await separated(service)
    other = (await split(service, source, ids[0])).json()
    assert (await service.dashboard.delete(f"/conversations/{other['id']}")).status_code == 200
    assert (await service.fetch(source))["splitInto"] == [new["id"]]
    await reply(service, new, text="Changed.")
    assert (await service.dashboard.delete(f"/conversations/{source['id']}")).status_code == 200
    left = await service.fetch(new)
    assert "splitFrom" not in left
    assert await texts(service.http, f"/s2s/conversations/{new['id']}/messages") == [(new["id"], "Changed.")]
    events = (await service.http.get("/s2s/events", params={"limit": 100})).json()["items"]
    assert ["splitFrom"] in [each["data"].get("changed") for each in events]


async def test_erasure_removes_both_conversations(service: Service) -> None:
    source, new, _ = await separated(service)
    exported = await service.http.get("/s2s/contacts/u1/export")
    assert exported.status_code == 200, exported.text
    assert exported.text.count("To 12 Elm Street.") == 1
    erased = await service.http.delete("/s2s/contacts/u1")
    assert erased.status_code in (200, 202), erased.text
    for each in (source, new):
        assert (await service.dashboard.get(f"/conversations/{each['id']}")).status_code == 404
    with beside(service.directory) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone()[0] == 0


async def test_contacts_are_merged_with_both_conversations(service: Service) -> None:
    source, new, ids = await separated(service)
    other = (await service.http.put("/s2s/contacts/u2", json={})).json()
    moved = await service.http.post("/s2s/contacts/u2/merge", json={"from": "u1"})
    assert moved.status_code == 200, moved.text
    for each in (source, new):
        assert (await view(service, each))["contact"]["id"] == other["id"]
    assert len(await texts(service.dashboard, f"/conversations/{new['id']}/messages")) == len(ids[1:])
    assert (await merge(service, new, source)).status_code == 200


async def test_search_and_counts_know_each_message_once(service: Service) -> None:
    source, new, ids = await separated(service)
    assert (await view(service, new))["messages"] == 0
    assert (await view(service, source))["messages"] == len(ids)
    report = await service.dashboard.get("/reports/volume", params={"by": "channel"})
    assert report.status_code == 200, report.text
    assert sum(row["contactMessages"] for row in report.json()["rows"]) == len(ids)
    found = await service.dashboard.get("/conversations", params={"view": "agent", "q": "Elm Street"})
    assert [each["id"] for each in found.json()["items"]] == [source["id"]]
