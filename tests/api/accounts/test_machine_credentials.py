"""Machine credentials through the wire: made, used, changed, rotated, revoked (ADR 70)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import pytest
import trio

from deskwire.engine.accounts.machines import EVERY_PERMISSION
from deskwire.engine.core.clock import wall_clock
from deskwire.storage.sqlite.check import check
from deskwire.storage.sqlite.directory import FILE_NAME
from tests.support.api.machines import credentials_of, make, showing
from tests.support.api.service import Service
from tests.support.api.staff import organisation_of, person
from tests.support.deadlines import HANG_TIMEOUT_S

READ_A_CONTACT = (
    "contacts.manage",
    "contacts.read",
    "conversations.read",
    "memory.read",
    "surveys.read",
    "tickets.read",
)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def in_seconds(seconds: float) -> str:
    then = datetime.now(UTC) + timedelta(seconds=seconds)
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def records(service: Service, **params: str) -> list[dict[str, Any]]:
    path = f"/organisations/{await organisation_of(service)}/audit"
    items: list[dict[str, Any]] = (await service.dashboard.get(path, params=params)).json()["items"]
    return items


async def test_the_secret_is_shown_once_and_everything_else_masks_it(service: Service) -> None:
    made = await make(service, ("tickets.read",), name="CRM", expiresAt=in_seconds(3600))
    masked = {**made, "secret": f"mk_…{made['secret'][-4:]}"}
    path = credentials_of(service)
    assert (await service.dashboard.get(f"{path}/{made['id']}")).json() == masked
    assert (await service.dashboard.get(path)).json()["items"] == [masked]
    owner = (await service.dashboard.get("/users/me")).json()["id"]
    assert (made["permissions"], made["createdBy"]) == (
        ["tickets.read"],
        {"type": "user", "id": owner, "state": "active"},
    )
    assert (made["lastUsedAt"], made["revokedAt"], made["previousExpiresAt"]) == (None, None, None)


async def test_a_repeated_request_does_not_show_the_secret_again(service: Service) -> None:
    path, body = credentials_of(service), {"name": "CRM", "permissions": ["tickets.read"]}
    key = {"Idempotency-Key": "crm-1"}
    first = (await service.dashboard.post(path, json=body, headers=key)).json()
    again = await service.dashboard.post(path, json=body, headers=key)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == {**first, "secret": f"mk_…{first['secret'][-4:]}"}
    rotate = f"{path}/{first['id']}/rotate"
    key = {"Idempotency-Key": "crm-2"}
    rotated = (await service.dashboard.post(rotate, json={}, headers=key)).json()
    again = await service.dashboard.post(rotate, json={}, headers=key)
    assert again.json() == {**rotated, "secret": f"mk_…{rotated['secret'][-4:]}"}
    async with showing(service, rotated["secret"]) as backend:
        assert (await backend.get("/tickets")).status_code == 200


async def test_backend_uses_the_agents_features_and_is_named_as_their_actor(service: Service) -> None:
    """Tickets, translations, memory, surveys and workflows (contract 4.1, 4.2, 4.6, 4.7)."""
    made, conversation = await make(service), await service.create("u1")
    async with showing(service, made["secret"]) as backend:
        ticket = (await backend.post("/tickets", json={"title": "Late parcel"})).json()
        await backend.patch(f"/tickets/{ticket['id']}", json={"conversationId": conversation["id"]})
        entries = (await backend.get(f"/tickets/{ticket['id']}/activity")).json()["items"]
        signed = {"type": "machine", "id": made["id"], "name": "CRM"}
        assert [each["actor"] for each in entries] == [signed, signed]
        told = (await backend.get(f"/conversations/{conversation['id']}/activity")).json()["items"]
        assert (told[0]["action"], told[0]["actor"]) == ("changed", signed)
        contact = conversation["contact"]["id"]
        kept = await backend.post(f"/sessions/{contact}/memory", json={"name": "size", "content": "43"})
        assert kept.status_code == 200, kept.text
        entry = await backend.put(
            "/translations/entries/statictranslation:hello",
            json={"language": "en", "fields": {"text": "Hi"}},
        )
        assert entry.status_code == 200, entry.text
        assert (await backend.get("/workflows")).status_code == 200
        assert (await backend.get("/engagement/surveys")).status_code == 200
        closed = (await backend.post(f"/conversations/{conversation['id']}/close")).json()
        assert closed["closed"] is True
        assert (await backend.get("/users/me/permissions")).json() == {
            "permissions": sorted(EVERY_PERMISSION),
            "roles": [],
        }


async def test_project_header_may_be_left_out_or_name_the_machines_own_project(service: Service) -> None:
    async with showing(service, (await make(service))["secret"]) as backend:
        ours = {"project": service.demo["projectId"]}
        assert (await backend.get("/tickets")).status_code == 200
        assert (await backend.get("/tickets", headers=ours)).status_code == 200
        other = await backend.get("/tickets", headers={"project": "prj_01KZ000000000000000000SH0P"})
        assert code(other) == (404, "project_not_found")


async def test_the_machine_of_one_project_is_counted_as_that_project_is(service: Service) -> None:
    async with showing(service, (await make(service))["secret"]) as backend:
        left = int((await backend.get("/tickets")).headers["RateLimit-Remaining"])
        by_key = int((await service.http.get("/s2s/project")).headers["RateLimit-Remaining"])
        assert by_key < left + 2, "both take from what the project has"
        assert by_key < 10_000_000


async def test_repeated_requests_are_known_by_the_credential_and_not_by_its_secret(service: Service) -> None:
    first, second = await make(service), await make(service)
    body, key = {"title": "Late parcel"}, {"Idempotency-Key": "ticket-1"}
    rotate = f"{credentials_of(service)}/{first['id']}/rotate"
    async with showing(service, first["secret"]) as backend, showing(service, second["secret"]) as other:
        ticket = (await backend.post("/tickets", json=body, headers=key)).json()
        assert (await other.post("/tickets", json=body, headers=key)).json()["id"] != ticket["id"]
    rotated = (await service.dashboard.post(rotate, json={})).json()
    async with showing(service, rotated["secret"]) as backend:
        again = await backend.post("/tickets", json=body, headers=key)
        assert again.json() == ticket


async def test_both_secrets_work_until_the_overlap_of_a_rotation_is_over(service: Service) -> None:
    made = await make(service, ("tickets.read",))
    rotate = f"{credentials_of(service)}/{made['id']}/rotate"
    rotated = (await service.dashboard.post(rotate, json={"overlapSeconds": 60})).json()
    assert rotated["id"] == made["id"]
    assert rotated["secret"] != made["secret"]
    assert rotated["previousExpiresAt"] is not None
    async with showing(service, made["secret"]) as old, showing(service, rotated["secret"]) as new:
        assert [(await each.get("/tickets")).status_code for each in (old, new)] == [200, 200]
        last = (await service.dashboard.post(rotate, json={"overlapSeconds": 0})).json()
        assert last["previousExpiresAt"] is None
        assert code(await old.get("/tickets")) == (401, "invalid_machine_credential")
        assert code(await new.get("/tickets")) == (401, "rotated_machine_credential")
    async with showing(service, last["secret"]) as backend:
        assert (await backend.get("/tickets")).status_code == 200


async def test_a_revoked_credential_is_refused_at_once_and_stays_listed(service: Service) -> None:
    made = await make(service, ("tickets.read",))
    one = f"{credentials_of(service)}/{made['id']}"
    async with showing(service, made["secret"]) as backend:
        assert (await backend.get("/tickets")).status_code == 200
        revoked = (await service.dashboard.delete(one)).json()
        assert revoked["revokedAt"] is not None
        assert code(await backend.get("/tickets")) == (401, "revoked_machine_credential")
    assert (await service.dashboard.delete(one)).json()["revokedAt"] == revoked["revokedAt"]
    assert [
        each["id"] for each in (await service.dashboard.get(credentials_of(service))).json()["items"]
    ] == [made["id"]]
    for method, path, body in (("PATCH", one, {"name": "x"}), ("POST", f"{one}/rotate", {})):
        assert code(await service.dashboard.request(method, path, json=body)) == (409, "credential_revoked")


async def test_a_change_takes_effect_with_the_next_call(service: Service) -> None:
    made = await make(service, ("tickets.read",))
    one = f"{credentials_of(service)}/{made['id']}"
    async with showing(service, made["secret"]) as backend:
        assert (await backend.get("/tickets")).status_code == 200
        changed = await service.dashboard.patch(one, json={"permissions": ["surveys.read"], "name": "BI"})
        assert (changed.json()["permissions"], changed.json()["name"]) == (["surveys.read"], "BI")
        assert code(await backend.get("/tickets")) == (403, "permission_denied")
        assert (await backend.get("/engagement/surveys")).status_code == 200
        ends = in_seconds(3600)
        assert (await service.dashboard.patch(one, json={"expiresAt": ends})).json()["expiresAt"] == ends
        assert (await service.dashboard.patch(one, json={"expiresAt": None})).json()["expiresAt"] is None


async def test_invalid_input_is_refused_with_all_its_problems(service: Service) -> None:
    body = {"name": "", "permissions": ["tickets.read", "all"], "expiresAt": "2020-01-01T00:00:00Z", "x": 1}
    answer = await service.dashboard.post(credentials_of(service), json=body)
    assert answer.status_code == 422
    told = {each["pointer"]: each["code"] for each in answer.json()["errors"]}
    assert told.keys() == {"/name", "/permissions/1", "/expiresAt", "/x"}
    one = f"{credentials_of(service)}/{(await make(service))['id']}"
    for patch in ({}, {"name": None}, {"permissions": ["tickets.read", "tickets.read"]}):
        assert (await service.dashboard.patch(one, json=patch)).status_code == 422, patch
    assert (
        await service.dashboard.post(f"{one}/rotate", json={"overlapSeconds": 604_801})
    ).status_code == 422


async def test_credential_gets_no_permission_that_its_creator_lacks(service: Service) -> None:
    strong = await make(service)
    manager = await make(service, ("projects.manage", "tickets.read"))
    path = credentials_of(service)
    async with showing(service, manager["secret"]) as backend:
        made = await backend.post(path, json={"name": "less", "permissions": ["tickets.read"]})
        assert made.status_code == 200, made.text
        assert made.json()["createdBy"] == {"type": "machine", "id": manager["id"], "state": "active"}
        more = await backend.post(path, json={"name": "more", "permissions": ["tickets.manage"]})
        assert code(more) == (403, "permission_denied")
        assert "tickets.manage" in more.json()["detail"]
        own = f"{path}/{manager['id']}"
        assert code(await backend.patch(own, json={"permissions": sorted(EVERY_PERMISSION)})) == (
            403,
            "permission_denied",
        )
        stronger = f"{path}/{strong['id']}"
        assert code(await backend.post(f"{stronger}/rotate", json={})) == (403, "permission_denied")
        assert code(await backend.patch(stronger, json={"name": "mine"})) == (403, "permission_denied")
        assert code(
            await backend.post(f"/projects/{service.demo['projectId']}/keys", json={"label": "all"})
        ) == (
            403,
            "person_required",
        )
        assert code(await backend.delete(stronger)) == (403, "permission_denied")
    async with person(service, "agent") as agent:
        assert code(await agent.http.get(path)) == (403, "permission_denied")


async def test_the_last_use_is_noted_once_a_minute_at_the_most(service: Service) -> None:
    made = await make(service, ("tickets.read",))
    one = f"{credentials_of(service)}/{made['id']}"
    before = wall_clock()
    async with showing(service, made["secret"]) as backend:
        await backend.get("/tickets")
        noted = (await service.dashboard.get(one)).json()["lastUsedAt"]
        await backend.get("/tickets")
    assert noted is not None
    assert datetime.fromisoformat(noted).timestamp() * 1000 >= before - 1000
    assert (await service.dashboard.get(one)).json()["lastUsedAt"] == noted


async def test_audit_trail_records_the_credentials_changes_and_its_actions(
    service: Service,
) -> None:
    await service.create("u1")
    made = await make(service, READ_A_CONTACT, name="Sync")
    one = f"{credentials_of(service)}/{made['id']}"
    await service.dashboard.patch(one, json={"name": "Mirror"})
    rotated = (await service.dashboard.post(f"{one}/rotate", json={})).json()
    async with showing(service, rotated["secret"]) as backend:
        assert (await backend.get("/s2s/contacts/u1/export")).status_code == 200
    await service.dashboard.delete(one)
    found = await records(service, object=made["id"])
    assert [each["action"] for each in reversed(found)] == [
        "credential.created",
        "credential.changed",
        "credential.rotated",
        "credential.revoked",
    ]
    assert {(each["object"]["type"], each["object"]["name"]) for each in found} == {
        ("machine_credential", "Mirror")
    }
    assert found[1]["details"] == {"overlapSeconds": 86_400}
    assert made["secret"] not in str(found)
    (export,) = await records(service, action="contact.exported")
    assert export["actor"] == {"type": "machine", "id": made["id"], "name": "Mirror"}
    assert [each["id"] for each in await records(service, actor="machine")] == [export["id"]]


async def test_an_erasure_needs_the_permission_to_delete_conversations_too(service: Service) -> None:
    await service.create("u1")
    weak = await make(service, ("contacts.manage",))
    async with showing(service, weak["secret"]) as backend:
        refused = await backend.delete("/s2s/contacts/u1")
        assert code(refused) == (403, "permission_denied")
        assert "conversations.delete" in refused.json()["detail"]
    strong = await make(service, ("contacts.manage", "conversations.delete"))
    async with showing(service, strong["secret"]) as backend:
        assert (await backend.delete("/s2s/contacts/u1")).status_code == 200


async def test_a_project_has_a_hundred_credentials_in_force_at_most(service: Service) -> None:
    made = [await make(service, ()) for _ in range(100)]
    path, body = credentials_of(service), {"name": "x", "permissions": []}
    assert code(await service.dashboard.post(path, json=body)) == (409, "credential_limit_reached")
    await service.dashboard.delete(f"{path}/{made[0]['id']}")
    assert (await service.dashboard.post(path, json=body)).status_code == 200
    listed, cursor = list[str](), None
    while cursor or not listed:
        params = {"limit": "40"} | ({"cursor": cursor} if cursor else {})
        page = (await service.dashboard.get(path, params=params)).json()
        listed += [each["id"] for each in page["items"]]
        cursor = page["nextCursor"]
    assert len(listed) == len(set(listed)) == 101


async def test_removed_project_revokes_its_credentials(service: Service) -> None:
    path = f"/organisations/{await organisation_of(service)}/projects"
    project = (await service.dashboard.post(path, json={"name": "Bank"})).json()["id"]
    made = await make(service, project=project)
    async with showing(service, made["secret"]) as backend:
        assert (await backend.get("/s2s/project")).json()["id"] == project
        assert (await service.dashboard.delete(f"/projects/{project}")).status_code == 200
        assert code(await backend.get("/s2s/project")) == (401, "revoked_machine_credential")


async def test_credential_expires_automatically(service: Service) -> None:
    made = await make(service, ("tickets.read",), expiresAt=in_seconds(0.6))
    async with showing(service, made["secret"]) as backend:
        with trio.fail_after(HANG_TIMEOUT_S):
            while (answer := await backend.get("/tickets")).status_code == 200:
                pass
        assert code(answer) == (401, "expired_machine_credential")


@pytest.mark.parametrize("state", ["demoted", "left", "active"])
async def test_credential_shows_the_present_state_of_its_creator(service: Service, state: str) -> None:
    """`deskwire check` and the desk's page name those whose maker has left or was demoted."""
    async with person(service, "admin") as admin:
        body = {"name": "CRM", "permissions": ["tickets.read", "projects.manage"]}
        made = await admin.http.post(credentials_of(service), json=body)
        assert made.status_code == 200, made.text
        assert made.json()["createdBy"] == {"type": "user", "id": admin.id, "state": "active"}
    member = f"/organisations/{await organisation_of(service)}/members/{admin.id}"
    if state == "left":
        assert (await service.dashboard.delete(member)).status_code == 200
    elif state == "demoted":
        assert (await service.dashboard.patch(member, json={"role": "agent"})).status_code == 200
    one = f"{credentials_of(service)}/{made.json()['id']}"
    maker = {"type": "user", "id": admin.id, "state": state}
    assert (await service.dashboard.get(one)).json()["createdBy"] == maker
    (listed,) = (await service.dashboard.get(credentials_of(service))).json()["items"]
    assert listed["createdBy"] == maker
    renamed = await service.dashboard.patch(one, json={"name": "The CRM"})
    assert renamed.json()["createdBy"] == maker
    rotated = await service.dashboard.post(f"{one}/rotate", json={})
    assert rotated.json()["createdBy"] == maker
    if (service.directory / FILE_NAME).exists():
        report = await trio.to_thread.run_sync(partial(check, service.directory, None, contents=False))
        found = [note for note in report.notes if made.json()["id"] in note]
        words = {"left": "has left the organisation", "demoted": "no longer has"}
        assert [words[state] in note for note in found] == ([] if state == "active" else [True])
    assert (await service.dashboard.delete(one)).json()["createdBy"] == maker
