"""The dashboard's view of conversations: lists, search, roles (decisions 3 and 4)."""

from __future__ import annotations

from typing import Any

import pytest

from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.core.clock import wall_clock
from deskwire.program.secret_file import installation_secrets
from tests.support.api.service import Service
from tests.support.stores import beside


async def listed(service: Service, **params: str) -> list[str]:
    """The ids that a list shows."""
    answer = await service.dashboard.get("/conversations", params=params)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


async def test_the_list_shows_newest_activity_first_and_pages_without_repeat(service: Service) -> None:
    made = [(await service.create(user=f"u{number}"))["id"] for number in range(7)]
    await service.say({"id": made[2]}, "bump")
    seen: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": "3"} | ({"cursor": cursor} if cursor else {})
        page = (await service.dashboard.get("/conversations", params=params)).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen[0] == made[2]
    assert sorted(seen) == sorted(made)


async def test_the_list_can_be_narrowed_by_every_filter(service: Service) -> None:
    first = await service.create(user="u1", title="Parcel 100% lost", visible=False)
    second = await service.create(user="u2", message={"text": "Where is my REFUND?"})
    await service.do(second, "close")
    await service.http.patch(f"/s2s/conversations/{first['id']}", json={"archived": True})
    reply = await service.dashboard.post(f"/conversations/{second['id']}/messages", json={"text": "Soon"})
    agent = reply.json()["author"]["id"]
    await service.do(second, "assign", assignee={"type": "user", "id": agent})
    assert await listed(service, status="CLOSED") == [second["id"]]
    assert await listed(service, archived="true") == [first["id"]]
    assert await listed(service, archived="false") == [second["id"]]
    assert await listed(service, assignee=agent) == [second["id"]]
    assert await listed(service, contact="u1") == [first["id"]]
    assert await listed(service, contact=second["contact"]["id"]) == [second["id"]]
    assert await listed(service, q="refund") == [second["id"]]
    assert await listed(service, q="100%") == [first["id"]]
    assert await listed(service, q="1_0") == []  # a wildcard of SQL is a character here
    assert await listed(service, q="u2") == [second["id"]]


async def test_a_cursor_that_no_list_has_given_is_refused(service: Service) -> None:
    for cursor in ("x", "W10", "WzEsIDJd\u00e9", "eyJhIjoxfQ", "WzEuNSwyXQ"):
        answer = await service.dashboard.get("/conversations", params={"cursor": cursor})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/cursor"), cursor


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("viewer", {"read"}),
        ("agent", {"read", "reply", "manage"}),
        ("admin", {"read", "reply", "manage", "delete"}),
    ],
)
async def test_role_has_exactly_its_permissions(service: Service, role: str, allowed: set[str]) -> None:
    conversation = await service.create()
    token = member(service, role)
    path = f"/conversations/{conversation['id']}"
    calls: list[tuple[str, str, str, Any]] = [
        ("read", "GET", path, None),
        ("read", "GET", "/conversations", None),
        ("reply", "POST", f"{path}/messages", {"text": "Hi"}),
        ("reply", "POST", f"{path}/typing", {"typing": True}),
        ("manage", "PATCH", path, {"title": "T"}),
        ("manage", "POST", f"{path}/close", None),
        ("delete", "DELETE", path, None),
    ]
    for permission, method, target, body in calls:
        headers = {"Authorization": f"Bearer {token}"}
        answer = await service.dashboard.request(method, target, json=body, headers=headers)
        if permission in allowed:
            assert answer.status_code == 200, (permission, answer.text)
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
            assert f"conversations.{permission}" in answer.json()["detail"]


def member(service: Service, role: str) -> str:
    """The token of another member, put into the database beside the running service."""
    user_id = "usr_00000000000000000000000077"
    with beside(service.directory) as connection:
        connection.execute(
            "INSERT INTO users (rowid, id, email, name, created_at) VALUES (77, ?, 'x@x.example', 'X', 0)",
            (user_id,),
        )
        connection.execute("INSERT INTO memberships VALUES (1, 77, ?, 0)", (role,))
    return Tokens(installation_secrets(service.directory, None)).issue(user_id, wall_clock())


async def test_notes_are_listed_between_the_messages_for_agents_only(service: Service) -> None:
    conversation = await service.create(message={"text": "one"})
    path = f"/conversations/{conversation['id']}/messages"
    for body in ({"text": "careful", "internal": True}, {"text": "two"}):
        assert (await service.dashboard.post(path, json=body)).json()["author"]["type"] == "agent"
    seen = (await service.dashboard.get(path)).json()["items"]
    assert [(each["text"], each["internal"], each["index"]) for each in seen] == [
        ("one", False, 0),
        ("careful", True, None),
        ("two", False, 1),
    ]
    events = (await service.dashboard.get(f"/conversations/{conversation['id']}/events")).json()["items"]
    assert [event["sequence"] for event in events] == [1, 2, 3]
