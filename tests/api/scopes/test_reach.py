"""Calls that reach objects of another permission: they need that permission, too, or leave the objects out (ADR 70)."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest

from tests.api.accounts.test_machine_credentials import code
from tests.support.api.machines import make, showing
from tests.support.api.service import Service

ADA = {"userId": "ada", "name": "Ada", "email": "ada@example.org", "phone": "+4930123456"}
IMPORTS = ("conversations.manage", "conversations.reply", "projects.manage")


async def contact(service: Service) -> dict[str, Any]:
    found: dict[str, Any] = (await service.http.get("/s2s/contacts/ada")).json()
    return found


async def owner_id(service: Service) -> str:
    return str((await service.dashboard.get("/users/me")).json()["id"])


async def lines(http: httpx.AsyncClient, *records: dict[str, Any]) -> httpx.Response:
    body = b"\n".join(orjson.dumps(each) for each in records)
    return await http.post("/s2s/import", content=body, headers={"Content-Type": "application/x-ndjson"})


async def test_credential_for_replies_changes_no_contact_and_sees_only_its_ids(service: Service) -> None:
    await service.http.put("/s2s/contacts/ada", json={k: v for k, v in ADA.items() if k != "userId"})
    before = await contact(service)
    async with showing(service, (await make(service, ("conversations.reply",)))["secret"]) as http:
        others = {
            "name": "Mallory",
            "email": "m@example.org",
            "phone": "+49301",
            "avatar": "https://example.org/m",
        }
        for field, other in others.items():
            for value in (other, None):
                body = {"contact": {"userId": "ada", field: value}}
                refused = await http.post("/s2s/conversations", json=body)
                assert code(refused) == (403, "permission_denied"), (field, value)
                assert "contacts.manage" in refused.json()["detail"]
        same = {"contact": {"userId": "ada", "email": "ada@example.org"}}
        assert (await http.post("/s2s/conversations", json=same)).status_code == 403, "no guess is confirmed"
        started = (await http.post("/s2s/conversations", json={"contact": {"userId": "ada"}})).json()
        assert started["contact"] == {"id": before["id"], "userId": "ada", "name": None, "email": None}
        new = {"contact": {"userId": "eve", "name": "Eve"}}
        assert (await http.post("/s2s/conversations", json=new)).status_code == 200
        rated = await http.post(f"/s2s/conversations/{started['id']}/rating", json={"rating": 9})
        assert rated.status_code == 200
    assert await contact(service) == before
    assert (await service.http.get("/s2s/contacts/eve")).json()["name"] == "Eve"


@pytest.mark.parametrize("permission", ["contacts.read", "conversations.read"])
async def test_credential_for_reading_sees_the_contact(service: Service, permission: str) -> None:
    await service.create("ada", title="Parcel")
    await service.http.patch("/s2s/contacts/ada", json={"email": "ada@example.org"})
    secret = (await make(service, ("conversations.reply", permission)))["secret"]
    async with showing(service, secret) as http:
        started = (await http.post("/s2s/conversations", json={"contact": {"userId": "ada"}})).json()
    assert started["contact"]["email"] == "ada@example.org"


async def test_a_server_key_changes_the_contact_and_is_shown_it_as_before(service: Service) -> None:
    await service.create("ada")
    answer = await service.http.post("/s2s/conversations", json={"contact": ADA})
    assert answer.json()["contact"]["email"] == "ada@example.org"
    assert (await contact(service))["name"] == "Ada"


async def test_repeated_start_is_answered_for_an_existing_contact(service: Service) -> None:
    secret = (await make(service, ("conversations.reply",)))["secret"]
    key = {"Idempotency-Key": "one"}
    async with showing(service, secret) as http:
        first = await http.post("/s2s/conversations", json={"contact": ADA}, headers=key)
        again = await http.post("/s2s/conversations", json={"contact": ADA}, headers=key)
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"


async def test_credential_for_survey_responses_changes_no_contact(service: Service) -> None:
    definition = {
        "schemaVersion": "2.0",
        "title": "T",
        "languages": ["en"],
        "primaryLanguage": "en",
        "questions": [{"id": "why", "type": "text", "title": {"en": "Why?"}}],
    }
    survey = (
        await service.dashboard.post("/engagement/surveys", json={"name": "S", "definition": definition})
    ).json()
    await service.http.put("/s2s/contacts/ada", json={"name": "Ada"})
    path = f"/s2s/surveys/{survey['id']}/responses"
    async with showing(service, (await make(service, ("surveys.manage",)))["secret"]) as http:
        renamed = {"contact": {"userId": "ada", "name": "Mallory"}, "answers": {"why": "x"}}
        assert code(await http.post(path, json=renamed)) == (403, "permission_denied")
        plain = {"contact": {"userId": "ada"}, "answers": {"why": "x"}}
        assert (await http.post(path, json=plain)).status_code == 200
    assert (await contact(service))["name"] == "Ada"


async def test_a_machine_writes_as_a_user_only_with_the_permission_to_manage_members(
    service: Service,
) -> None:
    conversation, user = await service.create("ada"), await owner_id(service)
    path = f"/s2s/conversations/{conversation['id']}/messages"
    body = {"text": "Hi", "author": {"type": "agent", "id": user}}
    async with showing(service, (await make(service, ("conversations.reply",)))["secret"]) as http:
        refused = await http.post(path, json=body)
        assert code(refused) == (403, "permission_denied")
        assert "members.manage" in refused.json()["detail"]
        started = {"contact": {"userId": "eve"}, "message": body}
        assert code(await http.post("/s2s/conversations", json=started)) == (403, "permission_denied")
        named = {"text": "Hi", "author": {"type": "agent", "name": "Help desk"}}
        assert (await http.post(path, json=named)).json()["author"]["id"] is None
    strong = ("conversations.reply", "members.manage")
    async with showing(service, (await make(service, strong))["secret"]) as http:
        assert (await http.post(path, json=body)).json()["author"]["id"] == user
    assert (await service.http.post(path, json=body)).json()["author"]["id"] == user


async def test_an_import_needs_the_rights_to_write_and_to_manage_and_names_no_user(service: Service) -> None:
    user = await owner_id(service)
    at = "2024-01-01T00:00:00Z"
    start = {"type": "conversation", "externalId": "c", "contact": {"userId": "ada"}, "createdAt": at}
    said = {"type": "message", "externalId": "m", "conversation": "c", "text": "Hi", "createdAt": at}
    as_user = {**said, "author": {"type": "agent", "id": user}}
    nameless = {**said, "externalId": "n", "author": {"type": "agent", "name": "Grace"}}
    for left in IMPORTS:
        weak = await make(service, {*IMPORTS} - {left})
        async with showing(service, weak["secret"]) as http:
            refused = await lines(http, start)
            assert code(refused) == (403, "permission_denied")
            assert left in refused.json()["detail"]
            assert code(await http.get("/s2s/import/conversation", params={"externalId": "c"}))[0] == 403
    async with showing(service, (await make(service, IMPORTS))["secret"]) as http:
        report = (await lines(http, start, as_user, nameless)).json()
    assert report["imported"] == {"conversations": 1, "messages": 1}
    (refusal,) = report["refusals"]
    assert (refusal["line"], refusal["errors"][0]["pointer"]) == (2, "/author/id")
    assert (refusal["errors"][0]["code"], "members.manage" in refusal["errors"][0]["message"]) == (
        "not_allowed",
        True,
    )
    strong = await make(service, (*IMPORTS, "members.manage"))
    async with showing(service, strong["secret"]) as http:
        assert (await lines(http, as_user)).json()["imported"]["messages"] == 1


async def test_a_setting_that_deletes_conversations_needs_the_right_to_delete_them(service: Service) -> None:
    path = f"/projects/{service.demo['projectId']}"
    async with showing(service, (await make(service, ("projects.manage",)))["secret"]) as http:
        for days in (1, None):
            refused = await http.patch(path, json={"settings": {"archivedRetentionDays": days}})
            assert code(refused) == (403, "permission_denied")
            assert "conversations.delete" in refused.json()["detail"]
        assert (await http.patch(path, json={"settings": {"memoryEnabled": False}})).status_code == 200
    strong = ("conversations.delete", "projects.manage")
    async with showing(service, (await make(service, strong))["secret"]) as http:
        changed = await http.patch(path, json={"settings": {"archivedRetentionDays": 30}})
    assert changed.json()["settings"]["archivedRetentionDays"] == 30


async def test_a_feed_needs_for_each_type_the_right_to_read_it(service: Service) -> None:
    await service.create("ada")
    async with showing(service, (await make(service, ("conversations.read",)))["secret"]) as http:
        assert (await http.get("/s2s/events", params={"types": "message.created"})).status_code == 200
        for name in ("ticket.created", "survey.deleted", "contact.changed", "webhook.disabled"):
            assert code(await http.get("/s2s/events", params={"types": name})) == (403, "permission_denied")
