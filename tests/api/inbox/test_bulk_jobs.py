"""Bulk jobs: all conversations of a filter are changed in the background, skipped ones have reasons, and undo restores the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import httpx
import pytest
import trio

from deskwire.engine.conversations import bulk_jobs, bulk_running
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.http.resources.conversations import bulk_jobs as routes
from tests.support.api.agent_stream import page
from tests.support.api.service import Service
from tests.support.api.staff import organisation_of, person
from tests.support.deadlines import HANG_TIMEOUT_S


def ahead(days: int) -> str:
    """Return the time in this number of days."""
    return (datetime.now(UTC).replace(microsecond=0) + timedelta(days)).isoformat().replace("+00:00", ".000Z")


def in_project(service: Service) -> dict[str, str]:
    """Return the header with which a user names the demo's project."""
    return {"project": service.demo["projectId"]}


OPEN = {"status": "OPEN,PENDING"}
CLOSE = {"type": "close"}


async def me(service: Service) -> str:
    """Return the id of the demo's owner."""
    return str((await service.dashboard.get("/users/me")).json()["id"])


async def begin(http: httpx.AsyncClient, action: dict[str, Any], **body: Any) -> dict[str, Any]:
    """Start a job; return it."""
    answer = await http.post("/bulk-jobs", json={"filter": OPEN, **body, "action": action})
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def ended(http: httpx.AsyncClient, job: dict[str, Any]) -> dict[str, Any]:
    """Return a job after its end."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            answer = await http.get(f"/bulk-jobs/{job['id']}")
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            if found["endedAt"] is not None:
                return found
            await trio.lowlevel.checkpoint()


async def carry_out(http: httpx.AsyncClient, action: dict[str, Any], **body: Any) -> dict[str, Any]:
    """Start a job, and return it after its end."""
    return await ended(http, await begin(http, action, **body))


async def undone(http: httpx.AsyncClient, job: dict[str, Any]) -> dict[str, Any]:
    """Undo a job, and return it after that."""
    answer = await http.post(f"/bulk-jobs/{job['id']}/undo")
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "undoing"
    return await ended(http, job)


async def of(service: Service, conversation: dict[str, Any]) -> dict[str, Any]:
    """Return the conversation as agents see it, without what each change or each reader changes."""
    answer = await service.dashboard.get(f"/conversations/{conversation['id']}?view=agent")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return {
        name: found[name]
        for name in ("status", "assignee", "tags", "snoozedUntil", "waitingSince", "archived", "closedBy")
    }


async def patch(service: Service, conversation: dict[str, Any], **fields: Any) -> None:
    answer = await service.dashboard.patch(f"/conversations/{conversation['id']}", json=fields)
    assert answer.status_code == 200, answer.text


async def several(service: Service, number: int = 3) -> list[dict[str, Any]]:
    """Create conversations with a waiting contact."""
    return [await service.create(f"u{n}", message={"text": "Hello"}) for n in range(number)]


async def test_job_closes_all_and_undo_restores_status_snooze_and_wait(service: Service) -> None:
    made = await several(service)
    await patch(service, made[0], status="PENDING", snoozedUntil=ahead(30))
    before = [await of(service, each) for each in made]
    job = await carry_out(service.dashboard, CLOSE)
    assert (job["status"], job["total"], job["done"], job["changed"], job["skipped"]) == (
        "completed", 3, 3, 3, [],
    )  # fmt: skip
    assert {(await of(service, each))["status"] for each in made} == {"CLOSED"}
    job = await undone(service.dashboard, job)
    assert (job["status"], job["undone"], job["kept"]) == ("undone", 3, [])
    assert [await of(service, each) for each in made] == before


async def test_job_of_a_list_that_contradicts_itself_changes_nothing(service: Service) -> None:
    made = await several(service)
    nothing = {"sort": "waiting", "waiting": "false"}
    job = await carry_out(service.dashboard, CLOSE, filter=nothing)
    assert (job["status"], job["total"], job["changed"]) == ("completed", 0, 0)
    assert {(await of(service, each))["status"] for each in made} == {"OPEN"}


@pytest.mark.parametrize(
    "action",
    [
        {"type": "assign", "assignee": "me"},
        {"type": "assign", "assignee": None},
        {"type": "tag", "add": ["New", "vip"], "remove": ["old"]},
        {"type": "snooze", "until": "in 60 days"},
        {"type": "snooze", "until": None},
        {"type": "pending"},
        {"type": "archive"},
    ],
    ids=lambda action: "-".join(map(str, action.values())),
)
async def test_undo_restores_what_each_action_changed(service: Service, action: dict[str, Any]) -> None:
    if action.get("until"):
        action = {**action, "until": ahead(60)}  # not in the test's name, which all workers have to agree on
    made = await several(service, 2)
    if action.get("assignee") == "me":
        action = {**action, "assignee": {"type": "user", "id": await me(service)}}
    else:
        assignee = {"type": "user", "id": await me(service)}
        path = f"/conversations/{made[0]['id']}/assign"
        assert (await service.dashboard.post(path, json={"assignee": assignee})).status_code == 200
    await patch(service, made[0], tags=["old", "vip"], snoozedUntil=ahead(30))
    before = [await of(service, each) for each in made]
    job = await carry_out(service.dashboard, action)
    assert job["action"]["type"] == action["type"]
    assert job["changed"] + sum(each["count"] for each in job["skipped"]) == job["total"] == 2
    after = [await of(service, each) for each in made]
    assert after != before
    job = await undone(service.dashboard, job)
    assert (job["status"], job["undone"], job["kept"]) == ("undone", job["changed"], [])
    assert [await of(service, each) for each in made] == before


async def test_conversations_that_need_no_change_or_are_gone_are_skipped_with_a_reason(
    service: Service,
) -> None:
    made = await several(service, 4)
    for each in made[:2]:
        await patch(service, each, tags=["vip"])
    full = [f"t{n}" for n in range(20)]
    await patch(service, made[2], tags=full)
    job = await carry_out(service.dashboard, {"type": "tag", "add": ["VIP"]})
    reasons = {each["reason"]: (each["count"], each["conversationIds"]) for each in job["skipped"]}
    assert reasons.keys() == {"unchanged", "tag_limit_reached"}
    assert (reasons["unchanged"][0], {*reasons["unchanged"][1]}) == (2, {made[0]["id"], made[1]["id"]})
    assert reasons["tag_limit_reached"] == (1, [made[2]["id"]])
    assert job["changed"] == 1
    assert (await of(service, made[3]))["tags"] == ["vip"]


async def test_closed_conversation_can_not_be_snoozed_by_a_job(service: Service) -> None:
    (made,) = await several(service, 1)
    await service.do(made, "close", closedBy="agent")
    action = {"type": "snooze", "until": ahead(60)}
    job = await carry_out(service.dashboard, action, filter={"status": "CLOSED"})
    assert job["skipped"] == [{"reason": "conversation_closed", "count": 1, "conversationIds": [made["id"]]}]


async def test_undo_keeps_what_a_colleague_has_changed_since(service: Service) -> None:
    made = await several(service, 2)
    job = await carry_out(service.dashboard, CLOSE)
    await service.do(made[0], "reopen")
    job = await undone(service.dashboard, job)
    assert (job["status"], job["undone"]) == ("undone", 1)
    assert job["kept"] == [{"reason": "changed_since", "count": 1, "conversationIds": [made[0]["id"]]}]


async def test_undo_of_tags_keeps_later_tags_and_counts_deleted_conversations(service: Service) -> None:
    made = await several(service, 2)
    job = await carry_out(service.dashboard, {"type": "tag", "add": ["a"]})
    await patch(service, made[0], tags=["a", "theirs"])
    answer = await service.dashboard.delete(f"/conversations/{made[1]['id']}")
    assert answer.status_code == 200, answer.text
    job = await undone(service.dashboard, job)
    assert (await of(service, made[0]))["tags"] == ["theirs"]
    assert (job["undone"], job["kept"]) == (
        1, [{"reason": "conversation_deleted", "count": 1, "conversationIds": []}],
    )  # fmt: skip


async def test_view_is_the_filter_of_a_job(service: Service) -> None:
    made = await several(service, 2)
    await patch(service, made[0], tags=["spam"])
    view = {"name": "Spam", "filter": {"tag": "spam"}}
    view_id = (await service.dashboard.post("/views", json=view)).json()["id"]
    body = {"viewId": view_id, "action": CLOSE}
    answer = await service.dashboard.post("/bulk-jobs", json=body)
    assert answer.status_code == 200, answer.text
    assert (await ended(service.dashboard, answer.json()))["changed"] == 1
    assert [(await of(service, each))["status"] for each in made] == ["CLOSED", "OPEN"]


async def test_wrong_job_is_refused_with_every_problem(service: Service) -> None:
    async def places(**body: Any) -> set[tuple[str, str]]:
        answer = await service.dashboard.post("/bulk-jobs", json=body)
        assert answer.status_code == 422, answer.text
        return {(each["pointer"], each["code"]) for each in answer.json()["errors"]}

    wrong = {"type": "close", "until": None}
    found = await places(filter={"status": "open", "q": "Ada", "color": "red"}, action=wrong)
    expected = {("/filter/q", "not_allowed"), ("/action/until", "not_allowed")}
    assert expected < found
    assert {"/filter/status", "/filter/color"} <= {place for place, _ in found}
    assert await places(action={"type": "assign"}) == {
        ("/action/assignee", "required"), ("/filter", "required"),
    }  # fmt: skip
    assert await places(filter={}, action={"type": "tag"}) == {("/action/add", "required")}
    both = {"type": "tag", "add": ["A"], "remove": ["a"]}
    assert await places(viewId="viw_0", action=both) == {
        ("/action/remove", "conflict"), ("/viewId", "unknown"),
    }  # fmt: skip
    unknown = {"type": "assign", "assignee": {"type": "user", "id": "usr_0"}}
    assert {place for place, _ in await places(filter={}, action=unknown)} == {"/action/assignee/id"}
    past = {"type": "snooze", "until": "2020-01-01T00:00:00Z"}
    assert await places(filter={}, action=past) == {("/action/until", "not_ahead")}


async def test_filter_that_matches_too_many_is_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "BULK_MAX", 2)
    await several(service, 3)
    answer = await service.dashboard.post("/bulk-jobs", json={"filter": OPEN, "action": CLOSE})
    assert answer.status_code == 422
    (problem,) = answer.json()["errors"]
    assert (problem["pointer"], problem["code"]) == ("/filter", "too_many")
    assert "More than 2" in problem["message"]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> trio.Event:
    """Holds jobs before their next batch until the event is set."""
    release, advance = trio.Event(), bulk_running.BulkRunner._advance

    async def held_back(self: bulk_running.BulkRunner, job: bulk_jobs.BulkJob) -> None:
        await release.wait()
        await advance(self, job)

    monkeypatch.setattr(bulk_running.BulkRunner, "_advance", held_back)
    return release


async def test_set_of_a_job_is_fixed_at_its_start(service: Service, held: trio.Event) -> None:
    made = await several(service, 2)
    job = await begin(service.dashboard, CLOSE)
    assert (job["status"], job["total"], job["done"]) == ("running", 2, 0)
    late = await service.create("late", message={"text": "Hello"})
    answer = await service.dashboard.delete(f"/conversations/{made[1]['id']}")
    assert answer.status_code == 200, answer.text
    held.set()
    job = await ended(service.dashboard, job)
    assert (job["changed"], (await of(service, late))["status"]) == (1, "OPEN")
    assert job["skipped"] == [{"reason": "conversation_deleted", "count": 1, "conversationIds": []}]


async def test_user_has_one_job_in_progress_and_a_project_a_few(
    service: Service, held: trio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    await several(service, 1)
    job = await begin(service.dashboard, CLOSE)
    body = {"filter": OPEN, "action": CLOSE}
    answer = await service.dashboard.post("/bulk-jobs", json=body)
    assert (answer.status_code, answer.json()["code"]) == (409, "bulk_job_running")
    assert (await service.dashboard.post(f"/bulk-jobs/{job['id']}/undo")).json()["code"] == "bulk_job_running"
    monkeypatch.setattr(bulk_jobs, "RUNNING_MAX", 1)
    async with person(service, "agent") as grace:
        answer = await grace.http.post("/bulk-jobs", json=body, headers=in_project(service))
        assert (answer.status_code, answer.json()["code"]) == (409, "bulk_job_limit_reached")
    held.set()
    await ended(service.dashboard, job)


async def test_cancelled_job_leaves_the_rest_and_can_be_undone(service: Service, held: trio.Event) -> None:
    made = await several(service, 2)
    job = await begin(service.dashboard, CLOSE)
    answer = await service.dashboard.post(f"/bulk-jobs/{job['id']}/cancel")
    assert (answer.json()["status"], answer.json()["done"]) == ("cancelled", 0)
    held.set()
    again = await service.dashboard.post(f"/bulk-jobs/{job['id']}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "bulk_job_ended")
    job = await undone(service.dashboard, job)
    assert (job["status"], job["undone"]) == ("undone", 0)
    assert {(await of(service, each))["status"] for each in made} == {"OPEN"}
    again = await service.dashboard.post(f"/bulk-jobs/{job['id']}/undo")
    assert (again.status_code, again.json()["code"]) == (409, "bulk_job_ended")


async def test_job_of_a_user_who_lost_the_permission_stops(service: Service, held: trio.Event) -> None:
    (made,) = await several(service, 1)
    organisation, here = await organisation_of(service), in_project(service)
    async with person(service, "agent") as grace:
        member = f"/organisations/{organisation}/members/{grace.id}"
        body = {"filter": OPEN, "action": CLOSE}
        job = (await grace.http.post("/bulk-jobs", json=body, headers=here)).json()
        await service.dashboard.patch(member, json={"role": "viewer"})
        async with page(service.dashboard) as stream:
            held.set()
            while (event := await stream.event())["data"].get("what") != "bulk_jobs":
                pass
        assert event["data"]["id"] == job["id"]
        await service.dashboard.patch(member, json={"role": "agent"})
        found = (await grace.http.get(f"/bulk-jobs/{job['id']}", headers=here)).json()
    assert (found["status"], found["reason"], found["changed"]) == ("stopped", "permission_lost", 0)
    assert (await of(service, made))["status"] == "OPEN"


async def test_job_is_its_authors_alone(service: Service) -> None:
    job, here = await carry_out(service.dashboard, CLOSE), in_project(service)
    async with person(service, "agent") as grace:
        for method, path in (("GET", ""), ("POST", "/cancel"), ("POST", "/undo")):
            answer = await grace.http.request(method, f"/bulk-jobs/{job['id']}{path}", headers=here)
            assert (answer.status_code, answer.json()["code"]) == (404, "bulk_job_not_found")
        assert (await grace.http.get("/bulk-jobs", headers=here)).json()["items"] == []
    async with person(service, "viewer") as viewer:
        body = {"filter": OPEN, "action": CLOSE}
        assert (await viewer.http.post("/bulk-jobs", json=body, headers=here)).status_code == 403
    assert [each["id"] for each in (await service.dashboard.get("/bulk-jobs")).json()["items"]] == [job["id"]]


async def test_start_and_end_are_events_for_agents_and_changes_name_the_user(service: Service) -> None:
    (made,) = await several(service, 1)
    async with page(service.dashboard) as stream:
        job = await carry_out(service.dashboard, CLOSE)
        about = list[str]()
        while len(about) < 2:
            event = await stream.event()
            if event["type"] == "settings.changed" and event["data"]["what"] == "bulk_jobs":
                about.append(event["data"]["id"])
    assert about == [job["id"]] * 2
    activity = (await service.dashboard.get(f"/conversations/{made['id']}/activity")).json()["items"]
    closed = next(each for each in activity if each["action"] == "closed")
    assert closed["actor"]["id"] == await me(service)


async def test_repeated_start_returns_the_same_job(service: Service) -> None:
    await several(service, 1)
    headers = {"Idempotency-Key": "once"}
    body = {"filter": OPEN, "action": CLOSE}
    first, second = [
        (await service.dashboard.post("/bulk-jobs", json=body, headers=headers)).json()["id"]
        for _ in range(2)
    ]
    assert first == second


async def test_job_that_can_not_go_on_delays_no_other(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance, refused = bulk_running.BulkRunner._advance, set[str]()

    async def failing(runner: bulk_running.BulkRunner, job: bulk_jobs.BulkJob) -> None:
        if job.id in refused:
            raise Unavailable("The conversations have too many commands.", code="overloaded")
        await advance(runner, job)

    monkeypatch.setattr(bulk_running.BulkRunner, "_advance", failing)
    monkeypatch.setattr(bulk_running, "_PAUSES", 0)
    await several(service)
    async with person(service, "agent") as grace:
        grace.http.headers.update(in_project(service))
        monkeypatch.setattr(routes, "new_id", lambda kind, now: _noted(refused, new_id(kind, now)))
        first = await begin(service.dashboard, {"type": "tag", "add": ["first"]})
        monkeypatch.setattr(routes, "new_id", new_id)
        second = await carry_out(grace.http, {"type": "tag", "add": ["second"]})
        assert second["status"] == "completed"
        waiting = (await service.dashboard.get(f"/bulk-jobs/{first['id']}")).json()
        assert (waiting["status"], waiting["done"]) == ("running", 0)
        refused.clear()
        assert (await ended(service.dashboard, first))["changed"] == 3


def _noted(ids: set[str], made: str) -> str:
    ids.add(made)
    return made


# No answer needed, unread and followers


async def own(http: httpx.AsyncClient, conversation: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the agent's view that these actions change."""
    answer = await http.get(f"/conversations/{conversation['id']}?view=agent")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return {
        "waits": found["waitingSince"],
        "settled": found["noAnswerNeededSince"],
        "followers": found["followers"],
        "unread": found["mine"]["unread"],
        "seen": found["mine"]["seenIndex"],
    }


async def read(http: httpx.AsyncClient, conversation: dict[str, Any]) -> None:
    """Record that the caller has seen the first message of a conversation."""
    answer = await http.put(f"/conversations/{conversation['id']}/seen", json={"index": 0})
    assert answer.status_code == 200, answer.text


async def test_view_is_marked_as_needing_no_answer_and_waits_again_after_undo(service: Service) -> None:
    made = await several(service)
    answer = await service.dashboard.post(f"/conversations/{made[2]['id']}/messages", json={"text": "Sure"})
    assert answer.status_code == 200, answer.text
    before = [await own(service.dashboard, each) for each in made]
    job = await carry_out(service.dashboard, {"type": "noAnswerNeeded"})
    assert job["action"] == {
        "type": "noAnswerNeeded",
        "assignee": None,
        "add": [],
        "remove": [],
        "until": None,
    }
    assert (job["changed"], job["skipped"]) == (
        2, [{"reason": "unchanged", "count": 1, "conversationIds": [made[2]["id"]]}],
    )  # fmt: skip
    marked = [await own(service.dashboard, each) for each in made]
    assert [each["waits"] for each in marked] == [None] * 3
    assert [each["settled"] for each in marked] == [each["waits"] for each in before]
    job = await undone(service.dashboard, job)
    assert (job["undone"], job["kept"]) == (2, [])
    assert [await own(service.dashboard, each) for each in made] == before


async def test_marks_of_a_view_are_taken_back_and_undo_sets_them_again(service: Service) -> None:
    made = await several(service, 2)
    await carry_out(service.dashboard, {"type": "noAnswerNeeded"})
    marked = [await own(service.dashboard, each) for each in made]
    job = await carry_out(service.dashboard, {"type": "waitAgain"})
    assert {(await own(service.dashboard, each))["settled"] for each in made} == {None}
    await service.say(made[0], "Hello?")
    waits = await own(service.dashboard, made[0])
    job = await undone(service.dashboard, job)
    assert job["kept"] == [{"reason": "newer_message", "count": 1, "conversationIds": [made[0]["id"]]}]
    assert [await own(service.dashboard, each) for each in made] == [waits, marked[1]]


async def test_message_after_the_start_of_a_job_waits_for_an_answer(
    service: Service, held: trio.Event
) -> None:
    made = await several(service, 2)
    job = await begin(service.dashboard, {"type": "noAnswerNeeded"})
    await service.say(made[0], "And one more thing")
    held.set()
    job = await ended(service.dashboard, job)
    assert job["skipped"] == [{"reason": "newer_message", "count": 1, "conversationIds": [made[0]["id"]]}]
    assert [(await own(service.dashboard, each))["waits"] is None for each in made] == [False, True]


async def test_mark_that_a_colleague_has_taken_back_is_kept_by_undo(service: Service) -> None:
    made = await several(service, 2)
    job = await carry_out(service.dashboard, {"type": "noAnswerNeeded"})
    async with person(service, "agent") as grace:
        path = f"/conversations/{made[0]['id']}/no-answer-needed"
        assert (await grace.http.delete(path, headers=in_project(service))).status_code == 200
    job = await undone(service.dashboard, job)
    assert (job["undone"], job["kept"]) == (
        1, [{"reason": "changed_since", "count": 1, "conversationIds": [made[0]["id"]]}],
    )  # fmt: skip


async def test_view_is_marked_unread_for_its_user_alone(service: Service) -> None:
    made = await several(service)
    async with person(service, "agent") as grace:
        grace.http.headers.update(in_project(service))
        for http in (service.dashboard, grace.http):
            for each in made[:2]:
                await read(http, each)
        before = [await own(service.dashboard, each) for each in made]
        theirs = [await own(grace.http, each) for each in made]
        async with page(service.dashboard) as mine, page(grace.http) as others:
            job = await carry_out(service.dashboard, {"type": "unread"})
            heard = {(await mine.passing("me.seen"))["conversationId"] for _ in range(2)}
            assert heard == {each["id"] for each in made[:2]}
            await read(grace.http, made[2])
            assert (await others.passing("me.seen"))["conversationId"] == made[2]["id"]
        assert (job["changed"], [each["reason"] for each in job["skipped"]]) == (2, ["unchanged"])
        assert [(await own(service.dashboard, each))["unread"] for each in made] == [1, 1, 1]
        assert [await own(grace.http, each) for each in made] == theirs
        await read(service.dashboard, made[0])
        job = await undone(service.dashboard, job)
        assert (job["undone"], job["kept"]) == (
            1, [{"reason": "changed_since", "count": 1, "conversationIds": [made[0]["id"]]}],
        )  # fmt: skip
        assert [await own(service.dashboard, each) for each in made] == before
        assert [await own(grace.http, each) for each in made] == theirs


async def test_view_is_followed_by_its_user_alone(service: Service) -> None:
    made, user = await several(service), await me(service)
    async with person(service, "agent") as grace:
        grace.http.headers.update(in_project(service))
        for http, each in ((grace.http, made[0]), (service.dashboard, made[1])):
            assert (await http.put(f"/conversations/{each['id']}/follow")).status_code == 200
        before = [await own(service.dashboard, each) for each in made]
        job = await carry_out(service.dashboard, {"type": "follow"})
        assert (job["changed"], job["skipped"]) == (
            2, [{"reason": "unchanged", "count": 1, "conversationIds": [made[1]["id"]]}],
        )  # fmt: skip
        followers = [(await own(service.dashboard, each))["followers"] for each in made]
        assert followers == [[grace.id, user], [user], [user]]
        await undone(service.dashboard, job)
        assert [await own(service.dashboard, each) for each in made] == before
        job = await carry_out(service.dashboard, {"type": "unfollow"})
        assert job["changed"] == 1
        followers = [(await own(service.dashboard, each))["followers"] for each in made]
        assert followers == [[grace.id], [], []]
        job = await undone(service.dashboard, job)
        assert [await own(service.dashboard, each) for each in made] == before


async def test_follow_that_was_changed_since_is_kept_by_undo(service: Service) -> None:
    made = await several(service, 2)
    job = await carry_out(service.dashboard, {"type": "follow"})
    assert (await service.dashboard.delete(f"/conversations/{made[0]['id']}/follow")).status_code == 200
    job = await undone(service.dashboard, job)
    assert job["kept"] == [{"reason": "changed_since", "count": 1, "conversationIds": [made[0]["id"]]}]
    assert [(await own(service.dashboard, each))["followers"] for each in made] == [[], []]


ALLOWED = {
    "conversations.read": {"unread", "follow", "unfollow"},
    "conversations.reply": {"unread", "follow", "unfollow", "noAnswerNeeded", "waitAgain"},
    "conversations.manage": {*get_args(bulk_jobs.ActionType)} - {"noAnswerNeeded", "waitAgain"},
}
"""The actions that a role with this permission, and with that to read, may start jobs with."""
MORE: dict[str, dict[str, Any]] = {
    "assign": {"assignee": None},
    "tag": {"add": ["vip"]},
    "snooze": {"until": None},
}
"""The fields that an action needs."""


@pytest.mark.parametrize("permission", ALLOWED)
async def test_each_action_needs_the_permission_of_the_single_call(service: Service, permission: str) -> None:
    await several(service, 1)
    organisation = await organisation_of(service)
    role = {"name": "R", "permissions": sorted({"conversations.read", permission})}
    made = await service.dashboard.post(f"/organisations/{organisation}/roles", json=role)
    assert made.status_code == 200, made.text
    allowed = set()
    async with person(service, made.json()["id"]) as grace:
        grace.http.headers.update(in_project(service))
        for action in get_args(bulk_jobs.ActionType):
            body = {"filter": OPEN, "action": {"type": action, **MORE.get(action, {})}}
            answer = await grace.http.post("/bulk-jobs", json=body)
            if answer.status_code == 200:
                allowed.add(action)
                await ended(grace.http, answer.json())
            else:
                assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
                assert bulk_jobs.PERMISSION[action] in answer.json()["detail"]
    assert allowed == ALLOWED[permission]


async def test_undo_and_cancel_need_the_permission_of_the_action(service: Service) -> None:
    await several(service, 1)
    organisation = await organisation_of(service)
    async with person(service, "agent") as grace:
        grace.http.headers.update(in_project(service))
        settled = await carry_out(grace.http, {"type": "noAnswerNeeded"})
        followed = await carry_out(grace.http, {"type": "follow"})
        member = f"/organisations/{organisation}/members/{grace.id}"
        assert (await service.dashboard.patch(member, json={"role": "viewer"})).status_code == 200
        for path in ("undo", "cancel"):
            answer = await grace.http.post(f"/bulk-jobs/{settled['id']}/{path}")
            assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
        assert (await grace.http.get(f"/bulk-jobs/{settled['id']}")).json()["status"] == "completed"
        assert (await undone(grace.http, followed))["undone"] == 1


@pytest.mark.parametrize("action", ["noAnswerNeeded", "waitAgain", "unread", "follow", "unfollow"])
async def test_action_without_fields_refuses_each_of_them(service: Service, action: str) -> None:
    given = {"type": action, "until": None, "assignee": None, "add": ["a"], "remove": []}
    body = {"filter": {"status": "open", "q": "x"}, "action": given}
    answer = await service.dashboard.post("/bulk-jobs", json=body)
    assert answer.status_code == 422, answer.text
    found = {(each["pointer"], each["code"]) for each in answer.json()["errors"]}
    fields = {(f"/action/{name}", "not_allowed") for name in ("until", "assignee", "add", "remove")}
    assert {*fields, ("/filter/q", "not_allowed")} < found
    assert "/filter/status" in {place for place, _ in found}
