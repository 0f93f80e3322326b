"""Contact memory through the wire (contract 2.6, 4.7; decisions 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deskwire.engine.contacts.memory import ENTRIES_MAX
from tests.support.api.planted_texts import holding
from tests.support.api.service import Service, running
from tests.support.stores import beside, stored

UNKNOWN = "con_00000000000000000000000000"


async def session(service: Service, user: str = "u1") -> str:
    """The path of a contact's memory."""
    answer = await service.http.put(f"/s2s/contacts/{user}", json={"name": "Ada"})
    return f"/sessions/{answer.json()['id']}/memory"


async def remember(service: Service, path: str, name: str, content: str, **more: Any) -> dict[str, Any]:
    """Put an entry; the answer."""
    answer = await service.dashboard.post(path, json={"name": name, "content": content, **more})
    assert answer.status_code == 200, answer.text
    entry: dict[str, Any] = answer.json()
    return entry


def change(directory: Path, table: str, column: str, value: object) -> None:
    """Change something of the demo in the database of a running service."""
    with beside(directory) as connection:
        connection.execute(f"UPDATE {table} SET {column} = ?", (value,))


def files_with(directory: Path, marker: str) -> list[str]:
    """The files that hold the marker, by name."""
    return [name for _, name in holding(directory, marker.encode().lower())]


async def test_an_entry_is_put_read_changed_and_deleted(service: Service) -> None:
    path = await session(service)
    made = await remember(service, path, "plan", "On the gold plan", description="billing")
    assert made.keys() == {"ok", "id", "name", "content", "description", "createdAt", "updatedAt"}
    assert (made["ok"], made["name"], made["content"]) == (True, "plan", "On the gold plan")
    again = await remember(service, path, "plan", "On the silver plan")
    assert (again["id"], again["content"], again["description"]) == (made["id"], "On the silver plan", None)
    assert (await service.dashboard.get(f"{path}/plan")).json() == again
    changed = await service.dashboard.patch(f"{path}/plan", json={"description": "since May"})
    assert (changed.json()["content"], changed.json()["description"]) == ("On the silver plan", "since May")
    unchanged = await service.dashboard.patch(f"{path}/plan", json={"description": "since May"})
    assert unchanged.json() == changed.json()
    gone = await service.dashboard.delete(f"{path}/plan")
    assert gone.json() == {"ok": True, "id": made["id"], "deleted": True}
    missing = await service.dashboard.get(f"{path}/plan")
    assert (missing.status_code, missing.json()["code"]) == (404, "memory_entry_not_found")


async def test_entries_are_listed_newest_first_by_pages_and_cleared_with_their_number(
    service: Service,
) -> None:
    path, other = await session(service), await session(service, "u2")
    for number in range(5):
        await remember(service, path, f"n{number}", "x")
    await remember(service, other, "kept", "x")
    first = (await service.dashboard.get(path, params={"limit": "3"})).json()
    rest = (await service.dashboard.get(path, params={"cursor": first["nextCursor"]})).json()
    assert [entry["name"] for entry in first["items"] + rest["items"]] == ["n4", "n3", "n2", "n1", "n0"]
    assert (first["ok"], rest["nextCursor"]) == (True, None)
    cleared = await service.dashboard.delete(path)
    assert cleared.json() == {"ok": True, "consolidationEnqueued": False, "entries": 5}
    assert (await service.dashboard.delete(path)).json()["entries"] == 0
    assert len((await service.dashboard.get(other)).json()["items"]) == 1


async def test_a_project_that_has_switched_memory_off_says_so_of_every_call(tmp_path: Path) -> None:
    """Decisions 7: with 200 and `ok: false`."""
    async with running(tmp_path) as service:
        path = await session(service)
        await remember(service, path, "plan", "gold")
        change(tmp_path, "projects", "memory_enabled", 0)
        off = {"ok": False, "reason": "disabled"}
        body = {"name": "plan", "content": "silver"}
        calls = [
            await service.dashboard.post(path, json=body),
            await service.dashboard.get(f"{path}/plan"),
            await service.dashboard.patch(f"{path}/plan", json={"content": "silver"}),
            await service.dashboard.delete(f"{path}/plan"),
        ]
        assert [(each.status_code, each.json()) for each in calls] == [(200, off)] * 4
        listed = (await service.dashboard.get(path)).json()
        assert listed == {**off, "items": [], "nextCursor": None}
        cleared = (await service.dashboard.delete(path)).json()
        assert cleared == {**off, "consolidationEnqueued": False, "entries": 0}
        unknown = await service.dashboard.delete(f"/sessions/{UNKNOWN}/memory")
        assert unknown.status_code == 404
        change(tmp_path, "projects", "memory_enabled", 1)
        assert (await service.dashboard.get(f"{path}/plan")).json()["content"] == "gold"


@pytest.mark.parametrize("session_id", [UNKNOWN, "u1", "cnv_00000000000000000000000000"])
async def test_an_unknown_session_is_not_found(service: Service, session_id: str) -> None:
    await session(service)
    path = f"/sessions/{session_id}/memory"
    for answer in (
        await service.dashboard.get(path),
        await service.dashboard.delete(path),
        await service.dashboard.get(f"{path}/plan"),
        await service.dashboard.post(path, json={"name": "a", "content": "b"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found")


async def test_everything_wrong_with_an_entry_is_named(service: Service) -> None:
    path = await session(service)
    for body, pointers in (
        ({}, ["/name", "/content"]),
        ({"name": "a/b", "content": "", "description": "x" * 501}, ["/name", "/content", "/description"]),
        ({"name": "a\nb", "content": "x" * 10_001, "colour": 1}, ["/name", "/content", "/colour"]),
        ({"name": "x" * 101, "content": None}, ["/name", "/content"]),
    ):
        answer = await service.dashboard.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
        assert sorted(each["pointer"] for each in answer.json()["errors"]) == sorted(pointers)
    await remember(service, path, "plan", "gold")
    answer = await service.dashboard.patch(f"{path}/plan", json={"content": None})
    assert answer.status_code == 422


async def test_a_contact_has_a_bounded_number_of_entries(service: Service) -> None:
    path = await session(service)
    for number in range(ENTRIES_MAX):
        await remember(service, path, f"n{number}", "x")
    full = await service.dashboard.post(path, json={"name": "more", "content": "x"})
    assert (full.status_code, full.json()["code"]) == (409, "memory_limit_reached")
    await remember(service, path, "n0", "replaced")


async def test_an_erased_contact_leaves_no_byte_of_its_memory(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        path = await session(service)
        kept = await session(service, "u2")
        marker = "PLANTED-MEMORY-MARKER"
        for number in range(20):
            await remember(service, path, f"{marker}-{number}", f"{marker} " * 40, description=marker)
        await remember(service, kept, "plan", "KEPT-MARKER")
        await service.dashboard.delete(f"{path}/{marker}-3")
        assert (await service.http.delete("/s2s/contacts/u1")).status_code == 200
        assert (await service.dashboard.get(path)).status_code == 404
    assert files_with(tmp_path, marker) == []
    assert marker.encode() not in stored(tmp_path)
    assert b"KEPT-MARKER" in stored(tmp_path)
