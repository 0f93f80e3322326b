"""Scheduled messages: sent at the time that their author chose, or kept with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import trio

from tests.api.writing.test_held_messages import ended, until_sent, uploaded
from tests.support.api.agent_stream import page as opened
from tests.support.api.inbox import later, pointers, reply, view
from tests.support.api.service import Service, running
from tests.support.api.staff import code, organisation_of, person
from tests.support.api.writing import drafts, found, held, hold, schedule, texts, write

_YEAR_S: Final = 366 * 86_400


async def test_scheduled_message_is_listed_until_it_is_sent_at_its_time(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    async with opened(service.dashboard) as page:
        at = later(1)
        waiting = await schedule(service.dashboard, conversation, "On Monday", at=at)
        assert (waiting["status"], waiting["scheduled"], waiting["unlessReplied"]) == ("held", True, False)
        assert waiting["sendAt"][:19] == at[:19]
        assert await page.passing("message.held") == {"heldMessage": waiting}
        assert await held(service.dashboard, conversation) == [waiting] == await held(service.dashboard)
        assert await texts(service, conversation) == ["Hello"]
        assert (await ended(page, "sent"))["id"] == waiting["id"]
    messages = found(await service.dashboard.get(f"/conversations/{conversation['id']}/messages"))["items"]
    assert [(each["id"], each["text"]) for each in messages][1] == (waiting["id"], "On Monday")
    assert messages[1]["createdAt"] >= waiting["sendAt"]
    assert await held(service.dashboard) == []


async def test_customer_sees_nothing_of_a_scheduled_message_before_its_time(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    waiting = await schedule(service.dashboard, conversation, "Not yet")
    seen = await service.http.get(f"/conversations/{conversation['id']}/messages")
    whole = await service.fetch(conversation)
    assert "Not yet" not in seen.text + str(whole) + str(await service.types())
    assert (await service.types())[-1] == "message.created"
    found(await service.dashboard.delete(f"/held-messages/{waiting['id']}"))
    assert "Not yet" not in (await service.http.get(f"/conversations/{conversation['id']}/messages")).text


async def test_messages_of_anyone_do_not_refuse_a_scheduled_message(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    seen = (await view(service, conversation))["sequence"]
    async with opened(service.dashboard) as page:
        await schedule(service.dashboard, conversation, "At its time", at=later(1), ifSequence=seen)
        await service.say(conversation, "Something else")
        await reply(service, conversation, text="Sure")
        await ended(page, "sent")
    assert await texts(service, conversation) == ["Hello", "Something else", "Sure", "At its time"]


async def test_contact_who_has_written_since_refuses_it_with_the_reason(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    async with opened(service.dashboard) as page:
        waiting = await schedule(
            service.dashboard, conversation, "Still there?", at=later(1), unlessReplied=True
        )
        assert waiting["unlessReplied"] is True
        await service.say(conversation, "Solved, thanks")
        told = await ended(page, "refused")
    (kept,) = await held(service.dashboard)
    assert told["heldMessage"] == kept
    assert (kept["id"], kept["status"]) == (waiting["id"], "refused")
    assert kept["problem"]["code"] == "contact_replied"
    assert await texts(service, conversation) == ["Hello", "Solved, thanks"]
    draft = found(await service.dashboard.delete(f"/held-messages/{waiting['id']}"))["draft"]
    assert draft["text"] == "Still there?"
    assert (await drafts(service.dashboard, conversation))["reply"] == draft


async def test_agents_and_bots_are_no_contact_who_has_written(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    async with opened(service.dashboard) as page:
        await schedule(service.dashboard, conversation, "Still there?", at=later(1), unlessReplied=True)
        await reply(service, conversation, text="We are on it")
        await service.say(conversation, "Beep", author={"type": "bot"})
        await ended(page, "sent")
    assert (await texts(service, conversation))[-1] == "Still there?"


async def test_messages_that_the_author_knew_do_not_refuse_it(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    await service.say(conversation, "Anyone?")
    seen = (await view(service, conversation))["sequence"]
    async with opened(service.dashboard) as page:
        await schedule(
            service.dashboard, conversation, "Here", at=later(1), unlessReplied=True, ifSequence=seen
        )
        await ended(page, "sent")
    assert await texts(service, conversation) == ["Hello", "Anyone?", "Here"]


async def test_close_after_scheduling_refuses_and_one_before_does_not(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    path = f"/conversations/{conversation['id']}/close"
    async with opened(service.dashboard) as page:
        await schedule(service.dashboard, conversation, "Too late", at=later(1))
        found(await service.dashboard.post(path))
        told = await ended(page, "refused")
        assert told["heldMessage"]["problem"]["code"] == "conversation_closed"
        found(await service.dashboard.delete(f"/held-messages/{told['id']}"))
        await ended(page, "taken_back")
        await schedule(service.dashboard, conversation, "One more thing", at=later(1))
        await reply(service, conversation, text="Closed, but still writing")
        await ended(page, "sent")
    assert (await texts(service, conversation))[1:] == ["Closed, but still writing", "One more thing"]


async def test_reopened_conversation_gets_its_scheduled_message(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    path = f"/conversations/{conversation['id']}"
    async with opened(service.dashboard) as page:
        await schedule(service.dashboard, conversation, "Monday", at=later(1))
        found(await service.dashboard.post(f"{path}/close"))
        found(await service.dashboard.post(f"{path}/reopen"))
        await ended(page, "sent")
    assert await texts(service, conversation) == ["Hello", "Monday"]


async def test_messages_that_the_author_has_not_seen_refuse_the_scheduling(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    seen = (await view(service, conversation))["sequence"]
    await service.say(conversation, "No, wait")
    refused = await reply(service, conversation, sendAt=later(60), ifSequence=seen, key="k1")
    assert code(refused) == (409, "conversation_moved_on")
    assert [each["text"] for each in refused.json()["since"]] == ["No, wait"]
    assert await held(service.dashboard) == []


async def test_scheduled_message_is_sent_early_only_once(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    waiting = await schedule(service.dashboard, conversation, "Now", unlessReplied=True)
    await service.say(conversation, "Hello?")
    path = f"/held-messages/{waiting['id']}"
    message = found(await service.dashboard.post(f"{path}/send", json={}))
    assert (message["id"], message["text"]) == (waiting["id"], "Now")
    assert found(await service.dashboard.post(f"{path}/send", json={})) == message
    assert code(await service.dashboard.delete(path)) == (409, "already_sent")
    assert await texts(service, conversation) == ["Hello", "Hello?", "Now"]


async def test_discarded_message_leaves_the_draft_as_it_is(service: Service) -> None:
    conversation = await service.create()
    upload_id = await uploaded(service)
    waiting = await schedule(service.dashboard, conversation, "Never mind", attachments=[upload_id])
    draft = (await write(service.dashboard, conversation, "Another text"))["draft"]
    path = f"/held-messages/{waiting['id']}"
    gone = found(await service.dashboard.delete(path, params={"discard": "true"}))
    assert gone == {"id": waiting["id"], "deleted": True, "draft": None}
    assert (await drafts(service.dashboard, conversation))["reply"] == draft
    assert code(await service.dashboard.delete(path)) == (404, "held_message_not_found")
    assert (await service.http.delete(f"/uploads/{upload_id}")).status_code == 200


async def test_changes_after_a_scheduled_message_are_in_its_commit(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    async with opened(service.dashboard) as page:
        await schedule(service.dashboard, conversation, "Bye", at=later(1), then={"close": True})
        await service.say(conversation, "Thanks")
        await ended(page, "sent")
    assert (await service.fetch(conversation))["status"] == "CLOSED"
    assert await texts(service, conversation) == ["Hello", "Thanks", "Bye"]


async def test_removed_member_and_deleted_conversation_send_nothing(service: Service) -> None:
    conversation, other_one = await service.create(), await service.create()
    organisation = await organisation_of(service)
    async with person(service, "agent") as other:
        other.http.headers["project"] = service.demo["projectId"]
        await schedule(other.http, conversation, "Goodbye", at=later(1))
        found(await service.dashboard.delete(f"/organisations/{organisation}/members/{other.id}"))
    await schedule(service.dashboard, other_one, "Too late", at=later(1))
    found(await service.dashboard.delete(f"/conversations/{other_one['id']}"))
    assert await held(service.dashboard) == []
    async with opened(service.dashboard) as page:
        await schedule(service.dashboard, conversation, "After both", at=later(2))
        await ended(page, "sent")
    assert await texts(service, conversation) == ["After both"]


async def test_invalid_times_are_refused_with_the_reason(service: Service) -> None:
    conversation = await service.create()
    for body, problems in (
        ({"sendAt": later(-1)}, {"/sendAt": "not_ahead"}),
        ({"sendAt": later(_YEAR_S + 60)}, {"/sendAt": "too_large"}),
        ({"sendAt": later(60), "holdSeconds": 5}, {"/sendAt": "not_allowed"}),
        ({"unlessReplied": True}, {"/unlessReplied": "not_allowed"}),
        ({"unlessReplied": True, "holdSeconds": 5}, {"/unlessReplied": "not_allowed"}),
        (
            {"unlessReplied": "yes", "sendAt": "tomorrow"},
            {"/unlessReplied": "invalid", "/sendAt": "invalid"},
        ),
        ({"sendAt": later(-1), "holdSeconds": 99}, {"/holdSeconds": "too_large", "/sendAt": "not_ahead"}),
    ):
        assert pointers(await reply(service, conversation, **body)) == problems, body
    assert found(await reply(service, conversation, sendAt=later(_YEAR_S - 60)))["status"] == "held"


async def test_key_schedules_a_message_once(service: Service) -> None:
    conversation, at = await service.create(), later(60)
    first = await reply(service, conversation, key="k1", sendAt=at)
    again = await reply(service, conversation, key="k1", sendAt=at)
    assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")
    assert len(await held(service.dashboard)) == 1


async def test_scheduled_messages_leave_room_for_the_undo_of_others(service: Service) -> None:
    conversation = await service.create()
    for number in range(100):
        await schedule(service.dashboard, conversation, f"{number}")
    assert code(await reply(service, conversation, sendAt=later(60))) == (409, "held_message_limit_reached")
    await hold(service.dashboard, conversation, "With an undo")
    assert len(await held(service.dashboard)) == 101


async def test_draft_is_deleted_with_its_scheduled_message(service: Service) -> None:
    conversation = await service.create()
    draft = (await write(service.dashboard, conversation, "Hello"))["draft"]
    await schedule(service.dashboard, conversation, "Hello", draftVersion=draft["version"])
    assert (await drafts(service.dashboard, conversation))["reply"] is None


async def test_scheduled_note_is_added_at_its_time(service: Service) -> None:
    conversation = await service.create()
    async with opened(service.dashboard) as page:
        await schedule(service.dashboard, conversation, "Call them", at=later(1), internal=True)
        await ended(page, "sent")
    assert await texts(service, conversation) == ["Call them"]
    assert (await service.types()) == ["conversation.created"]


async def test_scheduled_message_survives_a_restart_and_its_delay(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        conversation = await service.create()
        await schedule(service.dashboard, conversation, "Late", at=later(1))
        kept: dict[str, Any] = await schedule(service.dashboard, conversation, "Next year", at=later(9e6))
    await trio.sleep(1.1)  # its time passes while nothing runs
    async with running(tmp_path) as service:
        await until_sent(service, conversation, "Late")
        assert await held(service.dashboard) == [kept]
