"""Credentials made by a machine credential: no wider, no longer valid, and revoked together with it (ADR 70)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from deskwire.engine.audit.trail import ChangeOrigin
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from tests.api.accounts.test_machine_credentials import code, in_seconds, records
from tests.support.api.machines import credentials_of, make, showing
from tests.support.api.service import Service, running, tapping

MANAGER = ("conversations.read", "projects.manage", "tickets.read")


async def child_of(
    service: Service, secret: str, permissions: tuple[str, ...] = MANAGER, **fields: Any
) -> dict[str, Any]:
    async with showing(service, secret) as http:
        body = {"name": "Child", "permissions": [*permissions], **fields}
        answer = await http.post(credentials_of(service), json=body)
        assert answer.status_code == 200, answer.text
        made: dict[str, Any] = answer.json()
        return made


async def one(service: Service, machine: dict[str, Any]) -> dict[str, Any]:
    answer = await service.dashboard.get(f"{credentials_of(service)}/{machine['id']}")
    found: dict[str, Any] = answer.json()
    return found


async def change(service: Service, machine: dict[str, Any], **fields: Any) -> httpx.Response:
    return await service.dashboard.patch(f"{credentials_of(service)}/{machine['id']}", json=fields)


async def revoke(service: Service, machine: dict[str, Any]) -> None:
    answer = await service.dashboard.delete(f"{credentials_of(service)}/{machine['id']}")
    assert answer.status_code == 200, answer.text


async def test_revoking_a_parent_revokes_its_children_and_theirs_with_a_record_of_each(
    service: Service,
) -> None:
    parent = await make(service, MANAGER)
    child = await child_of(service, parent["secret"])
    grandchild = await child_of(service, child["secret"], ("tickets.read",))
    other = await make(service, MANAGER)
    await revoke(service, parent)
    for machine in (parent, child, grandchild):
        async with showing(service, machine["secret"]) as http:
            assert code(await http.get("/tickets")) == (401, "revoked_machine_credential")
    async with showing(service, other["secret"]) as http:
        assert (await http.get("/tickets")).status_code == 200
    revoked = [each["object"]["id"] for each in await records(service, action="credential.revoked")]
    assert sorted(revoked) == sorted(each["id"] for each in (parent, child, grandchild))


@pytest.mark.parametrize("wanted", [None, 7200])
async def test_a_child_ends_no_later_than_its_parent(service: Service, wanted: int | None) -> None:
    parent = await make(service, MANAGER, expiresAt=in_seconds(3600))
    ends = None if wanted is None else in_seconds(wanted)
    child = await child_of(service, parent["secret"], expiresAt=ends)
    assert child["expiresAt"] == parent["expiresAt"]
    grandchild = await child_of(service, child["secret"], ("tickets.read",))
    assert grandchild["expiresAt"] == parent["expiresAt"]


async def test_children_follow_their_parents_end_up_to_the_end_that_was_asked_for(service: Service) -> None:
    parent = await make(service, MANAGER, expiresAt=in_seconds(3600))
    bound = in_seconds(7200)
    child = await child_of(service, parent["secret"], expiresAt=bound)
    sooner, later = in_seconds(60), in_seconds(5000)
    await change(service, parent, expiresAt=sooner)
    assert (await one(service, child))["expiresAt"] == sooner
    await change(service, parent, expiresAt=later)
    assert (await one(service, child))["expiresAt"] == later
    await change(service, parent, expiresAt=None)
    assert (await one(service, child))["expiresAt"] == bound
    assert (await change(service, child, expiresAt=None)).json()["expiresAt"] is None
    await change(service, parent, expiresAt=sooner)
    assert (await change(service, child, expiresAt=None)).json()["expiresAt"] == sooner


async def test_children_lose_the_permissions_that_their_parent_loses(service: Service) -> None:
    parent = await make(service, MANAGER)
    child = await child_of(service, parent["secret"])
    grandchild = await child_of(service, child["secret"], ("tickets.read",))
    await change(service, parent, permissions=["conversations.read", "projects.manage"])
    assert (await one(service, child))["permissions"] == ["conversations.read", "projects.manage"]
    assert (await one(service, grandchild))["permissions"] == []
    async with showing(service, grandchild["secret"]) as http:
        assert code(await http.get("/tickets")) == (403, "permission_denied")
    refused = await change(service, child, permissions=["tickets.read"])
    assert refused.status_code == 422
    (problem,) = refused.json()["errors"]
    assert (problem["pointer"], problem["code"]) == ("/permissions", "beyond_maker")
    assert parent["id"] in problem["message"]


async def test_a_credential_can_change_its_name_and_secret_but_not_its_end(service: Service) -> None:
    machine = await make(service, MANAGER, expiresAt=in_seconds(3600))
    path = f"{credentials_of(service)}/{machine['id']}"
    async with showing(service, machine["secret"]) as http:
        for ends in (None, in_seconds(7200), in_seconds(60)):
            assert code(await http.patch(path, json={"expiresAt": ends})) == (403, "permission_denied")
        same = {"name": "Renamed", "expiresAt": machine["expiresAt"]}
        assert (await http.patch(path, json=same)).json()["name"] == "Renamed"
        rotated = (await http.post(f"{path}/rotate", json={})).json()
    assert rotated["expiresAt"] == machine["expiresAt"]
    async with showing(service, rotated["secret"]) as http:
        assert (await http.get("/tickets")).status_code == 200


@pytest.mark.parametrize("weaker", [(), ("tickets.read",), MANAGER])
async def test_credential_changes_and_rotates_only_itself_and_its_children(
    service: Service, weaker: tuple[str, ...]
) -> None:
    """Else its holder would keep the secret, or the rights, of a credential that outlives it."""
    machine, other = await make(service, MANAGER, expiresAt=in_seconds(600)), await make(service, weaker)
    child = await child_of(service, machine["secret"])
    async with showing(service, machine["secret"]) as http:
        path = f"{credentials_of(service)}/{other['id']}"
        assert code(await http.post(f"{path}/rotate", json={})) == (403, "permission_denied")
        assert code(await http.patch(path, json={"name": "mine"})) == (403, "permission_denied")
        path = f"{credentials_of(service)}/{child['id']}"
        assert (await http.post(f"{path}/rotate", json={})).status_code == 200
        assert (await http.patch(path, json={"name": "mine"})).status_code == 200
    async with showing(service, child["secret"]) as http:
        path = f"{credentials_of(service)}/{machine['id']}"
        assert code(await http.post(f"{path}/rotate", json={})) == (403, "permission_denied")
        assert code(await http.patch(path, json={"expiresAt": None})) == (403, "permission_denied")


async def test_a_credential_revokes_nothing_that_holds_more_and_anything_that_does_not(
    service: Service,
) -> None:
    machine = await make(service, MANAGER)
    strong, weak = await make(service), await make(service, ("tickets.read",))
    async with showing(service, machine["secret"]) as http:
        refused = await http.delete(f"{credentials_of(service)}/{strong['id']}")
        assert code(refused) == (403, "permission_denied")
        assert "members.manage" in refused.json()["detail"]
        assert (await http.delete(f"{credentials_of(service)}/{weak['id']}")).status_code == 200
    async with showing(service, strong["secret"]) as http:
        assert (await http.get("/tickets")).status_code == 200


async def test_a_server_key_is_revoked_by_a_credential_with_every_permission_alone(service: Service) -> None:
    keys = f"/projects/{service.demo['projectId']}/keys"
    key = (await service.dashboard.post(keys, json={"label": "Shop"})).json()
    machine, strong = await make(service, MANAGER), await make(service)
    async with showing(service, machine["secret"]) as http:
        assert code(await http.post(f"{keys}/{key['id']}/revoke")) == (403, "permission_denied")
    async with showing(service, strong["secret"]) as http:
        assert (await http.post(f"{keys}/{key['id']}/revoke")).status_code == 200


async def test_start_limits_older_credentials_to_their_creator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = tapping(monkeypatch)
    async with running(tmp_path) as service:
        parent, revoked = await make(service, MANAGER), await make(service, MANAGER)
        child, orphan = [await child_of(service, each["secret"]) for each in (parent, revoked)]

        def as_before(tx: Transaction) -> None:
            with tx.signed(ChangeOrigin(Actor("operator"))):
                stored, gone = tx.machine(parent["id"]), tx.machine(revoked["id"])
                assert stored is not None
                assert gone is not None
                tx.save_machine(replace(stored, permissions=frozenset({"tickets.read"})))
                tx.revoke_machine(gone.rowid, 1)

        await stores[0].write(as_before)
    async with running(tmp_path) as service:
        assert (await one(service, child))["permissions"] == ["tickets.read"]
        assert (await one(service, orphan))["revokedAt"] is not None
        (record,) = await records(service, object=orphan["id"], action="credential.revoked")
        assert record["actor"]["type"] == "system"
