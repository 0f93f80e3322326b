"""Imports of histories over HTTP: the imported objects, the answers, and later messages (ADR 30)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire.storage.check.rules import broken_rules
from deskwire.storage.dialect import POSTGRES, SQLITE
from tests.support.api.import_lines import (
    NDJSON,
    PAST,
    bring,
    conversation,
    counts,
    found,
    message,
    messages_of,
    ndjson,
    threads,
)
from tests.support.api.service import Service, running
from tests.support.api.staff import hire
from tests.support.stores import beside, chosen


def problems(directory: Path) -> list[str]:
    """Return the problems that `deskwire check` finds in the rows."""
    dialect = POSTGRES if chosen() == "postgres" else SQLITE
    with beside(directory) as connection:
        return [each.message for each in broken_rules(connection, dialect)]


def told(report: dict[str, Any]) -> dict[int, list[tuple[str, str]]]:
    """Return the refused lines, each with the places and codes of its problems."""
    return {
        each["line"]: [(error["pointer"], error["code"]) for error in each["errors"]]
        for each in report["refusals"]
    }


async def test_history_is_imported_unchanged_without_events(service: Service) -> None:
    closing_ = {"status": "CLOSED", "closedBy": "agent", "closedAt": PAST.format(30, 0)}
    record = conversation("z-1", title="Order", attributes={"tags": ["vip"]}, rating=9, **closing_)
    report = await bring(service.http, record, message("z-1", 0), message("z-1", 1))
    assert (report["lines"], report["imported"], report["refused"]) == (3, counts(1, 2), 0)
    state = await found(service.http, "z-1")
    assert (state["title"], state["status"], state["closedBy"]) == ("Order", "CLOSED", "agent")
    assert (state["createdAt"], state["closedAt"]) == ("2024-03-01T09:00:00.000Z", "2024-03-01T09:30:00.000Z")
    assert (state["attributes"], state["rating"], state["sequence"]) == ({"tags": ["vip"]}, 9, 0)
    assert state["lastMessageAt"] == "2024-03-01T09:00:01.000Z"
    first, second = await messages_of(service.http, state["id"])
    assert (first["index"], first["text"], first["createdAt"]) == (0, "z-1 0", "2024-03-01T09:00:00.000Z")
    assert first["author"] == {"type": "contact", "id": state["contact"]["id"], "name": "Ada"}
    assert (second["index"], second["author"]) == (1, {"type": "agent", "id": None, "name": "Grace"})
    assert await service.events() == []
    assert problems(service.directory) == []


async def test_the_same_again_changes_nothing_and_other_content_is_a_conflict(service: Service) -> None:
    records = threads(3, 4)
    await bring(service.http, *records)
    again = await bring(service.http, *records)
    assert (again["imported"], again["existing"], again["refused"]) == (counts(0, 0), counts(3, 12), 0)
    turned = dict(reversed(records[0].items()))  # the same, written in another order
    changed = [{**records[0], "title": "New"}, {**records[1], "text": "Changed"}, turned]
    report = await bring(service.http, *changed, message("old-0", 99))
    assert told(report) == {1: [("/externalId", "conflict")], 2: [("/externalId", "conflict")]}
    assert (report["existing"], report["imported"]) == (counts(1, 0), counts(0, 1))
    state = await found(service.http, "old-0")
    assert state["title"] is None
    assert [each["text"] for each in await messages_of(service.http, state["id"])][:2] == [
        "old-0 0",
        "old-0 1",
    ]
    assert problems(service.directory) == []


async def test_refused_lines_are_named_with_all_problems_and_stop_no_other(
    service: Service,
) -> None:
    lines = [
        conversation("a"),
        {"type": "message", "externalId": "x", "conversation": "a", "text": "", "at": 1},
        conversation("b", status="OPEN", closedBy="bot", rating=11),
        message("nowhere", 0),
        message("a", 0, createdAt="tomorrow"),
        message("a", 1, author={"type": "agent", "id": "usr_nobody"}),
        message("a", 2, attachments=["upl_none"]),
        conversation("c", assignee={"type": "team", "id": "team_none"}),
        {"type": "ticket"},
        [1, 2],
        conversation("d", attributes={"deep": 1}, contact={"userId": ""}),
    ]
    body = ndjson(lines) + b'{"type": "message", \xff}\nnot json\n\n  \n' + ndjson([message("a", 3)])
    answer = await service.http.post("/s2s/import", content=body, headers=NDJSON)
    report = answer.json()
    assert report["imported"] == counts(1, 1)
    assert report["refused"] == len(report["refusals"]) == 12
    found_ = told(report)
    assert set(found_[2]) == {
        ("/author", "required"),
        ("/createdAt", "required"),
        ("/text", "too_short"),
        ("/at", "unknown_field"),
    }
    assert set(found_[3]) == {("/rating", "too_large"), ("/closedBy", "not_allowed")}
    assert found_[4] == [("/conversation", "unknown")]
    assert found_[5] == [("/createdAt", "invalid")]
    assert found_[6] == [("/author/id", "unknown")]
    assert found_[7] == [("/attachments/0", "unknown")]
    assert found_[8] == [("/assignee/id", "unknown")]
    assert found_[9] == [("/type", "not_allowed")]
    assert found_[10] == [("", "invalid")]
    assert found_[11] == [("/contact/userId", "too_short")]
    assert found_[12] == found_[13] == [("", "malformed_json")]


async def test_imported_conversation_continues_after_its_history(service: Service) -> None:
    await bring(service.http, *threads(1, 3))
    state = await found(service.http, "old-0")
    said = await service.say(state, "And now?")
    assert said["index"] == 3
    closed = await service.do(state, "close")
    assert (closed["sequence"], closed["status"]) == (2, "CLOSED")
    events = (await service.http.get(f"/s2s/conversations/{state['id']}/events")).json()["items"]
    assert [(each["sequence"], each["type"]) for each in events] == [
        (1, "message.created"),
        (2, "conversation.closed"),
    ]
    assert problems(service.directory) == []


async def test_live_conversation_accepts_more_history_and_loses_nothing(
    service: Service,
) -> None:
    await bring(service.http, *threads(1, 2))
    state = await found(service.http, "old-0")
    for number in range(3):  # its actor knows a state that the import changes
        await service.say(state, f"live {number}")
        await bring(service.http, message("old-0", 10 + number))
    closed = await service.do(state, "close")
    assert closed["sequence"] == 4
    texts = [each["text"] for each in await messages_of(service.http, state["id"])]
    assert texts == ["old-0 0", "old-0 1", "live 0", "old-0 10", "live 1", "old-0 11", "live 2", "old-0 12"]
    assert problems(service.directory) == []


async def test_messages_posted_during_an_import_are_all_numbered(service: Service) -> None:
    await bring(service.http, conversation("long"))
    state = await found(service.http, "long")
    records = [message("long", number) for number in range(3_000)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: bring(service.http, *records))
        for number in range(20):
            await service.say(state, f"live {number}")
    messages = await messages_of(service.http, state["id"])
    assert [each["index"] for each in messages] == list(range(3_020))
    live = [each["text"] for each in messages if each["text"].startswith("live")]
    assert live == [f"live {number}" for number in range(20)]
    assert [event["sequence"] for event in await service.events()] == list(range(1, 21))
    assert problems(service.directory) == []


async def test_import_with_events_publishes_new_objects_once_in_order(service: Service) -> None:
    records = [conversation("e-1", status="PENDING"), *(message("e-1", n) for n in range(3))]
    records.append(message("e-1", 3, internal=True))
    for _ in range(2):
        await bring(service.http, *records, events="true")
    events = await service.events()
    assert [(each["sequence"], each["type"]) for each in events] == [
        (1, "conversation.created"),
        (2, "message.created"),
        (3, "message.created"),
        (4, "message.created"),
    ]
    assert [each["data"]["conversation"]["sequence"] for each in events] == [1, 2, 3, 4]
    assert events[0]["data"]["conversation"]["status"] == "PENDING"
    assert events[0]["data"]["conversation"]["lastMessageAt"] is None
    assert events[2]["data"]["message"]["text"] == "e-1 1"
    assert events[2]["data"]["message"]["createdAt"] == "2024-03-01T09:00:01.000Z"
    state = await found(service.http, "e-1")
    assert events[3]["data"]["conversation"] == state
    await bring(service.http, message("e-1", 4), events="true")
    assert (await service.events())[-1]["sequence"] == 5
    assert problems(service.directory) == []


async def test_notes_assignees_and_members_are_imported(service: Service) -> None:
    colleague = (await hire(service, "agent"))["id"]
    records = [
        conversation("n", assignee={"type": "user", "id": colleague}, unread=True, archived=True),
        message("n", 0, author={"type": "agent", "id": colleague}, internal=True),
        message("n", 1, author={"type": "agent", "id": colleague, "name": "As it was"}),
    ]
    report = await bring(service.http, *records)
    assert report["refused"] == 0, report
    state = await found(service.http, "n")
    assert (state["assignee"]["id"], state["unread"], state["archived"]) == (colleague, True, True)
    (shown,) = await messages_of(service.http, state["id"])
    assert shown["author"]["name"] == "As it was"
    everything = (await service.dashboard.get(f"/conversations/{state['id']}/messages")).json()["items"]
    assert [(each["internal"], each["index"]) for each in everything] == [(True, None), (False, 0)]


async def test_attachments_are_uploads_that_were_sent_before(service: Service) -> None:
    upload = (await service.http.post("/uploads", files={"file": ("a.txt", b"hello")})).json()
    await bring(service.http, conversation("f"), message("f", 0, text="", attachments=[upload["id"]]))
    (shown,) = await messages_of(service.http, (await found(service.http, "f"))["id"])
    assert [each["id"] for each in shown["attachments"]] == [upload["id"]]
    removed = await service.http.delete(f"/uploads/{upload['id']}")
    assert (removed.status_code, removed.json()["code"]) == (409, "upload_attached")


async def test_import_keeps_known_contacts_and_dates_new_ones_by_their_conversation(
    service: Service,
) -> None:
    await service.http.put("/s2s/contacts/u1", json={"name": "Ada Lovelace"})
    await bring(service.http, conversation("a", "u1"), conversation("b", "u2"), conversation("c", "u2"))
    known, new = [(await service.http.get(f"/s2s/contacts/{user}")).json() for user in ("u1", "u2")]
    assert known["name"] == "Ada Lovelace"
    assert (new["name"], new["createdAt"]) == ("Ada", "2024-03-01T09:00:00.000Z")
    listed = (await service.http.get("/s2s/contacts/u2/conversations")).json()["items"]
    assert len(listed) == 2


async def test_erased_objects_leave_nothing_and_can_be_imported_again(service: Service) -> None:
    await bring(service.http, *threads(1, 3))
    gone = await found(service.http, "old-0")
    assert (await service.http.delete(f"/s2s/contacts/{gone['contact']['userId']}")).status_code == 200
    missing = await service.http.get("/s2s/import/conversation", params={"externalId": "old-0"})
    assert (missing.status_code, missing.json()["code"]) == (404, "conversation_not_found")
    report = await bring(service.http, message("old-0", 7))
    assert told(report) == {1: [("/conversation", "unknown")]}
    with beside(service.directory) as connection:
        for table in ("messages", "imported_messages", "imported_conversations"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    await bring(service.http, *threads(1, 3))
    assert (await found(service.http, "old-0"))["id"] != gone["id"]


async def test_project_sees_no_imports_of_another(service: Service) -> None:
    organisations = (await service.dashboard.get("/organisations")).json()["items"]
    path = f"/organisations/{organisations[0]['id']}/projects"
    other = (await service.dashboard.post(path, json={"name": "Other"})).json()["id"]
    key = (await service.dashboard.post(f"/projects/{other}/keys", json={"label": "k"})).json()["key"]
    theirs = {"Authorization": f"Bearer {key}"}
    await bring(service.http, *threads(1, 1))
    params = {"externalId": "old-0"}
    foreign = await service.http.get("/s2s/import/conversation", params=params, headers=theirs)
    assert foreign.status_code == 404
    body = ndjson([message("old-0", 5), *threads(1, 1)])
    report = (await service.http.post("/s2s/import", content=body, headers={**NDJSON, **theirs})).json()
    assert told(report) == {1: [("/conversation", "unknown")]}
    assert report["imported"] == counts(1, 1)


@pytest.mark.parametrize(
    "headers",
    [{"Content-Type": "application/json"}, {**NDJSON, "Content-Encoding": "gzip"}, {"Content-Type": ""}],
)
async def test_body_other_than_plain_ndjson_is_refused(service: Service, headers: dict[str, str]) -> None:
    answer = await service.http.post("/s2s/import", content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


async def test_import_is_limited_by_line_not_by_body_size(tmp_path: Path) -> None:
    async with running(tmp_path, body_limit_bytes=1_024, upload_limit_bytes=1_024) as service:
        huge = message("old-0", 900, text="x" * 300_000)
        report = await bring(service.http, *threads(5, 50), huge, message("old-0", 901))
        assert report["imported"] == counts(5, 251)
        assert told(report) == {256: [("", "too_long")]}
        assert report["refusals"][0]["externalId"] is None


async def test_refused_lines_are_all_counted_and_the_first_thousand_named(service: Service) -> None:
    report = await bring(service.http, *({"type": "x"} for _ in range(1_200)), conversation("last"))
    assert (report["refused"], len(report["refusals"])) == (1_200, 1_000)
    assert [each["line"] for each in report["refusals"]] == list(range(1, 1_001))
    assert report["imported"] == counts(1, 0)


async def test_stalled_import_is_aborted_and_committed_lines_stay(tmp_path: Path) -> None:
    async with running(tmp_path, body_timeout_s=0.3) as service:
        records = threads(1, 1_200)
        body = ndjson(records)
        head = (
            "POST /v3/s2s/import HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
            f"Content-Length: {len(body) + 10}\r\nAuthorization: Bearer {service.demo['serverKey']}\r\n\r\n"
        )
        status, answer = await service.talk(head.encode() + body)
        assert (status, b"body_timeout" in answer) == (400, True)
        state = await found(service.http, "old-0")
        assert len(await messages_of(service.http, state["id"])) == 999
        again = await bring(service.http, *records)
        assert (again["existing"], again["imported"]) == (counts(1, 999), counts(0, 201))
