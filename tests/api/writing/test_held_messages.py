"""Held messages: sent at their time, taken back before, kept with the reason where they can't be sent."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support.api.agent_stream import page as opened
from tests.support.api.inbox import later, pointers, reply, view
from tests.support.api.service import Service, running
from tests.support.api.staff import code, organisation_of, person
from tests.support.api.writing import drafts, found, held, hold, schedule, texts, write
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.stores import beside


async def ended(page: Any, outcome: str) -> dict[str, Any]:
    """Return the event by which a held message has ended."""
    data: dict[str, Any] = await page.passing("message.held_ended")
    assert data["outcome"] == outcome, data
    return data


async def test_a_held_message_is_sent_at_its_time_with_its_id(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    async with opened(service.dashboard) as page:
        waiting = await hold(service.dashboard, conversation, "On its way", seconds=1)
        assert (waiting["status"], waiting["problem"], waiting["then"]) == ("held", None, None)
        assert await page.passing("message.held") == {"heldMessage": waiting}
        assert await held(service.dashboard, conversation) == [waiting] == await held(service.dashboard)
        assert await texts(service, conversation) == ["Hello"]
        assert await ended(page, "sent") == {
            "id": waiting["id"],
            "conversationId": conversation["id"],
            "outcome": "sent",
            "heldMessage": None,
        }
    messages = found(await service.dashboard.get(f"/conversations/{conversation['id']}/messages"))["items"]
    assert [(each["id"], each["text"]) for each in messages][1] == (waiting["id"], "On its way")
    assert messages[1]["createdAt"] >= waiting["sendAt"]
    assert await held(service.dashboard) == []
    assert (await service.types())[-1] == "message.created"


async def test_cancelled_held_message_returns_to_the_draft_and_is_never_sent(service: Service) -> None:
    conversation = await service.create()
    async with opened(service.dashboard) as page:
        waiting = await hold(service.dashboard, conversation, "Too soon", ifSequence=1)
        answer = found(await service.dashboard.delete(f"/held-messages/{waiting['id']}"))
        assert (answer["id"], answer["deleted"]) == (waiting["id"], True)
        assert (answer["draft"]["text"], answer["draft"]["baseSequence"]) == ("Too soon", 1)
        told = await page.passing("draft.updated")
        assert told == {"conversationId": conversation["id"], "mode": "reply", "draft": answer["draft"]}
        await ended(page, "taken_back")
    assert (await drafts(service.dashboard, conversation))["reply"] == answer["draft"]
    assert await texts(service, conversation) == []
    again = await service.dashboard.delete(f"/held-messages/{waiting['id']}")
    assert code(again) == (404, "held_message_not_found")


async def test_returned_text_joins_text_written_since(service: Service) -> None:
    conversation = await service.create()
    waiting = await hold(service.dashboard, conversation, "First part", internal=True)
    await write(service.dashboard, conversation, "Second part", mode="note")
    answer = found(await service.dashboard.delete(f"/held-messages/{waiting['id']}"))
    assert answer["draft"]["text"] == "Second part\n\nFirst part"
    assert (await drafts(service.dashboard, conversation))["reply"] is None


async def test_a_held_message_is_sent_now_and_only_once(service: Service) -> None:
    conversation = await service.create()
    waiting = await hold(service.dashboard, conversation, "Now", then={"status": "CLOSED"})
    path = f"/held-messages/{waiting['id']}"
    message = found(await service.dashboard.post(f"{path}/send", json={}))
    assert (message["id"], message["text"], message["internal"]) == (waiting["id"], "Now", False)
    assert found(await service.dashboard.post(f"{path}/send", json={"ifSequence": None})) == message
    assert code(await service.dashboard.delete(path)) == (409, "already_sent")
    assert await texts(service, conversation) == ["Now"]
    assert (await service.fetch(conversation))["status"] == "CLOSED"


async def test_held_message_of_a_changed_conversation_is_kept_with_the_reason(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    seen = (await view(service, conversation))["sequence"]
    async with opened(service.dashboard) as page:
        waiting = await hold(service.dashboard, conversation, "Yes", seconds=1, ifSequence=seen)
        await service.say(conversation, "No, wait")
        told = await ended(page, "refused")
    (kept,) = await held(service.dashboard)
    assert told["heldMessage"] == kept
    assert (kept["id"], kept["status"]) == (waiting["id"], "refused")
    assert kept["problem"]["code"] == "conversation_moved_on"
    assert await texts(service, conversation) == ["Hello", "No, wait"]
    found(await service.dashboard.post(f"/held-messages/{waiting['id']}/send", json={}))
    assert await texts(service, conversation) == ["Hello", "No, wait", "Yes"]


async def test_two_held_replies_of_one_author_are_both_sent(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    seen = (await view(service, conversation))["sequence"]
    async with opened(service.dashboard) as page:
        await hold(service.dashboard, conversation, "First", seconds=1, ifSequence=seen)
        await hold(service.dashboard, conversation, "Second", seconds=1, ifSequence=seen)
        await ended(page, "sent")
        await ended(page, "sent")
    assert await texts(service, conversation) == ["Hello", "First", "Second"]


async def test_own_messages_hide_no_message_of_the_contact(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    seen = (await view(service, conversation))["sequence"]
    async with opened(service.dashboard) as page:
        await hold(service.dashboard, conversation, "First", seconds=1, ifSequence=seen)
        await hold(service.dashboard, conversation, "Second", seconds=2, ifSequence=seen)
        await ended(page, "sent")
        await service.say(conversation, "No, wait")
        await ended(page, "refused")
    assert await texts(service, conversation) == ["Hello", "First", "No, wait"]


async def test_changes_after_a_held_message_are_in_its_commit(service: Service) -> None:
    conversation = await service.create()
    until = later(3_600)
    async with opened(service.dashboard) as page:
        waiting = await hold(
            service.dashboard, conversation, "Later", seconds=1, then={"snoozedUntil": until}
        )
        assert waiting["then"] == {"snoozedUntil": until}
        await ended(page, "sent")
    assert (await view(service, conversation))["snoozedUntil"] is not None


async def test_draft_is_deleted_with_its_sent_message(service: Service) -> None:
    conversation = await service.create()
    first = (await write(service.dashboard, conversation, "Hello"))["draft"]
    assert (await reply(service, conversation, draftVersion=first["version"])).status_code == 200
    assert (await drafts(service.dashboard, conversation))["reply"] is None
    second = (await write(service.dashboard, conversation, "Bye"))["draft"]
    newer = (await write(service.dashboard, conversation, "Bye now", second["version"]))["draft"]
    await hold(service.dashboard, conversation, "Bye", draftVersion=second["version"])
    assert (await drafts(service.dashboard, conversation))["reply"] == newer
    await hold(service.dashboard, conversation, "Bye now", draftVersion=newer["version"])
    assert (await drafts(service.dashboard, conversation))["reply"] is None


async def test_a_held_message_is_its_authors_alone(service: Service) -> None:
    conversation = await service.create()
    waiting = await hold(service.dashboard, conversation, "Mine")
    async with person(service, "agent") as other:
        other.http.headers["project"] = service.demo["projectId"]
        assert await held(other.http) == [] == await held(other.http, conversation)
        path = f"/held-messages/{waiting['id']}"
        assert code(await other.http.delete(path)) == (404, "held_message_not_found")
        assert code(await other.http.post(f"{path}/send", json={})) == (404, "held_message_not_found")


async def test_a_key_holds_a_message_once(service: Service) -> None:
    conversation = await service.create()
    first = await reply(service, conversation, key="k1", holdSeconds=60)
    again = await reply(service, conversation, key="k1", holdSeconds=60)
    assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")
    assert len(await held(service.dashboard)) == 1


@pytest.mark.parametrize(
    "post", [partial(hold, seconds=1), lambda http, of, text: schedule(http, of, text, later(1))]
)
async def test_author_without_write_permission_sends_nothing(service: Service, post: Any) -> None:
    conversation = await service.create()
    organisation = await organisation_of(service)
    async with person(service, "agent") as other:
        other.http.headers["project"] = service.demo["projectId"]
        async with opened(other.http) as page:
            await post(other.http, conversation, "Goodbye")
            answer = await service.dashboard.patch(
                f"/organisations/{organisation}/members/{other.id}", json={"role": "viewer"}
            )
            found(answer)
            told = await ended(page, "refused")
        assert told["heldMessage"]["problem"]["code"] == "permission_denied"
        assert await texts(service, conversation) == []


async def test_a_removed_member_leaves_neither_drafts_nor_messages(service: Service) -> None:
    conversation = await service.create()
    organisation = await organisation_of(service)
    upload_id = await uploaded(service)
    async with person(service, "agent") as other:
        other.http.headers["project"] = service.demo["projectId"]
        await hold(other.http, conversation, "Goodbye", seconds=1, attachments=[upload_id])
        await write(other.http, conversation, "so long", mode="note")
        found(await service.dashboard.delete(f"/organisations/{organisation}/members/{other.id}"))
    for table in ("drafts", "held_messages"):
        with beside(service.directory) as connection:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    assert (await service.http.delete(f"/uploads/{upload_id}")).status_code == 200
    assert await texts(service, conversation) == []
    assert (await service.types()) == ["conversation.created"]


async def test_redacted_file_is_in_no_draft_and_no_sent_message(service: Service) -> None:
    conversation = await service.create()
    upload_id = await uploaded(service)
    message = await service.say(conversation, "Here", attachments=[upload_id])
    await write(service.dashboard, conversation, "see this", attachments=[upload_id])
    await write(service.dashboard, conversation, "", mode="note", attachments=[upload_id])
    waiting = await hold(service.dashboard, conversation, "and this", attachments=[upload_id])
    path = f"/conversations/{conversation['id']}/messages/{message['id']}/redact"
    found(await service.dashboard.post(path, json={"allAttachments": True}))
    left = await drafts(service.dashboard, conversation)
    assert (left["reply"]["text"], left["reply"]["attachments"], left["note"]) == ("see this", [], None)
    (kept,) = await held(service.dashboard)
    assert (kept["id"], kept["status"], kept["attachments"]) == (waiting["id"], "refused", [])
    assert kept["problem"]["code"] == "attachment_gone"
    found(await service.dashboard.post(f"/held-messages/{waiting['id']}/send", json={}))
    assert await texts(service, conversation) == ["Here", "and this"]


async def test_the_files_of_a_held_message_are_the_messages(service: Service) -> None:
    conversation = await service.create()
    upload_id = await uploaded(service)
    draft = (await write(service.dashboard, conversation, "", attachments=[upload_id]))["draft"]
    waiting = await hold(
        service.dashboard, conversation, "", attachments=[upload_id], draftVersion=draft["version"]
    )
    assert [each["id"] for each in waiting["attachments"]] == [upload_id]
    taken = found(await service.dashboard.delete(f"/held-messages/{waiting['id']}"))["draft"]
    assert [each["id"] for each in taken["attachments"]] == [upload_id]
    again = await hold(
        service.dashboard, conversation, "", attachments=[upload_id], draftVersion=taken["version"]
    )
    message = found(await service.dashboard.post(f"/held-messages/{again['id']}/send", json={}))
    assert [each["id"] for each in message["attachments"]] == [upload_id]
    assert (await service.http.delete(f"/uploads/{upload_id}")).status_code == 409


async def test_invalid_held_message_is_refused_with_every_problem(service: Service) -> None:
    conversation = await service.create()
    body: dict[str, Any] = {
        "holdSeconds": 61,
        "draftVersion": 0,
        "then": {"status": "CLOSED", "snoozedUntil": later(9)},
    }
    assert pointers(await reply(service, conversation, **body)) == {
        "/holdSeconds": "too_large",
        "/draftVersion": "too_small",
        "/then/status": "not_allowed",
    }
    unknown = {"id": "cnv_00000000000000000000000000"}
    assert code(await reply(service, unknown, holdSeconds=1)) == (404, "conversation_not_found")
    assert code(await service.http.delete("/held-messages/msg_0")) == (
        401,
        "wrong_credential_kind",
    )


async def test_a_user_holds_a_hundred_messages_at_most(service: Service) -> None:
    conversation = await service.create()
    for number in range(100):
        await hold(service.dashboard, conversation, f"{number}")
    refused = await reply(service, conversation, holdSeconds=1)
    assert code(refused) == (409, "held_message_limit_reached")
    assert (await reply(service, conversation)).status_code == 200


async def test_a_held_message_survives_a_restart_and_its_delay(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        conversation = await service.create()
        waiting = await hold(service.dashboard, conversation, "Late", seconds=1)
    await trio.sleep(1.1)  # its time passes while nothing runs
    async with running(tmp_path) as service:
        await until_sent(service, conversation, "Late")
        assert await held(service.dashboard) == []
        assert code(await service.dashboard.delete(f"/held-messages/{waiting['id']}")) == (
            409,
            "already_sent",
        )


async def until_sent(service: Service, conversation: dict[str, Any], text: str) -> None:
    """Return when the conversation has this message as its only one."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            sent = await texts(service, conversation)
            if sent:
                assert sent == [text]
                return
            await trio.sleep(0.05)  # poll: a page that is opened late gets no notification


async def uploaded(service: Service) -> str:
    """Return the id of a new upload."""
    file = {"file": ("a.txt", b"hello", "text/plain")}
    return str(found(await service.http.post("/uploads", files=file))["id"])
