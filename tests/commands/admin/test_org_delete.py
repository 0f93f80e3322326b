"""Deletion of an organisation: the deleted data, the data that stay, and the access that ends at once at a running server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import Result

from deskwire.commands.admin.client import send_command
from tests.commands.admin.conftest import Deskwire, good, listed
from tests.support.api.planted_texts import mark, vanished
from tests.support.api.service import Service, running
from tests.support.api.staff import client, code, hire
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.admin_socket import operate


@pytest.fixture
def shop(deskwire: Deskwire) -> Deskwire:
    """Return commands on a directory with two organisations; ada is an owner of both, bob a member of one."""
    for name in ("Acme", "Other"):
        good(deskwire("org", "create", name))
    good(deskwire("project", "create", "Shop", "--org", "Acme"))
    good(deskwire("user", "create", "ada@example.com", "--org", "Acme", "--role", "owner", "--one-time"))
    good(deskwire("user", "add", "ada@example.com", "--org", "Other", "--role", "owner", "--keep-password"))
    good(deskwire("user", "create", "bob@example.com", "--org", "Acme", "--role", "agent", "--one-time"))
    good(deskwire("key", "create", "--project", "Shop"))
    return deskwire


def organisations_of(deskwire: Deskwire) -> dict[str, list[str]]:
    """Return the names of each account's organisations."""
    return {
        each["email"]: [membership["name"] for membership in each["memberships"]]
        for each in listed(deskwire("user", "list", "--json"))
    }


def test_deleting_an_organisation_removes_its_empty_projects_and_memberships_and_keeps_accounts(
    shop: Deskwire,
) -> None:
    gone = shop("org", "delete", "Acme", "--yes")
    assert gone.exit_code == 0, gone.output
    assert gone.stdout.startswith("org_")
    assert gone.stderr == "The organisation Acme has been deleted.\n"
    assert [each["name"] for each in listed(shop("org", "list", "--json"))] == ["Other"]
    assert listed(shop("project", "list", "--json")) == []
    assert organisations_of(shop) == {"ada@example.com": ["Other"], "bob@example.com": []}
    (last,) = [
        each
        for each in listed_lines(shop("audit", "list", "--json"))
        if each["action"] == "organisation.deleted"
    ]
    assert (last["object"]["name"], last["actor"]["type"]) == ("Acme", "operator")
    assert shop("org", "delete", "Acme", "--yes").exit_code == 1
    assert shop("check").exit_code == 0


def test_account_without_an_organisation_gets_a_new_password_in_the_next_one(shop: Deskwire) -> None:
    good(shop("org", "delete", "Acme", "--yes"))
    adding = ("user", "add", "bob@example.com", "--org", "Other", "--role", "agent")
    refused = shop(*adding)
    assert (refused.exit_code, "an account of Acme" in refused.stderr) == (1, True)
    assert len(good(shop(*adding, "--yes"))) > 10


def listed_lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in good(result).splitlines()]


def test_accounts_without_other_memberships_are_deleted_on_request(shop: Deskwire) -> None:
    gone = shop("org", "delete", "Acme", "--with-accounts", "--yes")
    assert "with 1 account." in gone.stderr
    assert organisations_of(shop) == {"ada@example.com": ["Other"]}


def test_without_a_terminal_it_refuses_to_delete_and_lists_the_effects(shop: Deskwire) -> None:
    unasked = shop("org", "delete", "Acme")
    assert unasked.exit_code == 2
    for words in ("1 empty project", "2 memberships", "1 account will be members of nothing", "--yes"):
        assert words in unasked.stderr
    assert len(listed(shop("org", "list", "--json"))) == 2


@pytest.mark.parametrize(("typed", "left"), [("y\n", ["Other"]), ("n\n", ["Acme", "Other"])])
def test_command_asks_on_a_terminal(
    shop: Deskwire, monkeypatch: pytest.MonkeyPatch, typed: str, left: list[str]
) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    answer = shop("org", "delete", "Acme", input=typed)
    assert "Continue?" in answer.stderr
    assert answer.exit_code == (0 if typed == "y\n" else 1)
    assert [each["name"] for each in listed(shop("org", "list", "--json"))] == left


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Run a service on an empty directory."""
    async with running(tmp_path) as started:
        yield started


async def test_beside_a_server_keys_and_members_rights_end_at_once(service: Service) -> None:
    member = await hire(service, "agent")
    token = (await operate(service, "token.create", user=member["id"], ttlS=3_600))["token"]
    project = service.demo["projectId"]
    async with client(service, token) as http:
        assert (await http.get("/conversations", headers={"project": project})).status_code == 200
        assert (await service.http.get("/s2s/project")).status_code == 200
        gone = await operate(service, "org.delete", organisation="Demo organisation", withAccounts=True)
        assert len(gone["deletedUserIds"]) == 2
        assert code(await service.http.get("/s2s/project")) == (401, "revoked_server_key")
        assert code(await http.get("/users/me")) == (401, "invalid_token")
    assert (await operate(service, "org.list"))["items"] == []


async def test_organisation_with_data_in_a_project_stays_unchanged(service: Service) -> None:
    await service.create("u1")
    with trio.fail_after(HANG_TIMEOUT_S):
        refused = await refusal_of(service, "org.delete", organisation="Demo organisation")
    assert refused["code"] == "organisation_not_empty"
    assert "Demo project" in refused["detail"]
    assert (await service.http.get("/s2s/project")).status_code == 200
    assert [each["name"] for each in (await operate(service, "org.list"))["items"]] == ["Demo organisation"]


async def refusal_of(service: Service, operation: str, **arguments: object) -> dict[str, str]:
    """Return why an order was refused."""
    said = await trio.to_thread.run_sync(
        send_command, service.directory, operation, json.dumps(arguments).encode()
    )
    assert said is not None
    refusal: dict[str, str] = said["refusal"]
    return refusal


async def test_deleted_accounts_leave_no_byte(service: Service) -> None:
    await hire(service, "agent", f"{mark('address')}@example.com")
    await operate(service, "org.delete", organisation="Demo organisation", withAccounts=True)
    await vanished(service.directory, "address")
