"""What agents write: replies that may refuse themselves, tags, snoozes, conversations they start, and who did what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
import trio

from tests.api.conversations.test_dashboard import member
from tests.support.api.service import Service, running
from tests.support.stores import beside

UNKNOWN = "cnv_00000000000000000000000000"
FOREIGN = "cnv_00000000000000000000000009"


def later(seconds: float) -> str:
    """A time from now, as the API writes it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def told(service: Service) -> list[dict[str, Any]]:
    """What agents alone were told, in order."""
    with beside(service.directory) as connection:
        rows = connection.execute("SELECT body FROM events WHERE internal = 1 ORDER BY position").fetchall()
    return [orjson.loads(row[0]) for row in rows]


async def until_awake(service: Service, conversation: dict[str, Any]) -> None:
    """Return when the conversation is not snoozed any more."""
    with trio.fail_after(10):
        while True:
            if (await view(service, conversation))["snoozedUntil"] is None:
                return
            await trio.sleep(0.05)  # looks again: nothing announces it


async def view(service: Service, conversation: dict[str, Any]) -> dict[str, Any]:
    """The conversation as an agent sees it."""
    answer = await service.dashboard.get(f"/conversations/{conversation['id']}", params={"view": "agent"})
    assert answer.status_code == 200, answer.text
    seen: dict[str, Any] = answer.json()
    return seen


async def patch(service: Service, conversation: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The conversation after an agent's change."""
    path = f"/conversations/{conversation['id']}"
    answer = await service.dashboard.patch(path, json=fields, params={"view": "agent"})
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


async def reply(service: Service, conversation: dict[str, Any], key: str | None = None, **body: Any) -> Any:
    """The answer to an agent's message."""
    headers = {} if key is None else {"Idempotency-Key": key}
    return await service.dashboard.post(
        f"/conversations/{conversation['id']}/messages", json={"text": "Hi", **body}, headers=headers
    )


async def activity(service: Service, conversation: dict[str, Any], **params: str) -> dict[str, Any]:
    """A page of who did what."""
    answer = await service.dashboard.get(f"/conversations/{conversation['id']}/activity", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def tags(service: Service, **params: str) -> dict[str, Any]:
    """A page of the project's tags."""
    answer = await service.dashboard.get("/tags", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def pointers(answer: Any) -> dict[str, str]:
    """The problems of a refusal: code by pointer."""
    assert answer.status_code == 422, answer.text
    return {each["pointer"]: each["code"] for each in answer.json()["errors"]}


async def test_tags_are_kept_in_one_form_and_order_and_counted(service: Service) -> None:
    first, second = await service.create(), await service.create(user="u2")
    assert (await patch(service, first, tags=["VIP", "returns  Desk", " vip", "É"]))["tags"] == [
        "returns desk",
        "vip",
        "é",
    ]
    await patch(service, second, tags=["vip"])
    counted = [(each["name"], each["conversations"]) for each in (await tags(service))["items"]]
    assert counted == [("returns desk", 1), ("vip", 2), ("é", 1)]
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
async def test_what_can_be_no_tag_is_refused_by_its_place(service: Service, tag: str) -> None:
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


async def test_a_snoozed_conversation_wakes_by_itself(service: Service) -> None:
    conversation = await service.create()
    await patch(service, conversation, snoozedUntil=later(1.2))
    await until_awake(service, conversation)
    newest = (await activity(service, conversation))["items"][0]
    assert (newest["actor"]["type"], newest["changes"][0]["field"]) == ("system", "snoozedUntil")
    assert newest["changes"][0]["to"] is None
    assert newest["eventId"] == told(service)[-1]["id"]


async def test_a_reply_to_a_conversation_that_moved_on_is_refused_with_what_came(service: Service) -> None:
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


async def test_what_follows_a_message_is_in_its_commit_and_behind_it(service: Service) -> None:
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


async def test_a_repeated_reply_is_answered_as_it_was_though_it_has_moved_on_itself(service: Service) -> None:
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
        ({"text": "x" * 20_001, "then": {"status": "CLOSED"}}, {"/text": "too_long", "/then/status": "not_allowed"}),
    ):  # fmt: skip
        assert pointers(await reply(service, conversation, **body)) == found, body
    assert (await view(service, conversation))["messages"] == 1


async def test_a_reply_whose_status_no_longer_fits_is_refused_as_a_whole(service: Service) -> None:
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


async def test_the_activity_says_who_changed_what_from_what_to_what(service: Service) -> None:
    conversation = await service.create(title="Hello")
    await patch(service, conversation, title="Bye", tags=["vip"], archived=True)
    await service.do(conversation, "close")
    await service.say(conversation, "Still there?")  # reopens it, as the message itself says
    entries = (await activity(service, conversation))["items"]
    assert [(each["actor"]["type"], each["action"]) for each in entries] == [
        ("key", "closed"),
        ("user", "changed"),
        ("user", "changed"),
    ]
    changes = [
        {change["field"]: (change["from"], change["to"]) for change in each["changes"]} for each in entries
    ]
    assert changes[0] == {"status": ("OPEN", "CLOSED")}
    assert changes[1] == {"tags": ([], ["vip"])}
    assert changes[2] == {"title": ("Hello", "Bye"), "archived": (False, True)}
    events = {event["id"]: event["type"] for event in await service.events()}
    assert events[entries[0]["eventId"]] == "conversation.closed"
    assert events[entries[2]["eventId"]] == "conversation.updated"
    assert entries[1]["eventId"] not in events


async def test_the_activity_is_paged_newest_first_and_goes_with_its_conversation(service: Service) -> None:
    conversation = await service.create()
    for number in range(5):
        await patch(service, conversation, title=f"T{number}")
    titles: list[str] = []
    params: dict[str, str] = {"limit": "2"}
    while True:
        page = await activity(service, conversation, **params)
        titles += [each["changes"][0]["to"] for each in page["items"]]
        if page["nextCursor"] is None:
            break
        params["cursor"] = page["nextCursor"]
    assert titles == ["T4", "T3", "T2", "T1", "T0"]
    bad = await service.dashboard.get(f"/conversations/{conversation['id']}/activity", params={"cursor": "x"})
    assert bad.status_code == 400
    await service.http.delete(f"/s2s/conversations/{conversation['id']}")
    with beside(service.directory) as connection:
        assert connection.execute("SELECT count(*) FROM conversation_activity").fetchone() == (0,)


async def test_a_linked_ticket_is_an_entry_of_the_activity(service: Service) -> None:
    conversation = await service.create()
    body = {"title": "Lost", "conversationId": conversation["id"]}
    ticket = (await service.dashboard.post("/tickets", json=body)).json()
    (entry,) = (await activity(service, conversation))["items"]
    assert entry["actor"]["type"] == "user"
    assert entry["changes"] == [{"field": "ticketId", "from": None, "to": ticket["id"]}]


async def test_agents_are_told_of_notes_of_hidden_conversations_and_of_who_closed(service: Service) -> None:
    hidden = await service.create(visible=False, message={"text": "psst"})
    await service.do(hidden, "rating", rating=4)
    shown = await service.create(user="u2", message={"text": "Hello"})
    await reply(service, shown, text="a note", internal=True)
    await service.do(shown, "close")
    await service.http.put(f"/s2s/conversations/{shown['id']}/network-logs", json={"requests": []})
    await service.http.delete(f"/s2s/conversations/{hidden['id']}")
    heard = [
        (event["type"], event["data"].get("changed"), event["data"]["conversation"]["id"])
        for event in told(service)
    ]
    assert heard == [
        ("note.created", None, shown["id"]),
        ("conversation.changed", ["status", "closedBy", "closedAt", "waitingSince"], shown["id"]),
        ("conversation.changed", ["networkLogsAt"], shown["id"]),
        ("conversation.changed", ["deleted"], hidden["id"]),
    ]  # what was told of the hidden one went with it
    assert told(service)[1]["data"]["actor"]["type"] == "key"
    assert told(service)[0]["data"]["message"]["text"] == "a note"
    assert told(service)[-1]["data"]["conversation"] == {"id": hidden["id"]}


async def test_a_hidden_conversations_messages_and_changes_are_told_to_agents_alone(service: Service) -> None:
    hidden = await service.create(visible=False, message={"text": "psst"})
    await service.say(hidden, "and more")
    await patch(service, hidden, title="Secret")
    assert await service.types() == []
    assert [(event["type"], event["data"].get("changed")) for event in told(service)] == [
        ("conversation.changed", ["created"]),
        ("note.created", None),
        ("note.created", None),
        ("conversation.changed", ["title"]),
    ]
    await patch(service, hidden, visible=True)
    assert told(service)[-1]["data"]["changed"] == ["visible"]
    assert await service.types() == ["conversation.created", "message.created", "message.created"]


async def test_a_message_that_the_customer_sees_causes_no_event_besides_its_own(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    await patch(service, conversation, snoozedUntil=later(3_600))
    known = len(told(service))
    await service.say(conversation, "Anybody?")
    await reply(service, conversation)
    await service.do(conversation, "close")
    assert len(told(service)) == known + 1  # of who closed it
    await service.say(conversation, "No, wait")
    assert len(told(service)) == known + 1


async def test_that_the_contact_has_read_is_told_with_how_far(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    await reply(service, conversation)
    await service.do(conversation, "read")
    (changed,) = told(service)
    assert changed["data"]["changed"] == ["unread", "contactSeenIndex", "contactSeenAt"]
    assert changed["data"]["conversation"]["contactSeenIndex"] == 1


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
        connection.execute("INSERT INTO organisations VALUES (9, 'org_9', 'Other', 0)")
        connection.execute(
            "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) "
            "VALUES (9, 'prj_9', 9, 'Other', 'other', 0)"
        )
        for table in ("contacts", "conversations", "conversation_tags"):
            connection.execute(f"UPDATE {table} SET project = 9")
        connection.execute("UPDATE conversations SET id = ?", (FOREIGN,))  # one that no actor knows
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


async def test_hostile_words_come_back_as_they_were_sent(service: Service) -> None:
    long, turned = "w" * 20_000, "\u202e<script>alert(1)</script>\u2066"
    conversation = await service.create(title=turned, message={"text": long})
    seen = (await view(service, conversation))["sequence"]
    assert (await reply(service, conversation, text=turned, ifSequence=seen)).status_code == 200
    await patch(service, conversation, title=f"{turned}!")
    (entry,) = (await activity(service, conversation))["items"]
    assert entry["changes"][0] == {"field": "title", "from": turned, "to": f"{turned}!"}
    refused = await reply(service, conversation, ifSequence=1)
    assert [each["text"] for each in refused.json()["since"]] == [long, turned]


async def test_a_snooze_survives_a_restart(tmp_path: Any) -> None:
    async with running(tmp_path) as service:
        conversation = await service.create()
        await patch(service, conversation, snoozedUntil=later(0.5))
    async with running(tmp_path) as service:
        await until_awake(service, conversation)
        assert told(service)[-1]["data"]["actor"]["type"] == "system"
