"""The context of a conversation: all parts in one call, each as in its own route, except those a role may not read."""

from __future__ import annotations

from typing import Any

import pytest

from deskwire.engine.accounts.people import PERMISSIONS
from tests.support.api.service import Service
from tests.support.api.staff import person


async def context(service: Service, conversation: dict[str, Any]) -> dict[str, Any]:
    """Return the context of a conversation."""
    answer = await service.dashboard.get(f"/conversations/{conversation['id']}/context")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def get(service: Service, path: str, **params: str) -> Any:
    """Return the answer of a route of the dashboard."""
    answer = await service.dashboard.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_context_of_a_conversation_comes_in_one_call(service: Service) -> None:
    made = [
        await service.create(user="u1", title=f"{number}", message={"text": "Hello"}) for number in range(7)
    ]
    await service.create(user="u2")
    one, contact = made[3], made[3]["contact"]["id"]
    for number in range(6):
        body = {"title": f"Ticket {number}", "contactId": contact}
        assert (await service.dashboard.post("/tickets", json=body)).status_code == 200
    entry = {"name": "plan", "content": "Gold"}
    assert (await service.dashboard.post(f"/sessions/{contact}/memory", json=entry)).status_code == 200
    await service.http.put(
        f"/s2s/conversations/{one['id']}/network-logs",
        json={"requests": [{"url": "https://shop.example.org"}, {"url": "https://shop.example.org/2"}]},
    )
    await service.dashboard.patch(f"/conversations/{one['id']}", json={"tags": ["vip"]})
    found = await context(service, one)
    view = await get(service, f"/conversations/{one['id']}", view="agent")
    others = [made[number] for number in (6, 5, 4, 2, 1)]
    assert found == {
        "contact": await get(service, f"/contacts/{contact}"),
        "conversations": [
            await get(service, f"/conversations/{each['id']}", view="agent") for each in others
        ],
        "tickets": (await get(service, "/tickets", contact=contact))["items"][:5],
        "memory": (await get(service, f"/sessions/{contact}/memory"))["items"],
        "networkLogs": {"at": view["networkLogsAt"], "requests": 2},
        "workflow": None,
        "activity": (await get(service, f"/conversations/{one['id']}/activity"))["items"],
        "asOf": view["asOf"],
    }
    assert (len(found["tickets"]), len(found["memory"])) == (5, 1)
    assert [each["action"] for each in found["activity"]]


async def test_a_new_conversation_has_little_around_it(service: Service) -> None:
    found = await context(service, await service.create())
    assert (found["conversations"], found["tickets"], found["memory"]) == ([], [], [])
    assert (found["networkLogs"], found["workflow"]) == (None, None)


async def test_memory_that_is_switched_off_is_not_shown(service: Service) -> None:
    made = await service.create()
    path = f"/projects/{service.demo['projectId']}"
    answer = await service.dashboard.patch(path, json={"settings": {"memoryEnabled": False}})
    if answer.status_code != 200:
        answer = await service.dashboard.patch(path, json={"memoryEnabled": False})
    assert answer.status_code == 200, answer.text
    assert (await context(service, made))["memory"] is None


@pytest.mark.parametrize(
    ("permission", "part"),
    [("contacts.read", "contact"), ("tickets.read", "tickets"), ("memory.read", "memory")],
)
async def test_parts_that_a_role_may_not_read_are_null(
    service: Service, monkeypatch: pytest.MonkeyPatch, permission: str, part: str
) -> None:
    made = await service.create()
    monkeypatch.setitem(PERMISSIONS, "owner", PERMISSIONS["owner"] - {permission})
    found = await context(service, made)
    parts = {"contact", "tickets", "memory"}
    assert {name for name in parts if found[name] is None} == {part}


@pytest.mark.parametrize("role", ["viewer", "agent", "admin"])
async def test_every_role_has_the_context(service: Service, role: str) -> None:
    made = await service.create()
    async with person(service, role) as someone:
        answer = await someone.http.get(
            f"/conversations/{made['id']}/context", headers={"project": service.demo["projectId"]}
        )
    assert (answer.status_code, answer.json()["contact"]["userId"]) == (200, "u1")


async def test_unknown_conversation_has_no_context(service: Service) -> None:
    made = await service.create()
    await service.http.delete(f"/s2s/conversations/{made['id']}")
    answer = await service.dashboard.get(f"/conversations/{made['id']}/context")
    assert (answer.status_code, answer.json()["code"]) == (404, "conversation_not_found")
