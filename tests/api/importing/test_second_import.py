"""A second export over a first import: renamed people, merged contacts, withdrawn text, and times that can't be."""

from __future__ import annotations

from typing import Any

import pytest

from deskwire.engine.importing.withdrawals import redacted_ranges
from tests.api.importing.test_imports import problems, told
from tests.commands.converting.converted import Converted, converted
from tests.commands.converting.shapes import (
    ADA,
    GRACE,
    SENDER,
    ZENDESK_USERS,
    T,
    chatwoot_conversation,
    chatwoot_message,
    chatwoot_messages,
    intercom_conversation,
    zendesk_comment,
    zendesk_ticket,
)
from tests.support.api.import_lines import NDJSON, bring, conversation, counts, found, message, messages_of
from tests.support.api.machines import make, showing
from tests.support.api.service import Service

ANSWERED = {"status": "CLOSED", "closedAt": "2024-03-01T10:00:00Z", "updatedAt": "2024-03-01T10:00:00Z"}


async def brought(service: Service, done: Converted) -> dict[str, Any]:
    answer = await service.http.post("/s2s/import", content=done.output, headers=NDJSON)
    assert answer.status_code == 200, answer.text
    report: dict[str, Any] = answer.json()
    return report


def named(name: str, agent: str) -> dict[str, list[Any]]:
    """Exports of the three services in which the customer and the agent have these names."""
    grace = {"id": 5, "name": agent, "type": "user"}
    messages = chatwoot_messages()["payload"]
    for each in messages:
        if each.get("sender", {}).get("type") == "user":
            each["sender"] = grace
        elif "sender" in each:
            each["sender"] = {**each["sender"], "name": name}
    meta = {"sender": {**SENDER, "name": name}, "assignee": {**grace, "role": "agent"}}
    ada, admin = {**ADA, "name": name}, {**GRACE, "name": agent}
    talk = intercom_conversation()
    talk["source"]["author"] = ada
    for each in talk["conversation_parts"]["conversation_parts"]:
        each["author"] = admin
    users = [{**ZENDESK_USERS[0], "name": name}, {**ZENDESK_USERS[1], "name": agent}]
    return {
        "chatwoot": [chatwoot_conversation(meta=meta), {"payload": messages}],
        "intercom": [talk, {"type": "team", "id": "5017691", "name": f"Team of {agent}"}],
        "zendesk": [zendesk_ticket(), *users, {"groups": [{"id": 98738, "name": f"Group of {agent}"}]}],
    }


@pytest.mark.parametrize("source", ["chatwoot", "intercom", "zendesk"])
async def test_renamed_people_make_no_conflict(service: Service, source: str) -> None:
    first = await brought(service, converted(source, *named("Ada Lovelace", "Grace Hopper")[source]))
    again = await brought(service, converted(source, *named("Ada King", "Grace Murray")[source]))
    assert (again["refused"], again["imported"]) == (0, counts(0, 0)), again["refusals"]
    assert again["existing"] == first["imported"]
    contact = (await service.http.get("/s2s/contacts/u1")).json()
    assert contact["name"] == "Ada Lovelace"


async def test_only_differences_of_the_records_themselves_are_conflicts(service: Service) -> None:
    record = conversation("z", attributes={"assignee": "Grace"}, attributeIds={"assignee": "5"}, **ANSWERED)
    await bring(service.http, record, message("z", 1))
    later = "2024-03-02T10:00:00Z"
    same = [
        {**record, "contact": {"userId": "u1", "name": "Other", "email": "other@example.org"}},
        {**record, "attributes": {"assignee": "Murray"}},
        {**record, "updatedAt": later},
        {**record, "updatedAt": later, "closedAt": later},
        message("z", 1, author={"type": "agent", "name": "Murray"}),
    ]
    report = await bring(service.http, *same)
    assert (report["existing"], report["refused"]) == (counts(4, 1), 0), report["refusals"]
    other = [
        {**record, "title": "Other"},
        {**record, "status": "OPEN", "closedAt": None},
        {**record, "attributes": {"assignee": "Grace"}, "attributeIds": {"assignee": "6"}},
        {**record, "attributes": {"assignee": "Grace", "plan": "pro"}},
        {**record, "contact": {"userId": "u2"}},
        message("z", 1, author={"type": "bot", "name": "Grace"}),
        message("z", 1, text="other"),
    ]
    report = await bring(service.http, *other)
    assert [where for (where,) in told(report).values()] == [
        *[("/externalId", "conflict")] * 4,
        ("/contact/userId", "conflict"),
        *[("/externalId", "conflict")] * 2,
    ]


async def test_a_closing_with_a_time_of_its_own_is_compared(service: Service) -> None:
    closed = conversation("z", **{**ANSWERED, "closedAt": "2024-03-01T09:30:00Z"})
    await bring(service.http, closed)
    report = await bring(
        service.http,
        {**closed, "updatedAt": "2024-03-05T10:00:00Z"},
        {**closed, "closedAt": "2024-03-01T09:40:00Z"},
    )
    assert (report["existing"], told(report)) == (counts(1, 0), {2: [("/externalId", "conflict")]})


async def test_merged_contacts_stay_merged(service: Service) -> None:
    await bring(service.http, conversation("a", "zendesk-7"), message("a", 0))
    await service.http.put("/s2s/contacts/u1", json={"name": "Ada"})
    merged = await service.http.post("/s2s/contacts/u1/merge", json={"from": "zendesk-7"})
    assert merged.status_code == 200, merged.text
    report = await bring(
        service.http, conversation("a", "zendesk-7"), conversation("b", "zendesk-7"), message("b", 0)
    )
    assert (report["existing"], report["imported"], report["refused"]) == (counts(1, 0), counts(1, 1), 0)
    new = await found(service.http, "b")
    assert new["contact"]["userId"] == "u1"
    (shown,) = await messages_of(service.http, new["id"])
    assert shown["author"] == {"type": "contact", "id": new["contact"]["id"], "name": "Ada"}
    gone = await service.http.get("/s2s/contacts/zendesk-7")
    assert (gone.status_code, gone.json()["code"]) == (404, "contact_merged")
    moved = await bring(service.http, conversation("a", "u1"))  # by now the source knows the new id as well
    assert moved["existing"] == counts(1, 0)
    assert problems(service.directory) == []


async def test_a_contact_merged_twice_leads_to_the_last_one(service: Service) -> None:
    for user in ("u1", "u2", "u3"):
        await service.http.put(f"/s2s/contacts/{user}", json={"name": user})
    for source, target in (("u1", "u2"), ("u2", "u3")):
        answer = await service.http.post(f"/s2s/contacts/{target}/merge", json={"from": source})
        assert answer.status_code == 200, answer.text
    await bring(service.http, conversation("a", "u1"), conversation("b", "u2"))
    assert {(await found(service.http, name))["contact"]["userId"] for name in "ab"} == {"u3"}
    await service.http.put("/s2s/contacts/u1", json={"name": "made again"})
    await bring(service.http, conversation("c", "u1"))
    assert (await found(service.http, "c"))["contact"]["name"] == "made again"


CARD = "my card is 4111"


async def texts(service: Service, name: str) -> list[str]:
    return [each["text"] for each in await messages_of(service.http, (await found(service.http, name))["id"])]


async def test_a_message_deleted_at_the_source_is_deleted_here(service: Service) -> None:
    page = [chatwoot_message(1, 0, CARD, T), chatwoot_message(2, 0, "Hello?", T + 1)]
    await brought(service, converted("chatwoot", chatwoot_conversation(), {"payload": page}))
    assert await texts(service, "chatwoot-7") == [CARD, "Hello?"]
    gone = {**page[0], "content": "This message was deleted", "content_attributes": {"deleted": True}}
    second = converted("chatwoot", chatwoot_conversation(), {"payload": [gone, page[1]]})
    for deleted, existing in ((1, counts(1, 1)), (0, counts(1, 2))):
        report = await brought(service, second)
        assert (report["deleted"], report["existing"], report["refused"]) == (counts(0, deleted), existing, 0)
    assert await texts(service, "chatwoot-7") == ["Hello?"]
    again = await brought(service, converted("chatwoot", chatwoot_conversation(), {"payload": page}))
    assert again["imported"] == counts(0, 0)
    assert await texts(service, "chatwoot-7") == ["Hello?"]
    found_text = await service.dashboard.get("/search", params={"q": "4111"})
    assert found_text.status_code == 200
    assert "my card" not in found_text.text
    assert problems(service.directory) == []


async def test_words_redacted_at_the_source_are_redacted_here(service: Service) -> None:
    def export(body: str) -> Converted:
        comment = zendesk_comment(1, 20978392, f"<p>{body}</p>", 0)
        note = zendesk_comment(2, 235323, f"<p>{body}!</p>", 1, public=False)
        return converted("zendesk", zendesk_ticket(comments=[comment, note]), *ZENDESK_USERS)

    await brought(service, export(CARD))
    for redacted, existing in ((2, counts(1, 0)), (0, counts(1, 2))):
        report = await brought(service, export("my card is ▇▇"))
        assert (report["redacted"], report["existing"], report["refused"]) == (redacted, existing, 0)
    state = await found(service.http, "zendesk-35436")
    assert await texts(service, "zendesk-35436") == ["my card is ****"]
    thread = (await service.dashboard.get(f"/conversations/{state['id']}/messages")).json()["items"]
    assert [each["text"] for each in thread] == ["my card is ****", "my card is ****!"]


async def test_a_conversation_deleted_at_the_source_is_deleted_unless_it_went_on_here(
    service: Service,
) -> None:
    await brought(service, converted("zendesk", zendesk_ticket(1), zendesk_ticket(2), *ZENDESK_USERS))
    live = await found(service.http, "zendesk-2")
    await service.say(live, "And now?")
    gone = converted("zendesk", zendesk_ticket(1, status="deleted"), zendesk_ticket(2, status="deleted"))
    report = await brought(service, gone)
    assert report["deleted"] == counts(1, 0)
    assert told(report) == {2: [("/conversation", "conflict")]}
    assert report["refusals"][0]["externalId"] == "zendesk-2"
    missing = await service.http.get("/s2s/import/conversation", params={"externalId": "zendesk-1"})
    assert missing.status_code == 404
    assert (await texts(service, "zendesk-2"))[-1] == "And now?"
    again = await brought(service, gone)
    assert (again["deleted"], again["existing"], again["refused"]) == (counts(0, 0), counts(1, 0), 1)


async def test_all_pieces_of_a_long_message_are_deleted(service: Service) -> None:
    def export(*messages: dict[str, Any]) -> Converted:
        return converted("chatwoot", chatwoot_conversation(), {"payload": list(messages)})

    long, other = chatwoot_message(1, 0, f"{CARD} " * 3_000, T), chatwoot_message(2, 0, "Hello?", T + 1)
    first = await brought(service, export(long, other))
    assert first["imported"] == counts(1, 4)
    gone = export({**long, "content": "gone", "content_attributes": {"deleted": True}}, other)
    for deleted in (1, 0):
        assert (await brought(service, gone))["deleted"] == counts(0, deleted)
        assert await texts(service, "chatwoot-7") == ["Hello?"]


async def test_a_redaction_leaves_nothing_of_the_pieces_that_are_gone(service: Service) -> None:
    def export(body: str) -> Converted:
        return converted(
            "zendesk", zendesk_ticket(comments=[zendesk_comment(1, 20978392, None, 0, body=body)])
        )

    await brought(service, export(("word " * 5_000) + CARD))
    report = await brought(service, export("▇▇▇▇" + " word" * 3_999))
    assert (report["redacted"], report["deleted"]) == (1, counts(0, 1))
    assert CARD not in "".join(await texts(service, "zendesk-35436"))


async def test_deletions_of_unknown_objects_change_nothing(service: Service) -> None:
    await bring(service.http, conversation("a"), message("a", 0))
    lines = [
        {"type": "deletion", "conversation": "a", "message": "unknown"},
        {"type": "deletion", "conversation": "unknown"},
        {"type": "deletion", "conversation": "unknown", "message": "a-0"},
        {"type": "deletion", "message": "a-0"},
        {"type": "deletion", "conversation": "a", "text": "x"},
    ]
    report = await bring(service.http, *lines)
    assert (report["existing"], report["deleted"]) == (counts(1, 2), counts(0, 0))
    assert told(report) == {4: [("/conversation", "required")], 5: [("/text", "unknown_field")]}
    assert await texts(service, "a") == ["a 0"]


async def test_lines_in_their_order_are_deleted_and_imported_again(service: Service) -> None:
    records = [conversation("a"), message("a", 0), {"type": "deletion", "conversation": "a"}]
    report = await bring(service.http, *records, conversation("a"), message("a", 1))
    assert (report["imported"], report["deleted"], report["refused"]) == (counts(2, 2), counts(1, 0), 0)
    assert await texts(service, "a") == ["a 1"]


async def test_a_machine_deletes_by_an_import_only_with_the_permission(service: Service) -> None:
    await bring(service.http, conversation("a"), message("a", 0))
    made = await make(service, ["projects.manage", "conversations.reply", "conversations.manage"])
    async with showing(service, made["secret"]) as http:
        report = await bring(http, {"type": "deletion", "conversation": "a"})
    assert told(report) == {1: [("/type", "permission_denied")]}
    assert await texts(service, "a") == ["a 0"]


@pytest.mark.parametrize(
    ("before", "after", "ranges"),
    [
        ("my card is 4111", "my card is ▇▇", [(11, 15)]),
        ("4111 is my card", "▇▇▇▇▇ is my card", [(0, 4)]),
        ("a 1 b 2 c", "a ▇ b ▇ c", [(2, 3), (6, 7)]),
        ("x y y z", "x ▇ y z", [(2, 3)]),
        ("a X b Y b Z c", "a ▇ b ▇ c", [(2, 11)]),
        ("all of it", "▇▇▇", [(0, 9)]),
        ("another text", "my card is ▇▇", []),
        ("my card", "my card", []),
        ("my card", "▇ my card", []),
        ("ab", "ab▇ab", []),
    ],
)
def test_redacted_ranges_are_found_by_comparing_texts(
    before: str, after: str, ranges: list[tuple[int, int]]
) -> None:
    assert redacted_ranges(before, after) == ranges


PERIOD = {"from": "2024-02-01", "to": "2024-04-01", "imported": "true"}


async def test_times_that_cannot_be_are_imported_and_named(service: Service) -> None:
    def wrong(name: str, **fields: Any) -> dict[str, Any]:
        return conversation(name, status="CLOSED", **fields)

    lines = [
        wrong("a", closedAt="2024-03-01T08:00:00Z"),
        wrong("b", updatedAt="2024-03-01T08:00:00Z"),
        wrong("c", closedAt="2999-01-01T00:00:00Z"),
        wrong("d", createdAt="2999-01-01T00:00:00Z"),
        wrong("e", createdAt="0001-01-01T00:00:00Z"),
        wrong("f", contact={"userId": "u9", "createdAt": "2999-01-01T00:00:00Z"}),
        wrong("g", rating=3, ratedAt="1960-01-01T00:00:00Z"),
        message("a", 0, createdAt="2999-01-01T00:00:00Z"),
        wrong("ok", closedAt="2024-03-01T10:00:00Z"),
    ]
    report = await bring(service.http, *lines)
    assert (report["imported"], report["refused"], report["doubtful"]) == (counts(8, 1), 0, 8)
    assert {
        each["line"]: [(e["pointer"], e["code"]) for e in each["errors"]] for each in report["doubts"]
    } == {
        1: [("/closedAt", "out_of_order")],
        2: [("/updatedAt", "out_of_order")],
        3: [("/closedAt", "out_of_range")],
        4: [("/createdAt", "out_of_range")],
        5: [("/createdAt", "out_of_range")],
        6: [("/contact/createdAt", "out_of_range")],
        7: [("/ratedAt", "out_of_range")],
        8: [("/createdAt", "out_of_range")],
    }
    assert (await found(service.http, "a"))["closedAt"] == "2024-03-01T08:00:00.000Z"
    for name in "ad":
        assert (await found(service.http, name))["lastMessageAt"] is None or name == "a"
        assert (await found(service.http, name))["updatedAt"] < "2900"
    again = await bring(service.http, *lines)
    assert (again["existing"], again["refused"], again["doubtful"]) == (counts(8, 1), 0, 0)
    assert problems(service.directory) == []


async def test_durations_that_cannot_be_count_as_unknown_in_reports(service: Service) -> None:
    await bring(
        service.http,
        conversation("wrong", status="CLOSED", closedAt="2024-03-01T08:00:00Z"),
        message("wrong", 1800),
        message("wrong", 601),  # an answer that is dated before the question
        conversation("unknown", status="CLOSED"),
        conversation("right", status="CLOSED", closedAt="2024-03-01T09:30:00Z"),
        message("right", 0),
        message("right", 601),
    )
    for name, seconds in (("time-to-close", 1800), ("first-response", 601)):
        answer = await service.dashboard.get(f"/reports/{name}", params=PERIOD)
        assert answer.status_code == 200, answer.text
        total = answer.json()["total"]
        assert (total["count"], total["median"]) == (1, seconds), name
