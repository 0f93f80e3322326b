"""Drafts: private to each agent, merged after concurrent writes, and deleted with their conversation or agent."""

from __future__ import annotations

import pytest

from deskwire.engine.conversations import drafts as engine_drafts
from tests.support.api.agent_stream import page as opened
from tests.support.api.inbox import pointers
from tests.support.api.service import Service
from tests.support.api.staff import code, person
from tests.support.api.writing import drafts, found, hold, try_to_write, write
from tests.support.stores import beside


async def test_a_reply_and_a_note_are_kept_apart(service: Service) -> None:
    conversation = await service.create()
    assert await drafts(service.dashboard, conversation) == {"reply": None, "note": None}
    reply = await write(service.dashboard, conversation, "Dear Ada", baseSequence=1)
    note = await write(service.dashboard, conversation, "she is upset", mode="note")
    assert await drafts(service.dashboard, conversation) == {"reply": reply["draft"], "note": note["draft"]}
    assert reply["merged"] is False
    assert {**reply["draft"], "version": 1, "updatedAt": ""} == {
        "mode": "reply",
        "text": "Dear Ada",
        "attachments": [],
        "version": 1,
        "baseSequence": 1,
        "mentions": [],
        "updatedAt": "",
    }


async def test_a_stale_write_is_merged_and_never_overwrites(service: Service) -> None:
    conversation = await service.create()
    http = service.dashboard
    first = (await write(http, conversation, "Hello"))["draft"]
    second = (await write(http, conversation, "Hello there", first["version"]))["draft"]
    merged = await write(http, conversation, "Dear Hello", first["version"], baseText="Hello")
    assert (merged["draft"]["text"], merged["merged"]) == ("Dear Hello there", True)
    assert merged["draft"]["version"] > second["version"] > first["version"]
    both = await write(http, conversation, "Something else", 0)
    assert both["draft"]["text"] == "Dear Hello there\n\nSomething else"
    kept = await write(http, conversation, "", first["version"])
    assert kept == {"draft": both["draft"], "merged": True}
    unchanged = await write(http, conversation, both["draft"]["text"], both["draft"]["version"])
    assert unchanged == {"draft": both["draft"], "merged": False}
    gone = await write(http, conversation, "", both["draft"]["version"])
    assert gone == {"draft": None, "merged": False}
    assert (await drafts(http, conversation))["reply"] is None


async def test_pages_of_the_author_alone_are_sent_each_version(service: Service) -> None:
    conversation = await service.create()
    async with person(service, "agent") as other:
        other.http.headers["project"] = service.demo["projectId"]
        async with opened(service.dashboard) as own, opened(other.http) as others:
            mine = (await write(service.dashboard, conversation, "Mine", mode="note"))["draft"]
            theirs = (await write(other.http, conversation, "Theirs", mode="note"))["draft"]
            told = {"conversationId": conversation["id"], "mode": "note"}
            assert await own.passing("draft.updated") == {**told, "draft": mine}
            assert await others.passing("draft.updated") == {**told, "draft": theirs}
            await write(service.dashboard, conversation, "", mine["version"], mode="note")
            assert await own.passing("draft.updated") == {**told, "draft": None}
        assert (await drafts(other.http, conversation))["note"] == theirs
    assert await service.types() == ["conversation.created"]


async def test_drafts_are_listed_newest_first(service: Service) -> None:
    made = [await service.create(user=f"u{number}") for number in range(3)]
    for each in made:
        await write(service.dashboard, each, f"to {each['id']}")
    await write(service.dashboard, made[0], "a note", mode="note")
    seen, cursor = [], ""
    while cursor is not None:
        params = {"limit": "3", **({"cursor": cursor} if cursor else {})}
        page = found(await service.dashboard.get("/drafts", params=params))
        seen += [(each["conversationId"], each["mode"]) for each in page["items"]]
        cursor = page["nextCursor"]
    expected = [(made[0]["id"], "note"), *[(each["id"], "reply") for each in reversed(made)]]
    assert seen == expected


async def test_draft_may_exceed_a_messages_limit_but_a_merge_not_its_own(
    service: Service,
) -> None:
    conversation = await service.create()
    long = "a" * 60_000
    first = (await write(service.dashboard, conversation, long))["draft"]
    assert len(first["text"]) == 60_000
    refused = await try_to_write(service.dashboard, conversation, "b" * 60_000)
    assert code(refused) == (409, "draft_too_long")
    assert (await drafts(service.dashboard, conversation))["reply"] == first
    too_long = await try_to_write(service.dashboard, conversation, "b" * 100_001, version=-1)
    assert pointers(too_long) == {"/text": "too_long", "/version": "too_small"}


async def test_drafts_are_for_people_who_may_reply(service: Service) -> None:
    conversation = await service.create()
    path = f"/conversations/{conversation['id']}/drafts"
    assert (await service.http.get(path)).status_code == 401
    assert code(await service.dashboard.get("/conversations/cnv_0/drafts")) == (404, "conversation_not_found")
    assert code(await try_to_write(service.dashboard, conversation, "x", mode="letter")) == (
        404,
        "draft_not_found",
    )
    async with person(service, "viewer") as viewer:
        viewer.http.headers["project"] = service.demo["projectId"]
        assert code(await viewer.http.get(path)) == (403, "permission_denied")


@pytest.mark.parametrize("mode", ["reply", "note"])
async def test_draft_keeps_and_releases_its_files(service: Service, mode: str) -> None:
    conversation = await service.create()
    upload = await service.http.post("/uploads", files={"file": ("a.txt", b"hello", "text/plain")})
    upload_id = found(upload)["id"]
    saved = (await write(service.dashboard, conversation, "", mode=mode, attachments=[upload_id]))["draft"]
    assert [each["id"] for each in saved["attachments"]] == [upload_id]
    assert (await service.http.delete(f"/uploads/{upload_id}")).status_code == 409
    merged = await write(service.dashboard, conversation, "words", mode=mode)
    assert [each["id"] for each in merged["draft"]["attachments"]] == [upload_id]
    await write(service.dashboard, conversation, "", merged["draft"]["version"], mode=mode)
    assert (await service.http.delete(f"/uploads/{upload_id}")).status_code == 200
    unknown = await try_to_write(service.dashboard, conversation, "x", mode=mode, attachments=[upload_id])
    assert pointers(unknown) == {"/attachments/0": "unknown"}


async def test_a_draft_stays_with_a_conversation_that_another_contact_gets(service: Service) -> None:
    conversation = await service.create("visitor")
    draft = (await write(service.dashboard, conversation, "Dear visitor"))["draft"]
    await service.http.put("/s2s/contacts/known", json={"name": "Known"})
    found(await service.http.post("/s2s/contacts/known/merge", json={"from": "visitor"}))
    assert (await service.fetch(conversation))["contact"]["userId"] == "known"
    assert (await drafts(service.dashboard, conversation))["reply"] == draft


async def test_no_export_has_drafts(service: Service) -> None:
    conversation = await service.create("u1", message={"text": "Hello"})
    await write(service.dashboard, conversation, "unsent words")
    await hold(service.dashboard, conversation, "unsent message")
    contact = conversation["contact"]["id"]
    for client, path in (
        (service.dashboard, f"/contacts/{contact}/export"),
        (service.http, "/s2s/contacts/u1/export"),
        (service.http, "/s2s/export/messages"),
        (service.http, "/s2s/events"),
        (service.http, f"/s2s/conversations/{conversation['id']}/messages"),
    ):
        answer = await client.get(path)
        assert answer.status_code == 200, path
        assert "Hello" in answer.text
        assert "unsent" not in answer.text, path


async def test_drafts_are_bounded_in_number_and_size(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await service.create()
    kept = (await write(service.dashboard, made, "first"))["draft"]
    with monkeypatch.context() as few:
        few.setattr(engine_drafts, "DRAFTS_MAX", 1)
        refused = await try_to_write(service.dashboard, made, "one more", mode="note")
        assert code(refused) == (409, "draft_limit_reached")
        kept = (await write(service.dashboard, made, "first, longer", kept["version"]))["draft"]
    with beside(service.directory) as connection:
        connection.execute("UPDATE drafts SET size = 4000000")
    refused = await try_to_write(service.dashboard, made, "one more", mode="note")
    assert code(refused) == (409, "draft_limit_reached")
    shorter = await write(service.dashboard, made, "first", kept["version"])
    assert shorter["draft"]["text"] == "first"
