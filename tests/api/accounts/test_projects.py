"""Projects, their settings and their server keys, through the wire (decisions 2 and 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.service import Service, running
from tests.support.api.staff import code, organisation_of, person

DEFAULTS = {
    "memoryEnabled": True,
    "archivedRetentionDays": 365,
    "primaryLanguage": "en",
    "languages": ["en"],
    "uploadQuotaBytes": 10 << 30,
}


async def make(service: Service, **body: Any) -> httpx.Response:
    """Return the response to a new project."""
    path = f"/organisations/{await organisation_of(service)}/projects"
    return await service.dashboard.post(path, json={"name": "Bank", **body})


async def test_a_project_is_made_with_default_settings_and_can_be_fetched(service: Service) -> None:
    made = (await make(service)).json()
    assert made["settings"] == DEFAULTS
    assert made["organisationId"] == await organisation_of(service)
    assert (await service.dashboard.get(f"/projects/{made['id']}")).json() == made
    for path in ("/projects", f"/organisations/{made['organisationId']}/projects"):
        listed = (await service.dashboard.get(path)).json()["items"]
        assert [each["id"] for each in listed] == [made["id"], service.demo["projectId"]]


async def test_settings_change_one_by_one_and_survive_a_restart(tmp_path: Path) -> None:
    wanted = {
        "memoryEnabled": False,
        "archivedRetentionDays": None,
        "primaryLanguage": "PT-br",
        "languages": ["en", "pt-BR", "zh-hant-tw"],
        "uploadQuotaBytes": 0,
    }
    async with running(tmp_path) as service:
        path = f"/projects/{service.demo['projectId']}"
        first = await service.dashboard.patch(path, json={"settings": {"memoryEnabled": False}})
        assert first.json()["settings"] == {**DEFAULTS, "memoryEnabled": False}
        changed = await service.dashboard.patch(path, json={"name": "Shop", "settings": wanted})
    async with running(tmp_path) as service:
        kept = (await service.dashboard.get(path)).json()
        assert kept == changed.json()
        assert (kept["name"], kept["settings"]) == (
            "Shop",
            {**wanted, "primaryLanguage": "pt-BR", "languages": ["en", "pt-BR", "zh-Hant-TW"]},
        )


@pytest.mark.parametrize(
    ("settings", "pointers"),
    [
        ({"memoryEnabled": None}, ["/settings/memoryEnabled"]),
        (
            {"languages": None, "uploadQuotaBytes": None},
            ["/settings/languages", "/settings/uploadQuotaBytes"],
        ),
        ({"languages": []}, ["/settings/languages"]),
        ({"languages": ["de"]}, ["/settings/primaryLanguage"]),
        ({"primaryLanguage": "de"}, ["/settings/primaryLanguage"]),
        ({"languages": ["en", "EN", "e_n"]}, ["/settings/languages/1", "/settings/languages/2"]),
        ({"primaryLanguage": "english please"}, ["/settings/primaryLanguage"]),
        (
            {"archivedRetentionDays": 0, "uploadQuotaBytes": -1},
            ["/settings/archivedRetentionDays", "/settings/uploadQuotaBytes"],
        ),
        ({"colour": "red"}, ["/settings/colour"]),
    ],
)
async def test_everything_wrong_with_settings_is_named_and_nothing_changes(
    service: Service, settings: dict[str, Any], pointers: list[str]
) -> None:
    path = f"/projects/{service.demo['projectId']}"
    before = (await service.dashboard.get(path)).json()
    for answer in (
        await service.dashboard.patch(path, json={"name": "Changed", "settings": settings}),
        await make(service, settings=settings),
    ):
        assert code(answer) == (422, "invalid_input")
        assert [each["pointer"] for each in answer.json()["errors"]] == pointers
    assert (await service.dashboard.get(path)).json() == before
    assert len((await service.dashboard.get("/projects")).json()["items"]) == 1


@pytest.mark.parametrize(("role", "may"), [("viewer", False), ("agent", False), ("admin", True)])
async def test_only_owners_and_admins_manage_projects_and_keys(
    service: Service, role: str, may: bool
) -> None:
    project, organisation = service.demo["projectId"], await organisation_of(service)
    async with person(service, role) as someone:
        calls = (
            await someone.http.post(f"/organisations/{organisation}/projects", json={"name": "Bank"}),
            await someone.http.patch(f"/projects/{project}", json={"name": "Shop"}),
            await someone.http.get(f"/projects/{project}/keys"),
            await someone.http.post(f"/projects/{project}/keys", json={"label": "mine"}),
        )
        assert [call.status_code for call in calls] == [200 if may else 403] * 4, [
            call.text for call in calls
        ]
        assert (await someone.http.get(f"/projects/{project}")).status_code == 200


async def test_a_project_is_removed_only_while_it_holds_nothing(service: Service) -> None:
    made = (await make(service)).json()
    keys = f"/projects/{made['id']}/keys"
    key = (await service.dashboard.post(keys, json={"label": "first"})).json()["key"]
    headers = {"Authorization": f"Bearer {key}"}
    assert (await service.http.get("/s2s/project", headers=headers)).json()["id"] == made["id"]
    assert (await service.dashboard.delete(f"/projects/{made['id']}")).json() == {
        "id": made["id"],
        "deleted": True,
    }
    assert code(await service.dashboard.get(f"/projects/{made['id']}")) == (404, "project_not_found")
    assert code(await service.http.get("/s2s/project", headers=headers)) == (401, "revoked_server_key")
    assert len((await service.dashboard.get("/projects")).json()["items"]) == 1

    await service.http.put("/s2s/contacts/u1", json={"name": "Ada"})
    used = await service.dashboard.delete(f"/projects/{service.demo['projectId']}")
    assert code(used) == (409, "project_not_empty")
    assert (await service.http.get("/s2s/project")).status_code == 200


async def test_new_key_works_at_once_and_a_revoked_one_no_longer_does(service: Service) -> None:
    keys = f"/projects/{service.demo['projectId']}/keys"
    made = (await service.dashboard.post(keys, json={"label": "backend"})).json()
    assert made.keys() == {
        "id",
        "projectId",
        "label",
        "key",
        "createdAt",
        "lastUsedAt",
        "expiresAt",
        "revokedAt",
    }
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert (await service.http.get("/s2s/project", headers=headers)).status_code == 200
    listed = await service.dashboard.get(keys)
    assert made["key"] not in listed.text
    newest, demo = listed.json()["items"]
    assert (newest["id"], newest["key"], demo["label"]) == (made["id"], f"sk_…{made['key'][-4:]}", "demo")
    assert newest["lastUsedAt"] is not None
    revoked = (await service.dashboard.post(f"{keys}/{made['id']}/revoke")).json()
    assert code(await service.http.get("/s2s/project", headers=headers)) == (401, "revoked_server_key")
    assert (await service.dashboard.post(f"{keys}/{made['id']}/revoke")).json() == revoked
    assert (await service.http.get("/s2s/project")).status_code == 200


async def test_the_key_of_another_project_cannot_be_revoked_through_this_one(service: Service) -> None:
    made = (await make(service)).json()
    keys = f"/projects/{service.demo['projectId']}/keys"
    (demo,) = (await service.dashboard.get(keys)).json()["items"]
    foreign = await service.dashboard.post(f"/projects/{made['id']}/keys/{demo['id']}/revoke")
    assert code(foreign) == (404, "key_not_found")
    assert (await service.http.get("/s2s/project")).status_code == 200


async def test_a_project_has_a_hundred_keys_in_force_at_most(service: Service) -> None:
    keys = f"/projects/{service.demo['projectId']}/keys"
    made = [(await service.dashboard.post(keys, json={"label": f"{n}"})).json() for n in range(99)]
    assert code(await service.dashboard.post(keys, json={"label": "x"})) == (409, "key_limit_reached")
    await service.dashboard.post(f"{keys}/{made[0]['id']}/revoke")
    assert (await service.dashboard.post(keys, json={"label": "x"})).status_code == 200
    seen: list[str] = []
    cursor: str | None = None
    while cursor is not None or not seen:
        page = (
            await service.dashboard.get(keys, params={"limit": "40"} | ({"cursor": cursor} if cursor else {}))
        ).json()
        seen += [each["id"] for each in page["items"]]
        cursor = page["nextCursor"]
    assert len(seen) == len(set(seen)) == 101
    assert seen == sorted(seen, reverse=True)
