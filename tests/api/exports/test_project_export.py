"""Exports of a project's objects: first everything, then exactly the changes since the last export."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support.api.service import Service, running
from tests.support.api.staff import organisation_of
from tests.support.api.surveys import respond, survey
from tests.support.deadlines import HANG_TIMEOUT_S

ANSWERS = {"score": 9}
KINDS = ("conversations", "messages", "tickets", "survey-responses")


async def export(service: Service, kind: str, **params: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the lines of an export, and its last line."""
    answer = await service.http.get(f"/s2s/export/{kind}", params=params)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    *lines, last = [json.loads(line) for line in answer.text.splitlines()]
    assert set(last) == {"nextCursor", "exportedAt", "deletions"}
    return lines, last


class Copy:
    """A copy of a project that is kept up to date by repeated exports."""

    def __init__(self, service: Service, kind: str) -> None:
        self.service, self.kind = service, kind
        self.cursor: dict[str, str] = {}
        self.objects: dict[str, dict[str, Any]] = {}

    async def go_on(self) -> int:
        """Apply another export; return the number of its lines."""
        lines, last = await export(self.service, self.kind, **self.cursor)
        assert last["deletions"]
        for line in lines:
            if not line.get("deleted"):
                self.objects[line["id"]] = line
            elif "id" in line:
                self.objects.pop(line["id"], None)
            else:
                (name,) = line.keys() - {"deleted"}
                self.objects = {key: each for key, each in self.objects.items() if each[name] != line[name]}
        self.cursor = {"cursor": last["nextCursor"]}
        return len(lines)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_export_of_an_empty_project_has_its_last_line_alone(service: Service, kind: str) -> None:
    copy = Copy(service, kind)
    assert [await copy.go_on() for _ in range(3)] == [0, 0, 0]


async def test_second_export_of_conversations_has_changes_and_deletions(service: Service) -> None:
    a, b, c, d = [await service.create(title=title, message={"text": "hi"}) for title in "abcd"]
    copy = Copy(service, "conversations")
    assert await copy.go_on() == 4
    await service.do(a, "close")
    await service.say(a, "again")
    await service.http.delete(f"/s2s/conversations/{b['id']}")
    e = await service.create(title="e")
    assert await copy.go_on() == 3
    assert copy.objects == {each["id"]: await service.fetch(each) for each in (a, c, d, e)}
    assert await copy.go_on() == 0


async def test_second_export_of_messages_has_only_new_ones(service: Service) -> None:
    a, b = await service.create(message={"text": "1"}), await service.create(message={"text": "2"})
    copy = Copy(service, "messages")
    assert await copy.go_on() == 2
    said = await service.say(a, "3")
    note = {"text": "hush", "internal": True}
    await service.dashboard.post(f"/conversations/{a['id']}/messages", json=note)
    await service.do(a, "rating", rating=1)
    assert await copy.go_on() == 1
    assert copy.objects[said["id"]] == said
    await service.http.delete(f"/s2s/conversations/{b['id']}")
    assert await copy.go_on() == 1
    assert {each["text"] for each in copy.objects.values()} == {"1", "3"}


async def test_second_export_of_messages_has_redacted_and_deleted_ones(service: Service) -> None:
    conversation = await service.create(message={"text": "1"})
    said = [await service.say(conversation, text) for text in ("secret", "wrong")]
    copy = Copy(service, "messages")
    assert await copy.go_on() == 3
    path = f"/s2s/conversations/{conversation['id']}/messages"
    redacted = await service.http.post(f"{path}/{said[0]['id']}/redact", json={"text": True})
    assert (await service.http.delete(f"{path}/{said[1]['id']}")).status_code == 200
    assert await copy.go_on() == 2
    assert copy.objects[said[0]["id"]] == redacted.json()
    assert said[1]["id"] not in copy.objects


async def test_second_export_of_tickets_has_changes_and_deletions(service: Service) -> None:
    tickets = [(await service.dashboard.post("/tickets", json={"title": t})).json() for t in "abc"]
    copy = Copy(service, "tickets")
    assert await copy.go_on() == 3
    for title in ("x", "y"):
        changed = await service.dashboard.patch(f"/tickets/{tickets[0]['id']}", json={"title": title})
    assert (await service.dashboard.delete(f"/tickets/{tickets[1]['id']}")).status_code == 200
    assert await copy.go_on() == 2
    assert copy.objects == {tickets[0]["id"]: changed.json(), tickets[2]["id"]: tickets[2]}


async def test_second_export_of_survey_responses_has_additions_and_deletions(
    service: Service,
) -> None:
    first, second = await survey(service), await survey(service)
    kept, gone = (
        await respond(service, first, answers=ANSWERS),
        await respond(service, first, answers=ANSWERS),
    )
    await respond(service, second, answers=ANSWERS)
    copy = Copy(service, "survey-responses")
    assert await copy.go_on() == 3
    added = await respond(service, first, answers=ANSWERS)
    path = f"/engagement/surveys/{first['id']}/responses/{gone['id']}"
    assert (await service.dashboard.delete(path)).status_code == 200
    assert (await service.dashboard.delete(f"/engagement/surveys/{second['id']}")).status_code == 200
    assert await copy.go_on() == 3
    assert copy.objects == {each["id"]: each for each in (kept, added)}


async def test_imported_objects_are_in_the_next_export_once_and_in_every_list(
    service: Service,
) -> None:
    conversations, messages = Copy(service, "conversations"), Copy(service, "messages")
    kept = await service.create(message={"text": "from before"})
    assert (await conversations.go_on(), await messages.go_on()) == (1, 1)
    await bring_in(service, "a", 0, 3)
    await bring_in(service, "b", 0, 120)
    await bring_in(service, "a", 3, 5)
    assert (await conversations.go_on(), await messages.go_on()) == (2, 125)
    await bring_in(service, "a", 0, 5)  # nothing of it is new
    assert (await conversations.go_on(), await messages.go_on()) == (0, 0)
    await bring_in(service, "b", 120, 121)
    await service.say(await imported(service, "b"), "from here")
    redacted = next(each for each in messages.objects.values() if each["text"] == "a 1")
    path = f"/s2s/conversations/{redacted['conversationId']}/messages/{redacted['id']}"
    assert (await service.http.delete(path)).status_code == 200
    await conversations.go_on()
    await messages.go_on()
    there = [kept, await imported(service, "a"), await imported(service, "b")]
    await check(service, conversations, messages, there)
    listed = (await service.http.get("/s2s/conversations", params={"sort": "updated"})).json()["items"]
    assert {each["id"]: each for each in listed} == conversations.objects


async def test_import_before_an_expired_export_cursor_is_not_missed(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, event_window_s=0.0, retention_interval_s=0.05) as service:
        await service.create(message={"text": "1"})
        newest = (await service.events())[-1]["id"]
        cursors = {kind: (await export(service, kind))[1]["nextCursor"] for kind in KINDS[:2]}
        await bring_in(service, "a", 0, 3)
        await service.create(message={"text": "2"})
        await _pruned(service, newest)
        lines, last = await export(service, "conversations", cursor=cursors["conversations"])
        assert not last["deletions"]
        assert await imported(service, "a") in lines
        assert len({each["id"] for each in lines}) == len(lines)
        lines, _ = await export(service, "messages", cursor=cursors["messages"])
        assert {"a 0", "a 1", "a 2"} <= {each["text"] for each in lines}


async def bring_in(service: Service, name: str, first: int, behind: int) -> None:
    """Import an old conversation with its messages from `first` up to, not including, `behind`, each with a note."""
    began = {"externalId": name, "contact": {"userId": name}, "createdAt": "2024-03-01T09:00:00Z"}
    records: list[dict[str, Any]] = [{"type": "conversation", **began}]
    for number in range(first, behind):
        one = {"type": "message", "conversation": name, "createdAt": "2024-03-01T09:00:00Z"}
        author = {"type": "agent", "name": "Grace"}
        said = {"externalId": f"{number}", "author": author, "text": f"{name} {number}"}
        records += [one | said, one | said | {"externalId": f"note {number}", "internal": True}]
    content = b"".join(json.dumps(each).encode() + b"\n" for each in records)
    kind = {"Content-Type": "application/x-ndjson"}
    answer = await service.http.post("/s2s/import", content=content, headers=kind)
    assert (answer.status_code, answer.json()["refused"]) == (200, 0), answer.text


async def imported(service: Service, name: str) -> dict[str, Any]:
    """Return the conversation that was imported under this name."""
    found = await service.http.get("/s2s/import/conversation", params={"externalId": name})
    return await service.fetch({"id": found.json()["id"]})


async def check(service: Service, conversations: Copy, messages: Copy, living: list[dict[str, Any]]) -> None:
    """Check that the copies equal the stored objects. Raises AssertionError."""
    assert conversations.objects == {each["id"]: await service.fetch(each) for each in living}
    expected = {}
    for each in living:
        page = await service.http.get(f"/s2s/conversations/{each['id']}/messages", params={"limit": 200})
        expected.update({message["id"]: message for message in page.json()["items"]})
    assert messages.objects == expected


async def test_hidden_conversations_are_exported_once_they_are_visible(service: Service) -> None:
    hidden = await service.create(visible=False, message={"text": "hi"})
    copies = [Copy(service, kind) for kind in ("conversations", "messages")]
    assert [await copy.go_on() for copy in copies] == [0, 0]
    await service.http.patch(f"/s2s/conversations/{hidden['id']}", json={"visible": True})
    assert [await copy.go_on() for copy in copies] == [1, 1]


async def test_a_cursor_is_good_for_its_own_export_alone(service: Service) -> None:
    _, last = await export(service, "tickets")
    for params in ({"cursor": last["nextCursor"]}, {"cursor": "x"}, {"cursor": ""}):
        answer = await service.http.get("/s2s/export/messages", params=params)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/cursor")
    both = {"cursor": last["nextCursor"], "updatedSince": "2026-01-01T00:00:00Z"}
    answer = await service.http.get("/s2s/export/tickets", params=both)
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/updatedSince"]


async def test_no_cursor_has_an_event_of_another_project(service: Service) -> None:
    organisation = await organisation_of(service)
    made = await service.dashboard.post(f"/organisations/{organisation}/projects", json={"name": "Other"})
    keys = f"/projects/{made.json()['id']}/keys"
    key = (await service.dashboard.post(keys, json={"label": "theirs"})).json()["key"]
    await service.create()
    theirs = {"Authorization": f"Bearer {key}"}
    new = await service.http.post("/s2s/conversations", json={"contact": {"userId": "u"}}, headers=theirs)
    assert new.status_code == 200
    feed = await service.http.get("/s2s/events", headers=theirs)
    newest = feed.json()["items"][-1]["id"]
    for kind in KINDS:
        _, last = await export(service, kind)
        cursor = last["nextCursor"]
        *_, named = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        assert named < newest, f"{kind}: an event of another project, or one that comes behind it"


async def test_export_since_a_time_has_later_changes(service: Service) -> None:
    old, new = await service.create(message={"text": "1"}), await service.create(message={"text": "2"})
    since = (await service.fetch(new))["updatedAt"]
    lines, last = await export(service, "conversations", updatedSince=since)
    assert (new["id"] in {each["id"] for each in lines}, last["deletions"]) == (True, False)
    await trio.sleep(0.01)  # real time: the close is to be of a later millisecond than everything before it
    await service.do(old, "close")
    since = (await service.fetch(old))["updatedAt"]
    lines, _ = await export(service, "conversations", updatedSince=since)
    assert lines == [await service.fetch(old)]
    lines, _ = await export(service, "messages", updatedSince=since)
    assert [each["text"] for each in lines] == ["1"]


async def test_an_export_from_before_the_stored_events_misses_nothing_that_is_there(tmp_path: Path) -> None:
    async with running(tmp_path, event_window_s=0.0, retention_interval_s=0.05) as service:
        conversation = await service.create(message={"text": "1"})
        cursors = {kind: (await export(service, kind))[1]["nextCursor"] for kind in KINDS}
        newest = (await service.events())[-1]["id"]
        said = await service.say(conversation, "2")
        ticket = (await service.dashboard.post("/tickets", json={"title": "t"})).json()
        given = await respond(service, await survey(service), answers=ANSWERS)
        await service.create(message={"text": "3"})
        await _pruned(service, newest)
        found = {}
        for kind, cursor in cursors.items():
            lines, last = await export(service, kind, cursor=cursor)
            assert not last["deletions"]
            found[kind] = {each["id"]: each for each in lines}
        assert found["conversations"][conversation["id"]] == await service.fetch(conversation)
        assert len(found["conversations"]) == 2
        assert found["messages"][said["id"]] == said
        assert found["tickets"] == {ticket["id"]: ticket}
        assert found["survey-responses"] == {given["id"]: given}


async def _pruned(service: Service, event_id: str) -> None:
    """Return once the log has pruned the events that followed an event."""
    known = {"after": event_id}
    with trio.fail_after(HANG_TIMEOUT_S):
        answer = await service.http.get("/s2s/events", params=known)
        while answer.status_code != 410:
            await trio.sleep(0.02)  # poll: there is no notification of retention
            answer = await service.http.get("/s2s/events", params=known)


@pytest.mark.parametrize("seed", range(3))
async def test_exports_during_writes_add_up_to_the_stored_objects(service: Service, seed: int) -> None:
    rng = random.Random(seed)
    living: list[dict[str, Any]] = []
    conversations, messages = Copy(service, "conversations"), Copy(service, "messages")

    async def write() -> None:
        for _ in range(60):
            kind = rng.choice(("create", "say", "say", "close", "delete", "import"))
            if kind == "create" or not living:
                living.append(await service.create(message={"text": "hi"}))
            elif kind == "delete":
                gone = living.pop(rng.randrange(len(living)))
                await service.http.delete(f"/s2s/conversations/{gone['id']}")
            elif kind == "import":
                name = rng.choice("abc")
                await bring_in(service, name, 0, rng.randrange(1, 9))
                there = await imported(service, name)
                living.extend([] if any(each["id"] == there["id"] for each in living) else [there])
            elif kind == "say":
                await service.say(rng.choice(living), "more")
            else:
                await service.do(rng.choice(living), "close")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        for _ in range(10):
            await conversations.go_on()
            await messages.go_on()
    await conversations.go_on()
    await messages.go_on()
    await check(service, conversations, messages, living)
    assert (await conversations.go_on(), await messages.go_on()) == (0, 0)
