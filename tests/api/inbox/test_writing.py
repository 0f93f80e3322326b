"""Writes of agents: conditional replies, conversations they start, and permissions."""

from __future__ import annotations

import pytest
import trio

from tests.api.conversations.test_dashboard import member
from tests.support.api.inbox import activity, later, patch, pointers, reply, tags, view
from tests.support.api.service import Service
from tests.support.stores import beside

UNKNOWN = "cnv_00000000000000000000000000"
FOREIGN = "cnv_00000000000000000000000009"


async def test_stale_reply_is_refused_with_the_newer_messages(service: Service) -> None:
    conversation = await service.create(message={"text": "Where is it?"})
    seen = (await view(service, conversation))["sequence"]
    assert (await reply(service, conversation, text="On its way", ifSequence=seen)).status_code == 200
    await reply(service, conversation, text="she is upset", internal=True)
    refused = await reply(service, conversation, text="Which order?", ifSequence=seen)
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (409, "conversation_moved_on")
    assert problem["sequence"] == (await view(service, conversation))["sequence"]
    assert [(each["text"], each["internal"]) for each in problem["since"]] == [
        ("On its way", False),
        ("she is upset", True),
    ]
    again = await reply(service, conversation, text="Which order?", ifSequence=problem["sequence"])
    assert again.status_code == 200


async def test_only_messages_and_closes_move_a_conversation_on(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    seen = (await view(service, conversation))["sequence"]
    await service.say(conversation, "Ticket 7 was made", author={"type": "system"})
    await service.http.patch(f"/s2s/conversations/{conversation['id']}", json={"attributes": {"a": 1}})
    await service.do(conversation, "read")
    await service.do(conversation, "rating", rating=3)
    await reply(service, conversation, internal=True)
    assert (await reply(service, conversation, ifSequence=seen)).status_code == 200
    seen = (await view(service, conversation))["sequence"]
    await service.do(conversation, "close")
    refused = await reply(service, conversation, ifSequence=seen)
    assert (refused.status_code, refused.json()["since"]) == (409, [])
    ahead = await reply(service, conversation, ifSequence=seen + 100)
    assert (ahead.status_code, ahead.json()["code"]) == (409, "conversation_moved_on")


async def test_of_many_replies_to_one_state_exactly_one_is_sent(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    seen = (await view(service, conversation))["sequence"]
    answers: list[int] = []

    async def answer(number: int) -> None:
        answers.append((await reply(service, conversation, text=f"{number}", ifSequence=seen)).status_code)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(answer, number)
    assert sorted(answers) == [200] + [409] * 7
    assert (await view(service, conversation))["messages"] == 2


async def test_changes_after_a_message_are_in_its_commit_and_follow_it(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    before = len(await service.events())
    author = (await reply(service, conversation)).json()["author"]["id"]
    then = {"close": True, "assignee": {"type": "user", "id": author}}
    answer = await reply(service, conversation, text="Bye", then=then)
    assert (answer.status_code, answer.json()["text"]) == (200, "Bye")
    events = (await service.events())[before + 1 :]
    assert [event["type"] for event in events] == [
        "message.created",
        "conversation.assigned",
        "conversation.closed",
    ]
    assert [event["sequence"] for event in events] == [4, 5, 6]
    assert events[-1]["data"]["closedBy"] == "agent"
    newest, earlier = (await activity(service, conversation))["items"]
    assert (newest["action"], newest["actor"]["id"], newest["eventId"]) == ("closed", author, events[2]["id"])
    assert (earlier["action"], earlier["eventId"]) == ("assigned", events[1]["id"])


async def test_a_reply_can_leave_it_pending_and_snoozed(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    then = {"status": "PENDING", "snoozedUntil": later(3_600)}
    assert (await reply(service, conversation, internal=True, then=then)).status_code == 200
    seen = await view(service, conversation)
    assert (seen["status"], seen["snoozedUntil"] is not None) == ("PENDING", True)
    nothing = {"assignee": None, "snoozedUntil": None}
    assert (await reply(service, conversation, then=nothing)).status_code == 200
    assert (await view(service, conversation))["snoozedUntil"] is None


async def test_repeated_reply_gets_its_first_answer(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    body = {"text": "Bye", "ifSequence": 2, "then": {"close": True}}
    first = await reply(service, conversation, "k1", **body)
    second = await reply(service, conversation, "k1", **body)
    assert (first.status_code, second.status_code) == (200, 200)
    assert second.content == first.content
    assert second.headers["Idempotent-Replayed"] == "true"
    assert (await view(service, conversation))["messages"] == 2
    other = await reply(service, conversation, "k1", text="Bye", ifSequence=2)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


async def test_every_problem_of_a_reply_is_named_and_nothing_is_sent(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    for body, found in (
        ({"then": {}}, {"/then": "required"}),
        ({"then": {"close": True, "status": "OPEN"}}, {"/then/close": "not_allowed"}),
        ({"then": {"close": None}}, {"/then/close": "not_nullable"}),
        ({"then": {"snoozedUntil": later(-1)}}, {"/then/snoozedUntil": "not_ahead"}),
        ({"then": {"assignee": {"type": "user", "id": "usr_x"}}}, {"/then/assignee/id": "unknown"}),
        ({"ifSequence": -1, "then": {"reopen": True}}, {"/ifSequence": "too_small", "/then/reopen": "unknown_field"}),
        ({"text": "x" * 20_001, "then": {"status": "SHUT"}}, {"/text": "too_long", "/then/status": "not_allowed"}),
    ):  # fmt: skip
        assert pointers(await reply(service, conversation, **body)) == found, body
    assert (await view(service, conversation))["messages"] == 1


async def test_reply_with_an_impossible_status_is_refused_as_a_whole(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    await service.do(conversation, "close")
    refused = await reply(service, conversation, then={"status": "PENDING"})
    assert (refused.status_code, refused.json()["code"]) == (409, "conversation_closed")
    assert (await view(service, conversation))["messages"] == 1


async def test_an_agent_starts_a_conversation_with_a_new_or_a_known_contact(service: Service) -> None:
    body = {
        "contact": {"userId": "u9", "name": "Ada"},
        "title": "Your order",
        "message": {"text": "Hello Ada"},
    }
    answer = await service.dashboard.post("/conversations", json=body)
    assert answer.status_code == 200, answer.text
    made = answer.json()
    shown = await view(service, made)
    volatile = {"asOf": shown["asOf"]}
    assert {**made, **volatile} == shown
    assert (made["contact"]["name"], made["lastMessage"]["text"]) == ("Ada", "Hello Ada")
    assert (made["waitingSince"], made["mine"]["unread"]) == (None, 0)
    assert await service.types() == ["conversation.created", "message.created"]
    again = {"contact": {"id": made["contact"]["id"]}, "visible": False}
    hidden = (await service.dashboard.post("/conversations", json=again)).json()
    assert (hidden["contact"], hidden["visible"], hidden["sequence"]) == (made["contact"], False, 0)
    assert (await activity(service, hidden))["items"][0]["action"] == "started"


async def test_a_started_conversation_can_be_assigned_and_is_made_once(service: Service) -> None:
    team = (await service.dashboard.get("/teams")).json()["items"][0]
    body = {"contact": {"userId": "u1"}, "assignee": {"type": "team", "id": team["id"]}}
    answers = [
        await service.dashboard.post("/conversations", json=body, headers={"Idempotency-Key": "start-1"})
        for _ in range(2)
    ]
    assert answers[0].content == answers[1].content
    assert answers[0].json()["assignee"]["name"] == team["name"]
    assert await service.types() == ["conversation.created", "conversation.assigned"]


async def test_every_problem_of_a_start_is_named(service: Service) -> None:
    for body, found in (
        ({"contact": {}}, {"/contact": "required"}),
        ({"contact": {"id": "con_x", "userId": "u1"}}, {"/contact": "required"}),
        ({"contact": {"id": "con_x", "name": "Ada"}}, {"/contact/id": "not_allowed"}),
        ({"contact": {"userId": "u1"}, "title": "", "visible": None}, {"/title": "too_short", "/visible": "invalid"}),
        (
            {"contact": {"userId": "u1"}, "message": {"text": "x", "attachments": ["upl_x"]},
             "assignee": {"type": "user", "id": "usr_x"}},
            {"/message/attachments/0": "unknown", "/assignee/id": "unknown"},
        ),
    ):  # fmt: skip
        assert pointers(await service.dashboard.post("/conversations", json=body)) == found, body
    unknown = await service.dashboard.post("/conversations", json={"contact": {"id": "con_x"}})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "contact_not_found")
    assert await service.types() == []


@pytest.mark.parametrize(
    ("role", "writes"), [("viewer", False), ("agent", True), ("admin", True), ("owner", True)]
)
async def test_every_role_reads_activity_and_tags_and_agents_write(
    service: Service, role: str, writes: bool
) -> None:
    conversation = await service.create(message={"text": "Hello"})
    headers = {"Authorization": f"Bearer {member(service, role)}"}
    path = f"/conversations/{conversation['id']}"
    for target in (f"{path}/activity", "/tags"):
        assert (await service.dashboard.get(target, headers=headers)).status_code == 200
    for method, target, body in (
        ("PATCH", path, {"tags": ["vip"]}),
        ("POST", f"{path}/messages", {"text": "Hi", "ifSequence": 2, "then": {"close": True}}),
        ("POST", "/conversations", {"contact": {"userId": "u7"}}),
    ):
        answer = await service.dashboard.request(method, target, json=body, headers=headers)
        assert answer.status_code == (200 if writes else 403), answer.text
    nobody = {"Authorization": ""}
    assert (await service.dashboard.get("/tags", headers=nobody)).status_code == 401
    assert (await service.dashboard.post("/conversations", json={}, headers=nobody)).status_code == 401


async def test_another_tenants_conversations_contacts_and_tags_look_like_none(service: Service) -> None:
    conversation = await service.create()
    await patch(service, conversation, tags=["vip"])
    with beside(service.directory) as connection:
        connection.execute(
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (9, 'org_9', 'Other', 0)"
        )
        connection.execute(
            "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) "
            "VALUES (9, 'prj_9', 9, 'Other', 'other', 0)"
        )
        for table in ("contacts", "conversations", "conversation_tags"):
            connection.execute(f"UPDATE {table} SET project = 9")
        connection.execute(
            "UPDATE conversations SET id = ?", (FOREIGN,)
        )  # a conversation that no actor has loaded
    path = f"/conversations/{FOREIGN}"
    for method, target, body in (
        ("GET", f"{path}/activity", None),
        ("PATCH", path, {"tags": []}),
        ("POST", f"{path}/messages", {"text": "x", "ifSequence": 0}),
        ("POST", "/conversations", {"contact": {"id": conversation["contact"]["id"]}}),
    ):
        answer = await service.dashboard.request(method, target, json=body)
        assert answer.status_code == 404, (target, answer.text)
    assert (await tags(service))["items"] == []
    unknown = await service.dashboard.get(f"/conversations/{UNKNOWN}/activity")
    assert unknown.json()["code"] == "conversation_not_found"


async def test_unknown_parameters_are_refused(service: Service) -> None:
    conversation = await service.create()
    path = f"/conversations/{conversation['id']}"
    for method, target in (("GET", f"{path}/activity"), ("GET", "/tags"), ("PATCH", path)):
        body = {"title": "x"} if method == "PATCH" else None
        answer = await service.dashboard.request(method, target, params={"colour": "red"}, json=body)
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "unknown_parameter")


async def test_hostile_texts_are_returned_as_sent(service: Service) -> None:
    long, turned = "w" * 20_000, "\u202e<script>alert(1)</script>\u2066"
    conversation = await service.create(title=turned, message={"text": long})
    seen = (await view(service, conversation))["sequence"]
    assert (await reply(service, conversation, text=turned, ifSequence=seen)).status_code == 200
    await patch(service, conversation, title=f"{turned}!")
    (entry,) = (await activity(service, conversation))["items"]
    assert entry["changes"][0] == {"field": "title", "from": turned, "to": f"{turned}!"}
    refused = await reply(service, conversation, ifSequence=1)
    assert [each["text"] for each in refused.json()["since"]] == [long, turned]
