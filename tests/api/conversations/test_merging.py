"""Merges of two conversations by the API: the thread, lists, writes to the merged one, events, ticket, drafts and held messages."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio

from tests.support.api.inbox import activity, later, patch, reply, told, view
from tests.support.api.service import Service
from tests.support.api.staff import code, person
from tests.support.deadlines import HANG_TIMEOUT_S


async def merge(service: Service, source: dict[str, Any], target: dict[str, Any]) -> httpx.Response:
    path = f"/conversations/{source['id']}/merge"
    return await service.dashboard.post(path, json={"into": target["id"]})


async def unmerge(service: Service, source: dict[str, Any]) -> httpx.Response:
    return await service.dashboard.post(f"/conversations/{source['id']}/unmerge")


async def pair(service: Service) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two conversations of a contact with three messages."""
    source = await service.create(message={"text": "first"})
    target = await service.create(message={"text": "second"})
    await service.say(source, "third")
    return source, target


async def texts(client: httpx.AsyncClient, path: str, **params: Any) -> list[tuple[str, str]]:
    """Return the conversation and the text of each message of a list, page by page."""
    found, cursor = list[tuple[str, str]](), None
    while True:
        page = {**params, "limit": 2} if cursor is None else {**params, "limit": 2, "cursor": cursor}
        answer = await client.get(path, params=page)
        assert answer.status_code == 200, answer.text
        found += [(each["conversationId"], each["text"]) for each in answer.json()["items"]]
        cursor = answer.json()["nextCursor"]
        if cursor is None:
            return found


async def test_each_list_of_messages_shows_both_threads_as_one(service: Service) -> None:
    source, target = await pair(service)
    merged = await merge(service, source, target)
    assert merged.status_code == 200, merged.text
    assert (merged.json()["mergedInto"], merged.json()["closed"]) == (target["id"], True)
    expected = [(source["id"], "first"), (target["id"], "second"), (source["id"], "third")]
    path = f"/conversations/{target['id']}/messages"
    assert await texts(service.dashboard, path) == expected
    assert await texts(service.dashboard, path, order="desc") == expected[::-1]
    assert await texts(service.http, f"/s2s{path}") == expected
    own = f"/conversations/{source['id']}/messages"
    assert await texts(service.dashboard, own) == [expected[0], expected[2]]
    (first, *_) = (await service.dashboard.get(own)).json()["items"]
    assert await texts(service.dashboard, path, after=first["id"]) == expected[1:]
    assert await texts(service.dashboard, path, before=first["id"]) == []
    unknown = await service.dashboard.get(path, params={"after": "msg_0"})
    assert code(unknown) == (404, "message_not_found")


async def test_lists_leave_a_merged_conversation_out(service: Service) -> None:
    source, target = await pair(service)
    await merge(service, source, target)
    for params in ({}, {"view": "agent"}, {"status": "CLOSED"}, {"contact": source["contact"]["id"]}):
        listed = (await service.dashboard.get("/conversations", params=params)).json()["items"]
        assert source["id"] not in [each["id"] for each in listed]
    of_contact = (await service.http.get("/s2s/contacts/u1/conversations")).json()["items"]
    assert [each["id"] for each in of_contact] == [target["id"]]
    for merged, ids in ((None, {source["id"], target["id"]}), ("true", {source["id"]})):
        params = {} if merged is None else {"merged": merged}
        mirror = (await service.http.get("/s2s/conversations", params=params)).json()["items"]
        assert {each["id"] for each in mirror} == ids
    context = (await service.dashboard.get(f"/conversations/{target['id']}/context")).json()
    assert context["conversations"] == []


async def test_agents_and_backends_are_told_where_to_write(service: Service) -> None:
    source, target = await pair(service)
    await merge(service, source, target)
    at = f"/conversations/{source['id']}"
    calls = [
        reply(service, source, text="Hi"),
        reply(service, source, text="Hi", holdSeconds=10),
        service.dashboard.post(f"{at}/reopen", json={}),
        service.dashboard.patch(at, json={"title": "x"}),
        service.dashboard.post(f"{at}/typing", json={"typing": True}),
        service.dashboard.put(f"{at}/follow"),
        service.dashboard.post("/tickets", json={"title": "T", "conversationId": source["id"]}),
        service.http.post(f"/s2s{at}/close", json={}),
        service.http.patch(f"/s2s{at}", json={"attributes": {"a": 1}}),
    ]
    for each in calls:
        refused = await each
        assert code(refused) == (409, "conversation_merged"), refused.text
        assert refused.json()["mergedInto"] == target["id"]


async def test_a_backends_message_is_stored_in_the_target_and_answered_again(service: Service) -> None:
    source, target = await pair(service)
    await merge(service, source, target)
    path, key = f"/s2s/conversations/{source['id']}/messages", {"Idempotency-Key": "k1"}
    sent = await service.http.post(path, json={"text": "late"}, headers=key)
    assert (sent.status_code, sent.json()["conversationId"]) == (200, target["id"])
    again = await service.http.post(path, json={"text": "late"}, headers=key)
    assert again.json() == sent.json()
    rated = await service.http.post(f"/s2s/conversations/{source['id']}/rating", json={"rating": 9})
    assert rated.status_code == 200
    assert (await view(service, target))["rating"] == 9
    assert (await view(service, source))["rating"] is None


async def test_events_show_the_merge_in_both_sequences(service: Service) -> None:
    source, target = await pair(service)
    await merge(service, source, target)
    await unmerge(service, source)
    events = (await service.http.get("/s2s/events", params={"limit": 100})).json()["items"]
    shown = [
        (
            each["data"]["conversation"]["id"],
            each["type"],
            each["data"].get("changed"),
            each["data"]["conversation"].get("mergedInto"),
            each["data"]["conversation"].get("merged"),
        )
        for each in events
        if each["sequence"] > 2 or each["data"]["conversation"]["id"] == target["id"]
    ]
    one, other = source["id"], target["id"]
    assert shown[-6:] == [
        (one, "conversation.closed", None, None, None),
        (one, "conversation.updated", ["mergedInto"], other, None),
        (other, "conversation.updated", ["merged"], None, [one]),
        (other, "conversation.updated", ["merged"], None, None),
        (one, "conversation.updated", ["mergedInto"], None, None),
        (one, "conversation.reopened", None, None, None),
    ]
    changed = [each for each in told(service) if each["type"] == "conversation.changed"]
    assert all(each["data"]["actor"]["type"] == "user" for each in changed[-4:])
    entries = (await activity(service, source))["items"]
    assert [each["changes"][0]["field"] for each in entries[:3]] == ["status", "mergedInto", "mergedInto"]


async def test_a_ticket_moves_with_its_conversation_and_back(service: Service) -> None:
    source, target = await pair(service)
    made = await service.dashboard.post("/tickets", json={"title": "T", "conversationId": source["id"]})
    ticket = f"/tickets/{made.json()['id']}"
    await merge(service, source, target)
    assert (await service.dashboard.get(ticket)).json()["conversationId"] == target["id"]
    assert (await view(service, target))["ticketId"] == made.json()["id"]
    assert (await view(service, source))["ticketId"] is None
    await unmerge(service, source)
    assert (await service.dashboard.get(ticket)).json()["conversationId"] == source["id"]
    assert (await view(service, source))["ticketId"] == made.json()["id"]
    await service.dashboard.post("/tickets", json={"title": "T2", "conversationId": target["id"]})
    refused = await merge(service, source, target)
    assert code(refused) == (409, "conversation_linked")


async def test_unsent_texts_move_to_the_target(service: Service) -> None:
    source, target = await pair(service)
    scheduled = await reply(service, source, text="See you", sendAt=later(3_600))
    assert scheduled.status_code == 200, scheduled.text
    for conversation, text in ((source, "half a reply"), (target, "another half")):
        path = f"/conversations/{conversation['id']}/drafts/reply"
        await service.dashboard.put(path, json={"text": text, "version": 0})
    await merge(service, source, target)
    draft = (await service.dashboard.get(f"/conversations/{target['id']}/drafts")).json()["reply"]
    assert {"half a reply", "another half"} == set(draft["text"].split("\n\n"))
    assert (await service.dashboard.get(f"/conversations/{source['id']}/drafts")).json()["reply"] is None
    held = (await service.dashboard.get("/held-messages")).json()["items"]
    assert [(each["id"], each["conversationId"]) for each in held] == [(scheduled.json()["id"], target["id"])]
    path = f"/conversations/{source['id']}/drafts/reply"
    late = await service.dashboard.put(path, json={"text": "from an old tab", "version": 7})
    assert late.status_code == 200, late.text
    draft = (await service.dashboard.get(f"/conversations/{target['id']}/drafts")).json()["reply"]
    assert "from an old tab" in draft["text"]


async def test_messages_of_a_merged_conversation_are_redacted_there(service: Service) -> None:
    source, target = await pair(service)
    (first, *_) = (await service.dashboard.get(f"/conversations/{source['id']}/messages")).json()["items"]
    await merge(service, source, target)
    path = f"/conversations/{source['id']}/messages/{first['id']}"
    redacted = await service.dashboard.post(f"{path}/redact", json={"text": True})
    assert redacted.status_code == 200, redacted.text
    assert "first" not in [
        text for _, text in await texts(service.dashboard, f"/conversations/{target['id']}/messages")
    ]
    assert (await service.dashboard.delete(path)).status_code == 200


async def test_a_merged_conversation_is_deleted_with_its_target(service: Service) -> None:
    source, target = await pair(service)
    await merge(service, source, target)
    assert (await service.dashboard.delete(f"/conversations/{target['id']}")).status_code == 200
    for each in (source, target):
        assert (await service.dashboard.get(f"/conversations/{each['id']}")).status_code == 404


async def test_an_erasure_removes_merged_conversations(service: Service) -> None:
    source, target = await pair(service)
    await merge(service, source, target)
    erased = await service.http.delete("/s2s/contacts/u1")
    assert erased.status_code in (200, 202), erased.text
    for each in (source, target):
        assert (await service.dashboard.get(f"/conversations/{each['id']}")).status_code == 404


async def test_contacts_are_merged_with_their_merged_conversations(service: Service) -> None:
    source, target = await pair(service)
    await merge(service, source, target)
    other = (await service.http.put("/s2s/contacts/u2", json={})).json()
    moved = await service.http.post("/s2s/contacts/u2/merge", json={"from": "u1"})
    assert moved.status_code == 200, moved.text
    assert (await view(service, source))["contact"]["id"] == other["id"]
    assert (await unmerge(service, source)).status_code == 200


@pytest.mark.parametrize("into", ["cnv_00000000000000000000000000", "nothing", "source"])
async def test_a_target_that_can_not_be_is_refused(service: Service, into: str) -> None:
    source, _ = await pair(service)
    body = {"into": source["id"] if into == "source" else into}
    refused = await service.dashboard.post(f"/conversations/{source['id']}/merge", json=body)
    assert refused.status_code == 422, refused.text
    assert [each["pointer"] for each in refused.json()["errors"]] == ["/into"]


async def test_following_and_tags_are_united(service: Service) -> None:
    source, target = await pair(service)
    await service.dashboard.put(f"/conversations/{source['id']}/follow")
    await patch(service, source, tags=["a"])
    await patch(service, target, tags=["b"])
    await merge(service, source, target)
    seen = await view(service, target)
    assert (sorted(seen["tags"]), len(seen["followers"])) == (["a", "b"], 1)
    await unmerge(service, source)
    seen = await view(service, target)
    assert (seen["tags"], seen["followers"]) == (["b"], [])


async def test_a_mention_in_a_merged_conversation_stays_on_the_list_of_mentions(service: Service) -> None:
    source, target = await pair(service)
    async with person(service, "agent") as colleague:
        noted = await reply(service, source, text="Look", internal=True, mentions=[colleague.id])
        assert noted.status_code == 200, noted.text
        await merge(service, source, target)
        params = {"view": "agent", "mentioned": "true"}
        headers = {"project": service.demo["projectId"]}
        listed = await colleague.http.get("/conversations", params=params, headers=headers)
        assert [each["id"] for each in listed.json()["items"]] == [source["id"]]


async def test_scheduled_message_is_sent_in_the_target(service: Service) -> None:
    source, target = await pair(service)
    held = await reply(service, source, text="Soon", sendAt=later(1.5))
    assert held.status_code == 200, held.text
    await merge(service, source, target)
    path = f"/conversations/{target['id']}/messages"
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            if (target["id"], "Soon") in await texts(service.dashboard, path):
                break
            await trio.sleep(0.05)  # poll: there is no notification
    assert (await service.dashboard.get("/held-messages")).json()["items"] == []


async def test_notes_of_both_are_in_the_agents_thread_only(service: Service) -> None:
    source, target = await pair(service)
    await reply(service, source, text="A note", internal=True)
    await merge(service, source, target)
    await reply(service, target, text="Another note", internal=True)
    path = f"/conversations/{target['id']}/messages"
    shown = await texts(service.dashboard, path)
    assert shown[-2:] == [(source["id"], "A note"), (target["id"], "Another note")]
    assert [text for _, text in await texts(service.http, f"/s2s{path}")] == ["first", "second", "third"]
