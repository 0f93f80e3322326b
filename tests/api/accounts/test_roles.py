"""Roles of an organisation's own: their permissions at every call, and who may give and change them (ADR 108)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from deskwire.engine.accounts import custom_roles
from deskwire.engine.accounts.people import PERMISSIONS
from deskwire.http.app import ROUTES
from deskwire.http.description.permissions import MEANINGS
from tests.support.api.agent_stream import page
from tests.support.api.links import invited
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, Person, client, code, hire, organisation_of, person, sign_in
from tests.support.deadlines import fail_after_idle
from tests.support.sockets.admin_socket import operate

LEAD = ("conversations.read", "conversations.reply", "members.manage", "tickets.read")


async def roles_path(service: Service) -> str:
    return f"/organisations/{await organisation_of(service)}/roles"


async def create(
    service: Service, name: str = "Lead", permissions: Sequence[str] = LEAD, **fields: str
) -> dict[str, str]:
    """Create a role as the owner, and return it."""
    body = {"name": name, "permissions": permissions, **fields}
    answer = await service.dashboard.post(await roles_path(service), json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, str] = answer.json()
    return made


@asynccontextmanager
async def member_with(
    service: Service, permissions: Sequence[str], name: str = "Lead"
) -> AsyncIterator[tuple[Person, str]]:
    """Yield a new member with a new role, and the id of the role."""
    role = (await create(service, name, permissions))["id"]
    hired = await hire(service, role, f"{role.lower()}@example.com")
    token = (await sign_in(service, hired["email"], hired["password"], PASSWORD)).json()["token"]
    async with client(service, token) as http:
        http.headers["project"] = service.demo["projectId"]
        yield Person(hired["id"], hired["email"], token, http), role


async def test_a_role_is_created_listed_changed_and_deleted(service: Service) -> None:
    path = await roles_path(service)
    made = await create(service, description="Agents who also manage members.")
    assert made == {
        "id": made["id"],
        "name": "Lead",
        "description": "Agents who also manage members.",
        "permissions": sorted(LEAD),
        "builtIn": False,
        "members": 0,
    }
    listed = (await service.dashboard.get(path)).json()["items"]
    assert [each["id"] for each in listed] == ["owner", "admin", "agent", "viewer", made["id"]]
    assert [each["members"] for each in listed] == [1, 0, 0, 0, 0]
    for each in listed[:4]:
        assert (each["builtIn"], each["permissions"]) == (True, sorted(PERMISSIONS[each["id"]]))
    changed = await service.dashboard.patch(f"{path}/{made['id']}", json={"name": "Head"})
    assert changed.json() == {**made, "name": "Head"}
    assert (await service.dashboard.get(f"{path}/{made['id']}")).json() == {**made, "name": "Head"}
    assert (await service.dashboard.delete(f"{path}/{made['id']}")).json()["deleted"]
    assert code(await service.dashboard.get(f"{path}/{made['id']}")) == (404, "role_not_found")


async def test_roles_are_listed_page_by_page(service: Service) -> None:
    path, seen, cursor = await roles_path(service), [], None
    for number in range(2):
        await create(service, f"Role {number}")
    while True:
        params = {"limit": "4"} | ({"cursor": cursor} if cursor else {})
        listed = (await service.dashboard.get(path, params=params)).json()
        seen += [each["name"] for each in listed["items"]]
        cursor = listed["nextCursor"]
        if cursor is None:
            break
    assert seen == ["Owner", "Admin", "Agent", "Viewer", "Role 0", "Role 1"]


async def test_names_are_unique_in_folded_form_built_in_ones_included(service: Service) -> None:
    path = await roles_path(service)
    made = await create(service)
    other = await create(service, "Other")
    for name in ("LEAD", "owner", "Viewer"):
        taken = await service.dashboard.post(path, json={"name": name, "permissions": []})
        assert code(taken) == (409, "role_name_taken")
        renamed = await service.dashboard.patch(f"{path}/{other['id']}", json={"name": name})
        assert code(renamed) == (409, "role_name_taken")
    assert (await service.dashboard.patch(f"{path}/{made['id']}", json={"name": "lead"})).status_code == 200


async def test_built_in_roles_stay(service: Service) -> None:
    path = await roles_path(service)
    for role in PERMISSIONS:
        changed = await service.dashboard.patch(f"{path}/{role}", json={"permissions": []})
        assert code(changed) == (409, "role_built_in")
        assert code(await service.dashboard.delete(f"{path}/{role}")) == (409, "role_built_in")


async def test_every_problem_of_a_body_is_named(service: Service) -> None:
    path = await roles_path(service)
    body = {"name": " ", "description": 4, "permissions": ["tickets.read", "tickets.read"], "more": 1}
    refused = await service.dashboard.post(path, json=body)
    assert refused.status_code == 422
    assert {each["pointer"] for each in refused.json()["errors"]} == {
        "/name",
        "/description",
        "/permissions",
        "/more",
    }
    unknown = await service.dashboard.post(path, json={"name": "x", "permissions": ["everything"]})
    assert [each["code"] for each in unknown.json()["errors"]] == ["invalid"]
    members = path.replace("roles", "members")
    both = await service.dashboard.post(members, json={"email": "nobody", "role": "rol_none"})
    assert [(each["pointer"], each["code"]) for each in both.json()["errors"]] == [
        ("/email", "invalid"),
        ("/role", "unknown"),
    ]


async def test_role_that_an_invitation_gives_is_not_deleted(service: Service) -> None:
    role = (await create(service, "Desk", ["tickets.read"]))["id"]
    invitation = await invited(service, role=role)
    path = f"{await roles_path(service)}/{role}"
    assert code(await service.dashboard.delete(path)) == (409, "role_in_use")
    invitations = path.replace(f"roles/{role}", "invitations")
    (await service.dashboard.delete(f"{invitations}/{invitation['id']}")).raise_for_status()
    assert (await service.dashboard.delete(path)).status_code == 200


async def test_role_without_reading_shows_no_contact_after_a_change(service: Service) -> None:
    contact = {"userId": "u1", "name": "Ada", "email": "ada@example.com"}
    body = {"contact": contact, "message": {"text": "Hello"}}
    made = (await service.http.post("/s2s/conversations", json=body)).json()
    async with member_with(service, ["conversations.manage"]) as (lead, _):
        changed = await lead.http.patch(f"/conversations/{made['id']}", json={"title": "Parcel"})
        assert changed.status_code == 200, changed.text
        assert "ada" not in changed.text.lower()
        assert changed.json()["contact"]["userId"] == "u1"


async def test_an_organisation_has_a_limited_number_of_roles(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(custom_roles, "ROLES_MAX", 2)
    for number in range(2):
        await create(service, f"Role {number}")
    refused = await service.dashboard.post(await roles_path(service), json={"name": "x", "permissions": []})
    assert code(refused) == (409, "role_limit_reached")


async def test_a_repeated_creation_makes_one_role(service: Service) -> None:
    path, headers = await roles_path(service), {"Idempotency-Key": "r1"}
    body = {"name": "Lead", "permissions": ["tickets.read"]}
    first = await service.dashboard.post(path, json=body, headers=headers)
    again = await service.dashboard.post(path, json=body, headers=headers)
    assert (again.status_code, again.json()) == (200, first.json())
    await service.dashboard.delete(f"{path}/{first.json()['id']}")
    erased = await service.dashboard.post(path, json=body, headers=headers)
    assert erased.status_code == 410, "the kept answer is removed with the role"


async def test_members_have_the_permissions_of_their_role_and_no_others(service: Service) -> None:
    async with member_with(service, ("tickets.read",)) as (member, role):
        shown = (await member.http.get("/users/me/permissions")).json()
        assert shown == {"permissions": ["tickets.read"], "roles": [role]}
        assert (await member.http.get("/tickets")).status_code == 200
        for path in ("/conversations", "/contacts", "/engagement/surveys"):
            assert code(await member.http.get(path)) == (403, "permission_denied")
        (organisation,) = (await member.http.get("/organisations")).json()["items"]
        assert organisation["role"] == role


async def test_operator_sees_members_with_roles_of_their_own(service: Service) -> None:
    async with member_with(service, ("tickets.read",)) as (member, role):
        (membership,) = (await operate(service, "user.show", user=member.id))["memberships"]
        assert (membership["role"], membership["roleName"] != role) == (role, True)


async def test_a_changed_role_holds_from_the_next_call_and_ends_streams(service: Service) -> None:
    path = await roles_path(service)
    async with member_with(service, ("conversations.read", "tickets.read")) as (member, role):
        async with page(member.http) as desk:
            narrowed = await service.dashboard.patch(f"{path}/{role}", json={"name": "Reader"})
            assert narrowed.status_code == 200
            shown = await desk.event()
            assert (shown["type"], shown["data"]) == ("settings.changed", {"what": "roles", "id": role})
            body = {"permissions": ["tickets.read"]}
            assert (await service.dashboard.patch(f"{path}/{role}", json=body)).status_code == 200
            with fail_after_idle(2):
                assert await desk.bye() == "permission_lost"
        assert code(await member.http.get("/conversations")) == (403, "permission_denied")
        assert code(await member.http.get("/stream")) == (403, "permission_denied")
        widened = {"permissions": ["conversations.read"]}
        assert (await service.dashboard.patch(f"{path}/{role}", json=widened)).status_code == 200
        assert (await member.http.get("/conversations")).status_code == 200
        assert code(await member.http.get("/tickets")) == (403, "permission_denied")


async def test_a_role_with_members_can_not_be_deleted(service: Service) -> None:
    path = await roles_path(service)
    async with member_with(service, ("tickets.read",)) as (member, role):
        assert code(await service.dashboard.delete(f"{path}/{role}")) == (409, "role_in_use")
        members = path.replace("roles", "members")
        await service.dashboard.patch(f"{members}/{member.id}", json={"role": "viewer"})
        assert (await service.dashboard.delete(f"{path}/{role}")).status_code == 200
        gone = await service.dashboard.patch(f"{members}/{member.id}", json={"role": role})
        assert [each["code"] for each in gone.json()["errors"]] == ["unknown"]


async def test_roles_of_another_organisation_are_unknown(service: Service) -> None:
    other = await operate(service, "org.create", name="Elsewhere")
    email = "boss@elsewhere.example"
    user = await operate(service, "user.create", email=email, organisation="Elsewhere", role="owner")
    token = (await operate(service, "token.create", user=user["id"], ttlS=3600))["token"]
    made = await create(service)
    async with client(service, token) as boss:
        theirs = f"/organisations/{other['id']}"
        assert code(await boss.get(f"{theirs}/roles/{made['id']}")) == (404, "role_not_found")
        assert code(await boss.patch(f"{theirs}/roles/{made['id']}", json={"name": "x"}))[0] == 404
        assert code(await boss.delete(f"{theirs}/roles/{made['id']}")) == (404, "role_not_found")
        body = {"email": "x@elsewhere.example", "role": made["id"]}
        assert (await boss.post(f"{theirs}/members", json=body)).status_code == 422
        assert code(await boss.get(await roles_path(service))) == (404, "organisation_not_found")


async def refused_for(answers: Sequence[httpx.Response], *names: str) -> None:
    """Check that each answer refuses the permissions with these names."""
    for answer in answers:
        assert code(answer) == (403, "permission_not_held"), answer.text
        for name in names:
            assert name in answer.json()["detail"]


async def test_nobody_gives_a_permission_that_it_does_not_have(service: Service) -> None:
    path = await roles_path(service)
    members = path.replace("roles", "members")
    wider = (await create(service, "Wider", (*LEAD, "surveys.manage")))["id"]
    other = await hire(service, (await create(service, "Narrow", ("tickets.read",)))["id"], "n@example.com")
    async with member_with(service, LEAD) as (lead, own):
        await refused_for(
            (
                await lead.http.post(path, json={"name": "x", "permissions": [*LEAD, "surveys.manage"]}),
                await lead.http.patch(f"{path}/{own}", json={"permissions": [*LEAD, "surveys.manage"]}),
                await lead.http.patch(f"{path}/{wider}", json={"permissions": ["tickets.read"]}),
                await lead.http.delete(f"{path}/{wider}"),
                await lead.http.post(members, json={"email": "new@example.com", "role": wider}),
                await lead.http.patch(f"{members}/{other['id']}", json={"role": wider}),
                await lead.http.patch(f"{members}/{lead.id}", json={"role": wider}),
            ),
            "surveys.manage",
        )
        for role in ("admin", "agent"):
            refused = await lead.http.patch(f"{members}/{lead.id}", json={"role": role})
            assert code(refused) == (403, "permission_not_held")
        owner = await lead.http.patch(f"{members}/{lead.id}", json={"role": "owner"})
        assert code(owner) == (403, "owner_protected")
        narrower = await lead.http.post(path, json={"name": "Mine", "permissions": ["tickets.read"]})
        assert narrower.status_code == 200
        given = await lead.http.patch(f"{members}/{other['id']}", json={"role": narrower.json()["id"]})
        assert given.status_code == 200
        assert (await lead.http.get("/users/me/permissions")).json()["permissions"] == sorted(LEAD)


async def test_accounts_with_more_permissions_are_out_of_reach(service: Service) -> None:
    members = (await roles_path(service)).replace("roles", "members")
    async with person(service, "admin") as admin, member_with(service, LEAD) as (lead, _):
        tokens = (await lead.http.get(f"{members}/{admin.id}/tokens")).json()["items"]
        await refused_for(
            (
                await lead.http.post(f"{members}/{admin.id}/password"),
                await lead.http.delete(f"{members}/{admin.id}/sessions"),
                await lead.http.delete(f"{members}/{admin.id}/tokens/{tokens[0]['id']}"),
                await lead.http.patch(f"{members}/{admin.id}", json={"role": "viewer"}),
                await lead.http.delete(f"{members}/{admin.id}"),
            ),
            "contacts.read",
        )
        assert (await admin.http.get("/users/me")).status_code == 200
        assert (await admin.http.post(f"{members}/{lead.id}/password")).status_code == 200


async def test_a_server_key_needs_every_permission_of_its_creator(service: Service) -> None:
    keys = f"/projects/{service.demo['projectId']}/keys"
    async with member_with(service, ("projects.manage",)) as (member, _):
        refused = await member.http.post(keys, json={"label": "CRM"})
        assert code(refused) == (403, "permission_denied")
        assert "conversations.read" in refused.json()["detail"]
    async with person(service, "admin") as admin:
        assert (await admin.http.post(keys, json={"label": "CRM"})).status_code == 200


async def test_work_is_given_to_members_who_can_reply(service: Service) -> None:
    conversation, members = await service.create(), (await roles_path(service)).replace("roles", "members")
    path = f"/conversations/{conversation['id']}/assign"
    async with (
        member_with(service, ("conversations.read", "conversations.reply"), "Writer") as (writer, _),
        member_with(service, ("conversations.read", "conversations.manage"), "Sorter") as (sorter, _),
    ):
        listed = (await service.dashboard.get(members)).json()["items"]
        assert {each["id"]: each["assignable"] for each in listed}[writer.id]
        assert not {each["id"]: each["assignable"] for each in listed}[sorter.id]
        for who, status in ((writer, 200), (sorter, 422)):
            given = await service.dashboard.post(path, json={"assignee": {"type": "user", "id": who.id}})
            assert given.status_code == status, given.text
        assert [each["code"] for each in given.json()["errors"]] == ["viewer"]


async def test_the_operator_gives_roles_by_id_or_name(service: Service) -> None:
    made = await create(service, "Support lead", ("tickets.read",))
    added = await operate(service, "user.create", email="a@example.com", role="support LEAD")
    assert [(each["role"], each["roleName"]) for each in added["memberships"]] == [
        (made["id"], "Support lead")
    ]
    for role in ("agent", made["id"]):
        assert (await operate(service, "user.role", user="a@example.com", role=role))["role"] == role


async def test_permissions_are_listed_with_the_calls_that_they_open(service: Service) -> None:
    table = (await service.dashboard.get("/permissions")).json()["permissions"]
    assert {each["id"] for each in table} == PERMISSIONS["owner"]
    opened = {(each["id"], operation["operationId"]) for each in table for operation in each["operations"]}
    assert opened == {
        (permission, route.operation_id) for route in ROUTES for permission in route.access.permissions
    }
    assert all(each["operations"] for each in table)
    assert MEANINGS.keys() == PERMISSIONS["owner"]


async def test_roles_survive_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        made = await create(service)
    async with running(tmp_path) as service:
        answer = await service.dashboard.get(f"{await roles_path(service)}/{made['id']}")
        assert answer.json() == made
