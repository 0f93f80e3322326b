"""Contacts who wait for an answer, and the mark that none is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.support.api.inbox import activity, later, patch, pointers, reply, told, view
from tests.support.api.machines import make, showing
from tests.support.api.service import Service, running
from tests.support.api.staff import code, person
from tests.support.api.surveys import respond, survey

THANKS = {"text": "Thanks!"}


async def mark(
    service: Service, conversation: dict[str, Any], index: int = 0, by: httpx.AsyncClient | None = None
) -> httpx.Response:
    """Mark the conversation with this client, the owner's by default."""
    path = f"/conversations/{conversation['id']}/no-answer-needed"
    return await (by or service.dashboard).put(path, json={"index": index})


async def take_back(service: Service, conversation: dict[str, Any]) -> httpx.Response:
    """Take the mark back."""
    return await service.dashboard.delete(f"/conversations/{conversation['id']}/no-answer-needed")


async def waits(service: Service, conversation: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return since when the contact waits, and since when no answer is needed."""
    seen = await view(service, conversation)
    return seen["waitingSince"], seen["noAnswerNeededSince"]


async def test_a_marked_contact_waits_again_with_the_next_message(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    since, _ = await waits(service, conversation)
    answer = await mark(service, conversation)
    assert answer.json() == {"waitingSince": None, "noAnswerNeededSince": since}
    assert await waits(service, conversation) == (None, since)
    asked = await service.say(conversation, "One more question")
    assert await waits(service, conversation) == (asked["createdAt"], None)


async def test_a_mark_is_taken_back_with_the_start_of_the_wait(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    since, _ = await waits(service, conversation)
    await patch(service, conversation, status="PENDING", snoozedUntil=later(3_600))
    await mark(service, conversation)
    await reply(service, conversation, text="A note", internal=True)
    assert (await take_back(service, conversation)).json() == {
        "waitingSince": since,
        "noAnswerNeededSince": None,
    }
    seen = await view(service, conversation)
    assert (seen["status"], seen["snoozedUntil"] is not None) == ("PENDING", True)
    assert (await take_back(service, conversation)).json()["waitingSince"] == since


async def test_a_mark_that_was_answered_cannot_be_taken_back(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    await mark(service, conversation)
    await reply(service, conversation)
    nothing = {"waitingSince": None, "noAnswerNeededSince": None}
    assert (await take_back(service, conversation)).json() == nothing


async def test_customers_and_consumers_see_nothing_of_the_mark(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    since, _ = await waits(service, conversation)
    before, types = await service.fetch(conversation), await service.types()
    await mark(service, conversation)
    assert await service.fetch(conversation) == before
    assert await service.types() == types
    (changed,) = told(service)
    assert (changed["type"], changed["sequence"]) == ("conversation.changed", None)
    assert changed["data"]["changed"] == ["waitingSince", "noAnswerNeededSince"]
    assert changed["data"]["conversation"]["noAnswerNeededSince"] == since
    assert changed["data"]["actor"]["type"] == "user"


async def test_the_activity_says_who_marked_it_and_who_took_it_back(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    since, _ = await waits(service, conversation)
    async with person(service, "agent") as grace:
        grace.http.headers["project"] = service.demo["projectId"]
        await mark(service, conversation, by=grace.http)
        await take_back(service, conversation)
        last, first = (await activity(service, conversation))["items"]
    assert (first["actor"]["id"], first["action"]) == (grace.id, "changed")
    assert first["changes"] == [{"field": "noAnswerNeededSince", "from": None, "to": since}]
    assert last["changes"] == [{"field": "noAnswerNeededSince", "from": since, "to": None}]
    changes = [event["id"] for event in told(service) if event["type"] == "conversation.changed"]
    assert changes == [first["eventId"], last["eventId"]]


async def test_two_agents_at_once_make_one_change(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    answers: list[httpx.Response] = []

    async def one() -> None:
        answers.append(await mark(service, conversation))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(one)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert len((await activity(service, conversation))["items"]) == 1


@pytest.mark.parametrize("visible", [True, False])
async def test_a_message_that_the_agent_has_not_seen_is_not_marked(service: Service, visible: bool) -> None:
    conversation = await service.create(message=THANKS, visible=visible)
    since, _ = await waits(service, conversation)
    await service.say(conversation, "But where is my order?")
    refused = await mark(service, conversation, index=0)
    assert code(refused) == (409, "newer_message")
    assert await waits(service, conversation) == (since, None)
    assert (await mark(service, conversation, index=1)).status_code == 200


async def test_no_message_is_lost_when_it_races_with_the_mark(service: Service) -> None:
    for number in range(8):
        conversation = await service.create(user=f"u{number}", message=THANKS)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mark, service, conversation)
            nursery.start_soon(service.say, conversation, "But where is my order?")
        since, unneeded = await waits(service, conversation)
        assert (since is not None, unneeded) == (True, None)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({}, {"/index": "required"}),
        ({"index": -2}, {"/index": "too_small"}),
        ({"index": 1}, {"/index": "too_large"}),
        ({"index": "0"}, {"/index": "invalid"}),
        ({"index": 0, "until": 1}, {"/until": "unknown_field"}),
    ],
)
async def test_an_invalid_mark_is_refused_with_every_problem(
    service: Service, body: dict[str, Any], found: dict[str, str]
) -> None:
    conversation = await service.create(message=THANKS)
    path = f"/conversations/{conversation['id']}/no-answer-needed"
    assert pointers(await service.dashboard.put(path, json=body)) == found
    assert (await waits(service, conversation))[0] is not None


async def test_a_mark_for_no_message_does_not_fit_a_conversation_that_has_one(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    path = f"/conversations/{conversation['id']}/no-answer-needed"
    answer = await service.dashboard.put(path, json={"index": -1})
    assert (answer.status_code, answer.json()["code"]) == (409, "newer_message")
    assert (await waits(service, conversation))[0] is not None


async def test_a_mark_needs_the_right_to_reply_and_an_open_conversation(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    async with person(service, "viewer") as reader:
        reader.http.headers["project"] = service.demo["projectId"]
        assert code(await mark(service, conversation, by=reader.http)) == (403, "permission_denied")
    machine = await make(service, ["conversations.reply"])
    async with showing(service, machine["secret"]) as http:
        http.headers["project"] = service.demo["projectId"]
        assert (await mark(service, conversation, by=http)).status_code == 200
    await service.do(conversation, "close")
    assert code(await mark(service, conversation)) == (409, "conversation_closed")
    assert code(await take_back(service, conversation)) == (409, "conversation_closed")
    await service.http.delete(f"/s2s/conversations/{conversation['id']}")
    assert code(await mark(service, conversation)) == (404, "conversation_not_found")


async def test_lists_counters_health_and_reports_follow_and_count_no_reply(service: Service) -> None:
    conversation = await service.create(message=THANKS)

    async def shown() -> tuple[Any, ...]:
        params = {"view": "agent", "sort": "waiting"}
        listed = (await service.dashboard.get("/conversations", params=params)).json()["items"]
        counted = (await service.dashboard.get("/inbox/counters")).json()["waiting"]
        health = (await service.dashboard.get(f"/projects/{service.demo['projectId']}/health")).json()
        backlog = (await service.dashboard.get("/reports/backlog")).json()["total"]
        return len(listed), counted, health["oldestWaiting"] is not None, backlog["waiting"], backlog["open"]

    assert await shown() == (1, 1, True, 1, 1)
    await mark(service, conversation)
    assert await shown() == (0, 0, False, 0, 1)
    answered = (await service.dashboard.get("/reports/first-response")).json()["total"]
    assert answered["count"] == 0
    await take_back(service, conversation)
    assert await shown() == (1, 1, True, 1, 1)


async def test_a_reply_that_was_being_written_is_not_refused_because_of_the_mark(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    sequence = (await view(service, conversation))["sequence"]
    held = await reply(service, conversation, text="Later", sendAt=later(3_600), unlessReplied=True)
    await mark(service, conversation)
    assert (await reply(service, conversation, ifSequence=sequence)).status_code == 200
    waiting = (await service.dashboard.get("/held-messages")).json()["items"]
    assert [each["id"] for each in waiting] == [held.json()["id"]]


async def test_a_merge_of_contacts_keeps_the_mark(service: Service) -> None:
    await service.create("known")
    conversation = await service.create("visitor", message=THANKS)
    since, _ = await waits(service, conversation)
    await mark(service, conversation)
    answer = await service.http.post("/s2s/contacts/known/merge", json={"from": "visitor"})
    assert answer.status_code == 200, answer.text
    assert await waits(service, conversation) == (None, since)
    assert (await take_back(service, conversation)).json()["waitingSince"] == since


async def test_ratings_and_survey_responses_do_not_wait(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    await reply(service, conversation)
    await service.do(conversation, "rating", rating=9, comment="Where is my order?")
    made = await survey(service)
    await respond(service, made, "u1", answers={"score": 5})
    assert await waits(service, conversation) == (None, None)


async def test_a_message_to_a_closed_conversation_reopens_it_and_waits(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    await mark(service, conversation)
    await service.do(conversation, "close")
    assert (await waits(service, conversation))[0] is None
    said = await service.say(conversation, "Still there?")
    assert (await view(service, conversation))["status"] == "OPEN"
    assert await waits(service, conversation) == (said["createdAt"], None)


async def test_a_bot_answers_and_the_system_does_not(service: Service) -> None:
    conversation = await service.create(message=THANKS)
    since, _ = await waits(service, conversation)
    await service.say(conversation, "Your turn", author={"type": "system"})
    assert await waits(service, conversation) == (since, None)
    await service.say(conversation, "Soon", author={"type": "bot"})
    assert await waits(service, conversation) == (None, None)


async def test_the_mark_outlives_the_process(tmp_path: Path) -> None:
    async with running(tmp_path) as first:
        conversation = await first.create(message=THANKS)
        since, _ = await waits(first, conversation)
        await mark(first, conversation)
    async with running(tmp_path) as second:
        assert await waits(second, conversation) == (None, since)
        assert (await take_back(second, conversation)).json()["waitingSince"] == since
