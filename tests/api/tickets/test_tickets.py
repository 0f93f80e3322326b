"""Tickets through the wire: made, read, changed, deleted, many at once, with their log (decisions 7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conversations.test_dashboard import member
from tests.support.api.service import Service
from tests.support.stores import beside

UNKNOWN = "tkt_00000000000000000000000000"
FIELDS = {
    "id", "title", "description", "type", "status", "priority", "processingUser", "processingTeam", "snoozedUntil",
    "conversationId", "contactId", "tags", "createdAt", "updatedAt", "lastActivityAt",
}  # fmt: skip


async def make(service: Service, **fields: Any) -> dict[str, Any]:
    """Create a ticket."""
    answer = await service.dashboard.post("/tickets", json={"title": "Parcel lost", **fields})
    assert answer.status_code == 200, answer.text
    ticket: dict[str, Any] = answer.json()
    return ticket


async def patch(service: Service, ticket: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The ticket after a change."""
    answer = await service.dashboard.patch(f"/tickets/{ticket['id']}", json=fields)
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


async def fetch(service: Service, ticket: dict[str, Any]) -> dict[str, Any]:
    """The ticket as it is."""
    answer = await service.dashboard.get(f"/tickets/{ticket['id']}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def log_of(service: Service, ticket: dict[str, Any]) -> list[dict[str, Any]]:
    """The ticket's activity, newest first."""
    answer = await service.dashboard.get(f"/tickets/{ticket['id']}/activity")
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def changes_in(entry: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the old and the new value of each field in an entry."""
    return {change["field"]: (change["from"], change["to"]) for change in entry["changes"]}


async def agent_of(service: Service) -> dict[str, Any]:
    """The signed-in user, as a message's author."""
    conversation = await service.create(user="agents-own")
    answer = await service.dashboard.post(
        f"/conversations/{conversation['id']}/messages", json={"text": "Hi"}
    )
    author: dict[str, Any] = answer.json()["author"]
    return author


async def team_of(service: Service) -> str:
    """The demo project's team."""
    (team,) = (await service.dashboard.get("/teams")).json()["items"]
    return str(team["id"])


def pointers(answer: Any) -> dict[str, str]:
    """The problems of a refusal: code by pointer."""
    return {each["pointer"]: each["code"] for each in answer.json()["errors"]}


async def test_new_ticket_has_the_given_fields_and_defaults(service: Service) -> None:
    plain = await make(service)
    assert plain.keys() == FIELDS
    assert plain["id"].startswith("tkt_")
    assert (plain["status"], plain["priority"], plain["tags"]) == ("OPEN", "MEDIUM", [])
    assert [name for name in FIELDS if plain[name] is None] != []
    agent, team = await agent_of(service), await team_of(service)
    full = {
        "title": "Refund",
        "description": "Twice charged",
        "type": "question",
        "status": "IN_PROGRESS",
        "priority": "URGENT",
        "processingUser": agent["id"],
        "processingTeam": team,
        "snoozedUntil": "2030-01-01T00:00:00.000Z",
        "tags": ["vip", "refund"],
    }
    made = await make(service, **full)
    assert {name: made[name] for name in full} == full
    assert await fetch(service, made) == made


async def test_patch_changes_given_fields_and_null_clears_optional_ones(service: Service) -> None:
    ticket = await make(
        service, description="d", type="t", tags=["a", "b"], snoozedUntil="2030-01-01T00:00:00Z"
    )
    changed = await patch(service, ticket, title="New", status="DONE", priority="LOW", tags=["b", "c"])
    assert (changed["title"], changed["status"], changed["priority"]) == ("New", "DONE", "LOW")
    assert (changed["tags"], changed["description"]) == (["b", "c"], "d")
    assert changed["updatedAt"] > ticket["updatedAt"]
    cleared = await patch(service, ticket, description=None, type=None, snoozedUntil=None, tags=[])
    assert [cleared[name] for name in ("description", "type", "snoozedUntil", "tags")] == [
        None,
        None,
        None,
        [],
    ]
    assert await patch(service, ticket, title="New") == cleared  # nothing new: not even `updatedAt`


async def test_every_problem_of_a_ticket_is_named(service: Service) -> None:
    answer = await service.dashboard.post(
        "/tickets",
        json={
            "title": "",
            "status": "open",
            "priority": 1,
            "tags": ["a", "a"],
            "snoozedUntil": "soon",
            "x": 1,
        },
    )
    assert answer.status_code == 422
    assert pointers(answer) == {
        "/title": "too_short",
        "/status": "not_allowed",
        "/priority": "not_allowed",
        "/tags": "duplicate",
        "/snoozedUntil": "invalid",
        "/x": "unknown_field",
    }
    wrong = {"processingUser": "usr_1", "processingTeam": "team_1", "contactId": "con_1", "title": "T"}
    answer = await service.dashboard.post("/tickets", json=wrong)
    assert (answer.status_code, set(pointers(answer).values())) == (422, {"unknown"})
    assert pointers(answer).keys() == {"/processingUser", "/processingTeam", "/contactId"}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({}, {"": "required"}),
        (
            {"title": None, "status": None, "priority": None, "tags": None},
            dict.fromkeys(("/title", "/status", "/priority", "/tags"), "not_nullable"),
        ),
        ({"snoozedUntil": "2001-01-01T00:00:00Z"}, {"/snoozedUntil": "not_ahead"}),
        ({"snoozedUntil": "9999-12-31T23:59:59-12:00"}, {"/snoozedUntil": "too_large"}),
        ({"snoozedUntil": 12}, {"/snoozedUntil": "invalid"}),
        ({"conversationId": "cnv_00000000000000000000000000"}, {"/conversationId": "unknown"}),
        (
            {"conversationId": "x", "processingTeam": "x"},
            {"/conversationId": "unknown", "/processingTeam": "unknown"},
        ),
        (
            {"id": "tkt_1", "createdAt": "2030-01-01T00:00:00Z"},
            {"/id": "unknown_field", "/createdAt": "unknown_field"},
        ),
    ],
)
async def test_a_patch_that_does_not_fit_is_refused_and_changes_nothing(
    service: Service, body: dict[str, Any], found: dict[str, str]
) -> None:
    ticket = await make(service)
    answer = await service.dashboard.patch(f"/tickets/{ticket['id']}", json=body)
    assert (answer.status_code, pointers(answer)) == (422, found)
    assert await fetch(service, ticket) == ticket


async def test_deleted_ticket_and_its_log_are_not_found(service: Service) -> None:
    ticket = await make(service, tags=["a"])
    answer = await service.dashboard.delete(f"/tickets/{ticket['id']}")
    assert answer.json() == {"id": ticket["id"], "deleted": True}
    for method, path in (("GET", ""), ("GET", "/activity"), ("PATCH", ""), ("DELETE", "")):
        body = {"title": "T"} if method == "PATCH" else None
        again = await service.dashboard.request(method, f"/tickets/{ticket['id']}{path}", json=body)
        assert (again.status_code, again.json()["code"]) == (404, "ticket_not_found")


def foreign_ticket(service: Service) -> str:
    """The id of a ticket of another organisation's project, put in beside the service; with user and team."""
    with beside(service.directory) as connection:
        for sql in (
            """INSERT INTO organisations (rowid, id, name, created_at) VALUES
            (9, 'org_9', 'Other', 0)""",
            """INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) VALUES
            (9, 'prj_00000000000000000000000009', 9, 'Other', 'other', 0)""",
            """INSERT INTO users (rowid, id, email, name, created_at) VALUES
            (9, 'usr_9', 'o@x.example', 'Other', 0)""",
            """INSERT INTO memberships (organisation, "user", role, created_at) VALUES
            (9, 9, 'owner', 0)""",
            """INSERT INTO teams (rowid, id, project, name, created_at) VALUES
            (9, 'team_9', 9, 'Other', 0)""",
            """INSERT INTO tickets (rowid, id, project, title, status, priority, tags, created_at, updated_at, activity) VALUES
            (9, 'tkt_00000000000000000000000009', 9, 'Parcel lost', 'OPEN', 1, '["vip"]', 0, 0, 0)""",
            """INSERT INTO ticket_tags (project, folded, ticket, tag) VALUES
            (9, 'vip', 9, 'vip')""",
        ):
            connection.execute(sql)
    return "tkt_00000000000000000000000009"


async def test_tickets_users_and_teams_of_another_organisation_look_like_unknown_ones(
    service: Service,
) -> None:
    foreign = foreign_ticket(service)
    own = await make(service)
    for method, tail, body in (
        ("GET", "", None),
        ("PATCH", "", {"title": "T"}),
        ("DELETE", "", None),
        ("GET", "/activity", None),
    ):
        answers = [
            await service.dashboard.request(method, f"/tickets/{each}{tail}", json=body)
            for each in (foreign, UNKNOWN)
        ]
        seen = [{**each.json(), "requestId": ""} for each in answers]
        assert [each.status_code for each in answers] == [404, 404]
        assert seen[0] == seen[1]
    bulk = await service.dashboard.put(
        "/tickets/bulk", json={"selection": {"ids": [foreign, own["id"]]}, "payload": {"priority": "LOW"}}
    )
    assert bulk.json() == {"matched": 1, "updated": 1, "unchanged": 0, "notFound": [foreign]}
    for params in ({}, {"q": "parcel"}, {"tag": "vip"}, {"status": "OPEN"}):
        listed = (await service.dashboard.get("/tickets", params=params)).json()["items"]
        assert foreign not in [item["id"] for item in listed]
    refused = await service.dashboard.patch(
        f"/tickets/{own['id']}", json={"processingUser": "usr_9", "processingTeam": "team_9"}
    )
    assert pointers(refused) == {"/processingUser": "unknown", "/processingTeam": "unknown"}


@pytest.mark.parametrize(("role", "manages"), [("viewer", False), ("agent", True)])
async def test_reading_and_changing_tickets_need_their_permissions(
    service: Service, role: str, manages: bool
) -> None:
    ticket = await make(service)
    headers = {"Authorization": f"Bearer {member(service, role)}"}
    bulk = {"selection": {"ids": [ticket["id"]]}, "payload": {"priority": "LOW"}}
    calls: list[tuple[str, str, Any]] = [
        ("GET", "/tickets", None),
        ("GET", f"/tickets/{ticket['id']}", None),
        ("GET", f"/tickets/{ticket['id']}/activity", None),
        ("POST", "/tickets", {"title": "T"}),
        ("PUT", "/tickets/bulk", bulk),
        ("PATCH", f"/tickets/{ticket['id']}", {"title": "T"}),
        ("DELETE", f"/tickets/{ticket['id']}", None),
    ]
    for method, path, body in calls:
        answer = await service.dashboard.request(method, path, json=body, headers=headers)
        if method == "GET" or manages:
            assert answer.status_code == 200, (method, path, answer.text)
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
            assert "tickets.manage" in answer.json()["detail"]


async def test_log_shows_actor_field_and_both_values_of_a_change(service: Service) -> None:
    ticket = await make(service, tags=["a"], description="x" * 2_000)
    await patch(service, ticket, status="DONE", tags=["a", "b"])
    await patch(service, ticket, status="DONE")  # changes nothing
    await service.dashboard.put(
        "/tickets/bulk", json={"selection": {"ids": [ticket["id"]]}, "payload": {"priority": "HIGH"}}
    )
    bulk, patched, created = await log_of(service, ticket)
    assert (created["action"], patched["action"], bulk["action"]) == ("created", "changed", "changed")
    assert changes_in(patched) == {"status": ("OPEN", "DONE"), "tags": (["a"], ["a", "b"])}
    assert changes_in(bulk) == {"priority": ("MEDIUM", "HIGH")}
    begun = changes_in(created)
    assert begun.keys() == {"title", "description", "tags", "status", "priority"}
    assert begun["title"] == (None, "Parcel lost")
    assert begun["description"] == (None, "x" * 500 + "…")
    assert begun["status"] == (None, "OPEN")
    agent = await agent_of(service)
    assert all(
        each["actor"] == {"type": "user", "id": agent["id"], "name": agent["name"]}
        for each in (bulk, created)
    )
    assert (created["at"], created["id"][:4]) == (ticket["createdAt"], "act_")


async def test_the_log_is_paged_newest_first(service: Service) -> None:
    ticket = await make(service)
    for number in range(6):
        await patch(service, ticket, title=f"T{number}")
    seen: list[Any] = []
    cursor: str | None = None
    while True:
        params = {"limit": "3"} | ({"cursor": cursor} if cursor else {})
        page = (await service.dashboard.get(f"/tickets/{ticket['id']}/activity", params=params)).json()
        seen += [changes_in(entry)["title"][1] for entry in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == ["T5", "T4", "T3", "T2", "T1", "T0", "Parcel lost"]


async def test_bulk_change_is_limited_to_the_first_ids_and_counts_changes(service: Service) -> None:
    tickets = [await make(service, priority="LOW" if number == 1 else "HIGH") for number in range(4)]
    ids = [ticket["id"] for ticket in tickets]
    selection = {"ids": [ids[0], UNKNOWN, ids[1], "whatever", ids[2], ids[3]], "limit": 5}
    answer = await service.dashboard.put(
        "/tickets/bulk", json={"selection": selection, "payload": {"priority": "LOW"}}
    )
    assert answer.status_code == 200
    assert answer.json() == {"matched": 3, "updated": 2, "unchanged": 1, "notFound": [UNKNOWN, "whatever"]}
    assert [(await fetch(service, ticket))["priority"] for ticket in tickets] == ["LOW", "LOW", "LOW", "HIGH"]


async def test_bulk_change_assigns_unassigns_snoozes_and_wakes(service: Service) -> None:
    agent, team = await agent_of(service), await team_of(service)
    ticket = await make(service, title="Kept", type="kept")

    async def bulk(**payload: Any) -> dict[str, Any]:
        body = {"selection": {"ids": [ticket["id"]]}, "payload": payload}
        answer = await service.dashboard.put("/tickets/bulk", json=body)
        assert answer.json() == {"matched": 1, "updated": 1, "unchanged": 0, "notFound": []}
        return await fetch(service, ticket)

    given = await bulk(processingUser=agent["id"], processingTeam=team)
    assert (given["processingUser"], given["processingTeam"]) == (agent["id"], team)
    taken = await bulk(processingUser=None)
    assert (taken["processingUser"], taken["processingTeam"]) == (None, team)
    snoozed = await bulk(duration=3_600.5, processingTeam=None)
    assert snoozed["snoozedUntil"] > snoozed["updatedAt"]
    assert (await bulk(duration=0))["snoozedUntil"] is None
    assert (snoozed["title"], snoozed["type"]) == ("Kept", "kept")


@pytest.mark.parametrize(
    ("selection", "payload", "found"),
    [
        ({"ids": []}, {"priority": "LOW"}, {"/selection/ids": "too_few"}),
        ({"ids": ["a"] * 2}, {"priority": "LOW"}, {"/selection/ids": "duplicate"}),
        ({"ids": [f"t{n}" for n in range(1_001)]}, {"priority": "LOW"}, {"/selection/ids": "too_many"}),
        ({"ids": ["a"], "limit": 0}, {"priority": "LOW"}, {"/selection/limit": "too_small"}),
        ({"ids": ["a"]}, {}, {"/payload": "required"}),
        ({"ids": ["a"]}, {"priority": None, "duration": None}, dict.fromkeys(("/payload/priority", "/payload/duration"), "not_nullable")),
        ({"ids": ["a"]}, {"duration": -1}, {"/payload/duration": "too_small"}),
        ({"ids": ["a"]}, {"duration": 1e12}, {"/payload/duration": "too_large"}),
        ({"ids": ["a"]}, {"duration": "5"}, {"/payload/duration": "invalid"}),
        ({}, {"status": "DONE"}, {"/selection/ids": "required", "/payload/status": "unknown_field", "/payload": "required"}),
        (
            {"ids": ["a"]},
            {"processingUser": "usr_1", "processingTeam": "team_1"},
            {"/payload/processingUser": "unknown", "/payload/processingTeam": "unknown"},
        ),
    ],
)  # fmt: skip
async def test_a_bulk_change_that_does_not_fit_is_refused_with_every_problem(
    service: Service, selection: Any, payload: Any, found: dict[str, str]
) -> None:
    answer = await service.dashboard.put("/tickets/bulk", json={"selection": selection, "payload": payload})
    assert (answer.status_code, pointers(answer)) == (422, found)


async def test_a_bulk_change_with_an_unknown_team_changes_nothing_at_all(service: Service) -> None:
    tickets = [await make(service) for _ in range(3)]
    body = {
        "selection": {"ids": [ticket["id"] for ticket in tickets]},
        "payload": {"priority": "URGENT", "processingTeam": "team_00000000000000000000000000"},
    }
    assert (await service.dashboard.put("/tickets/bulk", json=body)).status_code == 422
    assert [await fetch(service, ticket) for ticket in tickets] == tickets


async def test_a_thousand_tickets_change_in_one_call(service: Service) -> None:
    first = await make(service)
    with beside(service.directory) as connection:
        connection.executemany(
            "INSERT INTO tickets (id, project, title, status, priority, tags, created_at, updated_at, activity) "
            "VALUES (?, 1, 'T', 'OPEN', 1, '[]', 0, 0, 0)",
            ((f"tkt_{number:026}",) for number in range(999)),
        )
    ids = [first["id"], *(f"tkt_{number:026}" for number in range(999))]
    body = {"selection": {"ids": ids}, "payload": {"priority": "HIGH", "duration": 60}}
    answer = await service.dashboard.put("/tickets/bulk", json=body)
    assert answer.json() == {"matched": 1_000, "updated": 1_000, "unchanged": 0, "notFound": []}
    listed = await service.dashboard.get("/tickets", params={"snoozed": "false"})
    assert listed.json()["items"] == []
