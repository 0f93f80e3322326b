"""Deletion of staff accounts: the deleted data, the data that stay, and the accounts that can't be deleted (ADR 21)."""

from __future__ import annotations

from tests.api.tickets.test_teams import make_team
from tests.support.api.planted_texts import mark, vanished
from tests.support.api.service import Service
from tests.support.api.staff import PASSWORD, client, code, hire, organisation_of, person, sign_in
from tests.support.sockets.admin_socket import operate


async def test_deleting_the_account_ends_its_sessions_and_memberships(service: Service) -> None:
    async with person(service, "agent") as someone:
        team = await make_team(service, "Ones", members=[someone.id])
        assert (await someone.http.delete("/users/me")).json() == {"id": someone.id, "deleted": True}
        assert code(await someone.http.get("/users/me")) == (401, "invalid_token")
        assert code(await someone.http.delete("/users/me")) == (401, "invalid_token")
    assert (await sign_in(service, someone.email, PASSWORD)).status_code == 401
    members = await service.dashboard.get(f"/organisations/{await organisation_of(service)}/members")
    assert someone.id not in {item["id"] for item in members.json()["items"]}
    assert (await service.dashboard.get(f"/teams/{team['id']}")).json()["members"] == []


async def test_written_texts_stay_under_the_name_of_their_time(service: Service) -> None:
    conversation = await service.create()
    path = f"/conversations/{conversation['id']}/messages"
    async with person(service, "agent") as someone:
        project = {"project": service.demo["projectId"]}
        assert (await someone.http.post(path, json={"text": "Hello"}, headers=project)).status_code == 200
        await someone.http.delete("/users/me")
    (message,) = (await service.dashboard.get(path)).json()["items"]
    assert message["author"] == {"type": "agent", "id": someone.id, "name": "Agent"}


async def test_the_address_is_free_again_and_the_new_account_is_another_one(service: Service) -> None:
    async with person(service, "agent") as someone:
        old_token = someone.token
        await someone.http.delete("/users/me")
    again = await hire(service, "viewer", someone.email)
    assert again["id"] != someone.id
    async with client(service, old_token) as http:
        assert code(await http.get("/users/me")) == (401, "invalid_token")


async def test_the_last_owner_stays_until_there_is_another_one(service: Service) -> None:
    async with client(service, service.demo["token"]) as owner:
        assert code(await owner.delete("/users/me")) == (409, "last_owner")
        assert (await owner.get("/users/me")).status_code == 200
        await hire(service, "owner")
        assert (await owner.delete("/users/me")).status_code == 200


async def test_the_operator_deletes_an_account_of_which_no_byte_is_left(service: Service) -> None:
    email = f"{mark('address')}@example.com"
    hired = await hire(service, "agent", email)
    answer = await operate(service, "user.delete", user=email)
    assert answer["id"] == hired["id"]
    await vanished(service.directory, "address")
    listed = (await operate(service, "user.list"))["items"]
    assert hired["id"] not in {item["id"] for item in listed}
